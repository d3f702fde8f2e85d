"""`ollama serve`: listens, writes the log of a start, then serves or fails as its behaviour
defines."""

import errno
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Mapping
from functools import partial

from . import log
from .api import Api
from .behaviour import GIB, Behaviour, read_behaviour
from .http import serve as serve_http
from .settings import Settings, joined, read_settings
from .store import Store

_ANY = ("0.0.0.0", "::", "")
_POLL_SECONDS = 0.3
_LOOPBACK = ("127.0.0.1", "localhost", "::1", *_ANY)


def serve(folder: str, environ: Mapping[str, str]) -> int:
    """Run the server. `folder` has the behaviour file and the log of refusals."""
    behaviour_file = os.path.join(folder, "ollama.json")
    behaviour = read_behaviour(behaviour_file)
    faulty = behaviour.faulty(environ)
    settings = read_settings(environ)
    try:
        listener = _listen(settings, behaviour)
        _log_config(settings)
        _prepare(settings)
    except OSError as error:
        print(f"Error: {error.strerror}", file=sys.stderr)
        return 1
    if faulty and behaviour.crash_on_start:
        print("panic: simulated crash on start", file=sys.stderr)
        return 2
    _handle_signals(ignore_term=faulty and behaviour.ignore_term)
    threading.Thread(target=exit_with_supervisor, args=(folder,), daemon=True).start()
    if faulty and behaviour.crash_after:
        threading.Thread(target=_crash, args=(behaviour.crash_after,), daemon=True).start()
    # as the real server: it logs that it listens and accepts connections before it answers
    _log_listening(settings, behaviour)
    time.sleep(behaviour.start_seconds)
    _log_hardware(behaviour)
    while faulty and behaviour.never_answer:
        time.sleep(3600)
    api = Api(settings, lambda: read_behaviour(behaviour_file), partial(log.refuse, folder))
    serve_http(listener, api.handle)
    return 0


def loopback_address(settings: Settings, behaviour: Behaviour) -> tuple[str, int]:
    """The address to bind: always on loopback, whatever the setting."""
    host = "::1" if settings.host == "::1" else "127.0.0.1"
    return host, behaviour.ports.get(str(settings.port), settings.port)


def _listen(settings: Settings, behaviour: Behaviour) -> socket.socket:
    shown = joined(settings.host, settings.port)
    if settings.host not in (*_LOOPBACK, *behaviour.addresses):
        numeric = settings.host.replace(".", "").isdigit() or ":" in settings.host
        unassigned = f"listen tcp {shown}: bind: cannot assign requested address"
        unknown = f"listen tcp: lookup {settings.host}: no such host"
        raise OSError(errno.EADDRNOTAVAIL, unassigned if numeric else unknown)
    address = loopback_address(settings, behaviour)
    listener = socket.socket(socket.AF_INET6 if ":" in address[0] else socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
    except OSError as error:
        reason = "address already in use" if error.errno == errno.EADDRINUSE else error.strerror
        raise OSError(error.errno, f"listen tcp {shown}: bind: {reason}") from None
    listener.listen(128)
    return listener


def _log_config(settings: Settings) -> None:
    log.info("routes.go:1802", "server config", env=log.go_map(settings.shown))
    disabled = settings.shown["OLLAMA_NO_CLOUD"]
    log.info("routes.go:1804", f"Ollama cloud disabled: {disabled}")


def _prepare(settings: Settings) -> None:
    store = Store(settings.models)
    try:
        store.make_folders()
    except OSError as error:
        reason = f"mkdir {error.filename}: {(error.strerror or '').lower()}"
        raise OSError(error.errno, f"{reason}: ensure path elements are traversable") from None
    if not settings.no_prune:
        log.info("images.go:517", f"total blobs: {store.prune()}")
        log.info("images.go:524", "total unused blobs removed: 0")


def _log_listening(settings: Settings, behaviour: Behaviour) -> None:
    host = "[::]" if settings.host in _ANY else settings.host
    listening = f"Listening on {host}:{settings.port} (version {behaviour.version})"
    log.info("routes.go:1864", listening)


def _log_hardware(behaviour: Behaviour) -> None:
    library = behaviour.gpu if behaviour.vram else "cpu"
    total = f"{behaviour.vram / GIB:.1f} GiB"
    log.info(
        "types.go:42" if behaviour.vram else "types.go:60",
        "inference compute",
        id="GPU-0" if behaviour.vram else "cpu",
        library=library,
        name=f"{behaviour.gpu}0" if behaviour.vram else "cpu",
        type="discrete" if behaviour.vram else "",
        total=total,
        available=total,
    )
    vram = total if behaviour.vram else "0 B"
    context = behaviour.default_context
    message = "vram-based default context"
    log.info("routes.go:1914", message, total_vram=vram, default_num_ctx=context)


def _handle_signals(*, ignore_term: bool) -> None:
    def leave(_number: int, _frame: object) -> None:
        os._exit(0)

    signal.signal(signal.SIGINT, leave)
    signal.signal(signal.SIGTERM, signal.SIG_IGN if ignore_term else leave)


def exit_with_supervisor(folder: str) -> None:
    """Exit when the process that simulates this machine has ended; nothing else would end us."""
    try:
        with open(os.path.join(folder, "supervisor.pid"), encoding="utf-8") as file:
            supervisor = int(file.read())
    except FileNotFoundError:
        return  # the server runs without a machine
    while os.path.exists(f"/proc/{supervisor}"):
        time.sleep(_POLL_SECONDS)
    os._exit(1)


def _crash(seconds: float) -> None:
    time.sleep(seconds)
    print("panic: simulated crash", file=sys.stderr, flush=True)
    os._exit(2)
