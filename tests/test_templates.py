"""Mistakes in a template or a playbook of the user's own: no bug, and said with their place."""

from __future__ import annotations

from pathlib import Path

import pytest

from fleetctl.errors import Exit, FleetError
from fleetctl.inventory import parse
from fleetctl.planner import plan
from fleetctl.playbook import read_playbook
from fleetctl.render import Templates
from tests.facts import facts_of

LANGUAGE = "fleetctl docs playbooks"
WHOLE = "one whole value"
VALUES = {"node": Path("/box"), "n": 5, "text": "x"}


def refusal(name: str, text: str, project: Path) -> FleetError:
    folder = project / "templates"
    folder.mkdir()
    (folder / name).write_text(text)
    with pytest.raises(FleetError) as caught:
        Templates(project).render(name, VALUES)
    assert caught.value.exit_code == Exit.USAGE
    return caught.value


@pytest.mark.parametrize(
    ("name", "text", "gives"),
    [
        ("a.env", "A={{ n }}\n", 'A="5"\n'),
        ("a.sh", "export A={{ n }}\n", "export A='5'\n"),
        ("a.yaml", "a: {{ n }}\n", "a: 5\n"),
    ],
)
def test_a_number_is_text_where_the_format_has_nothing_else(
    name: str, text: str, gives: str, tmp_path: Path
) -> None:
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates" / name).write_text(text)
    assert Templates(tmp_path).render(name, VALUES) == gives


@pytest.mark.parametrize(
    ("name", "text", "says", "hint"),
    [
        ("a.yaml", "x: 1\na: {{ node.nme }}\n", "a.yaml:2: ", LANGUAGE),
        ("a.yaml", "a: {{ node.nme }}\n", "has no attribute 'nme'", LANGUAGE),
        ("a.yaml", "a: {{ nobody.name }}\n", "'nobody' is undefined", LANGUAGE),
        ("a.yaml", "a: {{ node }}\n", "PosixPath('/box') is no value for such a file", LANGUAGE),
        ("a.env", "\nA={{ 1.5 }}\n", "a.env:2: 1.5 is no value for such a file", LANGUAGE),
        ("a.brew", "A={{ [n] }}\n", "a.brew:1: [5] is no value for such a file", LANGUAGE),
        ("a.yaml", "\n\na: {{ 1/0 }}\n", "a.yaml:3: division by zero", LANGUAGE),
        ("a.yaml", "\na: {{ 1 + }}\n", "a.yaml:2: unexpected", LANGUAGE),
        ("a.yaml", "{% include 'b.yaml' %}\n", "'b.yaml' not found", LANGUAGE),
        ("a.yaml", "a: [{{ text }}\n", "what it gives is no .yaml file: while parsing", WHOLE),
        ("a.plist", "<a>{{ text }}</b>", "what it gives is no .plist file: mismatched", WHOLE),
        ("a.md", "# {{ text }}\n", "it does not start with front matter", WHOLE),
        ("a.yaml", "a: b{{ text }}\n", "the value 'x' is not what stands there", WHOLE),
        ("a.txt", "hello\n", "fleetctl cannot write .txt files", ".brew, .conf, .env, .md"),
        ("a", "hello\n", "fleetctl cannot write such files", ".brew, .conf, .env, .md"),
    ],
)
def test_a_mistake_in_a_template_is_said_with_its_place(
    name: str, text: str, says: str, hint: str, tmp_path: Path
) -> None:
    error = refusal(name, text, tmp_path)
    assert says in error.message
    assert name in error.message
    assert hint in str(error.hint)


@pytest.mark.parametrize(
    ("when", "says"),
    [
        ("1/0", "division by zero"),
        ("node.nme", "has no attribute 'nme'"),
        ("node.name ==", "unexpected"),
        ("node.name + 1", "can only concatenate str"),
    ],
)
def test_a_mistake_in_an_expression_is_said_with_its_place(
    when: str, says: str, tmp_path: Path
) -> None:
    folder = tmp_path / "playbooks"
    folder.mkdir()
    (folder / "own.yaml").write_text(f"steps:\n  - power: {{}}\n    when: {when}\n")
    fleet, _ = parse(b"nodes: {box: {}}", tmp_path / "fleet.yaml")
    playbook = read_playbook("own", tmp_path)
    with pytest.raises(FleetError) as caught:
        plan(fleet, fleet.nodes["box"], facts_of({}), playbook, Templates(tmp_path))
    what = f"{folder}/own.yaml:3:5: steps.0.when: cannot be worked out: "
    assert caught.value.message.startswith(what)
    assert says in caught.value.message
    assert caught.value.exit_code == Exit.USAGE
    assert "one expression over node, fleet and facts" in str(caught.value.hint)
