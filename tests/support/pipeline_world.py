"""A pipeline of pure cores in a simulated world: connections with buffers and latency, and hosts that fail.

Time is virtual. A killed host's connections break, and nobody connects to it. A frozen one's kernel goes on: it accepts
connections and fills its buffers. A vanished one answers nothing at all. A slow one takes its data slowly. A host that
keeps a `ring` forgets what is older.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count

from blast_transport.carriers.pipeline.protocol.events import Started, SuccessorLost
from blast_transport.carriers.pipeline.protocol.leg import Member, Outcome, PipelineTimings
from blast_transport.wire.joining import Join
from tests.support.pipeline_host import Faults, Host
from tests.support.pipeline_wires import LATENCY, PIECE, Connection

LONGEST = 300.0
MOST_STEPS = 400_000


class World:
    """Runs one leg to its end."""

    def __init__(
        self,
        content: bytes,
        faults: list[Faults],
        *,
        rate: float = 400_000.0,
        rings: dict[int, int] | None = None,
        source_rate: float | None = None,
        slowest_rate: float = 0.0,
        timings: PipelineTimings | None = None,
    ) -> None:
        self.now = 0.0
        self.content = content
        self.rate = rate
        self.source_rate = source_rate
        self.slowest_rate = slowest_rate
        self.timings = timings or PipelineTimings()
        self.members = tuple(Member(f"n{place}", "host", 1) for place in range(len(faults) + 1))
        self.steps = 0
        self._rings = rings or {}
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()
        self.hosts = [Host(self, place, fault) for place, fault in enumerate([Faults(), *faults])]

    def ring(self, host: Host) -> int | None:
        return self._rings.get(host.place)

    def readable(self, source: Host) -> int:
        if self.source_rate is None:
            return len(self.content)
        ring = self.ring(source)
        come = int(self.now * self.source_rate)
        if come < len(self.content):
            come -= come % PIECE
        # A stream is read ahead as far as there is room, and what the successor has taken makes some.
        room = come if ring is None else min(come, source.core.down.taken + ring)
        return min(len(self.content), max(room, source.core.node.position))

    def wake(self, host: Host, when: float) -> None:
        """Activate the host at this time, unless it is to be activated before: it knows what it waits for."""
        when = max(when, self.now)
        if when < host.alarm:
            host.alarm = when
            self.at(when, lambda: host.activate() if host.alarm == when else None)

    def at(self, when: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._heap, (max(when, self.now), next(self._numbers), action))

    def open(self, caller: Host, place: int) -> Connection | None:
        """Connect and say Join; None if it is refused."""
        callee = self.hosts[place]
        if callee.dead or callee.ended is not None:
            return None
        connection = Connection(self, caller, callee)
        callee.waiting.append(connection)
        connection.put(caller, Join(1, 1, bytes(16), caller.core.node.leg.chain[caller.place].name))
        return connection

    def connect(self, caller: Host, place: int) -> None:
        if self.now < caller.silent.get(place, 0.0):
            self.at(self.now, lambda: self._silent(caller, place))
        elif self.hosts[place].gone:
            self.at(self.now + self.timings.answer, lambda: self._refused(caller, place, True))
        elif (connection := self.open(caller, place)) is not None:
            caller.down = connection
        else:
            self.at(self.now + LATENCY, lambda: self._refused(caller, place, False))

    def probe(self, caller: Host, place: int) -> None:
        """Whether anybody lives there is known as soon as he answers, or not."""
        target, seconds = self.hosts[place], self.timings.probe

        def noted() -> None:
            if silent and target.stopped and not target.dead:
                caller.silent[place] = self.now + seconds
                self._silent(caller, place)

        silent = target.stopped and not target.dead
        self.at(self.now + seconds, noted)

    def _silent(self, caller: Host, place: int) -> None:
        if caller.core.down.successor == place and not caller.core.down.linked and caller.down is not None:
            caller.down.put(caller, None)
            caller.down = None
        self._refused(caller, place, True)

    def _refused(self, caller: Host, place: int, unanswered: bool) -> None:
        if not caller.stopped and caller.ended is None and caller.core.down.successor == place and caller.down is None:
            caller.tell(SuccessorLost("refused", unanswered))
            caller.activate()

    def run(self) -> None:
        for host in self.hosts:
            self.at(0.0, lambda host=host: (host.tell(Started()), host.activate()))  # type: ignore[misc]
            if host.faults.killed < float("inf"):
                self.at(host.faults.killed, host.break_all)
            if host.faults.thawed < float("inf"):
                self.at(host.faults.thawed, host.activate)
        while any(host.ended is None and not self._never_again(host) for host in self.hosts):
            assert self._heap, "nothing will happen any more"
            self.now, _, action = heapq.heappop(self._heap)
            action()
            self.steps += 1
            assert self.now < LONGEST, "the leg does not end"
            assert self.steps < MOST_STEPS, "too many steps"

    def _never_again(self, host: Host) -> bool:
        return host.dead or host.gone or (host.stopped and host.faults.thawed == float("inf"))

    def complete(self, host: Host) -> bool:
        ended = host.ended
        return ended is not None and ended.outcome is Outcome.COMPLETE and bytes(host.received) == self.content
