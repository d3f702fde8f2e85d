"""Carrying out the plan of one node, until looking again finds nothing to do."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field, replace
from itertools import takewhile

from fleetctl.errors import Exit, FleetError
from fleetctl.execute import idle, models
from fleetctl.execute.budget import Budget
from fleetctl.execute.health import answering, illness
from fleetctl.execute.parallel import failure
from fleetctl.execute.session import Course, Session
from fleetctl.execute.transactions import transactions
from fleetctl.gather import Observer
from fleetctl.links import Link, Process, root_shell
from fleetctl.model.events import Did, Doing, Listener, Noted
from fleetctl.model.facts import Api
from fleetctl.model.fleet import Node
from fleetctl.model.plan import (
    DeleteModel,
    Level,
    ModelChange,
    NodePlan,
    Recover,
    Restart,
    Scripted,
)
from fleetctl.model.report import Outcome, State
from fleetctl.shell.transaction import Patience, Transaction
from fleetctl.steps.preflight import ways_to_root

_PASSES = 2
"""A guard of the user's may depend on an earlier step; nothing else needs a second pass."""
_IDLE_SECONDS = 3600


@dataclass(frozen=True, slots=True)
class Means:
    """What carrying out a plan takes, the same for all nodes."""

    observer: Observer
    tell: Listener
    owner: str
    patience: Patience
    gate: AbstractContextManager[object]
    """Held from the restart of a node that serves until it is well."""
    budget: Budget
    """Hears that a node has failed before the gate opens for the next."""
    wait_idle: bool


