"""Templates give files with unaltered values; mistakes in them are reported with their place."""

from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

import dotenv
import pytest
import yaml
from hypothesis import given

from fleetctl.codecs import Unrepresentable, front_matter
from fleetctl.errors import Exit, FleetError
from fleetctl.inventory import parse
from fleetctl.planner import plan
from fleetctl.playbook import read_playbook
from fleetctl.render import Templates
from tests import values
from tests.facts import facts_of, target_of

LANGUAGE = "fleetctl docs playbooks"
WHOLE = "one whole value"
VALUES = {"node": 1.5, "n": 5, "text": "x"}


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
        ("a.yaml", "a: {{ node }}\n", "1.5 is no value for such a file", LANGUAGE),
        ("a.env", "\nA={{ 1.5 }}\n", "a.env:2: 1.5 is no value for such a file", LANGUAGE),
        ("a.brew", "A={{ [n] }}\n", "a.brew:1: [5] is no value for such a file", LANGUAGE),
        ("a.yaml", "\n\na: {{ 1/0 }}\n", "a.yaml:3: division by zero", LANGUAGE),
        ("a.yaml", "\na: {{ 1 + }}\n", "a.yaml:2: unexpected", LANGUAGE),
        ("a.yaml", "{% include 'b.yaml' %}\n", "'b.yaml' not found", LANGUAGE),
        ("a.yaml", "a: [{{ text }}\n", "what it gives is no .yaml file: while parsing", WHOLE),
        ("a.plist", "<a>{{ text }}</b>", "what it gives is no .plist file: mismatched", WHOLE),
        ("a.md", "# {{ text }}\n", "it does not start with front matter", WHOLE),
        ("a.yaml", "a: b{{ text }}\n", "the value 'x' is not what stands there", WHOLE),
        (
            "a.txt",
            "hello\n",
            "fleetctl cannot write .txt files",
            ".brew, .conf, .dotenv, .env, .md",
        ),
        ("a", "hello\n", "fleetctl cannot write such files", ".brew, .conf, .dotenv, .env, .md"),
    ],
)
def test_a_mistake_in_a_template_is_said_with_its_place(
    name: str, text: str, says: str, hint: str, tmp_path: Path
) -> None:
    error = refusal(name, text, tmp_path)
    assert says in error.message
    assert name in error.message
    assert hint in str(error.hint)


def rendered(project: Path, name: str, text: str, /, **variables: object) -> str:
    folder = project / "templates"
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text)
    return Templates(project).render(name, variables)


AGENT = """\
---
name: {{ name }}
description: {{ description }}
tools: {{ tools }}
---
# {{ title }}

{{ prompt }}
{% for rule in rules %}
- {{ rule }}
{% endfor %}
"""
HARD = 'say "hi", it\'s\n---\nname: {{ node }} {% raw %} %h ${HOME} \\n: - # é日😀\n\n  end'


def test_an_agent_file_keeps_the_values_of_its_front_matter_and_of_its_body(tmp_path: Path) -> None:
    description = HARD.replace("say", "use")
    text = rendered(
        tmp_path,
        "agent.md",
        AGENT,
        name="planner",
        description=description,
        tools=["Read", "Bash(git log:*)"],
        title="---",
        prompt=HARD,
        rules=["one", 2],
    )
    matter, body = front_matter.decode(text)
    assert matter == {
        "name": "planner",
        "description": description,
        "tools": ["Read", "Bash(git log:*)"],
    }
    assert body == f"# ---\n\n{HARD}\n- one\n- 2\n"
    assert yaml.safe_load(text.split("\n---\n")[0])["description"] == description


@given(values.texts, values.texts)
def test_any_text_in_an_agent_file_comes_out_unaltered_or_is_refused(value: str, body: str) -> None:
    with TemporaryDirectory() as folder:
        template = "---\na: {{ value }}\n---\n{{ body }}"
        try:
            text = rendered(Path(folder), "a.md", template, value=value, body=body)
        except Unrepresentable:
            return
    assert front_matter.decode(text) == ({"a": value}, body)


