"""A simulated host with a pure core, and the faults that it may have."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from blast_transport.carriers.pipeline.protocol.core import NodeCore, SourceCore
from blast_transport.carriers.pipeline.protocol.events import (
    Admit,
    Arrived,
    CloseDown,
    CloseFetch,
    CloseUp,
    Command,
    Complete,
    Connect,
    Event,
    Fetch,
    FetchLost,
    FromPredecessor,
    FromSource,
    FromSuccessor,
    Joined,
    PredecessorLost,
    Probe,
    Refuse,
    SendDown,
    SendUp,
    Sent,
    Serve,
    Stored,
    SuccessorLost,
    Tell,
    Unheld,
)
from blast_transport.carriers.pipeline.protocol.leg import Ended, PipelineEvent, PipelineLeg, Reported
from blast_transport.carriers.pipeline.protocol.messages import Alive, Forget, Pget
from blast_transport.store.store_pace import StorePace
from blast_transport.store.store_writer import StoreGauge
from blast_transport.wire.joining import Join
from tests.support.pipeline_wires import BUFFER, PIECE, Connection

if TYPE_CHECKING:
    from tests.support.pipeline_world import World

LAG = 40_000
MEMORY = 300_000


@dataclass
class Faults:
    """When what happens to a host."""

    killed: float = float("inf")
    frozen: float = float("inf")
    thawed: float = float("inf")
    vanished: float = float("inf")
    rate: float = float("inf")
    store: float = float("inf")
    """Bytes/s that its store takes; what waits for it is kept in memory, up to a limit."""


class SimulatedStore:
    """Writes pieces one after the other, at `rate` bytes/s."""

    def __init__(self, rate: float) -> None:
        self.waiting = 0
        self.due = float("inf")
        self._rate = rate
        self._pieces: deque[int] = deque()
        self._gauge = StoreGauge(MEMORY)

    def put(self, size: int, now: float) -> None:
        if self._rate == float("inf"):
            return
        if not self._pieces:
            self.due = now + size / self._rate
        self._pieces.append(size)
        self.waiting += size
        self._gauge.came(size, now)

    def look(self, now: float) -> tuple[StorePace, float]:
        """What is written by now is so; how it does, and for how long it has been at one piece."""
        while self.due <= now:
            size = self._pieces.popleft()
            self.waiting -= size
            self._gauge.wrote(size, self.due)
            self.due = self.due + self._pieces[0] / self._rate if self._pieces else float("inf")
        return self._gauge.pace(now), self._gauge.writing(now)


class Host:
    """A node with its shell; place 0 is the source."""

    def __init__(self, world: World, place: int, faults: Faults) -> None:
        self.world = world
        self.place = place
        self.faults = faults
        self.up: Connection | None = None
        self.down: Connection | None = None
        self.fetch: Connection | None = None
        self.fetchers: list[Connection] = []
        self.offset = 0
        self.received = bytearray()
        self.taken_by = 0.0
        self.storing = SimulatedStore(faults.store)
        self.completing = False
        self.events: list[PipelineEvent] = []
        self.ended: Ended | None = None
        self.waiting: deque[Connection] = deque()
        self.alarm = self.ended_at = float("inf")
        self.silent: dict[int, float] = {}
        self.asked: Pget | None = None
        leg = PipelineLeg(1, 1, bytes(16), 0, world.members, place, world.timings, world.slowest_rate)
        self.core: NodeCore | SourceCore = NodeCore(leg, 0) if place else SourceCore(leg, 0)

    @property
    def reported(self) -> dict[str, str] | None:
        reports = [event.failed for event in self.events if isinstance(event, Reported)]
        return reports[-1] if reports else None

    @property
    def dead(self) -> bool:
        return self.world.now >= self.faults.killed

    @property
    def gone(self) -> bool:
        return self.world.now >= self.faults.vanished

    @property
    def stopped(self) -> bool:
        return self.dead or self.gone or self.faults.frozen <= self.world.now < self.faults.thawed

    @property
    def faulty(self) -> bool:
        faults = self.faults
        return min(faults.killed, faults.frozen, faults.vanished, faults.rate, faults.store) < float("inf")

    @property
    def position(self) -> int:
        return self.world.readable(self) if self.place == 0 else len(self.received)

    def lowest(self) -> int:
        ring = self.world.ring(self)
        if ring is None:
            return 0
        kept_from = self.core.down.taken if self.place == 0 else self.position
        return max(0, kept_from - ring)

    def tell(self, event: Event) -> None:
        self.obey(self.core.handle(event, self.world.now))

    def obey(self, commands: list[Command]) -> None:
        for command in commands:
            self._obey_one(command)

    def activate(self) -> None:
        """Everything that can be done now."""
        self.alarm = float("inf")
        if self.stopped or self.ended is not None:
            return
        while self._listen() and self.ended is None:
            pass
        if self.ended is None and isinstance(self.core, NodeCore):
            self._see_store(self.core)
        if self.ended is None and isinstance(self.core, SourceCore):
            self._see_source(self.core)
        self._pour()
        if self.ended is None:
            self.obey(self.core.tick(self.world.now))
        self._pour()
        if self.ended is None:
            self._set_alarm()

    def _set_alarm(self) -> None:
        connections = [self.up, self.down, self.fetch, *self.fetchers, *self.waiting]
        coming = [connection.incoming(self).next() for connection in connections if connection is not None]
        now = self.world.now
        due = [self.core.deadline(), *(when for when in [*coming, self.storing.due] if when > now)]
        self.world.wake(self, min(due))

    def break_all(self) -> None:
        """The host's end: every connection breaks; what it had buffered may or may not arrive."""
        for connection in [self.up, self.down, self.fetch, *self.fetchers, *self.waiting]:
            if connection is not None:
                connection.put(self, None)

    def _obey_one(self, command: Command) -> None:  # noqa: PLR0912 - one branch a command
        match command:
            case Connect(place):
                self.world.connect(self, place)
            case Probe(places):
                for probed in places:
                    self.world.probe(self, probed)
            case Serve(offset):
                self.offset = offset
                self.silent.clear()
            case SendDown(message) if self.down is not None:
                self.down.put(self, message)
            case CloseDown() if self.down is not None:
                self.down.put(self, None)
                self.down = None
            case Admit(farewell):
                if self.up is not None:
                    if farewell is not None:
                        self.up.put(self, farewell)
                    self.up.put(self, None)
                self.up = self.waiting.popleft()
            case Refuse(message):
                refused = self.waiting.popleft()
                refused.put(self, message)
                refused.put(self, None)
            case SendUp(message) if self.up is not None:
                self.up.put(self, message)
            case CloseUp() if self.up is not None:
                self.up.put(self, None)
                self.up = None
            case Fetch(offset, stop):
                self.asked = Pget(offset, stop)
                self.fetch = self.world.open(self, 0)
                if self.fetch is None:
                    self.tell(FetchLost("refused"))
            case CloseFetch() if self.fetch is not None:
                self.fetch.put(self, None)
                self.fetch = None
            case Complete():
                self.completing = True
            case Tell(event):
                self.events.append(event)
                if isinstance(event, Ended):
                    self.ended = self.ended or event
                    self.ended_at = self.world.now
                    self.break_all()

    def _listen(self) -> bool:
        """Take one item from somewhere; False if there is none."""
        return (
            self._hear_waiting() or self._hear_up() or self._hear_fetch() or self._hear_down() or self._hear_fetchers()
        )

    def _hear_waiting(self) -> bool:
        for connection in list(self.waiting):
            way = connection.incoming(self)
            item = way.peek()
            if item == "nothing":
                continue
            way.take()
            self.waiting.remove(connection)
            if not isinstance(item, Join):
                return True
            place = int(item.name[1:])
            if self.place == 0:
                self.fetchers.append(connection)
                connection.put(self, Alive(0, False))
            else:
                self.waiting.appendleft(connection)
                self.tell(Joined(place))
            return True
        return False

    def _hear_up(self) -> bool:
        if self.up is None:
            return False
        way = self.up.incoming(self)
        item = way.peek()
        if item == "nothing" or (isinstance(item, tuple) and not self._room(item)):
            return False
        way.take()
        if item is None:
            self.up = None
            self.tell(PredecessorLost())
        elif isinstance(item, tuple):
            assert isinstance(self.core, NodeCore)
            assert self.core.up.receiving, "data that nobody asked for"
            self._store(item)
        else:
            self.tell(FromPredecessor(item))  # type: ignore[arg-type]
        return True

    def _hear_fetch(self) -> bool:
        if self.fetch is None:
            return False
        way = self.fetch.incoming(self)
        item = way.peek()
        if item == "nothing" or (isinstance(item, tuple) and not self._room(item)):
            return False
        way.take()
        if item is None:
            self.fetch = None
            self.tell(FetchLost("closed"))
        elif isinstance(item, tuple):
            self._store(item)
        else:
            if isinstance(item, Alive):
                assert self.asked is not None
                self.fetch.put(self, self.asked)
            self.tell(FromSource(item))  # type: ignore[arg-type]
        return True

    def _hear_down(self) -> bool:
        if self.down is None:
            return False
        way = self.down.incoming(self)
        item = way.peek()
        if item == "nothing":
            return False
        way.take()
        if item is None:
            self.down = None
            self.tell(SuccessorLost("closed"))
        else:
            self.tell(FromSuccessor(item))  # type: ignore[arg-type]
        return True

    def _hear_fetchers(self) -> bool:
        for connection in list(self.fetchers):
            way = connection.incoming(self)
            item = way.peek()
            if item == "nothing":
                continue
            way.take()
            if item is None:
                self.fetchers.remove(connection)
            elif isinstance(item, Pget):
                self._serve_fetch(connection, item)
            return True
        return False

    def _serve_fetch(self, connection: Connection, asked: Pget) -> None:
        if asked.offset < self.lowest():
            connection.put(self, Forget(self.lowest()))
            return
        for offset in range(asked.offset, asked.stop, PIECE):
            connection.put(self, (offset, self.world.content[offset : min(offset + PIECE, asked.stop)]))

    def _room(self, item: tuple[int, bytes]) -> bool:
        assert isinstance(self.core, NodeCore)
        if self.taken_by > self.world.now:
            self.world.wake(self, self.taken_by)
            return False
        if self.storing.waiting >= MEMORY:
            return False
        if self.world.ring(self) is None or self.core.down.alone or self.position - self.core.down.taken < LAG:
            return True
        self.core.hold_up()
        return False

    def _store(self, item: tuple[int, bytes]) -> None:
        offset, data = item
        assert offset == len(self.received), f"{offset} after {len(self.received)}"
        self.received += data
        self.taken_by = self.world.now + len(data) / self.faults.rate
        self.storing.put(len(data), self.world.now)
        self.tell(Arrived(len(self.received)))

    def _see_store(self, core: NodeCore) -> None:
        self.obey(core.store_does(*self.storing.look(self.world.now), self.world.now))
        if self.ended is None and self.completing and self.storing.waiting == 0:
            self.completing = False
            self.tell(Stored())

    def _see_source(self, core: SourceCore) -> None:
        world = self.world
        if core.node.position != self.position:
            self.obey(core.readable(self.position, world.now))
        if self.position == len(world.content) and core.node.stop is None:
            self.obey(core.end_at(len(world.content), True, world.now))
        if world.source_rate is not None and self.position < len(world.content):
            world.wake(self, world.now + PIECE / world.source_rate)

    def _pour(self) -> None:
        while self.down is not None and self.core.down.serving:
            way = self.down.outgoing(self)
            stop = self.position if self.core.node.stop is None else self.core.node.stop
            if self.offset >= min(stop, self.position):
                return
            if self.offset < self.lowest():
                self.tell(Unheld(self.lowest()))
                return
            if way.bytes >= BUFFER or way.closed:
                return
            piece = bytes(self._data(self.offset, min(self.offset + PIECE, stop, self.position)))
            self.down.put(self, (self.offset, piece))
            self.offset += len(piece)
            self.tell(Sent(self.offset))

    def _data(self, start: int, stop: int) -> bytes | bytearray:
        return (self.world.content if self.place == 0 else self.received)[start:stop]
