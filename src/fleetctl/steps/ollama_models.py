"""ollama_models: the models that the inventory maps to a node are there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from fleetctl.model.facts import Unknown
from fleetctl.model.plan import Change, Finding, Level, PullModel
from fleetctl.steps import Step, Subject


class OllamaModels(Step):
    kind: ClassVar[str] = "ollama_models"

    def plan(self, name: str, subject: Subject) -> Iterator[Change | Finding]:
        api, node = subject.facts.api, subject.node
        models = [each for each in subject.fleet.models.values() if node.name in each.nodes]
        wanted = dict.fromkeys(model.ollama_model for model in models)
        if isinstance(api, Unknown):
            if wanted and not isinstance(subject.service, Finding):
                text = f"which models are there is not known, because {api.why}"
                yield Finding(Level.UNKNOWN, text)
            return
        there = {name.casefold() for name in api.models}
        yield from (PullModel(name) for name in wanted if name.casefold() not in there)
