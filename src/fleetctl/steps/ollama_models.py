"""ollama_models: the models that the inventory maps to a node are there, others if they may."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fleetctl.model.facts import Service, Unknown
from fleetctl.model.plan import Change, DeleteModel, Finding, Level, PullModel
from fleetctl.steps import Step, Subject


class OllamaModels(Step):
    def plan(self, name: str, subject: Subject) -> Iterator[Change | Finding]:
        api, node = subject.facts.api, subject.node
        models = [each for each in subject.fleet.models.values() if node.name in each.nodes]
        wanted = dict.fromkeys(model.ollama_model for model in models)
        if isinstance(api, Unknown):
            if wanted and subject.service:
                yield _unseen(subject.service, wanted, api.why)
            return
        there = {name.casefold() for name in api.models}
        yield from (PullModel(name) for name in wanted if name.casefold() not in there)
        if node.prune:
            mapped = {name.casefold() for name in wanted}
            yield from (DeleteModel(name) for name in api.models if name.casefold() not in mapped)


def _unseen(service: Service, wanted: Iterable[str], why: str) -> Finding:
    if service.active:
        return Finding(Level.UNKNOWN, f"which models are there is not known, because {why}")
    return Finding(Level.NOTE, f"once Ollama runs, pull {', '.join(wanted)} if missing")
