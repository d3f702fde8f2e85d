"""`open`: starts an application, if the user is logged in at the screen."""

from dataclasses import dataclass
from itertools import count
from pathlib import Path

from fleetsim.launchd.definition import application
from fleetsim.launchd.launchd import Launchd
from fleetsim.launchd.variant import LaunchError
from fleetsim.tools.calls import Answer, Call, Refused
from fleetsim.tools.ps import Table

_NUMBERS = count(1)


@dataclass(frozen=True, slots=True)
class Open:
    launchd: Launchd
    folders: tuple[Path, ...]
    """Folders of applications."""
    table: Table

    def __call__(self, call: Call) -> Answer:
        name, environment, arguments = _parse(call.arguments)
        program = self._program(name)
        if program is None:
            return Answer(err=f"Unable to find application named '{name}'\n", code=1)
        user = self.launchd.site.user(call.uid)
        if user is None:
            raise Refused("open by a user without an account on this Mac")
        if any(one.arguments[0] == str(program) for one in self.table()):
            return Answer()  # it is only brought to the front
        number = next(_NUMBERS)
        label = f"application.com.electron.ollama.{number}.{number}"
        try:
            job = application(label, str(program), arguments)
            self.launchd.open_application(user, job, environment)
        except LaunchError:
            return Answer(err=_launch_error(program.parents[2]), code=1)
        return Answer()

    def _program(self, name: str) -> Path | None:
        folders = [Path(name)] if "/" in name else [at / f"{name}.app" for at in self.folders]
        for folder in folders:
            if (program := folder / "Contents/MacOS" / folder.stem).exists():
                return program
        return None


def _parse(words: list[str]) -> tuple[str, dict[str, str], tuple[str, ...]]:
    name, environment = "", {}
    rest = list(words)
    while rest:
        match rest.pop(0):
            case "-j" | "-g" | "-jg" | "-gj":
                pass
            case "-a" | "-ja" | "-ga" | "-jga" | "-gja" if rest:
                name = rest.pop(0)
            case "--env" if rest:
                key, _, value = rest.pop(0).partition("=")
                environment[key] = value
            case "--args":
                return name, environment, tuple(rest)
            case word:
                raise Refused(f"argument {word}")
    if not name:
        raise Refused("anything but -a")
    return name, environment, ()


def _launch_error(bundle: Path) -> str:
    return (
        f"The application {bundle} cannot be opened for an unexpected reason, "
        'error=Error Domain=RBSRequestErrorDomain Code=5 "Launch failed." '
        "UserInfo={NSUnderlyingError=OSLaunchdErrorDomain Code=125}\n"
    )
