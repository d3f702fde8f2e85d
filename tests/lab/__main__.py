"""`python -m tests.lab`: a lab for manual use. Progress goes to stderr, the inventory to stdout."""

import argparse
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

from tests.lab.base import USER
from tests.lab.command import LabError
from tests.lab.kinds import KINDS
from tests.lab.lab import MANUAL_SLOT, Lab, prepare, sweep
from tests.lab.node import Node
from tests.lab.ollama_build import ollama_binary
from tests.lab.packages import require_root
from tests.lab.registry import Fault, set_fault
from tests.lab.wheels import wheel_house

Result = TypeVar("Result")


def main() -> None:
    arguments = parse_arguments(sys.argv[1:])
    try:
        require_root()
        arguments.run(arguments)
    except LabError as error:
        sys.exit(f"lab: {error}")


def parse_arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.lab", description=__doc__)
    parser.add_argument("--slot", type=int, default=MANUAL_SLOT, help=argparse.SUPPRESS)
    commands = parser.add_subparsers(required=True)

    command = commands.add_parser("prepare", help="make the caches")
    command.add_argument("--wheels", type=Path, help="requirements file of a controller")
    command.set_defaults(run=fill_caches)

    command = commands.add_parser("up", help="boot nodes and print their inventory")
    command.add_argument("--nodes", type=int, default=3)
    command.add_argument("--kind", default="installer", help="such as installer+zsh")
    command.set_defaults(run=up)

    command = commands.add_parser(
        "down", help="stop and remove them, and leftovers of crashed runs"
    )
    command.set_defaults(run=down)

    command = commands.add_parser("ollama", help="print the path of the built server")
    command.set_defaults(run=lambda _: print(ollama_binary()))

    command = commands.add_parser("shell", help="a shell on a node, or one command")
    command.add_argument("--root", action="store_true")
    command.add_argument("node")
    command.add_argument("command", nargs="*")
    command.set_defaults(run=shell)

    command = commands.add_parser("fault", help="make the registry misbehave for one model")
    command.add_argument("model")
    command.add_argument("fault", choices=[*Fault, "none"])
    command.set_defaults(run=fault)

    command = commands.add_parser("kinds", help="list the kinds of node")
    command.set_defaults(run=kinds)
    return parser.parse_args(words)


def fill_caches(arguments: argparse.Namespace) -> None:
    timed("caches", prepare)
    if arguments.wheels:
        timed("wheel house", partial(wheel_house, arguments.wheels))


def up(arguments: argparse.Namespace) -> None:
    timed("caches", prepare)
    lab = Lab(arguments.slot)
    timed("network and registry", lab.open)

    def boot() -> list[Node]:
        names = [f"lab-{number}" for number in range(1, arguments.nodes + 1)]
        nodes = [lab.start(arguments.kind, name) for name in names]
        for node in nodes:
            node.wait()
        return nodes

    print(inventory(lab, timed("nodes", boot)))


def timed(what: str, work: Callable[[], Result]) -> Result:
    begin = time.monotonic()
    result = work()
    print(f"lab: {what}: {time.monotonic() - begin:.1f} s", file=sys.stderr)
    return result


def inventory(lab: Lab, nodes: list[Node]) -> str:
    lines = [f"# Host keys: {lab.known_hosts}", "nodes:"]
    for node in nodes:
        ssh = f'host: "{node.address}", user: {USER}, identity_file: {lab.identity_file}'
        lines.append(f'  {node.name}: {{ssh: {{{ssh}}}, endpoint: "{node.endpoint}"}}')
    return "\n".join(lines)


def down(arguments: argparse.Namespace) -> None:
    Lab(arguments.slot).clean()
    sweep()


def shell(arguments: argparse.Namespace) -> None:
    lab = Lab(arguments.slot)
    os.execvp("ssh", [*lab.ssh_argv(arguments.node, root=arguments.root), *arguments.command])


def fault(arguments: argparse.Namespace) -> None:
    chosen = None if arguments.fault == "none" else Fault(arguments.fault)
    set_fault(Lab(arguments.slot).state, arguments.model, chosen)


def kinds(_: argparse.Namespace) -> None:
    for name, kind in KINDS.items():
        print(f"{name:16} {kind.about}")


if __name__ == "__main__":
    main()