@dataclass(slots=True)
class Work:
    node: Node
    means: Means
    link: Link
    done: list[str] = field(default_factory=list)

    def until_nothing_differs(self, plan: NodePlan) -> Outcome:
        passes = _PASSES
        shown = _deletions(plan)
        while passes:
            passes -= not any(isinstance(change, Recover) for _, change in plan.changes)
            todo = list(transactions(self.node, plan, self.means.owner))
            first, rest = _models_of(plan)
            if ended := self._delete_first(first, plan, todo[-1]):
                return ended
            with ExitStack() as held:
                for transaction in todo:
                    if ended := self._run(transaction, plan, held):
                        return ended
                if ended := self._models(rest):
                    return ended
                plan = self._plan_again(todo[-1], held)
            if not plan.changes and not plan.worst(Level.FAULT):
                return self._outcome("changed")
            if not _deletions(plan) <= shown:
                break
        left = [change.title for _, change in plan.changes]
        left += [finding.text for finding in plan.worst(Level.FAULT)]
        what = f"not as desired after all was done: {'; '.join(left)}"
        return self._outcome("failed", what, f"fleetctl check --limit {self.node.name}")

    def _plan_again(self, transaction: Transaction, held: ExitStack) -> NodePlan:
        """What was committed is there, also when the connection is lost right after it."""
        try:
            return self.means.observer.plan(self.link, self.node)
        except FleetError as error:
            if error.exit_code != Exit.UNREACHABLE:
                raise
        held.callback(self._connect_again(transaction).release)
        return self.means.observer.plan(self.link, self.node)

    def _connect_again(self, transaction: Transaction) -> Session:
        """A session that only holds the lock, once the one that was lost has let go of it."""
        self.means.tell(Noted(self.node.name, "the connection was lost; looking again"))
        self.link.close()
        self.link = self.means.observer.connect(self.node)
        plan = self.means.observer.plan(self.link, self.node)
        patience = self.means.patience
        deadline = time.monotonic() + patience.silent + patience.restart
        while True:
            shell = self._shell(transaction.as_root, plan)
            session = Session(shell, replace(transaction, changes=()), patience)
            course = session.run(lambda _: None, lambda: None)
            if course.word != "locked" or time.monotonic() > deadline:
                return session
            time.sleep(1)

    # --- one transaction ---

    def _run(self, transaction: Transaction, plan: NodePlan, held: ExitStack) -> Outcome | None:
        serving = isinstance(plan.facts.api, Api)
        with self.means.gate if transaction.restarts and serving else nullcontext():
            if reason := self.means.budget.halted():
                return self._outcome("skipped", reason)
            try:
                ended = self._transact(transaction, plan, held)
            except FleetError:
                self.means.budget.failed.add(self.node.name)
                raise
            if ended:
                self.means.budget.count(ended)
            return ended

    def _transact(
        self, transaction: Transaction, plan: NodePlan, held: ExitStack
    ) -> Outcome | None:
        api = plan.facts.api
        if transaction.restarts and isinstance(api, Api):
            self._say_who_is_disturbed(api)
        shell = self._shell(transaction.as_root, plan)
        session = Session(shell, transaction, self.means.patience)
        made: list[str] = []

        def tell(change: Scripted) -> None:
            made.append(change.deed if isinstance(change, Restart) else change.title)
            self.means.tell(Did(self.node.name, made[-1]))

        def judge() -> str | None:
            self.means.tell(Doing(self.node.name, "waiting for Ollama"))
            return illness(self.means.observer, self.link, self.node, self.means.patience)

        course = session.run(tell, judge)
        if course.word == "lost":
            return self._look_again(transaction, made)
        held.callback(session.release)
        if course.word in ("committed", "held", "recovered"):
            self.done += made
            if course.word == "recovered":
                self.done.append(Recover.title)
            return None
        return self._failed(course, served=isinstance(api, Api))

    def _shell(self, as_root: bool, plan: NodePlan) -> Process:
        if not as_root:
            return self.link.shell()
        observer = self.means.observer
        try:
            return root_shell(self.link, observer.password, observer.timeout)
        except FleetError as error:
            raise FleetError(error.message, hint=ways_to_root(plan.facts.host)) from error

    def _failed(self, course: Course, *, served: bool) -> Outcome:
        name = self.node.name
        if course.word == "locked":
            owner = course.text.rpartition(":")[2]
            hint = f"wait for that run, or: fleetctl unlock {name}"
            return self._outcome("locked", f"locked by {owner}", hint)
        if course.word == "changed":
            return self._outcome("failed", course.text, "run it again to see the new plan")
        what = course.why or "a change failed"
        if course.failed is not None:
            what = f"{course.failed.title}: {course.why}"
        said = tuple(course.said)
        if course.word == "untouched":
            return self._outcome("failed", f"{what}; nothing was changed", said=said)
        if course.word == "dirty":
            hint = "the lines above say what is left to do by hand"
            return self._outcome("dirty", f"{what}; the way back failed too", hint, said)
        if served:
            seconds = self.means.patience.healthy
            now = answering(self.means.observer, self.link, self.node, seconds, whoever=True)
            if isinstance(now, str):
                what = f"{what}; everything is as before, but {now}"
                return self._outcome("dirty", what, "look at its log", said)
        return self._outcome("rolled back", what, f"fleetctl check --limit {name}", said)

    def _look_again(self, transaction: Transaction, made: list[str]) -> Outcome:
        """The connection is gone. Nothing is run blindly: the node decides, and then we look."""
        lost = "the connection was lost in the middle"
        try:
            session = self._connect_again(transaction)
            plan = self.means.observer.plan(self.link, self.node)
            session.release()
        except FleetError as error:
            what = f"{lost}, and again: {error.message}; the node undoes what was begun by itself"
            return self._outcome("failed", what, "run it again when the node can be reached")
        if session.course.word == "dirty":
            return self._failed(session.course, served=False)
        if not plan.changes:
            self.done += made
            return self._outcome("changed")
        left = "; ".join(change.title for _, change in plan.changes)
        return self._outcome("failed", f"{lost}; what is left: {left}", "run it again")

    def _say_who_is_disturbed(self, api: Api) -> None:
        """A restart ends what is in flight."""
        timeout = self.means.observer.timeout
        deadline = time.monotonic() + _IDLE_SECONDS
        count = idle.clients(self.link, api.port, timeout)
        while self.means.wait_idle and count and time.monotonic() < deadline:
            self.means.tell(Doing(self.node.name, f"waiting for {count} clients of Ollama"))
            if self.means.budget.stop.wait(1):
                return
            count = idle.clients(self.link, api.port, timeout)
        if loaded := idle.loaded(self.link, api.listens, timeout):
            text = f"the restart unloads {', '.join(loaded)}"
            self.means.tell(Noted(self.node.name, text))
        if count:
            text = f"the restart cuts off {count} open connection{'s' if count > 1 else ''}"
            self.means.tell(Noted(self.node.name, f"{text} (--wait-idle would wait)"))

    # --- models ---

    def _delete_first(
        self, changes: list[ModelChange], plan: NodePlan, transaction: Transaction
    ) -> Outcome | None:
        """Before the node goes back to what it was: Ollama may then be elsewhere, or gone."""
        if not changes:
            return None
        with ExitStack() as held:
            return self._run(replace(transaction, changes=()), plan, held) or self._models(changes)

    def _models(self, changes: list[ModelChange]) -> Outcome | None:
        """Each by itself: that one cannot be had is no reason to do without the others."""
        problems = []
        means = self.means
        for change, why in models.carry_out(
            changes, self.link, self.node, means.tell, means.budget.stop
        ):
            if why is None:
                self.done.append(change.title)
            else:
                problems.append(f"{change.title}: {why}")
        if not problems:
            return None
        hint = f"try it on {self.node.name} itself, with `ollama pull` or `ollama rm`"
        return self._outcome("failed", "; ".join(problems), hint)

    def _outcome(
        self,
        state: State,
        message: str = "",
        hint: str | None = None,
        said: tuple[str, ...] = (),
    ) -> Outcome:
        return Outcome(self.node.name, state, tuple(self.done), message, hint, said)


def _models_of(plan: NodePlan) -> tuple[list[ModelChange], list[ModelChange]]:
    """Models to be deleted before all else, if the plan begins so; and those to see to after."""
    deleting = takewhile(lambda each: isinstance(each[1], DeleteModel), plan.changes)
    count = len(list(deleting))
    models = [change for _, change in plan.changes if isinstance(change, ModelChange)]
    return models[:count], models[count:]


def _deletions(plan: NodePlan) -> set[DeleteModel]:
    """Nothing brings a model back, so only what was in the plan that was shown is deleted."""
    return {change for _, change in plan.changes if isinstance(change, DeleteModel)}


_STATES: dict[Exit, State] = {Exit.UNREACHABLE: "unreachable", Exit.REFUSED: "refused"}


def carry_out(node: Node, plan: NodePlan, means: Means) -> Outcome:
    if reason := means.budget.halted():
        return Outcome(node.name, "skipped", message=reason)
    try:
        work = Work(node, means, means.observer.connect(node))
        try:
            outcome = work.until_nothing_differs(plan)
        finally:
            work.link.close()
    except Exception as error:
        why = failure(node.name, error)
        state = _STATES.get(why.exit_code, "failed")
        outcome = Outcome(node.name, state, (), why.message, why.hint)
    means.budget.count(outcome)
    return outcome
