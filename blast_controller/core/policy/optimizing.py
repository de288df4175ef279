"""Postponement of decisions for the optimizer.

Theory of operation. If more parts could start than fit together, the decision is postponed and the optimizer queried;
its answer is a preference for exactly that question. If the question changes meanwhile, the answer is stale: it is
dropped and the new question is sent. One question is outstanding at a time. However often that happens, a decision
waits for at most `MAX_BUDGETS` budgets, and not at all while the optimizer is late with an earlier answer: then it is
made without.

| state | a contended decision | answer | until is over |
|---|---|---|---|
| idle | ask → waiting | – | – |
| waiting | the same question: wait; another one: wait for the stale answer | → answered | decide → late |
| answered | the same question: decide → idle; another one: ask → waiting | – | decide → idle |
| late | decide | → idle | – |
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from algorithms.scheduling.contention import Chosen, Contention
from blast_controller.core.model.commands import Optimize
from blast_controller.core.model.events import Optimized
from blast_controller.core.model.settings import StandingOrders
from blast_controller.core.model.timers import OptimizerTimedOut, Timers
from blast_controller.core.rollout.outbox import Outbox

MAX_BUDGETS = 2.0
"""Budgets that a decision is postponed for at most."""

MIN_SHARE = 0.25
"""Share of the budget below which a second question is not worth asking."""

ANSWERS_BY = 0.8
"""Share of the time left that a question may take, so that its answer comes before the time is over."""


class _OptimizerPhase(Enum):
    IDLE = auto()
    WAITING = auto()
    ANSWERED = auto()
    LATE = auto()


@dataclass(slots=True)
class Optimizing:
    """The question that is out."""

    orders: StandingOrders
    outbox: Outbox
    timers: Timers
    revision: int = 0
    _phase: _OptimizerPhase = _OptimizerPhase.IDLE
    _question: Contention | None = None
    _answer: tuple[Chosen, ...] = ()
    _until: float | None = None

    @property
    def budget(self) -> float:
        """Return the optimizer's time budget in seconds; 0 disables it."""
        return self.orders.settings.optimize

    @property
    def on(self) -> bool:
        """Return true if the optimizer is enabled and not late with an answer."""
        return self.budget > 0 and self._phase is not _OptimizerPhase.LATE

    def on_answered(self, event: Optimized, now: float) -> None:
        """Take an answer; the next decision looks whether its question is still the one."""
        if event.revision != self.revision:
            return
        if self._phase is _OptimizerPhase.LATE:
            self._phase = _OptimizerPhase.IDLE
        elif self._phase is _OptimizerPhase.WAITING:
            self._phase, self._answer = _OptimizerPhase.ANSWERED, event.chosen

    def on_late(self, deadline: OptimizerTimedOut, now: float) -> None:
        """Do nothing: the decision that follows every tick checks the time."""

    def advice(self, contention: Contention | None, now: float) -> tuple[Chosen, ...] | None:
        """Return the parts to serve first in a decision now, or None to postpone it."""
        answered = self._phase is _OptimizerPhase.ANSWERED
        if contention is None:
            return self._decide(())
        if answered and self._question is not None and contention.is_like(self._question):
            return self._decide(self._answer)
        if answered:
            self._phase = _OptimizerPhase.IDLE
        if not self.on or not self._time_left(now):
            return self._decide(())
        if self._phase is _OptimizerPhase.IDLE and not self._ask(contention, now):
            return self._decide(())
        return None

    def _decide(self, chosen: tuple[Chosen, ...]) -> tuple[Chosen, ...]:
        """Return the chosen parts, and discard the pending question and its answer."""
        if self._phase is _OptimizerPhase.ANSWERED:
            self._phase = _OptimizerPhase.IDLE
        elif self._phase is _OptimizerPhase.WAITING:
            self._phase = _OptimizerPhase.LATE
        self._until = self._question = None
        self._answer = ()
        return chosen

    def _time_left(self, now: float) -> bool:
        return self._until is None or now < self._until

    def _ask(self, contention: Contention, now: float) -> bool:
        """Ask the optimizer, unless too little time is left for an answer; return true if it was asked."""
        if self._until is None:
            self._until = now + MAX_BUDGETS * self.budget
            self.timers.add(self._until, OptimizerTimedOut())
        seconds = min(self.budget, ANSWERS_BY * (self._until - now))
        if seconds < MIN_SHARE * self.budget:
            return False
        self.revision += 1
        self._phase, self._question = _OptimizerPhase.WAITING, contention
        self.outbox.issue(Optimize(self.revision, contention, seconds))
        return True
