"""wait_http: Ollama answers over HTTP."""

from __future__ import annotations

from collections.abc import Iterator

from fleetctl.model.facts import Unknown
from fleetctl.model.plan import Change, Finding, Level
from fleetctl.steps import Step, Subject


class WaitHttp(Step):
    def plan(self, name: str, subject: Subject) -> Iterator[Change | Finding]:
        api, service = subject.facts.api, subject.service
        if isinstance(api, Unknown) and service and service.active:
            fix = "look at its log; is the address right?"
            yield Finding(Level.FAULT, f"Ollama runs, but {api.why}", fix)
