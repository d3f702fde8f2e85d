"""The commented reference inventory: `init` writes it, `docs` prints it, `schema` quotes it."""

import re

from fleetctl import packaged

_KEY = re.compile(r"( *)([\w-]+):(?: |$)", re.ASCII)


def text() -> str:
    return (packaged.folder("inventory") / "reference.yaml").read_text()


def descriptions() -> dict[tuple[str, ...], str]:
    """The comment above each key, by the key's path; the first comment of a path counts."""
    found: dict[tuple[str, ...], str] = {}
    path: list[tuple[int, str]] = []
    comment: list[str] = []
    for line in text().splitlines():
        if line.lstrip().startswith("# "):
            comment.append(line.lstrip()[2:])
            continue
        if key := _KEY.match(line):
            indent = len(key[1])
            path = [step for step in path if step[0] < indent] + [(indent, key[2])]
            if comment:
                found.setdefault(tuple(name for _, name in path), " ".join(comment))
        comment = []
    return found


def sections() -> dict[str, str]:
    """Each top-level key with its text and the comment above it."""
    _, *paragraphs = re.split(r"\n\n(?=#)", text())
    return {
        name: paragraph.rstrip()
        for paragraph in paragraphs
        for name in re.findall(r"^([\w-]+):(?: |$)", paragraph, re.ASCII | re.MULTILINE)
    }
