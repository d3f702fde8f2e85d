"""`launchctl`: its verbs, targets, messages and exit codes."""

import contextlib
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from fleetsim.launchd.launchd import SYSTEM, Launchd
from fleetsim.launchd.show import (
    format_disabled,
    format_domain,
    format_job,
    format_list,
    format_listed_job,
)
from fleetsim.launchd.variant import TEXTS, LaunchError
from fleetsim.tools.calls import Answer, Call, Refused

_USAGE = 64
_NOT_ROOT = "You must be root to run a command as another user."
_RICHER = "Try re-running the command as root for richer errors.\n"


class _VerbFailed(Exception):
    """A verb failed with this message and exit code."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.answer = Answer(err=f"{message}\n", code=code)


@dataclass(frozen=True, slots=True)
class _Target:
    domain: str
    label: str

    @property
    def described(self) -> str:
        kind, _, uid = self.domain.partition("/")
        return f"for user {kind}: {uid}" if uid else f"for {kind}"


@dataclass(frozen=True, slots=True)
class Launchctl:
    launchd: Launchd

    def __call__(self, call: Call) -> Answer:
        verb, *arguments = call.arguments or [""]
        verbs: dict[str, Callable[[Call, list[str]], Answer]] = {
            "bootstrap": self._bootstrap,
            "bootout": self._bootout,
            "kickstart": self._kickstart,
            "kill": self._kill,
            "enable": self._enable,
            "disable": self._disable,
            "print": self._print,
            "print-disabled": self._print_disabled,
            "list": self._list,
            "load": self._load,
            "unload": self._unload,
            "start": self._start,
            "stop": self._stop,
            "managername": self._managername,
            "manageruid": self._manageruid,
            "getenv": self._getenv,
            "setenv": self._setenv,
            "unsetenv": self._unsetenv,
            "asuser": self._asuser,
        }
        if verb not in verbs:
            raise Refused(f"verb {verb}")
        try:
            return verbs[verb](call, arguments)
        except _VerbFailed as failure:
            return failure.answer

    # --- loading, starting, stopping ---

    def _bootstrap(self, call: Call, arguments: list[str]) -> Answer:
        if len(arguments) < 2:
            _usage()
        target = _domain_target(arguments[0])
        paths = [_path(call, name) for name in arguments[1:]]
        try:
            # without root bootstrap exits 5, the other verbs 1
            self._allow(call, target, LaunchError(5))
            for path in paths:
                self.launchd.bootstrap(target.domain, path)
        except LaunchError as error:
            named = f"{paths[0]}: {TEXTS[error.code]}\n" if error.code in (37, 119, 134) else ""
            richer = _RICHER if error.code == 5 and call.uid != 0 else ""
            return Answer(err=f"{named}Bootstrap failed: {error}\n{richer}", code=error.code)
        return Answer()

    def _bootout(self, call: Call, arguments: list[str]) -> Answer:
        wait = arguments[:1] == ["--wait"]
        if wait:
            if not self.launchd.variant.bootout_wait:
                _usage()
            arguments = arguments[1:]
        target, *paths = _target(arguments[0] if arguments else ""), *arguments[1:]
        if not target.label and not paths:
            raise Refused("bootout of a whole domain")
        with self._failing("Boot-out failed: {}"):
            self._allow(call, target, LaunchError(1))
            for label in [self._label_of(call, target, path) for path in paths] or [target.label]:
                self.launchd.bootout(target.domain, label, wait=wait)
        return Answer()

    def _label_of(self, call: Call, target: _Target, name: str) -> str:
        """The label of the job that was loaded from this file. If none was: input/output error."""
        path = str(_path(call, name))
        with self.launchd.locked():
            for label, job in self.launchd.domain(target.domain).jobs.items():
                if job.definition.path == path:
                    return label
        raise LaunchError(5)

    def _kickstart(self, call: Call, arguments: list[str]) -> Answer:
        flags = "".join(word[1:] for word in arguments if word.startswith("-"))
        words = [word for word in arguments if not word.startswith("-")]
        if set(flags) - set("kp"):
            raise Refused(f"kickstart -{flags}")
        target = _service_target(words)
        with self._failing(f'Could not kickstart service "{target.label}": {{}}', target):
            self._allow(call, target, LaunchError(1))
            with self.launchd.job(target.domain, target.label) as (_, job):
                job.restart() if "k" in flags else job.start()
                # on a terminal it prints more
                spawned = f"{job.state.pid}\n"
        return Answer(spawned if "p" in flags else "")

    def _kill(self, call: Call, arguments: list[str]) -> Answer:
        if len(arguments) != 2:
            _usage()
        number = arguments[0].removeprefix("SIG")
        name = f"SIG{number}"
        if number.isdecimal():
            name = signal.Signals(int(number)).name
        if name not in signal.Signals.__members__:
            raise Refused(f"signal {arguments[0]}")
        target = _service_target(arguments[1:])
        with self._failing(f'Could not kill service "{target.label}": {{}}', target):
            self._allow(call, target, LaunchError(1))
            with self.launchd.job(target.domain, target.label) as (_, job):
                if not job.state.pid:
                    raise LaunchError(3)
                job.signal(signal.Signals[name])
        return Answer()

    # --- enabling and disabling ---

    def _enable(self, call: Call, arguments: list[str]) -> Answer:
        return self._switch(call, arguments, "enable")

    def _disable(self, call: Call, arguments: list[str]) -> Answer:
        return self._switch(call, arguments, "disable")

    def _switch(self, call: Call, arguments: list[str], verb: str) -> Answer:
        """Accepts unknown labels, and works without a login at the screen."""
        target = _service_target(arguments)
        with self._failing(f"Could not {verb} service: {{}}"):
            self._allow(call, target, LaunchError(1))
            owner = self.launchd.owner(target.domain)
            self.launchd.disabled.set(owner, target.label, verb == "disable")
        return Answer()

    def _print_disabled(self, call: Call, arguments: list[str]) -> Answer:
        target = _domain_target(*arguments)
        return Answer(format_disabled(self.launchd.disabled.all(self.launchd.owner(target.domain))))

    # --- printing ---

    def _print(self, call: Call, arguments: list[str]) -> Answer:
        if len(arguments) != 1:
            _usage()
        target = _target(arguments[0])
        with self._failing("Could not print domain: {}", target):
            if target.label:
                with self.launchd.job(target.domain, target.label) as (domain, job):
                    return Answer(format_job(self.launchd, domain, job))
            with self.launchd.locked():
                return Answer(format_domain(self.launchd, self.launchd.domain(target.domain)))

    def _list(self, call: Call, arguments: list[str]) -> Answer:
        with self.launchd.locked():
            own = self.launchd.domain_of(call.pid, call.uid)
            if not arguments:
                return Answer(format_list(own))
            (label,) = arguments
            if label not in own.jobs:
                return self._not_found(label, "for port")
            return Answer(format_listed_job(own, own.jobs[label]))

    # --- legacy verbs, which guess the domain and never fail ---

    def _load(self, call: Call, arguments: list[str]) -> Answer:
        return self._by_path(call, arguments, "Load")

    def _unload(self, call: Call, arguments: list[str]) -> Answer:
        return self._by_path(call, arguments, "Unload")

    def _by_path(self, call: Call, arguments: list[str], verb: str) -> Answer:
        words = [word for word in arguments if word != "-w"]
        if not words or any(word.startswith("-") for word in words):
            raise Refused(f"{verb.lower()} {' '.join(arguments)}")
        if "-w" in arguments:
            raise Refused("-w, which also writes the store of what is disabled")
        errors = ""
        own = self.launchd.domain_of(call.pid, call.uid)
        target = _Target(own.name, "")
        for name in words:
            try:
                if verb == "Load":
                    self.launchd.bootstrap(own.name, _path(call, name))
                else:
                    self.launchd.bootout(own.name, self._label_of(call, target, name))
            except LaunchError:
                errors += f"{verb} failed: 5: Input/output error\n"
        return Answer(err=errors)

    def _start(self, call: Call, arguments: list[str]) -> Answer:
        return self._by_label(call, arguments, start=True)

    def _stop(self, call: Call, arguments: list[str]) -> Answer:
        return self._by_label(call, arguments, start=False)

    def _by_label(self, call: Call, arguments: list[str], *, start: bool) -> Answer:
        """Takes a bare label; a target with a domain silently matches nothing."""
        if len(arguments) != 1:
            _usage()
        own = self.launchd.domain_of(call.pid, call.uid)
        with (
            contextlib.suppress(LaunchError),
            self.launchd.job(own.name, arguments[0]) as (_, job),
        ):
            job.start() if start else job.stop()
            return Answer()
        return Answer(code=0 if "/" in arguments[0] else 3)

    # --- the caller's own domain ---

    def _managername(self, call: Call, arguments: list[str]) -> Answer:
        return Answer(f"{self.launchd.domain_of(call.pid, call.uid).session}\n")

    def _manageruid(self, call: Call, arguments: list[str]) -> Answer:
        user = self.launchd.domain_of(call.pid, call.uid).user
        return Answer(f"{user.uid if user else 0}\n")

    def _getenv(self, call: Call, arguments: list[str]) -> Answer:
        (name,) = arguments or _usage()
        value = self.launchd.domain_of(call.pid, call.uid).environment.get(name)
        return Answer("" if value is None else f"{value}\n")

    def _setenv(self, call: Call, arguments: list[str]) -> Answer:
        if len(arguments) < 2 or len(arguments) % 2:
            _usage()
        own = self.launchd.domain_of(call.pid, call.uid)
        own.environment.update(zip(arguments[::2], arguments[1::2], strict=True))
        return Answer()

    def _unsetenv(self, call: Call, arguments: list[str]) -> Answer:
        own = self.launchd.domain_of(call.pid, call.uid)
        for name in arguments or _usage():
            own.environment.pop(name, None)
        return Answer()

    def _asuser(self, call: Call, arguments: list[str]) -> Answer:
        """Run a command in another user's domain; it keeps its own uid and environment."""
        if call.uid != 0:
            raise _VerbFailed(_NOT_ROOT, 1)
        if len(arguments) < 2 or not arguments[0].isdecimal():
            _usage()
        uid, *command = arguments
        with self.launchd.locked():
            screen = self.launchd.console
            kind = "gui" if screen and screen.uid == int(uid) else "user"
            with self._failing("Could not switch to audit session: {}"):
                self.launchd.move_process(call.pid, self.launchd.domain(f"{kind}/{uid}"))
        return Answer(exec_argv=tuple(command))

    # --- private ---

    def _allow(self, call: Call, target: _Target, error: LaunchError) -> None:
        """Users may change their own domains, root all of them."""
        if call.uid != 0 and target.domain.partition("/")[2] != str(call.uid):
            raise error

    @contextlib.contextmanager
    def _failing(self, message: str, target: _Target | None = None) -> Iterator[None]:
        try:
            yield
        except LaunchError as error:
            if target and error.code == 112:
                request = "Bad request.\n" if self.launchd.variant.bad_request else ""
                where = f"{request}Could not find domain {target.described}"
                raise _VerbFailed(where, error.code) from None
            if target and error.code == 113:
                answer = self._not_found(target.label, target.described)
                raise _VerbFailed(answer.err.removesuffix("\n"), answer.code) from None
            raise _VerbFailed(message.format(error), error.code) from None

    def _not_found(self, label: str, where: str) -> Answer:
        request = "Bad request.\n" if self.launchd.variant.bad_request else ""
        return Answer(
            err=f'{request}Could not find service "{label}" in domain {where}\n', code=113
        )


def _usage() -> NoReturn:
    raise _VerbFailed("Unrecognized target specifier.\nUsage: launchctl <subcommand> ...", _USAGE)


def _path(call: Call, name: str) -> Path:
    return call.folder / name


def _target(text: str) -> _Target:
    kind, _, rest = text.partition("/")
    if kind == SYSTEM:
        return _Target(SYSTEM, rest)
    uid, _, label = rest.partition("/")
    if kind in ("gui", "user") and uid.isdecimal():
        return _Target(f"{kind}/{uid}", label)
    if kind in ("login", "pid", "session"):
        raise Refused(f"target {text}")
    _usage()


def _domain_target(*words: str) -> _Target:
    target = _target(words[0] if len(words) == 1 else "")
    return target if not target.label else _usage()


def _service_target(words: list[str]) -> _Target:
    target = _target(words[0] if len(words) == 1 else "")
    return target if target.label else _usage()
