"""Plans for people: one line a change, what nodes share said once, a diff for every file."""

from __future__ import annotations

import difflib
import sys
from collections import Counter
from collections.abc import Iterable, Iterator

from fleetctl.errors import Exit
from fleetctl.model.plan import Change, Finding, Level, Lost, NodePlan, Result, WriteFile
from fleetctl.model.report import Outcome, Report
from fleetctl.model.server_log import only_informs
from fleetctl.ui.console import printable, styled

_SHOWN = 3
_TELLING = 20
_WORDS = {
    Level.NOTE: ("note", "faint"),
    Level.UNKNOWN: ("not known", "warning"),
    Level.WARNING: ("warning", "warning"),
    Level.FAULT: ("fault", "error"),
    Level.OBSTACLE: ("obstacle", "error"),
    Level.EXPOSURE: ("exposed", "error"),
}


def lines(report: Report, *, diff: bool) -> Iterator[str]:
    """Everything but the last line."""
    total = len(report.results)
    for said in (_changes, _findings):
        yield from _folded(
            ((plan.node, line) for plan in report.plans for line in said(plan)), total
        )
    if diff:
        yield from _diffs(report.plans, total)
    for result in report.results:
        if isinstance(result, Lost):
            yield from _failure(result.node, "failed", result.message, result.hint)


def outcomes(report: Report) -> Iterator[str]:
    """What became of the nodes that were to be changed; those that went well are only counted."""
    for ended in report.outcomes.values():
        if ended.exit_code != Exit.OK:
            yield from _failure(ended.node, ended.state, ended.message, ended.hint, ended.said)


def _failure(
    node: str, word: str, message: str, hint: str | None, said: Iterable[str] = ()
) -> Iterator[str]:
    yield f"{node}: {styled(word, 'error', sys.stdout)}: {printable(message)}"
    yield from (f"  | {printable(line)}" for line in _telling(said))
    if hint:
        yield f"  {styled('hint', 'hint', sys.stdout)}: {printable(hint)}"


def _telling(said: Iterable[str]) -> list[str]:
    """The last lines, each once, and what Ollama only mentions only if there is nothing else."""
    lines = [line for line in said if line.strip()]
    once = dict.fromkeys([line for line in lines if not only_informs(line)] or lines)
    return list(once)[-_TELLING:]


def summary(report: Report) -> str:
    """Counts and seconds; what could not be seen is counted beside."""
    states = [
        (report.outcomes.get(result.node) or result).state.replace("differs", "differ")
        for result in report.results
    ]
    said = ", ".join(f"{count} {what}" for what, count in Counter(states).most_common())
    nodes = f"{len(report.results)} node{'s' if len(report.results) != 1 else ''}"
    things = "1 thing is" if report.unknown == 1 else f"{report.unknown} things are"
    unknown = f" {things} not known." if report.unknown else ""
    return f"{nodes}: {said or 'nothing to look at'} ({report.seconds:.1f} s).{unknown}"


def document(report: Report) -> dict[str, object]:
    """The same for programs."""
    return {
        "exit_code": int(report.exit_code),
        "seconds": round(report.seconds, 3),
        "unknown": report.unknown,
        "nodes": {each.node: result(each) for each in report.results},
        "outcomes": {each.node: outcome(each) for each in report.outcomes.values()},
    }


def _changes(plan: NodePlan) -> Iterator[str]:
    for _, change in plan.changes:
        details = change.details if isinstance(change, WriteFile) else ()
        yield from map(printable, details or (change.title,))


def _findings(plan: NodePlan) -> Iterator[str]:
    for finding in sorted(plan.findings, key=lambda each: -each.level):
        word, style = _WORDS[finding.level]
        fix = f" ({finding.fix})" if finding.fix else ""
        yield f"{styled(word, style, sys.stdout)}: {printable(finding.text + fix)}"


def _folded(said: Iterable[tuple[str, str]], total: int) -> Iterator[str]:
    """Who says a line twice is named once."""
    nodes: dict[str, dict[str, None]] = {}
    for node, line in said:
        nodes.setdefault(line, {})[node] = None
    for line, names in nodes.items():
        yield f"{_names(list(names), total)}: {line}"


def _names(names: list[str], total: int) -> str:
    if len(names) == total >= _SHOWN:
        return f"all {total} nodes"
    more = len(names) - _SHOWN
    shown = names if more <= 1 else [*names[:_SHOWN], f"+{more}"]
    return ", ".join(shown)


def _diffs(plans: list[NodePlan], total: int) -> Iterator[str]:
    nodes: dict[WriteFile, list[str]] = {}
    for plan in plans:
        for _, change in plan.changes:
            if isinstance(change, WriteFile):
                nodes.setdefault(change, []).append(plan.node)
    for change, names in nodes.items():
        yield ""
        yield styled(f"{_names(names, total)}: {change.path}", "strong", sys.stdout)
        yield from (f"  {_coloured(line)}" for line in diff_of(change))


def diff_of(change: WriteFile) -> list[str]:
    before, after = ((text or "").splitlines() for text in (change.before, change.after))
    return list(difflib.unified_diff(before, after, lineterm="", n=2))[2:]


def _coloured(line: str) -> str:
    style = {"+": "added", "-": "removed"}.get(line[:1], "faint")
    return styled(printable(line), style, sys.stdout)


def outcome(ended: Outcome) -> dict[str, object]:
    return {
        "state": ended.state,
        "exit_code": int(ended.exit_code),
        "done": list(ended.done),
        "message": ended.message,
        "hint": ended.hint,
        "said": list(ended.said),
    }


def result(result: Result) -> dict[str, object]:
    if isinstance(result, Lost):
        return {
            "state": result.state,
            "message": result.message,
            "hint": result.hint,
            "exit_code": int(result.exit_code),
        }
    return {
        "state": result.state,
        "exit_code": int(result.exit_code),
        "changes": [_change(kind, change) for kind, change in result.changes],
        "findings": [_finding(finding) for finding in result.findings],
    }


def _change(kind: str, change: Change) -> dict[str, object]:
    document: dict[str, object] = {"step": kind, "title": change.title}
    if isinstance(change, WriteFile):
        diff = diff_of(change)
        document |= {"path": change.path, "details": list(change.details), "diff": diff}
    return document


def _finding(finding: Finding) -> dict[str, object]:
    return {"level": finding.level.name.lower(), "text": finding.text, "fix": finding.fix}
