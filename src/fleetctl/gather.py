"""facts(link, target, questions): what a machine answers to one script, and what its API says."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from fleetctl import services
from fleetctl.links import Link, answers, read_answers, root_shell, send_questions, transport
from fleetctl.model import address, ollama_log
from fleetctl.model.facts import Answers, Api, Facts, Host, Service, ServiceSpec, Unknown
from fleetctl.model.fleet import Target
from fleetctl.ollama import Client, NoAnswer
from fleetctl.shell import Question, has_unreadable, quote, survey


@dataclass(frozen=True, slots=True)
class Access:
    """What every conversation with a machine may need."""

    timeout: float
    sudo_password: str | None = None


def all_questions(target: Target, questions: Sequence[Question]) -> list[Question]:
    """Those of every machine, those about its services, and the given ones: one script."""
    return [*survey.questions(target), *services.questions(target.services), *questions]


def facts(link: Link, target: Target, questions: Sequence[Question], access: Access) -> Facts:
    """The API is asked while the script runs. What only root may read is asked last."""
    asked = all_questions(target, questions)
    shell = link.shell()
    nonce = send_questions(shell, asked)
    api = _wanted_api(link, target, access)
    said = read_answers(shell, nonce, access.timeout)
    host = survey.host(said)
    found = services.read(target.services, said)
    hidden = any(service.needs_root_to_read for service in found) or has_unreadable(said.values())
    if hidden and host.uid != 0 and access.sudo_password is not None:
        said = {**said, **_as_root(link, asked, host, access)}
        found = services.read(target.services, said)
    return Facts(host, found, _actual_api(link, target, api, found, access), said)


def _as_root(link: Link, asked: Sequence[Question], host: Host, access: Access) -> Answers:
    home = f"HOME={quote(host.home)}\n"
    again = [replace(each, commands=home + each.commands) for each in asked if each.for_root]
    shell = root_shell(link, access.sudo_password, access.timeout)
    return answers(shell, again, access.timeout)


def service_facts(
    link: Link, target: Target, specs: Sequence[ServiceSpec], access: Access
) -> tuple[tuple[Service, ...], Api | Unknown]:
    """A brief look at these services and the API, to see whether a restarted one is up."""
    shell = link.shell()
    nonce = send_questions(shell, services.questions(specs))
    api = _wanted_api(link, target, access)
    found = services.read(specs, read_answers(shell, nonce, access.timeout))
    return found, _actual_api(link, target, api, found, access)


def _wanted_api(link: Link, target: Target, access: Access) -> Api | Unknown:
    if target.node is None:
        return Unknown("the controller is not a node")
    return ask_api(link, target.node.listens, access.timeout)


def _actual_api(
    link: Link, target: Target, api: Api | Unknown, found: Sequence[Service], access: Access
) -> Api | Unknown:
    """Where nothing answers at the wanted address: at the one that a running service uses."""
    if isinstance(api, Api) or target.node is None:
        return api
    running = (ollama_log.seen(each, "OLLAMA_HOST") for each in found if each.active)
    elsewhere = next((each for each in running if each and each != target.node.listens), None)
    return ask_api(link, elsewhere, access.timeout) if elsewhere else api


def ask_api(link: Link, listens: str, timeout: float) -> Api | Unknown:
    try:
        with client(link, listens, timeout) as api:
            return api.facts()
    except NoAnswer as error:
        return Unknown(str(error))


def client(link: Link, listens: str, timeout: float) -> Client:
    """Ollama's API, asked from the machine itself."""
    place = address.join_host_port(*address.place_of(listens))
    url = f"http://{place.replace('%', '%25')}"
    return Client(url, timeout=timeout, transport=transport(link, timeout))
