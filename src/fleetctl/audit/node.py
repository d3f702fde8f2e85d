"""The server and its settings on one node."""

from pathlib import PurePosixPath

from fleetctl.audit import Audited, Found, check
from fleetctl.model import address, ollama_log, variables
from fleetctl.model.facts import Unknown
from fleetctl.model.plan import Level
from fleetctl.services import rival


@check("OL001", Level.NOTE, "another run is at work")
def _busy(audited: Audited) -> Found:
    if owner := audited.facts.host.locked_by:
        yield f"a run of {owner} is changing this node now", None


@check("OL009", Level.OBSTACLE, "more than one server")
def _other_servers(audited: Audited) -> Found:
    service = audited.service
    if service is None or service.blocked:
        return
    other = rival(service, audited.facts) if audited.node.takeover else None
    known = (service.pid, other and other.pid)
    for server in audited.facts.host.servers:
        if server.pid in known or server.unit == PurePosixPath(service.definition).name:
            continue
        by = f", in {server.unit}" if server.unit else ""
        text = f"another Ollama serves here: pid {server.pid} of user {server.uid}{by}"
        yield text, "stop one of the two"


@check("OL013", Level.WARNING, "the running server has a variable that no file sets")
def _left_over(audited: Audited) -> Found:
    service = audited.service
    if service is None or not service.active or isinstance(service.environment, Unknown):
        return
    sourced = (variable for source in service.sources for variable in source.values)
    still = {*service.spec.env, *sourced}
    for variable, value in service.environment.items():
        if variable.startswith("OLLAMA_") and variable not in still:
            text = f"Ollama runs with {variable}={value}, which no file of its service sets"
            yield text, "restart it there to drop the variable"


@check("OL014", Level.NOTE, "another file sets a managed variable too, and ours wins")
def _losing_sources(audited: Audited) -> Found:
    yield from ((f"{text} too; fleetctl's file wins", None) for text, _ in _sources(audited, False))


@check("OL015", Level.OBSTACLE, "another file sets a managed variable, and wins over ours")
def _winning_sources(audited: Audited) -> Found:
    for text, variable in _sources(audited, True):
        yield f"{text}, and wins over fleetctl's file", f"remove {variable} from that file"


def _sources(audited: Audited, wins: bool) -> list[tuple[str, str]]:
    wanted = audited.node.environment
    return [
        (f"{source.path} sets {variable}={value}", variable)
        for source in (audited.service.sources if audited.service else ())
        if not source.ours and source.wins == wins
        for variable, value in source.values.items()
        if variable in wanted and not variables.agrees(variable, wanted[variable], value)
    ]


@check("OL016", Level.UNKNOWN, "a file of the service cannot be read")
def _unread_sources(audited: Audited) -> Found:
    service = audited.service
    if service is None:
        return
    host = audited.facts.host
    ours = {host.expanded(file.path) for file in service.spec.files}
    for source in service.sources:
        file = service.files.get(source.path)
        if file and isinstance(file.content, Unknown) and source.path not in ours:
            yield f"what {source.path} sets is not known, because {file.content.why}", None


@check("OL020", Level.OBSTACLE, "Ollama should listen on an address that the machine does not have")
def _listens_elsewhere(audited: Audited) -> Found:
    where, _ = address.place_of(audited.node.listens)
    known = audited.facts.host.addresses
    if audited.service is None or isinstance(known, Unknown) or not address.is_address(where):
        return
    if where not in known and not address.is_loopback(where):
        text = f"ollama.host is {where}, which is not an address of this machine"
        yield text, f"it has {', '.join(known)}"


@check("OL037", Level.WARNING, "Ollama does not use the GPU of a Mac")
def _without_gpu(audited: Audited) -> Found:
    """macOS gives the GPU to the session at the screen; others may not get it."""
    host, service = audited.facts.host, audited.service
    devices = ollama_log.devices(service) if service and service.active else []
    mac = host.machine == "arm64" and host.system == "Darwin"
    if mac and devices and "Metal" not in devices:
        text = f"Ollama does not use the GPU: its log names {', '.join(devices)}"
        yield text, "it may need a user logged in at the screen"
