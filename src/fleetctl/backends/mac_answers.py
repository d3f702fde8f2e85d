"""What a Mac has answered to `look_at_mac`, taken apart."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime

from fleetctl.backends.service_file import files_in
from fleetctl.model import server_log
from fleetctl.model.facts import Unknown
from fleetctl.shell import Record


class Job:
    """What launchd prints of a job; one that it does not know is empty."""

    def __init__(self, text: str) -> None:
        self.text = text

    def _number(self, name: str) -> int | None:
        """A value at the job's own level: blocks further in repeat some of the names."""
        found = re.search(rf"^\t{name} = (\d+)$", self.text, re.MULTILINE | re.ASCII)
        return int(found[1]) if found else None

    @property
    def pid(self) -> int | None:
        return self._number("pid")

    @property
    def crashes(self) -> int:
        return self._number("successive crashes") or 0

    @property
    def environment(self) -> Mapping[str, str]:
        block = re.search(r"^\tenvironment = \{\n(.*?)^\t\}", self.text, re.MULTILINE | re.DOTALL)
        return dict(re.findall(r"^\t\t(\w+) => (.*)$", block[1] if block else "", re.MULTILINE))


class Answers:
    def __init__(self, record: Record) -> None:
        self.gui = "gui" in record.text.split()
        self.root_is_free = record.section("sudo").strip() == "free"
        self._texts = {name: raw.decode(errors="replace") for name, raw in record.sections.items()}
        self.files = dict(files_in(record))
        self.disabled = set(re.findall(r'"([^"]+)" => (?:disabled|true)', self.text("disabled")))

    def text(self, section: str) -> str:
        return self._texts.get(section, "")

    def job(self, domains: tuple[str, ...], *labels: str) -> Job:
        """The first of these jobs that launchd knows."""
        for name, said in self._texts.items():
            kind, _, target = name.partition(" ")
            domain, _, label = target.rpartition("/")
            if kind == "job" and label in labels and domain.startswith(domains):
                return Job(said)
        return Job("")

    def content(self, path: str) -> str:
        """Of a file, by a path in which `~` stands for whatever home the node has."""
        ending = path.removeprefix("~")
        found = next((file for at, file in self.files.items() if at.endswith(ending)), None)
        return found.content if found and isinstance(found.content, str) else ""

    def serving(self, pid: int | None, program: str = "") -> tuple[int, datetime] | None:
        """A server, by its number or by what it runs: its pid, and when it began."""
        for line in self.text("processes").splitlines():
            words = line.split(None, 7)
            if len(words) < 8 or not words[0].isdecimal():
                continue
            runs = bool(program) and words[7] == f"{program} serve"
            if int(words[0]) == pid or runs:
                zone = self.text("zone").strip() or "+0000"
                try:
                    text = f"{' '.join(words[3:7])} {zone}"
                    return int(words[0]), datetime.strptime(text, "%b %d %H:%M:%S %Y %z")
                except ValueError:
                    return None
        return None

    def log(self, path: str) -> str:
        ending = path.removeprefix("~")
        logs = ((name, text) for name, text in self._texts.items() if name.startswith("log "))
        return next((text for name, text in logs if name.endswith(ending)), "")

    def effective(self, log: str, since: datetime | None) -> Mapping[str, str] | Unknown:
        """What the server says of itself, if it has said so since it began."""
        said = self.log(log)
        values, moment = server_log.effective(said), server_log.moment(said)
        if since is None:
            return Unknown("it does not run")
        if values is None or moment is None:
            return Unknown("its log says nothing of it")
        if moment.timestamp() < since.timestamp() - 1:
            return Unknown("its log says nothing since it was started")
        return values
