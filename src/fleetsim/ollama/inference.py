"""Generate and chat: loading, unloading, and one fixed answer."""

import time
from collections.abc import Iterator

from .model import Json, Model
from .runners import Runners, request_keep_alive

_ANSWER = ("This", " is", " a", " simulated", " answer", ".")


class Inference:
    def __init__(self, runners: Runners) -> None:
        self._runners = runners

    def answers(self, kind: str, name: str, model: Model, body: Json) -> Json | Iterator[Json]:
        """One answer, or a stream of them; ValueError for a request that the server rejects."""
        keep_alive = request_keep_alive(body.get("keep_alive"))
        prompt = body.get("prompt" if kind == "generate" else "messages")
        if not prompt and keep_alive == 0:
            self._runners.unload(model)
            return _answer(kind, name, "", done_reason="unload")
        _check_capabilities(kind, name, model, body)
        options = body.get("options")
        options = options if isinstance(options, dict) else {}
        started = time.monotonic_ns()
        finished = self._runners.use(model, options, keep_alive)
        loaded = time.monotonic_ns() - started
        if not prompt:
            finished()
            return _answer(kind, name, "", done_reason="load")
        words = _words(options)
        reason = "stop" if words == _ANSWER else "length"
        metrics = {
            **({"context": [1] * len(words)} if kind == "generate" else {}),
            "total_duration": max(time.monotonic_ns() - started, 1),
            "load_duration": max(loaded, 1),
            "prompt_eval_count": len(str(prompt).split()),
            "prompt_eval_duration": 1_000_000,
            "eval_count": len(words),
            "eval_duration": 1_000_000 * len(words),
        }
        if body.get("stream") is False:
            finished()
            return {**_answer(kind, name, "".join(words), done_reason=reason), **metrics}
        last = {**_answer(kind, name, "", done_reason=reason), **metrics}

        def stream() -> Iterator[Json]:
            try:
                for word in words:
                    yield _answer(kind, name, word)
                yield last
            finally:
                finished()

        return stream()


def _check_capabilities(kind: str, name: str, model: Model, body: Json) -> None:
    able = model.capabilities()
    if "completion" not in able:
        raise ValueError(f'"{name}" does not support {kind}')
    if body.get("think") and "thinking" not in able:
        raise ValueError(f'"{name}" does not support thinking')
    if kind == "chat" and body.get("tools") and "tools" not in able:
        host, namespace, base, tag = model.name
        raise ValueError(f"{host}/{namespace}/{base}:{tag} does not support tools")


def _words(options: Json) -> tuple[str, ...]:
    limit = options.get("num_predict")
    return _ANSWER[:limit] if isinstance(limit, int) and limit > 0 else _ANSWER


def _answer(kind: str, name: str, text: str, done_reason: str = "") -> Json:
    content: Json = {"response": text}
    if kind == "chat":
        content = {"message": {"role": "assistant", "content": text}}
    done: Json = {"done": bool(done_reason)}
    if done_reason:
        done["done_reason"] = done_reason
    # the real server drops trailing zeros of the fraction; parsers read nine digits the same
    now = time.time()
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now % 1 * 1e9):09d}Z"
    return {"model": name, "created_at": stamp, **content, **done}
