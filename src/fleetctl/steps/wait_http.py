"""wait_http: Ollama answers over HTTP."""

from collections.abc import Iterator
from typing import ClassVar

from fleetctl.model.facts import Unknown
from fleetctl.model.plan import Change, Finding, Level
from fleetctl.steps import Step, StepContext


class WaitHttp(Step):
    kind: ClassVar[str] = "wait_http"

    def plan(self, context: StepContext, seen: None) -> Iterator[Change | Finding]:
        api, service = context.facts.api, context.service
        if isinstance(api, Unknown) and service and service.active:
            text = f"Ollama runs, but {api.why}"
            yield Finding("ST040", Level.FAULT, text, "check its log and ollama.host")
