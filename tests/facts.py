"""Facts for tests of planning: a machine as it might be, and what a plan would make of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from fleetctl.codecs import systemd_env_file
from fleetctl.model.facts import Api, Facts, File, Host, Server, Service, Source, Unknown
from fleetctl.model.fleet import Fleet, Target
from fleetctl.model.plan import (
    DeleteModel,
    Plan,
    PullModel,
    Restart,
    RunCommand,
    ServiceAction,
    WriteFile,
)
from fleetctl.targets import node_target

HOME = "/home/ada"
DEFAULTS = {
    "OLLAMA_HOST": "http://127.0.0.1:11434",
    "OLLAMA_KEEP_ALIVE": "5m0s",
    "OLLAMA_NO_CLOUD": "false",
    "OLLAMA_NUM_PARALLEL": "1",
    "OLLAMA_MAX_LOADED_MODELS": "0",
    "OLLAMA_CONTEXT_LENGTH": "0",
    "OLLAMA_DEBUG": "INFO",
}
"""What a server logs that was told nothing."""


def target_of(fleet: Fleet, name: str = "box") -> Target:
    target = node_target(fleet.nodes[name])
    assert target is not None
    return target


def facts_of(said: Mapping[str, Any], target: Target) -> Facts:
    """A healthy machine as Ollama's installer leaves it, except for what is given."""
    host = Host(
        system="Linux", release="6.1", machine="x86_64", distribution="Debian", name="box",
        user="ada", uid=1000, home=HOME, traits=frozenset(said.get("traits", ())),
        programs=tuple(said.get("programs", ["/usr/local/bin/ollama"])),
        servers=tuple(Server(**each) for each in said.get("servers", [])),
        addresses=tuple(said.get("addresses", ["127.0.0.1", "192.168.1.5"])),
    )  # fmt: skip
    services = [service_of(each, target) for each in said.get("services", [{}])]
    models = dict.fromkeys(said.get("models", []), "digest")
    api = Api("127.0.0.1:11434", "0.24.0", models)
    return Facts(
        host=host,
        services=tuple(services),
        api=Unknown(said["no_api"]) if "no_api" in said else api,
        answers=said.get("answers", {}),
    )


def service_of(said: Mapping[str, Any], target: Target) -> Service:
    """`given` is the environment of the running server; `hidden` says why it cannot be read."""
    given: dict[str, str] = {"PATH": "/usr/bin", **said.get("given", {})}
    active = said.get("active", True)
    spec = next(spec for spec in target.services if spec.mode == said.get("mode", "system"))
    service = Service(
        spec=spec, loaded=True, enabled=True, active=active, pid=42 if active else None, run="r1",
        definition="/etc/systemd/system/ollama.service",
    )  # fmt: skip
    if active:
        effective = {**DEFAULTS, **given, **said.get("uses", {})}
        service = replace(service, environment=given, log=config_line(effective))
    if why := said.get("hidden"):
        service = replace(service, environment=Unknown(why), log=Unknown(why))
    sources = [Source(**each) for each in said.get("sources", [])]
    files = {path: File(text, "-rw-r--r--") for path, text in said.get("files", {}).items()}
    own = {field.name for field in fields(Service)} - {"sources", "files", "active", "spec"}
    plain = {key: value for key, value in said.items() if key in own}
    return replace(service, sources=tuple(sources), files=files, **plain)


def config_line(values: Mapping[str, str]) -> str:
    """What Ollama logs about its settings."""
    inner = " ".join(f"{name}:{value}" for name, value in sorted(values.items()))
    return f'msg="server config" env="map[{inner}]"'


def after(plan: Plan, facts: Facts) -> Facts:
    """The facts when everything in the plan has been done, and nothing else."""
    for _, change in plan.changes:
        match change:
            case WriteFile():
                facts = _written(facts, change)
            case ServiceAction(action="enable"):
                facts = _with_service(facts, enabled=True)
            case ServiceAction(action="reload"):
                facts = _with_service(facts, reload_pending=False)
            case Restart():
                facts = _restarted(facts)
            case PullModel() if isinstance(facts.api, Api):
                models = {**facts.api.models, change.model: "digest"}
                facts = replace(facts, api=replace(facts.api, models=models))
            case DeleteModel() if isinstance(facts.api, Api):
                models = dict(facts.api.models)
                del models[change.model]
                facts = replace(facts, api=replace(facts.api, models=models))
            case RunCommand():
                raise AssertionError("no built-in playbook runs a command on Linux")
    return facts


def _with_service(facts: Facts, **changes: Any) -> Facts:
    first, *others = facts.services
    return replace(facts, services=(replace(first, **changes), *others))


def _written(facts: Facts, change: WriteFile) -> Facts:
    path = change.path.replace("~", HOME, 1)
    assert change.after is not None
    file = File(change.after, "-rw-r--r--")
    service = facts.services[0]
    sources = [source for source in service.sources if not source.ours]
    if path.endswith(".env"):
        sources.append(Source(path, systemd_env_file.decode(change.after), ours=True))
    else:
        sources = list(service.sources)
    files = {**service.files, path: file}
    return _with_service(facts, files=files, sources=tuple(sources))


def _restarted(facts: Facts) -> Facts:
    given: dict[str, str] = {}
    for source in facts.services[0].sources:
        given |= source.values
    log = config_line({**DEFAULTS, **given})
    return _with_service(facts, active=True, pid=43, run="r2", environment=given, log=log)


PROJECT = Path("/nowhere")
"""A project without playbooks and templates of its own."""
