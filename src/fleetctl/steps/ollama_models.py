"""ollama_models: the models that the inventory maps to a node are there, others if they may."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fleetctl.model import variables
from fleetctl.model.facts import Service, Unknown
from fleetctl.model.fleet import Node
from fleetctl.model.plan import Change, DeleteModel, Finding, Level, PullModel
from fleetctl.steps import Step, Subject

_FOLDER = "OLLAMA_MODELS"


class OllamaModels(Step):
    def plan(self, name: str, subject: Subject) -> Iterator[Change | Finding]:
        api, node = subject.facts.api, subject.node
        models = [each for each in subject.fleet.models.values() if node.name in each.nodes]
        wanted = {model.ollama_model.casefold(): model.ollama_model for model in models}
        if isinstance(api, Unknown):
            if wanted and subject.service:
                yield _unseen(subject.service, wanted.values(), api.why)
            return
        if subject.service and _moves(subject.service, node):
            if wanted:
                yield Finding(Level.NOTE, f"once {_FOLDER} has changed, {_pull(wanted.values())}")
            return
        there = {name.casefold() for name in api.models}
        yield from (PullModel(name) for folded, name in wanted.items() if folded not in there)
        if node.prune:
            yield from (DeleteModel(name) for name in api.models if name.casefold() not in wanted)


def _unseen(service: Service, wanted: Iterable[str], why: str) -> Finding:
    if service.active:
        return Finding(Level.UNKNOWN, f"which models are there is not known, because {why}")
    return Finding(Level.NOTE, f"once Ollama runs, {_pull(wanted)}")


def _pull(wanted: Iterable[str]) -> str:
    return f"pull {', '.join(wanted)} if missing"


def _moves(service: Service, node: Node) -> bool:
    """Whether the models that are there now will not be those that Ollama sees then."""
    wanted, seen = node.environment.get(_FOLDER), service.seen(_FOLDER)
    return wanted is not None and seen is not None and not variables.agrees(_FOLDER, wanted, seen)
