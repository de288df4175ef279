"""A simulated network with one bottleneck, for congestion control: a queue of some segments, and a delay each way.

Segments of all flows have one size. A flow is TCP Reno with acknowledgments of each segment, written from RFC 5681, or
the multicast transport's sender and receivers without their sockets.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from blast_transport.blocks.block_map import BlockMap
from blast_transport.transports.multicast.control import CongestionControl
from blast_transport.transports.multicast.feedback import LossCounter, PathReport, Reporting

Action = Callable[[], None]


class Clock:
    """Runs actions in the order of their times."""

    def __init__(self) -> None:
        self.now = 0.0
        self._numbers = itertools.count()
        self._due: list[tuple[float, int, Action]] = []

    def at(self, moment: float, action: Action) -> None:
        heapq.heappush(self._due, (moment, next(self._numbers), action))

    def run(self, until: float) -> None:
        while self._due and self._due[0][0] <= until:
            self.now, _, action = heapq.heappop(self._due)
            action()
        self.now = until


@dataclass
class Bottleneck:
    """A link of `rate` segments/s behind a queue of `room` segments; beyond `marks_from` it marks segments (ECN).

    `rate` and `lost_until`, before which all segments are lost, may change meanwhile: segments that are in the queue at
    the change leave at the former rate.
    """

    clock: Clock
    rate: float
    room: int
    marks_from: float = float("inf")
    lost_until: float = 0.0
    _free_at: float = field(default=0.0, init=False)

    def send(self, arrive: Callable[[bool], None], seconds: float) -> None:
        """Carry a segment; `arrive(marked)` is called `seconds` after it has left the link, or never."""
        now = self.clock.now
        queued = max(0.0, self._free_at - now) * self.rate
        if now < self.lost_until or queued >= self.room:
            return
        self._free_at = max(self._free_at, now) + 1 / self.rate
        marked = queued >= self.marks_from
        self.clock.at(self._free_at + seconds, lambda: arrive(marked))


class Flow(Protocol):
    """`delivered` counts the segments that have arrived."""

    delivered: int

    def start(self) -> None: ...


class RenoFlow:
    """TCP Reno with an infinite amount of data; lost segments are counted as sent again elsewhere."""

    def __init__(self, clock: Clock, link: Bottleneck, one_way: float) -> None:
        self.delivered = 0
        self._clock, self._link, self._one_way = clock, link, one_way
        self._window, self._threshold = 10.0, float("inf")
        self._sent, self._acknowledged, self._recovered = 0, 0, 0
        self._timer = 0

    def start(self) -> None:
        self._send()

    def _send(self) -> None:
        while self._sent - self._acknowledged < int(self._window):
            number = self._sent
            self._sent += 1
            self._link.send(lambda _, number=number: self._arrive(number), self._one_way)  # type: ignore[misc]
        self._timer += 1
        timer = self._timer
        self._clock.at(self._clock.now + 0.3, lambda: self._expire(timer))

    def _arrive(self, number: int) -> None:
        self.delivered += 1
        self._clock.at(self._clock.now + self._one_way, lambda: self._acknowledge(number))

    def _acknowledge(self, number: int) -> None:
        if number > self._acknowledged and number >= self._recovered:
            self._window = self._threshold = max(2.0, self._window / 2)
            self._recovered = self._sent
        elif number >= self._acknowledged:
            self._window += 1.0 if self._window < self._threshold else 1 / self._window
        self._acknowledged = max(self._acknowledged, number + 1)
        self._send()

    def _expire(self, timer: int) -> None:
        if timer == self._timer:
            self._threshold, self._window = max(2.0, self._window / 2), 1.0
            self._acknowledged = self._recovered = self._sent
            self._send()


class MulticastFlow:
    """The multicast transport's congestion control; each receiver also loses its share of the segments by itself."""

    def __init__(
        self, clock: Clock, link: Bottleneck, one_way: float, losses: dict[str, float], chance: random.Random
    ) -> None:
        self.delivered = 0
        self.control = CongestionControl()
        self._clock, self._link, self._one_way = clock, link, one_way
        self._chance, self._losses = chance, losses
        self._counters = {name: LossCounter(0, BlockMap(), 1) for name in losses}
        self._reporting = {name: Reporting(counter, 0.0) for name, counter in self._counters.items()}
        self._sent, self._marked = 0, dict.fromkeys(losses, 0)
        self._silent = set[str]()

    @property
    def lost(self) -> int:
        """Return the segments that the receivers count as lost."""
        return sum(counter.lost for counter in self._counters.values())

    def silence(self, name: str) -> None:
        """Let nothing reach this receiver any more."""
        self._silent.add(name)

    def start(self) -> None:
        now, number = self._clock.now, self._sent
        self.control.tick(now)
        if self.control.room > 0:
            self.control.sent(number, number + 1, now, now)
            self._sent += 1
            self._link.send(lambda marked: self._arrive(number, marked), self._one_way)
        self._give_orders()
        self._clock.at(now + 1 / self.control.rate(1.0), self.start)

    def _arrive(self, number: int, marked: bool) -> None:
        self.delivered += 1
        for name, loss in self._losses.items():
            if name not in self._silent and self._chance.random() >= loss:
                self._marked[name] += marked
                self._reporting[name].passed([(number, number + 1)], self._clock.now)
                self._report(name)

    def _report(self, name: str) -> None:
        report = self._reporting[name].take(self._clock.now)
        if report is not None:
            report = report._replace(marked=self._marked[name])
            self._clock.at(self._clock.now + self._one_way, lambda: self._receive(name, report))

    def _receive(self, name: str, report: PathReport) -> None:
        self.control.receive(name, report, self._clock.now)
        self._give_orders()

    def _give_orders(self) -> None:
        orders, self.control.orders = self.control.orders, []
        # TCP retransmits an order that is lost.
        arrival = max(self._clock.now, self._link.lost_until) + self._one_way
        for name, segments in orders:
            self._clock.at(arrival, lambda name=name, count=segments: self._order(name, count))  # type: ignore[misc]

    def _order(self, name: str, segments: int) -> None:
        self._reporting[name].order(segments)
        self._report(name)
