"""The way between one controller and etcd: requests that arrive late, twice or never, and answers that are lost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from blast_controller.store.errors import StoreFault
from tests.support.dice import Dice
from tests.support.modelled_etcd.connection import Unanswered
from tests.support.modelled_etcd.server import ModelledEtcd
from tests.support.succession.scheduler import Process, Scheduler, Wake
from tests.support.succession.wire import Link

REFUSED_AFTER = 0.003
CALM, SLOW = (0.0005, 0.004), (0.05, 1.6)
"""Seconds that a request takes to arrive, or an answer: usually, and where etcd's disk is slow."""


@dataclass(eq=False)
class Members:
    """How etcd is: away altogether, without a leader of its own, slow, or well."""

    etcd: ModelledEtcd
    is_away: bool = False
    has_no_leader: bool = False
    is_slow: bool = False
    waiting: list[Wake] = field(default_factory=list)

    @property
    def answers(self) -> bool:
        """Whether most of its members can answer."""
        return not self.is_away and not self.has_no_leader


@dataclass(eq=False)
class EtcdNetwork:
    """As `Network`, for one process. `loses_answers`: what arrives is done, and nobody hears of it."""

    scheduler: Scheduler
    process: Process
    members: Members
    link: Link
    dice: Dice
    loses_answers: bool = False

    def now(self) -> float:
        return self.scheduler.now

    def pause(self, seconds: float) -> None:
        self.scheduler.wait(self.scheduler.now + seconds)

    def carry(self, act: Callable[[], Any], seconds: float) -> Any:
        scheduler = self.scheduler
        scheduler.check_alive()
        if self.members.is_away and not self.link.is_cut:
            self.pause(min(seconds, REFUSED_AFTER))
            raise Unanswered("failed to connect to all addresses", is_surely_not_done=True)
        answers: list[Callable[[], Any]] = []
        wake = scheduler.waiting()
        scheduler.timed(wake, scheduler.now + seconds)
        scheduler.after(self._latency(), lambda: self._arrive(act, answers, wake))
        scheduler.sleep(wake)
        if not answers:
            raise Unanswered("no answer in time")
        return answers[0]()

    def wait_for_change(self, until: float) -> None:
        scheduler, end = self.scheduler, self.members.etcd.next_end()
        wake = scheduler.waiting()
        self.members.waiting.append(wake)
        # Where it is cut off nothing is heard, but looks now and then are made.
        scheduler.timed(wake, min(until, scheduler.now + 0.5, until if end is None else max(end, scheduler.now)))
        scheduler.sleep(wake)

    def _arrive(self, act: Callable[[], Any], answers: list[Callable[[], Any]], wake: Wake) -> None:
        members = self.members
        if self.link.is_cut or members.has_no_leader:
            # It may still get through when all is well again, long after its sender has given up.
            if self.dice.number(0, 1):
                self.link.hold(lambda: self._arrive(act, [], wake))
            return
        if members.is_away:
            return
        try:
            found = act()
        except StoreFault as fault:
            answers_with = _raising(fault)
        else:
            answers_with = _giving(found)
        if not self.loses_answers:
            self.scheduler.after(self._latency(), lambda: self._answer(answers, answers_with, wake))

    def _answer(self, answers: list[Callable[[], Any]], answer: Callable[[], Any], wake: Wake) -> None:
        if not self.link.is_cut and not wake.is_over:
            answers.append(answer)
            self.scheduler.wake(wake)

    def _latency(self) -> float:
        least, most = SLOW if self.members.is_slow and self.dice.rarely() else CALM
        return least + (most - least) * self.dice.number(0, 1000) / 1000


def _raising(fault: StoreFault) -> Callable[[], Any]:
    def answer() -> Any:
        raise fault

    return answer


def _giving(found: Any) -> Callable[[], Any]:
    return lambda: found
