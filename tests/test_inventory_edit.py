"""A node is added to an inventory in block style, and every other byte stays as it was."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleetctl.errors import Exit, FleetError
from fleetctl.inventory import document, parse, with_node
from tests.conftest import ROOT

FILE = Path("fleet.yaml")
VALUES = {"ssh": {"host": "new.local", "user": "ada"}}
LINE = '{ssh: {host: "new.local", user: "ada"}}'
NODE = '  new:\n    ssh: {host: "new.local", user: "ada"}\n'

ADDED = {
    "an empty file": ("", f"nodes:\n{NODE}"),
    "only comments": ("# my fleet\n", f"# my fleet\nnodes:\n{NODE}"),
    "only a comment, without its end": ("# my fleet", f"# my fleet\nnodes:\n{NODE}"),
    "only the start of a document": ("---\n", f"---\nnodes:\n{NODE}"),
    "no nodes": (
        "defaults:\n    ssh: {user: ada}  # me\n# end\n",
        "defaults:\n    ssh: {user: ada}  # me\n# end\n"
        'nodes:\n    new:\n        ssh: {host: "new.local", user: "ada"}\n',
    ),
    "no nodes, and blank lines between sections": (
        "defaults: {}\n\ngroups: {}\n",
        f"defaults: {{}}\n\ngroups: {{}}\n\nnodes:\n{NODE}",
    ),
    "nodes without any": ("nodes:\nmodels: {}\n", f"nodes:\n{NODE}models: {{}}\n"),
    "nodes with a comment in their place": (
        "nodes:  # here\n  # add yours\n\n# then\nmodels: {}\n",
        f"nodes:  # here\n  # add yours\n{NODE}\n# then\nmodels: {{}}\n",
    ),
    "a block": (
        "nodes:\n  a:\n    ssh: {host: a}  # the first\n\n# what runs where\nmodels: {}\n",
        "nodes:\n  a:\n    ssh: {host: a}  # the first\n"
        f"{NODE}\n# what runs where\nmodels: {{}}\n",
    ),
    "a block, last, without its end": ("nodes:\n  a:", f"nodes:\n  a:\n{NODE}"),
    "a block with its own indentation": (
        "nodes:\n      a:\n         tags: [x]\nmodels: {}\n",
        "nodes:\n      a:\n         tags: [x]\n"
        '      new:\n         ssh: {host: "new.local", user: "ada"}\nmodels: {}\n',
    ),
    "comments of the last node": (
        "nodes:\n  a:\n    tags: [x]\n    # groups: [y]\n\n  # b:\n# models\nmodels: {}\n",
        "nodes:\n  a:\n    tags: [x]\n    # groups: [y]\n\n  # b:\n"
        f"{NODE}# models\nmodels: {{}}\n",
    ),
    "blank lines between nodes": (
        "nodes:\n  a:\n    tags: [x]\n\n  # the other\n  b:\n    tags: [y]\n\nmodels: {}\n",
        "nodes:\n  a:\n    tags: [x]\n\n  # the other\n  b:\n    tags: [y]\n"
        f"\n{NODE}\nmodels: {{}}\n",
    ),
    "nodes on a line each": (
        "nodes:\n  a: {tags: [x]}\n  b: {tags: [y]}  # b\n",
        f"nodes:\n  a: {{tags: [x]}}\n  b: {{tags: [y]}}  # b\n  new: {LINE}\n",
    ),
    "a list at the end": (
        "nodes:\n  a:\n    tags:\n    - x\n    - y\n",
        f"nodes:\n  a:\n    tags:\n    - x\n    - y\n{NODE}",
    ),
    "an alias at the end": (
        "defaults: {ssh: &s {user: ada}}\nnodes:\n  a:\n    ssh: *s\n# end\n",
        f"defaults: {{ssh: &s {{user: ada}}}}\nnodes:\n  a:\n    ssh: *s\n{NODE}# end\n",
    ),
    "text at the end of the file": (
        "nodes:\nproject:\n  name: |\n    a # b\n    # c\n",
        f"nodes:\n{NODE}project:\n  name: |\n    a # b\n    # c\n",
    ),
    "no nodes, and text at the end": (
        "project:\n  name: >-\n    a\n    # b\n",
        f"project:\n  name: >-\n    a\n    # b\nnodes:\n{NODE}",
    ),
    "an anchor on a block": ("nodes: &n\n  a: {}\n", f"nodes: &n\n  a: {{}}\n  new: {LINE}\n"),
    "an anchor defined twice": (
        "defaults: &a {}\ngroups: &a {}\nnodes:\n",
        f"defaults: &a {{}}\ngroups: &a {{}}\nnodes:\n{NODE}",
    ),
    "letters of several bytes before it": (
        "# é日😀\nproject: {name: 日本}\nnodes:\n  a: {}\n",
        f"# é日😀\nproject: {{name: 日本}}\nnodes:\n  a: {{}}\n  new: {LINE}\n",
    ),
    "no end of the last line, elsewhere": (
        "nodes:\n  a:\nmodels: {}", f"nodes:\n  a:\n{NODE}models: {{}}",
    ),
    "the end of a document": ("defaults: {}\n...\n", f"defaults: {{}}\nnodes:\n{NODE}...\n"),
}  # fmt: skip


@pytest.mark.parametrize(("before", "after"), ADDED.values(), ids=ADDED)
def test_a_node_is_added_and_nothing_else_changes(before: str, after: str) -> None:
    edited = with_node(before.encode(), FILE, "new", VALUES)
    assert edited.data.decode() == after
    assert edited.added in after
    assert edited.fleet == parse(after.encode(), FILE)[0]
    assert list(edited.fleet.nodes)[-1] == "new"


NOT_IN_BLOCK_STYLE = {
    "null": "nodes: null\n",
    "an alias": "groups: &n {}\nnodes: *n\n",
    "an alias of a block": "groups: &n\n  a: {}\nnodes: *n\n",
    "text that a newline would change": "project:\n  name: |\n    x",
    "text that looks like nodes": 'project:\n  name: "\nnodes:\n  x"\nnodes: {a: {}}\n',
    "{}": "nodes: {}\nmodels: {}\n",
    "{} with an anchor": "nodes: &n { }\n",
    "braces": "nodes: {a: {}, b: {}}  # 2\n",
    "braces over lines": "nodes: {\n  a: {},\n  b: {}  # b\n}\n",
    "braces with a comma at the end": "nodes: {\n  a: {},  # a\n}\n",
    "braces below the key": "nodes:\n  {a: {}}\n",
    "braces that close at once": "nodes: {a: {},\n        b: {}}\n",
    "an alias in braces": "groups: &s {}\nnodes: {a: *s}\n",
    "JSON on a line": '{"nodes": {"a": {}}}',
    "JSON": '{\n  "nodes": {\n    "a": {\n      "tags": []\n    }\n  },\n  "models": {}\n}\n',
    "JSON without nodes": '{\n  "models": {}\n}\n',
    "empty JSON": "{}",
}


@pytest.mark.parametrize("text", NOT_IN_BLOCK_STYLE.values(), ids=NOT_IN_BLOCK_STYLE)
def test_what_cannot_be_edited_is_refused_with_the_lines_to_add(text: str) -> None:
    with pytest.raises(FleetError) as caught:
        with_node(text.encode(), FILE, "new", VALUES)
    assert caught.value.exit_code == Exit.USAGE
    assert "block style; nothing was written to fleet.yaml" in caught.value.message
    assert f"nodes:\n{NODE}".rstrip() in (caught.value.hint or "")


WRONG = {
    "a name that is there": ("nodes: {new: {}}", {}, "there is a node 'new' already"),
    "a name but for its case": ("nodes: {NEW: {}}", {}, "differs from 'NEW' only in"),
    "an unknown group": ("nodes: {}", {"groups": ["g"]}, "there is no group 'g'"),
    "a machine that is there": (
        "nodes: {a: {ssh: {host: new.local}}}", {}, "is the same machine as 'a'",
    ),
    "a user with a space": ("", {"ssh": {"host": "a", "user": "a b"}}, "must be one printable"),
    "an error of the file": ("nodes: {a: {sssh: {}}}", {}, "fleet.yaml: 1 error"),
    "an error, and no nodes": ("groups: {a: {sssh: {}}}", {}, "fleet.yaml: 1 error"),
    "a key twice, and no nodes": ("groups: {}\ngroups: {}", {}, "fleet.yaml: 1 error"),
    "two documents": ("nodes: {}\n---\n", {}, "fleet.yaml: 1 error"),
    "a list": ("- a\n", {}, "fleet.yaml: 1 error"),
    "Windows line endings": ("nodes: {}\r\n", {}, "fleet.yaml: 1 error"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "more", "message"), WRONG.values(), ids=WRONG)
def test_what_would_be_wrong_is_not_added(text: str, more: dict[str, object], message: str) -> None:
    with pytest.raises(FleetError, match=message) as caught:
        with_node(text.encode(), FILE, "new", {**VALUES, **more})
    assert caught.value.exit_code == Exit.USAGE


@pytest.mark.parametrize("name", ["no", "1.10", "017", "y", "null", "2026-01-01", "1e3"])
def test_a_name_that_looks_like_something_else_is_quoted(name: str) -> None:
    edited = with_node(b"nodes:\n  a: {}\n", FILE, name, VALUES)
    assert edited.added == f'  "{name}": {LINE}'


@pytest.mark.parametrize("file", sorted((ROOT / "inventory").glob("*.yaml")), ids=lambda f: f.name)
def test_a_node_can_be_added_to_every_inventory_that_is_shipped(file: Path) -> None:
    edited = with_node(file.read_bytes(), file, "new", VALUES)
    before, after = file.read_text().splitlines(), edited.data.decode().splitlines()
    assert is_there_in_order(before, after)
    assert edited.added in edited.data.decode()


# --- any inventory ---

comments = st.sampled_from(["", "", "# a comment", "#", "# nodes:", "  # deep", "      # deeper"])
bodies = st.sampled_from(
    [
        "{}",
        "{tags: [a, b]}",
        "",
        "{ssh: {user: ada}, tags: []}",
        "{\n{i}  tags: [x]  # inside\n{i}}",
    ]
)
blocks = st.lists(
    st.sampled_from(
        ["tags: [a]", "tags:\n{i}- x\n{i}- y  # y", "ssh:\n{i}  user: ada", "endpoint: http://x",
         "ollama:\n{i}  env: {}\n{i}  # nothing", "prune: true  # yes"]
    ),
    min_size=1, max_size=3, unique_by=lambda line: line.split(":")[0],
)  # fmt: skip


@st.composite
def inventories(draw: st.DrawFn) -> str:
    """Block style with everything that people put between the lines."""
    step = " " * draw(st.integers(1, 5))
    lines: list[str] = []

    def remark() -> None:
        if comment := draw(comments):
            lines.append(comment)
        if draw(st.booleans()):
            lines.append("")

    def nodes() -> None:
        lines.append("nodes:" + draw(st.sampled_from(["", "  # mine", " &all"])))
        for number in range(draw(st.integers(1, 4))):
            remark()
            if draw(st.booleans()):
                body = draw(bodies).replace("{i}", step)
                lines.extend(f"{step}n{number}: {body}".rstrip().split("\n"))
            else:
                lines.append(f"{step}n{number}:")
                for block in draw(blocks):
                    lines.extend(f"{step * 2}{block.replace('{i}', step * 3)}".split("\n"))
                    remark()

    sections = {
        "project": "project:\n  name: |\n    my # fleet\n\n    # lines",
        "defaults": "defaults: &d\n  ssh: {user: ada}",
        "groups": "groups: {g: {}}  # one",
        "nodes": "",
    }
    for section in draw(st.permutations(list(sections))):
        if section == "nodes":
            nodes()
        elif draw(st.booleans()):
            lines.extend(sections[section].split("\n"))
        remark()
    return "\n".join(lines) + draw(st.sampled_from(["", "\n", "\n\n"]))


def is_there_in_order(wanted: list[str], lines: list[str]) -> bool:
    left = iter(lines)
    return all(line in left for line in wanted)


@given(text=inventories(), port=st.integers(1, 65535), groups=st.sampled_from([[], ["g"]]))
@settings(max_examples=300)
def test_in_any_inventory_all_old_lines_stay_in_order(
    text: str, port: int, groups: list[str]
) -> None:
    values = {"ssh": {"host": "new.local", "port": port}, "groups": groups}
    if groups and "groups:" not in text:
        return
    try:
        parse(text.encode(), FILE)
    except FleetError:
        return  # nothing to be added to
    old = document.parse(text.encode()).value
    edited = with_node(text.encode(), FILE, "new", values)
    assert is_there_in_order(text.splitlines(), edited.data.decode().splitlines())
    assert len(edited.data.splitlines()) - len(text.splitlines()) <= 4
    assert isinstance(old, dict)
    assert isinstance(old["nodes"], dict)
    expected = {**old, "nodes": {**old["nodes"], "new": values}}
    assert document.parse(edited.data).value == expected
