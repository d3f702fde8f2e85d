"""The HTTP API: the answer of each route. Routes that only the real server has are refused."""

import hashlib
import ipaddress
import json
from collections.abc import Callable, Iterator

from .behaviour import Behaviour
from .create import CreateFailed, create
from .http import Request, Response, encode, json_response, text_response
from .inference import Inference
from .model import Json, Model, read_model
from .names import BadName, Name, Reference, parse_name, parse_pull_reference, parse_reference
from .pull import PullFailed, pull
from .runners import Runners
from .settings import Settings
from .store import BadDigest, Store

_NOT_SIMULATED = (
    "/api/push", "/api/embed", "/api/embeddings", "/api/me", "/api/signout", "/api/experimental/",
    "/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/responses", "/v1/messages",
    "/v1/models/", "/v1/images/", "/v1/audio/",
)  # fmt: skip


class ApiError(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Api:
    def __init__(
        self,
        settings: Settings,
        behaviour: Callable[[], Behaviour],
        refuse: Callable[[str], None],
    ) -> None:
        self._settings = settings
        self._behaviour = behaviour
        self._refuse = refuse
        self._store = Store(settings.models)
        self._runners = Runners(settings, behaviour())
        self._inference = Inference(self._runners)
        self._routes: dict[str, dict[str, Callable[[Request], Response]]] = {
            "/": {"GET": self._root, "HEAD": self._root},
            "/api/version": {"GET": self._version, "HEAD": self._version},
            "/api/status": {"GET": self._status},
            "/api/tags": {"GET": self._tags, "HEAD": self._tags},
            "/api/ps": {"GET": self._ps},
            "/api/show": {"POST": self._show},
            "/api/pull": {"POST": self._pull},
            "/api/create": {"POST": self._create},
            "/api/copy": {"POST": self._copy},
            "/api/delete": {"DELETE": self._delete},
            "/api/generate": {"POST": self._generate},
            "/api/chat": {"POST": self._chat},
            "/v1/models": {"GET": self._openai_models},
        }

    def handle(self, request: Request) -> Response:
        if not self._host_allowed(request.headers.get("host", "")):
            return Response(403)
        try:
            return self._route(request)
        except (ApiError, CreateFailed) as error:
            return json_response(error.status, {"error": str(error)})

    def _route(self, request: Request) -> Response:
        path = request.path
        if path.startswith("/api/blobs/") and request.method in ("HEAD", "POST"):
            return self._blob(request, path.removeprefix("/api/blobs/"))
        if path in self._routes:
            answer = self._routes[path].get(request.method)
            return answer(request) if answer else text_response(405, "405 method not allowed")
        if path.startswith(_NOT_SIMULATED):
            self._refuse(f"ollama: {request.method} {path} is not simulated")
            return json_response(501, {"error": f"not simulated: {request.method} {path}"})
        return text_response(404, "404 page not found")

    def _host_allowed(self, header: str) -> bool:
        """On loopback the server accepts only host names that cannot be used for DNS rebinding."""
        if self._settings.host not in ("127.0.0.1", "localhost", "::1"):
            return True
        host = header.rpartition(":")[0] if header.count(":") == 1 else header
        host = host.partition("]")[0].removeprefix("[").lower()
        if host in ("", "localhost") or host.endswith((".localhost", ".local", ".internal")):
            return True
        return _private_address(host)

    # --- server ---

    def _root(self, _request: Request) -> Response:
        return text_response(200, "Ollama is running", "text/plain; charset=utf-8")

    def _version(self, _request: Request) -> Response:
        return json_response(200, {"version": self._behaviour().version})

    def _status(self, _request: Request) -> Response:
        settings = self._settings
        cloud = {"disabled": settings.no_cloud, "source": settings.no_cloud_source}
        return json_response(200, {"cloud": cloud})

    # --- models on disk ---

    def _models(self) -> list[Model]:
        found = [read_model(self._store, manifest) for manifest in self._store.manifests()]
        return sorted(found, key=lambda model: int(model.manifest.modified), reverse=True)

    def _tags(self, _request: Request) -> Response:
        return json_response(200, {"models": [model.listed() for model in self._models()]})

    def _openai_models(self, _request: Request) -> Response:
        models = [_openai(model) for model in self._models()]
        answer = encode({"object": "list", "data": models or None})
        return Response(200, answer, "application/json")

    def _show(self, request: Request) -> Response:
        body = _body(request)
        text = _text(body, "model") or _text(body, "name")
        if not text:
            raise ApiError(400, "model is required")
        reference = _reference(text)
        if reference.source == "cloud":
            raise self._cloud_error("remote model details are unavailable")
        return json_response(200, self._find(reference, reference.base).shown())

    def _pull(self, request: Request) -> Response:
        body = _body(request)
        name = self._named(body, parse_pull_reference)
        behaviour = self._behaviour()
        return _streamed(body, pull(self._store, name, behaviour, not self._settings.no_prune))

    def _create(self, request: Request) -> Response:
        body = _body(request)
        try:
            name = parse_name(_text(body, "model") or _text(body, "name"))
        except BadName:
            raise ApiError(400, "invalid model name") from None

        def pulled(base: Name) -> Iterator[Json]:
            return pull(self._store, base, self._behaviour(), not self._settings.no_prune)

        return _streamed(body, create(self._store, self._store.existing_name(name), body, pulled))

    def _copy(self, request: Request) -> Response:
        body = _body(request)
        names = []
        for key in ("source", "destination"):
            try:
                names.append(self._store.existing_name(parse_name(_text(body, key))))
            except BadName:
                raise ApiError(400, f"{key} {json.dumps(_text(body, key))} is invalid") from None
        raw = self._store.raw_manifest(names[0])
        if raw is None:
            raise ApiError(404, f"model {json.dumps(_text(body, 'source'))} not found")
        if names[0] != names[1]:
            self._store.write_raw_manifest(names[1], raw)
        return Response(200)

    def _delete(self, request: Request) -> Response:
        body = _body(request)
        text = _text(body, "model") or _text(body, "name")
        try:
            name = self._store.existing_name(parse_pull_reference(text).name)
        except BadName as error:
            invalid = str(error) == "invalid model name"
            message = f"name {json.dumps(text)} is invalid" if invalid else str(error)
            raise ApiError(400, message) from None
        manifest = self._store.manifest(name)
        if manifest is None:
            raise ApiError(404, f"model '{text}' not found")
        self._store.remove(manifest)
        return Response(200)

    def _blob(self, request: Request, digest: str) -> Response:
        try:
            exists = self._store.has_blob(digest)
        except BadDigest as error:
            raise ApiError(400, str(error)) from None
        if request.method == "HEAD" or exists:
            return Response(200 if exists else 404)
        got = "sha256:" + hashlib.sha256(request.body).hexdigest()
        if got != digest:
            raise ApiError(400, f'digest mismatch, expected "{digest}", got "{got}"')
        self._store.add_blob(request.body, "")
        return Response(201)

    # --- models in memory ---

    def _ps(self, _request: Request) -> Response:
        return json_response(200, {"models": self._runners.listed()})

    def _generate(self, request: Request) -> Response:
        return self._infer(request, "generate")

    def _chat(self, request: Request) -> Response:
        return self._infer(request, "chat")

    def _infer(self, request: Request, kind: str) -> Response:
        body = _body(request)
        text = _text(body, "model")
        if not text.strip():
            message = f"model '{text}' not found" if kind == "generate" else "model is required"
            raise ApiError(404 if kind == "generate" else 400, message)
        reference = _reference(text)
        if reference.source == "cloud":
            raise self._cloud_error("remote model is unavailable")
        model = self._find(reference, text)
        if model.remote:
            raise self._cloud_error("remote model is unavailable")
        try:
            answers = self._inference.answers(kind, text, model, body)
        except ValueError as error:
            raise ApiError(400, str(error)) from None
        if isinstance(answers, dict):
            return json_response(200, answers)
        return Response(200, (encode(one) + b"\n" for one in answers), "application/x-ndjson")

    # --- private ---

    def _find(self, reference: Reference, text: str) -> Model:
        manifest = self._store.manifest(self._store.existing_name(reference.name))
        if manifest is None:
            raise ApiError(404, f"model '{text}' not found")
        return read_model(self._store, manifest)

    def _named(self, body: Json, parse: Callable[[str], Reference]) -> Name:
        try:
            return self._store.existing_name(
                parse(_text(body, "model") or _text(body, "name")).name
            )
        except BadName as error:
            conflict = "not both" in str(error)
            raise ApiError(400, str(error) if conflict else "invalid model name") from None

    def _cloud_error(self, operation: str) -> ApiError:
        if self._settings.no_cloud:
            return ApiError(403, f"ollama cloud is disabled: {operation}")
        return ApiError(502, "the simulated server has no cloud")


def _streamed(body: Json, progress: Iterator[Json]) -> Response:
    """Progress as a stream, or only its last object if the client asked for no stream."""
    if body.get("stream") is not False:
        first = next(progress)  # an error before the first object still gets its own status code
        return Response(200, _lines(first, progress), "application/x-ndjson")
    try:
        return json_response(200, list(progress)[-1])
    except PullFailed as error:
        raise ApiError(500, str(error)) from None


def _lines(first: Json, rest: Iterator[Json]) -> Iterator[bytes]:
    yield encode(first) + b"\n"
    try:
        for one in rest:
            yield encode(one) + b"\n"
    except (PullFailed, CreateFailed) as error:
        yield encode({"error": str(error)}) + b"\n"


def _body(request: Request) -> Json:
    if not request.body:
        raise ApiError(400, "missing request body")
    try:
        body = json.loads(request.body)
    except ValueError as error:
        raise ApiError(400, f"invalid character: {error}") from None
    if not isinstance(body, dict):
        raise ApiError(400, "json: cannot unmarshal into Go value of type api.Request")
    return body


def _text(body: Json, key: str) -> str:
    value = body.get(key) or ""
    if not isinstance(value, str):
        raise ApiError(400, f"json: cannot unmarshal into Go struct field .{key} of type string")
    return value


def _reference(text: str) -> Reference:
    try:
        return parse_reference(text)
    except BadName as error:
        raise ApiError(400, str(error)) from None


def _openai(model: Model) -> Json:
    return {
        "id": model.name.shortest,
        "object": "model",
        "created": int(model.manifest.modified),
        "owned_by": model.name.namespace,
    }


def _private_address(host: str) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return address.is_loopback or address.is_private or address.is_unspecified
