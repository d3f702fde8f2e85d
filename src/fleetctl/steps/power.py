"""power: a Mac that stays awake, where the inventory says so."""

from __future__ import annotations

from collections.abc import Iterator

from fleetctl.model.facts import Unknown
from fleetctl.model.plan import Change, Finding, Level, RunCommand
from fleetctl.shell import Part
from fleetctl.steps import Step, Subject

_AWAKE = "pmset -a sleep 0 disksleep 0 womp 1 autorestart 1"
_GUARD = "power"


class Power(Step):
    def probe(self, name: str) -> list[Part]:
        """The guard holds where no source of power lets the machine sleep."""
        asleep = "pmset -g custom | grep -E '^ *sleep +[1-9]'"
        return [Part(f"guard {_GUARD}", f"! {asleep} >/dev/null", system="Darwin")]

    def plan(self, name: str, subject: Subject) -> Iterator[Change | Finding]:
        if subject.node.sleep != "never":
            return
        awake = subject.facts.guards.get(_GUARD, Unknown("it is not a Mac"))
        if isinstance(awake, Unknown):
            text = f"power.sleep is not looked after: {awake.why}"
            yield Finding(Level.NOTE, text)
        elif not awake:
            yield RunCommand("never sleep", _AWAKE, as_root=True)
