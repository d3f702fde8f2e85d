"""A plan and its outcome as lines: changes, findings, diffs, failures, the summary.

Lines that several nodes share are printed once, with the names of the nodes.
"""

from __future__ import annotations

import difflib
import sys
from collections import Counter
from collections.abc import Iterable, Iterator

from fleetctl.errors import Exit
from fleetctl.model.fleet import CONTROLLER
from fleetctl.model.ollama_log import is_routine
from fleetctl.model.plan import Failed, Level, Plan, WriteFile
from fleetctl.model.report import Report
from fleetctl.ui.console import printable, styled

_MAX_NAMES = 3
_MAX_LOG_LINES = 20
_LEVELS = {
    Level.NOTE: ("note", "faint"),
    Level.UNKNOWN: ("not known", "warning"),
    Level.WARNING: ("warning", "warning"),
    Level.FAULT: ("fault", "error"),
    Level.OBSTACLE: ("obstacle", "error"),
    Level.EXPOSURE: ("exposed", "error"),
}


def lines(report: Report, *, diff: bool) -> Iterator[str]:
    """The plan: changes, findings, diffs if asked for, and nodes that could not be planned."""
    total = _count(report)
    for describe in (_changes, _findings):
        yield from _grouped(
            ((plan.target, line) for plan in report.plans for line in describe(plan)), total
        )
    if diff:
        yield from _diffs(report.plans, total)
    for result in report.results:
        if isinstance(result, Failed):
            yield from _failure(result.target, "failed", result.message, result.hint)


def outcomes(report: Report) -> Iterator[str]:
    """Why nodes could not be changed; the others are only counted in the summary."""
    for outcome in report.outcomes.values():
        if outcome.exit_code != Exit.OK:
            yield from _failure(
                outcome.target, outcome.state, outcome.message, outcome.hint, outcome.output
            )


def summary(report: Report) -> str:
    """Targets by state, seconds, and how many facts are not known. A controller that is ok is not
    mentioned."""
    ends = [report.outcomes.get(result.target) or result for result in report.results]
    ends = [end for end in ends if (end.target, end.state) != (CONTROLLER, "ok")]
    states = Counter(end.state for end in ends)
    counts = ", ".join(f"{count} {state}" for state, count in states.most_common())
    nodes = f"{_count(report)} node{'s' if _count(report) != 1 else ''}"
    if any(end.target == CONTROLLER for end in ends):
        nodes += " and the controller"
    things = "1 thing is" if report.unknown == 1 else f"{report.unknown} things are"
    unknown = f" {things} not known." if report.unknown else ""
    return f"{nodes}: {counts or 'nothing to do'} ({report.seconds:.1f} s).{unknown}"


def _count(report: Report) -> int:
    return sum(result.target != CONTROLLER for result in report.results)


def diff_lines(change: WriteFile) -> list[str]:
    """A unified diff without its header."""
    before, after = ((text or "").splitlines() for text in (change.before, change.after))
    return list(difflib.unified_diff(before, after, lineterm="", n=2))[2:]


def _failure(
    node: str, state: str, message: str, hint: str | None, log: Iterable[str] = ()
) -> Iterator[str]:
    yield f"{printable(node)}: {styled(state, 'error', sys.stdout)}: {printable(message)}"
    yield from (f"  | {printable(line)}" for line in _relevant(log))
    if hint:
        yield f"  {styled('hint', 'hint', sys.stdout)}: {printable(hint)}"


def _relevant(log: Iterable[str]) -> list[str]:
    """The last distinct lines; informational ones only if there are no others."""
    lines = [line for line in log if line.strip()]
    distinct = dict.fromkeys([line for line in lines if not is_routine(line)] or lines)
    return list(distinct)[-_MAX_LOG_LINES:]


def _changes(plan: Plan) -> Iterator[str]:
    for _, change in plan.changes:
        details = change.details if isinstance(change, WriteFile) else ()
        yield from map(printable, details or (change.title,))


def _findings(plan: Plan) -> Iterator[str]:
    for finding in sorted(plan.findings, key=lambda finding: -finding.level):
        level, style = _LEVELS[finding.level]
        hint = f" (hint: {finding.hint})" if finding.hint else ""
        yield f"{styled(level, style, sys.stdout)}: {printable(finding.text + hint)}"


def _grouped(lines: Iterable[tuple[str, str]], total: int) -> Iterator[str]:
    """Each distinct line once, after the names of its nodes."""
    nodes: dict[str, dict[str, None]] = {}
    for node, line in lines:
        nodes.setdefault(line, {})[node] = None
    for line, names in nodes.items():
        yield f"{_names(list(names), total)}: {line}"


def _names(names: list[str], total: int) -> str:
    if len(names) == total >= _MAX_NAMES:
        return f"all {total} nodes"
    more = len(names) - _MAX_NAMES
    shown = names if more <= 1 else [*names[:_MAX_NAMES], f"+{more}"]
    return printable(", ".join(shown))


def _diffs(plans: list[Plan], total: int) -> Iterator[str]:
    nodes: dict[WriteFile, list[str]] = {}
    for plan in plans:
        for _, change in plan.changes:
            if isinstance(change, WriteFile):
                nodes.setdefault(change, []).append(plan.target)
    for change, names in nodes.items():
        title = f"{_names(names, total)}: {printable(change.path)}"
        yield ""
        yield styled(title, "strong", sys.stdout)
        yield from (f"  {_coloured(line)}" for line in diff_lines(change))


def _coloured(line: str) -> str:
    style = {"+": "added", "-": "removed"}.get(line[:1], "faint")
    return styled(printable(line), style, sys.stdout)
