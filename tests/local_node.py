"""A folder in place of a node: `transaction.sh` itself under dash, with a service made of files.

What a restart does is to note which settings the service read; so a test sees what it runs with.
"""

from __future__ import annotations

import secrets
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from fleetctl.model.options import Timeouts
from fleetctl.model.plan import TransactionChange, WriteFile
from fleetctl.shell.transaction import Supervisor, Transaction
from fleetctl.shell.transaction import script as script_of

Change = Callable[[str], str]
"""What is done to the text of a script before it runs."""

_COMMANDS = ["ln", "rm", "mkdir", "cp", "mv", "chmod", "chown", "rmdir", "cat", "date"]
"""Programs whose start is a moment to die at; all that change something, and some more."""


@dataclass(frozen=True, slots=True)
class Heard:
    records: list[str]

    @property
    def steps(self) -> list[str]:
        return [line.removeprefix("step ") for line in self.records if line.startswith("step ")]

    def __contains__(self, word: str) -> bool:
        return any(line.split()[0] == word for line in self.records)


@dataclass(frozen=True, slots=True)
class LocalNode:
    """`wanted` holds the files as they shall be, by name; None is absent. `then` comes after."""

    root: Path
    wanted: Mapping[str, str | None]
    then: tuple[TransactionChange, ...]
    before: Mapping[str, str]
    enabled: bool
    shell: tuple[str, ...] = ("dash", "-s")

    def reset(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)
        for name, text in self.before.items():
            self.path(name).parent.mkdir(parents=True, exist_ok=True)
            self.path(name).write_text(text)
        settings = "".join(self.before[name] for name in sorted(self.before))
        for name in ("loaded", "running", *(["enabled"] if self.enabled else [])):
            (self.root / name).write_text("" if name == "enabled" else settings)
            (self.root / name).chmod(0o644)

    def path(self, name: str) -> Path:
        return self.root / "etc" / name

    @property
    def state(self) -> Path:
        return self.root / "state"

    @property
    def supervisor(self) -> Supervisor:
        everything = " ".join(str(self.path(name)) for name in sorted({*self.wanted, *self.before}))
        at = self.root

        def noted(name: str) -> str:
            return f"cat {everything} >{at}/{name}.new 2>/dev/null; mv {at}/{name}.new {at}/{name}"

        return Supervisor(
            verify="true",
            reload=noted("loaded"),
            restart=noted("running"),
            enable=f"cat /dev/null >{at}/enabled",
            disable=f"rm -f {at}/enabled",
        )

    def transaction(self) -> Transaction:
        """Planned from what is there now."""
        files = [
            WriteFile(str(self.path(name)), _text(self.path(name)), after, 0o640, defines=True)
            for name, after in self.wanted.items()
        ]
        return replace(self.recovery(), changes=(*files, *self.then))

    def recovery(self) -> Transaction:
        return Transaction(str(self.state), "ada@desk", "a test", supervisor=self.supervisor)

    def run(self, transaction: Transaction, change: Change = str, verdict: str = "commit") -> Heard:
        """One session to its end, whichever that is; the verdict may be silence, or no more."""
        nonce = secrets.token_hex(8)
        text = _without_sync(change(script_of(transaction, nonce, Timeouts(silent=2))))
        heard = Heard([])
        with subprocess.Popen(
            self.shell, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True,
        ) as shell:  # fmt: skip
            assert shell.stdin
            assert shell.stdout
            words = {"restarted": verdict, "holding": "release"}
            try:
                shell.stdin.write(text)
                shell.stdin.flush()
                for line in shell.stdout:
                    heard.records.append(line.removeprefix(f"@@{nonce} ").rstrip("\n"))
                    word = words.get(heard.records[-1])
                    if word == "no more":
                        words.clear()
                        shell.stdin.close()
                    elif word and word != "silence":
                        shell.stdin.write(f"{word}\n")
                        shell.stdin.flush()
                shell.stdin.close()
            except BrokenPipeError:
                pass
        return heard

    def apply(self, change: Change = str) -> None:
        """As the controller does it: what was cut off is undone, and then it is done anew."""
        if (self.state / "journal").exists():
            heard = self.run(self.recovery(), change)
            assert "recovered" in heard, heard
        heard = self.run(self.transaction(), change)
        assert "committed" in heard, heard

    def seen(self) -> Mapping[str, str]:
        """Content and mode of everything but what differs from run to run."""
        found = {}
        for path in self.root.rglob("*"):
            name = str(path.relative_to(self.root))
            if path.is_dir() or name.startswith(("state/backups", "state/log", "state/made")):
                continue
            text = str(path.readlink()) if path.is_symlink() else path.read_text()
            found[name] = f"{path.lstat().st_mode:o} {text}"
        return found

    def files(self) -> Mapping[str, str | None]:
        return {name: _text(self.path(name)) for name in self.wanted}


def _text(path: Path) -> str | None:
    return path.read_text() if path.exists() else None


def _without_sync(script: str) -> str:
    """Nobody's power fails here, and the disk is others' too."""
    return script.replace("\nsession\n}", "\nsync() { :; }\nsession\n}")


def dying_at_command(counter: Path, at: int) -> Change:
    """The shell dies as it is about to start its n-th program, wherever that is."""
    tick = (
        f"tick() {{ read -r ticks <{counter}; ticks=$((ticks + 1)); echo $ticks >{counter}\n"
        f"[ $ticks != {at} ] || {{ kill -9 $$; exit 137; }}; }}\n"
    )
    shadows = "".join(f'{name}() {{ tick; command {name} "$@"; }}\n' for name in _COMMANDS)

    def change(script: str) -> str:
        counter.write_text("0\n")
        return script.replace("\nsession\n}", f"\n{tick}{shadows}session\n}}")

    return change
