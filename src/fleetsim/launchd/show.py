"""The output of `launchctl print`, `list` and `print-disabled`: blocks in braces, one tab per
level.

As on a real Mac, the coalition blocks repeat keys of the job itself, so a parser that ignores the
indentation is wrong here too."""

import signal
from collections.abc import Iterator, Mapping

from fleetsim.launchd.job import Job
from fleetsim.launchd.launchd import SYSTEM, Domain, Launchd

_SYSEXITS = (
    "EX_USAGE", "EX_DATAERR", "EX_NOINPUT", "EX_NOUSER", "EX_NOHOST", "EX_UNAVAILABLE",
    "EX_SOFTWARE", "EX_OSERR", "EX_OSFILE", "EX_CANTCREAT", "EX_IOERR", "EX_TEMPFAIL",
    "EX_PROTOCOL", "EX_NOPERM", "EX_CONFIG",
)  # fmt: skip
_FIRST_SYSEXIT = 64
_SPAWN_TYPES = {"": "daemon (3)", "Interactive": "interactive (4)", "Background": "background (5)"}


def format_job(launchd: Launchd, domain: Domain, job: Job) -> str:
    full = f"{domain.name}/{job.definition.label}"
    header = full if launchd.variant.full_header else job.definition.label
    return _block(header, _job_lines(launchd, domain, job))


def _job_lines(launchd: Launchd, domain: Domain, job: Job) -> Iterator[str]:
    definition, state = job.definition, job.state
    is_daemon = domain.kind == SYSTEM
    yield f"active count = {1 if state.pid else 0}"
    yield f"path = {definition.path}"
    yield f"type = {'LaunchDaemon' if is_daemon else 'LaunchAgent'}"
    yield f"state = {state.name}"
    yield ""
    yield f"program = {definition.program}"
    yield from _lines("arguments", definition.arguments)
    for name, value in {
        "working directory": definition.working_directory,
        "stdout path": definition.stdout,
        "stderr path": definition.stderr,
    }.items():
        if value:
            yield f"{name} = {value}"
    yield from _pairs("inherited environment", domain.environment)
    yield from _pairs("default environment", {"PATH": launchd.site.path})
    own = {
        "OSLogRateLimit": "64",
        **definition.environment,
        "XPC_SERVICE_NAME": definition.label,
    }
    yield from _pairs("environment", own)
    yield f"domain = {domain.name}" + (f" [{domain.asid}]" if domain.asid else "")
    if domain.asid:
        yield f"asid = {domain.asid}"
    if is_daemon and definition.user:
        yield f"username = {definition.user}"
    yield f"minimum runtime = {definition.throttle}"
    yield f"exit timeout = {definition.exit_timeout}"
    yield f"runs = {state.runs}"
    if state.crashes:
        yield f"successive crashes = {state.crashes}"
    if state.pid:
        yield f"pid = {state.pid}"
        yield f"immediate reason = {'speculative' if state.runs == 1 else 'inefficient'}"
        yield "forks = 1"
        yield "execs = 1"
    yield _last_exit(state.last_exit)
    yield ""
    for kind in ("resource", "jetsam"):
        yield from _lines(f"{kind} coalition", _coalition(kind, definition.label, bool(state.pid)))
    yield f"spawn type = {_SPAWN_TYPES.get(definition.process_type, 'daemon (3)')}"
    yield ""
    yield f"properties = {definition.properties}"


def _coalition(kind: str, label: str, active: bool) -> Iterator[str]:
    yield "ID = 1234"
    yield f"type = {kind}"
    yield f"state = {'active' if active else 'inactive'}"
    yield f"active count = {1 if active else 0}"
    yield f"name = {label}"


def _last_exit(code: int | None) -> str:
    if code is None:
        return "last exit code = (never exited)"
    if code < 0:
        return f"last terminating signal = {signal.strsignal(-code)}: {-code}"
    if code in range(_FIRST_SYSEXIT, _FIRST_SYSEXIT + len(_SYSEXITS)):
        return f"last exit code = {code}: {_SYSEXITS[code - _FIRST_SYSEXIT]}"
    return f"last exit code = {code}"


def format_domain(launchd: Launchd, domain: Domain) -> str:
    return _block(domain.name, _domain_lines(launchd, domain))


def _domain_lines(launchd: Launchd, domain: Domain) -> Iterator[str]:
    yield f"type = {'login' if domain.kind == 'gui' else domain.kind}"
    yield f"handle = {domain.asid or (domain.user.uid if domain.user else 0)}"
    yield f"active count = {len(list(domain.running()))}"
    yield f"session = {domain.session}"
    yield from _pairs("environment", domain.environment)
    yield from _lines("services", _services(domain))
    stored = launchd.disabled.all(launchd.owner(domain.name))
    yield from _lines("disabled services", _switches(stored))


def _services(domain: Domain) -> Iterator[str]:
    for label, job in domain.jobs.items():
        status = "-" if job.state.last_exit is None else str(job.state.last_exit)
        yield f"{job.state.pid:>8} {status:>6} \t{label}"


def format_disabled(stored: Mapping[str, bool]) -> str:
    associations = _block("login item associations", [])
    return _block("disabled services", _switches(stored)) + associations


def _switches(stored: Mapping[str, bool]) -> Iterator[str]:
    for label, disabled in stored.items():
        yield f'"{label}" => {"disabled" if disabled else "enabled"}'


def format_list(domain: Domain) -> str:
    """The table of `launchctl list`; a negative status is a signal."""
    rows = [
        f"{job.state.pid or '-'}\t{job.state.last_exit or 0}\t{label}\n"
        for label, job in domain.jobs.items()
    ]
    return "PID\tStatus\tLabel\n" + "".join(rows)


def format_listed_job(domain: Domain, job: Job) -> str:
    definition, state = job.definition, job.state
    last = state.last_exit or 0
    # the status as wait(2) encodes it
    raw = -last if last < 0 else last << 8
    lines = [
        f'"StandardOutPath" = "{definition.stdout}";' if definition.stdout else "",
        f'"LimitLoadToSessionType" = "{domain.session}";',
        f'"StandardErrorPath" = "{definition.stderr}";' if definition.stderr else "",
        f'"Label" = "{definition.label}";',
        '"OnDemand" = ' + ("false;" if definition.keep_alive else "true;"),
        f'"LastExitStatus" = {raw};',
        f'"PID" = {state.pid};' if state.pid else "",
        f'"Program" = "{definition.program}";',
        '"ProgramArguments" = (',
        *(f'\t"{argument}";' for argument in definition.arguments),
        ");",
    ]
    return "{\n" + "".join(f"\t{line}\n" for line in lines if line) + "};\n"


def _pairs(name: str, values: Mapping[str, str]) -> Iterator[str]:
    return _lines(name, (f"{key} => {value}" for key, value in values.items()))


def _lines(name: str, lines: "Iterator[str] | tuple[str, ...]") -> Iterator[str]:
    yield f"{name} = {{"
    yield from (f"\t{line}" for line in lines)
    yield "}"
    yield ""


def _block(name: str, lines: "Iterator[str] | list[str]") -> str:
    return f"{name} = {{\n" + "".join(f"\t{line}\n" if line else "\n" for line in lines) + "}\n"