@pytest.mark.parametrize("value", [["a"], 1.5, None, {"a": "b"}])
def test_only_text_and_numbers_go_into_the_body_of_an_agent_file(
    value: object, tmp_path: Path
) -> None:
    with pytest.raises(FleetError, match=r"a\.md:4: .* is no value for such a file"):
        rendered(tmp_path, "a.md", "---\na: 1\n---\n{{ value }}\n", value=value)


def test_a_template_that_alters_the_body_of_an_agent_file_is_refused(tmp_path: Path) -> None:
    template = "---\na: 1\n---\n{% filter upper %}{{ value }}{% endfilter %}\n"
    with pytest.raises(FleetError, match="the value 'quiet' is not what stands there") as caught:
        rendered(tmp_path, "a.md", template, value="quiet")
    assert WHOLE in str(caught.value.hint)


def test_a_dotenv_file_keeps_its_values(tmp_path: Path) -> None:
    template = "KEY={{ key }}\nPORT={{ port }}\n"
    key = 'a "b" #c $d `e` \\f {{ g }} é日😀\nh=i'
    text = rendered(tmp_path, "fleetctl.dotenv", template, key=key, port=4000)
    read = dotenv.dotenv_values(stream=StringIO(text))
    assert read == {"KEY": key, "PORT": "4000"}


@pytest.mark.parametrize("value", ["${HOME}", "a\rb", "it's $5", "ends in \\", "a\0b"])
def test_a_dotenv_file_refuses_a_value_that_it_cannot_carry(value: str, tmp_path: Path) -> None:
    with pytest.raises(Unrepresentable, match=r"cannot be written to a \.env file") as caught:
        rendered(tmp_path, "fleetctl.dotenv", "KEY={{ value }}\n", value=value)
    assert caught.value.exit_code == Exit.USAGE


UNIT = """\
[Service]
EnvironmentFile=-{{ file }}
WorkingDirectory={{ folder }}
Environment="TITLE={{ title }}"
ExecStart="{{ program }}" serve \\
    --title "{{ title }}"
"""


def test_a_unit_keeps_the_values_of_all_its_settings(tmp_path: Path) -> None:
    text = rendered(
        tmp_path,
        "gateway.service",
        UNIT,
        file="/etc/100%/my fleet.env",
        folder="/srv/é",
        title='50% "off" \\ \n new',
        program="/opt/my apps/litellm",
    )
    assert "EnvironmentFile=-/etc/100%%/my fleet.env\n" in text
    assert 'ExecStart="/opt/my apps/litellm" serve \\\n' in text


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("EnvironmentFile=-{{ value }}", "/etc/a\\b"),  # systemd unquotes nothing here
        ("EnvironmentFile={{ value }}", "-/etc/a"),
        ("Description={{ value }}", "two\nlines"),
        ("Description={{ value }}", "blank at its end "),
        ("ExecStart={{ value }} serve", "/opt/my apps/ollama"),
        ('ExecStart=/bin/echo "{{ value }}"', "$HOME"),
    ],
)
def test_a_unit_refuses_a_value_that_systemd_would_read_otherwise(
    line: str, value: str, tmp_path: Path
) -> None:
    with pytest.raises(FleetError, match="is not what stands there afterwards"):
        rendered(tmp_path, "a.service", f"[Service]\n{line}\n", value=value)


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
        facts = facts_of({}, target_of(fleet))
        plan(fleet, target_of(fleet), facts, playbook, Templates(tmp_path))
    what = f"{folder}/own.yaml:3:5: steps.0.when: cannot be evaluated: "
    assert caught.value.message.startswith(what)
    assert says in caught.value.message
    assert caught.value.exit_code == Exit.USAGE
    assert "one expression over node, fleet and facts" in str(caught.value.hint)
