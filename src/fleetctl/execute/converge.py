"""converge(target, plan): carries out a plan until a new look finds nothing left to change."""

import time
from contextlib import ExitStack, closing, nullcontext
from dataclasses import dataclass, field, replace

from fleetctl.audit.preflight import ways_to_root
from fleetctl.errors import Exit, FleetError
from fleetctl.execute import models
from fleetctl.execute.context import RunContext
from fleetctl.execute.health import Unhealthy, healthy, wait_until_up
from fleetctl.execute.rollout import failure
from fleetctl.execute.transact import Session, TransactionResult, transactions
from fleetctl.gather import ask_api, client
from fleetctl.links import Link, Process, answers, root_shell
from fleetctl.model.events import Did, Doing, Noted
from fleetctl.model.facts import Api, Facts
from fleetctl.model.fleet import Target
from fleetctl.model.plan import (
    DeleteModel,
    Level,
    ModelChange,
    Plan,
    Recover,
    Restart,
    Stage,
    TransactionChange,
)
from fleetctl.model.report import Outcome, State
from fleetctl.ollama import NoAnswer
from fleetctl.shell import HOST, Question, survey
from fleetctl.shell.transaction import Transaction

_PASSES = 2
"""A user's guard may depend on an earlier step; nothing else needs a second pass."""
_IDLE_SECONDS = 3600


def converge(target: Target, plan: Plan, link: Link | None, context: RunContext) -> Outcome:
    """`link` is the connection that the plan was made over, if it is still open."""
    if reason := context.budget.halted():
        outcome = Outcome(target.name, "skipped", message=reason)
        if link:
            link.close()
        return outcome
    try:
        outcome = _converged(target, plan, link, context)
    except Exception as error:
        why = failure(target.name, error)
        states: dict[Exit, State] = {Exit.UNREACHABLE: "unreachable", Exit.REFUSED: "refused"}
        state = states.get(why.exit_code, "failed")
        outcome = Outcome(target.name, state, (), why.message, why.hint)
    context.budget.count(outcome)
    return outcome


def _converged(target: Target, plan: Plan, link: Link | None, context: RunContext) -> Outcome:
    if link and link.alive:
        link.resume()
    else:
        if link:
            link.close()
        link = context.connect(target)
    work = _Work(target, context, link)
    try:
        work.converge(plan)
    except _Ended as ended:
        return ended.outcome
    finally:
        work.link.close()
    return work.outcome("changed")


