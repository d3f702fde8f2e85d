"""A service manager: the units that exist, the units that are loaded, and jobs on them."""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from fleetsim.systemd.service import Service, ServiceContext, StartFailed
from fleetsim.systemd.unit import SearchPath, Unit, load

TARGET = "default.target"


class JobFailed(Exception):
    """The message of systemctl on stderr, and its exit code."""

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.code = code


class Manager:
    """A unit stays loaded while it runs, has failed or is wanted by the target; changes of its
    files then need a daemon-reload. Any other unit is unloaded when idle and read again when
    needed."""

    def __init__(self, search: SearchPath, context: ServiceContext) -> None:
        self._search = search
        self._context = context
        self._changed = threading.Condition(threading.RLock())
        self._services: dict[str, Service] = {}

    @property
    def state(self) -> str:
        with self._changed:
            failed = any(one.state.active == "failed" for one in self._services.values())
            return "degraded" if failed else "running"

    @contextmanager
    def service(self, name: str) -> Iterator[Service]:
        """The current service, to be read under the lock."""
        with self._changed:
            yield self._service(name)

    def needs_reload(self, name: str) -> bool:
        with self._changed:
            return self._service(name).unit.stamps != self._search.stamps(name)

    def reload(self) -> None:
        with self._changed:
            for name, service in self._services.items():
                service.unit = self._load(name)

    def start(self, name: str) -> None:
        self._job(name, "start", Service.start)

    def stop(self, name: str) -> None:
        with self._changed:
            service = self._service(name)
            if service.unit.load_state == "not-found" and service.idle:
                raise JobFailed(f"Failed to stop {name}: Unit {name} not loaded.", 5)
            service.stop()

    def restart(self, name: str) -> None:
        def stop_and_start(service: Service) -> None:
            service.stop()
            service.start()

        self._job(name, "restart", stop_and_start)

    def reset_failed(self, name: str = "") -> None:
        with self._changed:
            if name and self._service(name).unit.load_state == "not-found":
                reason = f"Unit {name} not loaded."
                raise JobFailed(f"Failed to reset failed state of unit {name}: {reason}")
            for service in [self._service(name)] if name else list(self._services.values()):
                service.reset_failed()

    def start_wanted(self) -> None:
        """Start everything that the default target wants, as at boot or login."""
        for link in sorted(self._wants().glob("*.service")):
            with self._changed:
                service = self._service(link.name)
                if service.unit.load_state == "loaded":
                    service.start()

    def stop_all(self, seconds: float) -> None:
        with self._changed:
            for service in list(self._services.values()):
                service.stop(seconds=seconds)

    # --- unit files ---

    def file_state(self, name: str) -> str:
        """The state of the unit file; empty if there is none."""
        unit = self._load(name)
        if unit.load_state == "not-found":
            return ""
        if unit.load_state == "masked":
            return "masked-runtime" if self._runtime in Path(unit.fragment).parents else "masked"
        if (self._wants() / name).is_symlink():
            return "enabled"
        return "disabled" if unit.wanted_by else "static"

    def enable(self, name: str) -> str:
        unit = self._load(name)
        if unit.load_state == "not-found":
            raise JobFailed(f"Failed to enable unit: Unit file {name} does not exist.")
        if unit.load_state == "masked":
            raise JobFailed(f"Failed to enable unit: Unit file {unit.fragment} is masked.")
        if not unit.wanted_by:
            return "The unit files have no installation config (WantedBy=, RequiredBy=, Also=,\n"
        if unit.wanted_by != (TARGET,):
            self._search.refuse(f"{name}: WantedBy={' '.join(unit.wanted_by)} is not simulated")
        link = self._wants() / name
        self.reload()
        return self._link(link, unit.fragment)

    def disable(self, name: str) -> str:
        link = self._wants() / name
        if not self._load(name).fragment and not link.is_symlink():
            raise JobFailed(f"Failed to disable unit: Unit file {name} does not exist.")
        self.reload()
        return _unlink(link)

    def mask(self, name: str, *, runtime: bool) -> str:
        link = (self._runtime if runtime else self._own) / name
        if link.exists() and link.resolve() != Path("/dev/null"):
            raise JobFailed(f"Failed to mask unit: File {link} already exists.")
        output = self._link(link, "/dev/null")
        self.reload()
        return output

    def unmask(self, name: str, *, runtime: bool) -> str:
        link = (self._runtime if runtime else self._own) / name
        output = _unlink(link) if link.resolve() == Path("/dev/null") else ""
        self.reload()
        return output

    # --- private ---

    @property
    def _own(self) -> Path:
        return self._search.folders[0]

    @property
    def _runtime(self) -> Path:
        return self._search.folders[1]

    def _wants(self) -> Path:
        return self._own / f"{TARGET}.wants"

    def _load(self, name: str) -> Unit:
        return load(name, self._search)

    def _service(self, name: str) -> Service:
        service = self._services.get(name)
        wanted = (self._wants() / name).is_symlink()
        if service is None or (service.state.active == "inactive" and not wanted):
            service = self._services[name] = Service(self._load(name), self._context, self._changed)
        return service

    def _job(self, name: str, verb: str, job: Callable[[Service], None]) -> None:
        with self._changed:
            service = self._service(name)
            status = f"'systemctl --user status {name}'"
            problem = {
                "not-found": ("not found.", 5),
                "masked": ("is masked.", 1),
                "bad-setting": (f"has a bad unit file setting.\nSee user logs and {status}.", 1),
            }.get(service.unit.load_state)
            if problem:
                reason, code = problem
                raise JobFailed(f"Failed to {verb} {name}: Unit {name} {reason}", code)
            try:
                job(service)
            except StartFailed as error:
                raise JobFailed(f"Job for {name} failed because {error}\nSee {status}.") from None

    def _link(self, link: Path, target: str) -> str:
        if link.is_symlink() and os.readlink(link) == target:
            return ""
        for folder in (link.parent.parent, link.parent):
            if not folder.exists():
                folder.mkdir(parents=True)
                self._context.account.own(folder)
        link.unlink(missing_ok=True)
        link.symlink_to(target)
        self._context.account.own(link)
        return f"Created symlink {link} → {target}.\n"


def _unlink(link: Path) -> str:
    if not link.is_symlink():
        return ""
    link.unlink()
    return f'Removed "{link}".\n'
