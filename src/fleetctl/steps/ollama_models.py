"""ollama_models: the models that are mapped to a node are present; with `prune` no others are."""

from collections.abc import Iterable, Iterator
from typing import ClassVar

from fleetctl.model import ollama_log, variables
from fleetctl.model.facts import Service, Unknown
from fleetctl.model.plan import Change, DeleteModel, Finding, Level, PullModel
from fleetctl.steps import Step, StepContext

_FOLDER = "OLLAMA_MODELS"


class OllamaModels(Step):
    kind: ClassVar[str] = "ollama_models"

    def plan(self, context: StepContext, seen: None) -> Iterator[Change | Finding]:
        api, node, service = context.facts.api, context.node, context.service
        models = [each for each in context.fleet.models.values() if node.name in each.nodes]
        wanted = {model.ollama_model.casefold(): model.ollama_model for model in models}
        if isinstance(api, Unknown):
            if wanted and service:
                yield _not_listed(service, wanted.values(), api.why)
            return
        if service and _moves(service):
            if wanted:
                text = f"once {_FOLDER} has changed, {_pull(wanted.values())}"
                yield Finding("ST012", Level.NOTE, text)
            return
        present = {name.casefold() for name in api.models}
        yield from (PullModel(name) for folded, name in wanted.items() if folded not in present)
        if node.prune:
            yield from (DeleteModel(name) for name in api.models if name.casefold() not in wanted)


def _not_listed(service: Service, wanted: Iterable[str], why: str) -> Finding:
    if service.active:
        text = f"which models are present is not known, because {why}"
        return Finding("ST010", Level.UNKNOWN, text)
    return Finding("ST011", Level.NOTE, f"once Ollama runs, {_pull(wanted)}")


def _pull(wanted: Iterable[str]) -> str:
    return f"pull {', '.join(wanted)} if missing"


def _moves(service: Service) -> bool:
    """Whether Ollama will use another folder of models than now."""
    wanted, used = service.spec.env.get(_FOLDER), ollama_log.seen(service, _FOLDER)
    return wanted is not None and used is not None and not variables.agrees(_FOLDER, wanted, used)