class _Ended(Exception):
    """No more can be done for this target."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.message)
        self.outcome = outcome


@dataclass(slots=True)
class _Work:
    target: Target
    context: RunContext
    link: Link
    done: list[str] = field(default_factory=list)

    def converge(self, plan: Plan) -> None:
        """Returns when the target is as desired; raises _Ended otherwise."""
        passes = _PASSES
        shown = _deletions(plan)
        while passes:
            passes -= not any(isinstance(change, Recover) for _, change in plan.changes)
            with ExitStack() as held:
                facts = self._stages(plan, held)
                plan = self.context.replan(self.target, facts)
            if plan.converged:
                return
            if not _deletions(plan) <= shown:
                break
        left = [change.title for _, change in plan.changes]
        left += [finding.text for finding in plan.worst(Level.FAULT)]
        hint = f"fleetctl check --limit {self.target.name}"
        raise self._ended("failed", f"not converged after all changes: {'; '.join(left)}", hint)

    def _stages(self, plan: Plan, held: ExitStack) -> Facts:
        """Runs the stages of a plan in their order; the facts afterwards."""
        todo = list(transactions(self.target, plan, self.context.owner))
        if first := plan.at(Stage.API_FIRST):
            with ExitStack() as lock:
                self._gated(replace(todo[-1], changes=()), plan, lock)
                self._change_models(first)
        facts = None
        for transaction in todo:
            facts = self._gated(transaction, plan, held)
        after = plan.at(Stage.API_AFTER)
        self._change_models(after)
        return self._look(todo[-1], facts, held, models_changed=bool(after))

    def _look(
        self,
        transaction: Transaction,
        facts: Facts | None,
        held: ExitStack,
        *,
        models_changed: bool,
    ) -> Facts:
        """Once after the change: what the health check saw is reused, but for changed models."""
        if facts is not None and isinstance(facts.api, Api):
            if not models_changed:
                return facts
            api = ask_api(self.link, facts.api.listens, self.context.access.timeout)
            return replace(facts, api=api)
        try:
            return self.context.look(self.link, self.target)
        except FleetError as error:
            if error.exit_code != Exit.UNREACHABLE:
                raise
        self._reconnect(transaction, held)  # what was committed stays, also without a connection
        return self.context.look(self.link, self.target)

    def _reconnect(self, transaction: Transaction, held: ExitStack) -> TransactionResult:
        """Waits for the lost session to let go of the lock, and holds the lock again.

        The node has rolled back by then, or is rolled back by this session.
        """
        self.context.tell(Noted(self.target.name, "the connection was lost; connecting again"))
        self.link.close()
        self.link = self.context.connect(self.target)
        timeouts = self.context.timeouts
        deadline = time.monotonic() + timeouts.silent + timeouts.restart
        while True:
            shell = self._shell(transaction)
            session = Session(shell, replace(transaction, changes=()), timeouts)
            result = session.run(lambda _: None, lambda: None)
            if result.outcome != "locked" or time.monotonic() > deadline:
                held.callback(session.release)
                return result
            time.sleep(1)

    # --- one transaction ---

    def _gated(self, transaction: Transaction, plan: Plan, held: ExitStack) -> Facts | None:
        """The facts at the health check, if there was one."""
        serving = isinstance(plan.facts.api, Api)
        with self.context.gate if transaction.restarts and serving else nullcontext():
            if reason := self.context.budget.halted():
                raise self._ended("skipped", reason)
            try:
                return self._transact(transaction, plan, held)
            except _Ended as ended:
                self.context.budget.count(ended.outcome)
                raise
            except FleetError:
                self.context.budget.failed.add(self.target.name)
                raise

    def _transact(self, transaction: Transaction, plan: Plan, held: ExitStack) -> Facts | None:
        served = plan.facts.api if isinstance(plan.facts.api, Api) else None
        if transaction.restarts and served:
            self._warn_clients(served)
        session = Session(self._shell(transaction), transaction, self.context.timeouts)
        made: list[str] = []
        seen: list[Facts] = []

        def tell(change: TransactionChange) -> None:
            made.append(change.short_title if isinstance(change, Restart) else change.title)
            self.context.tell(Did(self.target.name, made[-1]))

        def judge() -> str | None:
            assert plan.service is not None, "only a service is restarted"
            title = plan.service.spec.title
            self.context.tell(Doing(self.target.name, f"waiting for {title}"))
            try:
                seen.append(healthy(self.link, self.target, plan.service, self.context))
            except Unhealthy as error:
                return str(error)
            return None

        result = session.run(tell, judge)
        if result.outcome == "disconnected":
            self._resume_disconnected(transaction, made)
            return None
        held.callback(session.release)
        if result.outcome not in ("committed", "held", "recovered"):
            raise self._failed(result, plan, served)
        self.done += made
        if result.outcome == "recovered":
            self.done.append(Recover.title)
        return seen[-1] if seen else None

    def _shell(self, transaction: Transaction) -> Process:
        if transaction.scope == "user":
            return self.link.shell()
        access = self.context.access
        try:
            return root_shell(self.link, access.sudo_password, access.timeout)
        except FleetError as error:
            raise FleetError(error.message, hint=ways_to_root(transaction.user)) from error

    def _failed(self, result: TransactionResult, plan: Plan, served: Api | None) -> "_Ended":
        name = self.target.name
        if result.outcome == "locked":
            owner = result.detail.rpartition(":")[2]
            hint = f"wait for that run, or: fleetctl unlock {name}"
            return self._ended("locked", f"locked by {owner}", hint)
        if result.outcome == "preempted":
            by = result.detail.rpartition(":")[2]
            what = f"its lock was {f'taken over by {by}' if by else 'removed by `fleetctl unlock`'}"
            hint = "run it again: it first undoes what was begun"
            return self._ended("failed", f"{what}, so nothing more was done", hint)
        if result.outcome == "changed":
            return self._ended("failed", result.detail, "run it again to see the new plan")
        what = result.why or "a change failed"
        if result.failed is not None:
            what = f"{result.failed.title}: {result.why}"
        output = tuple(result.output)
        if result.outcome == "untouched":
            return self._ended("failed", f"{what}; nothing was changed", output=output)
        if result.outcome == "dirty":
            hint = "run the commands above by hand"
            return self._ended("dirty", f"{what}; the rollback failed too", hint, output)
        try:
            if served and plan.service:
                specs = [service.spec for service in plan.facts.services]
                wait_until_up(self.link, self.target, specs, self.context, any_server=True)
        except Unhealthy as error:
            what = f"{what}; everything was rolled back, but {error}"
            return self._ended("dirty", what, "check its log", output)
        return self._ended("rolled back", what, f"fleetctl check --limit {name}", output)

    def _resume_disconnected(self, transaction: Transaction, made: list[str]) -> None:
        """Nothing is run blindly: the node rolls back or has committed, and then we look."""
        lost = "the connection was lost during the change"
        try:
            with ExitStack() as lock:
                result = self._reconnect(transaction, lock)
                plan = self.context.replan(self.target, self.context.look(self.link, self.target))
        except FleetError as error:
            what = f"{lost}, and again: {error.message}; the node rolls back automatically"
            raise self._ended("failed", what, "run it again when it is reachable") from error
        if result.outcome == "dirty":
            raise self._failed(result, plan, None)
        if not plan.changes:
            self.done += made
            raise self._ended("changed")
        left = "; ".join(change.title for _, change in plan.changes)
        raise self._ended("failed", f"{lost}; what is left: {left}", "run it again")

    # --- clients and models ---

    def _warn_clients(self, api: Api) -> None:
        """A restart ends the requests that are being served."""
        deadline = time.monotonic() + _IDLE_SECONDS
        count = self._clients(api)
        while self.context.wait_idle and count and time.monotonic() < deadline:
            text = f"waiting for {count} client{'s' if count > 1 else ''} to finish"
            self.context.tell(Doing(self.target.name, text))
            if self.context.budget.stop.wait(1):
                return
            count = self._clients(api)
        if loaded := self._loaded(api):
            text = f"the restart unloads {', '.join(loaded)}"
            self.context.tell(Noted(self.target.name, text))
        if count:
            text = f"the restart cuts off {count} open connection{'s' if count > 1 else ''}"
            self.context.tell(Noted(self.target.name, f"{text} (--wait-idle would wait)"))

    def _clients(self, api: Api) -> int:
        """How many connections to its port are open."""
        asked = Question("connections", survey.ask_ports("ESTABLISHED"), library=HOST)
        said = answers(self.link.shell(), [asked], self.context.access.timeout)
        return survey.ports(said[asked.key].text).count(api.port)

    def _loaded(self, api: Api) -> list[str]:
        try:
            with closing(client(self.link, api.listens, self.context.access.timeout)) as ollama:
                return ollama.loaded()
        except NoAnswer:
            return []

    def _change_models(self, changes: list[TransactionChange | ModelChange]) -> None:
        """Each on its own: one that cannot be had is no reason to do without the others."""
        problems = []
        node = self.target.node
        for change in changes:
            assert node is not None, "only nodes have models"
            assert isinstance(change, ModelChange)
            try:
                models.change_model(
                    change, self.link, node, self.context.tell, self.context.budget.stop
                )
            except NoAnswer as error:
                problems.append(f"{change.title}: {error}")
            except models.Stopped:
                problems.append(f"{change.title}: the run was stopped; what has arrived is kept")
                break
            else:
                self.context.tell(Did(self.target.name, change.title))
                self.done.append(change.title)
        if problems:
            hint = f"try it on {self.target.name} itself, with `ollama pull` or `ollama rm`"
            raise self._ended("failed", "; ".join(problems), hint)

    def outcome(
        self,
        state: State,
        message: str = "",
        hint: str | None = None,
        output: tuple[str, ...] = (),
    ) -> Outcome:
        return Outcome(self.target.name, state, tuple(self.done), message, hint, output)

    def _ended(
        self,
        state: State,
        message: str = "",
        hint: str | None = None,
        output: tuple[str, ...] = (),
    ) -> _Ended:
        return _Ended(self.outcome(state, message, hint, output))


def _deletions(plan: Plan) -> set[DeleteModel]:
    """A deleted model cannot be restored, so only what the shown plan contains is deleted."""
    return {change for _, change in plan.changes if isinstance(change, DeleteModel)}
