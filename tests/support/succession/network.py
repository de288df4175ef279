"""Links between machines that delay or lose messages, among them those between controllers and etcd."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from blast_controller.store.errors import JournalError
from tests.support.controller.modeled_etcd import InstantNetwork, ModeledEtcd, UnansweredError
from tests.support.dice import Dice
from tests.support.succession.scheduler import Process, Scheduler, Wake

Act = Callable[[], Any]

REFUSED_AFTER = 0.003
CALM, SLOW = (0.0005, 0.004), (0.05, 1.6)
"""Seconds of a request to etcd or of an answer: usually, and while etcd's disk is slow."""


class Link:
    """The connection of two machines: while it `is_cut`, messages wait in it."""

    def __init__(self) -> None:
        self.is_cut = False
        self._held: list[Act] = []

    def cut(self) -> None:
        self.is_cut = True

    def heal(self) -> None:
        self.is_cut = False
        held, self._held = self._held, []
        for go_on in held:
            go_on()

    def hold(self, go_on: Act) -> None:
        self._held.append(go_on)


class Wire:
    """One direction of a connection, which keeps the order; `latency` draws the seconds of a message."""

    def __init__(self, scheduler: Scheduler, link: Link, latency: Callable[[], float]) -> None:
        self._scheduler, self._link, self._latency = scheduler, link, latency
        self._last = 0.0

    def send(self, deliver: Act, latency: float | None = None) -> None:
        self._last = max(self._last, self._scheduler.now + (self._latency() if latency is None else latency))
        self._scheduler.at(self._last, lambda: self._arrive(deliver))

    def _arrive(self, deliver: Act) -> None:
        if self._link.is_cut:
            self._link.hold(lambda: self.send(deliver))
        else:
            deliver()


@dataclass(eq=False)
class Members:
    """The state of etcd's members: all away, without a leader, slow, or well."""

    etcd: ModeledEtcd
    is_away: bool = False
    has_no_leader: bool = False
    is_slow: bool = False
    waiting: list[Wake] = field(default_factory=list)


@dataclass(eq=False)
class EtcdNetwork(InstantNetwork):
    """The network of one process. While it `loses_answers`, requests are executed and not answered."""

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

    def carry(self, act: Act, seconds: float) -> Any:
        scheduler = self.scheduler
        scheduler.check_alive()
        if self.members.is_away and not self.link.is_cut:
            self.pause(min(seconds, REFUSED_AFTER))
            raise UnansweredError("failed to connect to all addresses", is_surely_not_done=True)
        answers: list[Future[Any]] = []
        wake = scheduler.waiting(scheduler.now + seconds)
        scheduler.after(self._latency(), lambda: self._arrive(act, answers, wake))
        scheduler.sleep()
        if not answers:
            raise UnansweredError("no answer in time")
        return answers[0].result()

    def wait_for_change(self, until: float) -> None:
        scheduler, end = self.scheduler, self.members.etcd.next_end()
        # A controller that is cut off gets no event, but looks now and then.
        wake = scheduler.waiting(min(until, scheduler.now + 0.5, until if end is None else max(end, scheduler.now)))
        self.members.waiting.append(wake)
        scheduler.sleep()

    def _arrive(self, act: Act, answers: list[Future[Any]], wake: Wake) -> None:
        members = self.members
        if self.link.is_cut or members.has_no_leader:
            # It may still get through after the fault, long after its sender has given up.
            if self.dice.number(0, 1):
                self.link.hold(lambda: self._arrive(act, [], wake))
            return
        if members.is_away:
            return
        answer = outcome(act, JournalError)
        if not self.loses_answers:
            self.scheduler.after(self._latency(), lambda: self._answer(answers, answer, wake))

    def _answer(self, answers: list[Future[Any]], answer: Future[Any], wake: Wake) -> None:
        if not self.link.is_cut and not wake.is_over:
            answers.append(answer)
            self.scheduler.wake(wake)

    def _latency(self) -> float:
        return between(self.dice, *(SLOW if self.members.is_slow and self.dice.rarely() else CALM))


def between(dice: Dice, low: float, high: float) -> float:
    """Draw a number of seconds, to a thousandth of the range."""
    return low + (high - low) * dice.number(0, 1000) / 1000


def outcome(act: Act, faults: type[Exception]) -> Future[Any]:
    """Run an action, and return its result, or the one of these faults that it raises."""
    found: Future[Any] = Future()
    try:
        found.set_result(act())
    except faults as fault:
        found.set_exception(fault)
    return found
