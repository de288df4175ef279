"""A pipeline of pure cores in a simulated world: connections with buffers and latency, and hosts that fail.

Time is virtual. A killed host's connections break, and it accepts none. A frozen one's kernel goes on: it accepts
connections and fills its buffers. A vanished one answers nothing at all. A slow one takes its data slowly. A host that
keeps a `ring` forgets what is older.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count

from blast_transport.store.blocks.store_pace import StorePace
from blast_transport.store.blocks.store_writer import StoreGauge
from blast_transport.transports.pipeline.protocol.core import NodeCore, SourceCore
from blast_transport.transports.pipeline.protocol.events import (
    Admit,
    BytesArrived,
    BytesNoLongerHeld,
    BytesSent,
    CloseDownstream,
    CloseFetch,
    CloseUpstream,
    Command,
    Complete,
    Connect,
    DataStored,
    Event,
    Fetch,
    FetchLost,
    FromPredecessor,
    FromSource,
    FromSuccessor,
    Joined,
    Notify,
    PredecessorLost,
    ProbeNodes,
    Refuse,
    SendDownstream,
    SendUpstream,
    Serve,
    Started,
    SuccessorLost,
)
from blast_transport.transports.pipeline.protocol.messages import Forget, Message, Pget, PipelineHeartbeat
from blast_transport.transports.pipeline.protocol.phase import (
    ChainMember,
    NodeOutcome,
    PhaseEnded,
    PipelineEvent,
    PipelinePhase,
    PipelineTimings,
    Reported,
)
from blast_transport.wire.joining import Join

PIECE = 4_000
LATENCY = 0.001
BUFFER = 40_000
RATE = 400_000.0
"""Bytes/s of a connection, in each direction."""
PAUSE = 0.05
"""Seconds between two pieces that are no wait for data."""
TIMINGS = PipelineTimings()
Item = Message | tuple[int, bytes] | None
"""An item on a connection: a message, (offset, data), or None for the end of the connection."""


class Way:
    """One direction of a connection: in order, with a rate, a latency and a limited buffer."""

    def __init__(self, world: World, writer: Host, reader: Host) -> None:
        self.items: deque[tuple[float, Item]] = deque()
        self.bytes = 0
        self.closed = False
        self._world, self._writer, self._reader = world, writer, reader
        self._free = 0.0

    def put(self, item: Item) -> None:
        if self.closed:
            return
        size = len(item[1]) if isinstance(item, tuple) else 0
        self.bytes += size
        self._free = max(self._free, self._world.now) + size / self._world.rate(self._writer, self._reader)
        self.closed = item is None
        self.items.append((self._free + LATENCY, item))
        self._world.wake(self._reader, self._free + LATENCY)

    def peek(self) -> Item | str:
        if not self.items or self.items[0][0] > self._world.now:
            return "nothing"
        return self.items[0][1]

    def take(self) -> None:
        _, item = self.items.popleft()
        if isinstance(item, tuple):
            self.bytes -= len(item[1])
            self._world.wake(self._writer, self._world.now)

    def next(self) -> float:
        """When the next item is there."""
        return self.items[0][0] if self.items else float("inf")


class Connection:
    """Between `caller` and `callee`."""

    def __init__(self, world: World, caller: Host, callee: Host) -> None:
        there, back = Way(world, caller, callee), Way(world, callee, caller)
        self.outgoing = {caller: there, callee: back}
        self.incoming = {callee: there, caller: back}

    def put(self, writer: Host, item: Item) -> None:
        self.outgoing[writer].put(item)


LAG = 40_000
MEMORY = 300_000


@dataclass
class Faults:
    """The times and rates of a host's faults."""

    killed: float = float("inf")
    frozen: float = float("inf")
    thawed: float = float("inf")
    vanished: float = float("inf")
    rate: float = float("inf")
    store: float = float("inf")
    """Bytes/s that its store writes; memory keeps the rest, up to a limit."""
    link: float = float("inf")
    """Bytes/s that leave it over each of its connections."""


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
        self._gauge.received(size, now)

    def look(self, now: float) -> tuple[StorePace, float]:
        """Complete the writes due by `now`; return the store's pace and the seconds spent on the current piece."""
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
        self.waited_until = 0.0
        self.storing = SimulatedStore(faults.store)
        self.completing = False
        self.events: list[PipelineEvent] = []
        self.ended: PhaseEnded | None = None
        self.waiting: deque[Connection] = deque()
        self.alarm = self.ended_at = float("inf")
        self.silent: dict[int, float] = {}
        self.asked: Pget | None = None
        phase = PipelinePhase(1, 1, bytes(16), 0, world.members, place, TIMINGS, world.slowest_rate)
        self.core: NodeCore | SourceCore = NodeCore(phase, 0) if place else SourceCore(phase, 0)

    @property
    def reported(self) -> dict[str, str] | None:
        reports = [event.failed for event in self.events if isinstance(event, Reported)]
        return reports[-1] if reports else None

    @property
    def dead(self) -> bool:
        return self.world.now >= self.faults.killed

    @property
    def vanished(self) -> bool:
        return self.world.now >= self.faults.vanished

    @property
    def stopped(self) -> bool:
        return self.dead or self.vanished or self.faults.frozen <= self.world.now < self.faults.thawed

    @property
    def faulty(self) -> bool:
        return self.faults != Faults()

    @property
    def connections(self) -> list[Connection]:
        return [each for each in (self.up, self.down, self.fetch, *self.fetchers, *self.waiting) if each is not None]

    @property
    def position(self) -> int:
        return self.world.readable(self) if self.place == 0 else len(self.received)

    def first_held(self) -> int:
        ring = self.world.rings.get(self.place)
        if ring is None:
            return 0
        kept_from = self.core.down.taken if self.place == 0 else self.position
        return max(0, kept_from - ring)

    def handle(self, event: Event) -> None:
        self.obey(self.core.handle(event, self.world.now))

    def activate(self) -> None:
        """Everything that can be done now."""
        self.alarm = float("inf")
        if self.stopped or self.ended is not None:
            return
        while self._read_one() and self.ended is None:
            pass
        if self.ended is None and isinstance(self.core, NodeCore):
            if self.world.now > self.waited_until:
                self.core.waited(self.world.now - self.waited_until)
                self.waited_until = self.world.now
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
        coming = [connection.incoming[self].next() for connection in self.connections]
        now = self.world.now
        due = [self.core.deadline(), *(when for when in [*coming, self.storing.due] if when > now)]
        self.world.wake(self, min(due))

    def break_all(self) -> None:
        """Break every connection, because the host has ended; data that it has buffered may or may not arrive."""
        for connection in self.connections:
            connection.put(self, None)

    def obey(self, commands: list[Command]) -> None:
        for command in commands:
            self._obey_one(command)

    def _obey_one(self, command: Command) -> None:  # noqa: PLR0912 - one branch a command
        match command:
            case Connect(place):
                self.world.connect(self, place)
            case ProbeNodes(places):
                for probed in places:
                    self.world.probe(self, probed)
            case Serve(offset):
                self.offset = offset
                self.silent.clear()
            case SendDownstream(message) if self.down is not None:
                self.down.put(self, message)
            case CloseDownstream() if self.down is not None:
                self.down.put(self, None)
                self.down = None
            case Admit(last):
                if self.up is not None:
                    if last is not None:
                        self.up.put(self, last)
                    self.up.put(self, None)
                self.up = self.waiting.popleft()
            case Refuse(message):
                refused = self.waiting.popleft()
                refused.put(self, message)
                refused.put(self, None)
            case SendUpstream(message) if self.up is not None:
                self.up.put(self, message)
            case CloseUpstream() if self.up is not None:
                self.up.put(self, None)
                self.up = None
            case Fetch(offset, stop):
                self.asked = Pget(offset, stop)
                self.fetch = self.world.open(self, 0)
                if self.fetch is None:
                    self.handle(FetchLost("refused"))
            case CloseFetch() if self.fetch is not None:
                self.fetch.put(self, None)
                self.fetch = None
            case Complete():
                self.completing = True
            case Notify(event):
                self.events.append(event)
                if isinstance(event, PhaseEnded):
                    self.ended = self.ended or event
                    self.ended_at = self.world.now
                    self.break_all()

    def _read_one(self) -> bool:
        """Take one item from somewhere; False if there is none."""
        return (
            self._read_waiting()
            or self._read("up", PredecessorLost(), FromPredecessor)
            or self._read("fetch", FetchLost("closed"), FromSource)
            or self._read("down", SuccessorLost("closed"), FromSuccessor)
            or self._read_fetchers()
        )

    def _read_waiting(self) -> bool:
        for connection in list(self.waiting):
            item = self._next(connection)
            if item == "nothing":
                continue
            self.waiting.remove(connection)
            if not isinstance(item, Join):
                return True
            place = int(item.name[1:])
            if self.place == 0:
                self.fetchers.append(connection)
                connection.put(self, PipelineHeartbeat(0, False))
            else:
                self.waiting.appendleft(connection)
                self.handle(Joined(place))
            return True
        return False

    def _read(self, name: str, lost: Event, received: Callable[[Message], Event]) -> bool:
        """Take one item from the connection of this name, of which data never comes from below."""
        connection: Connection | None = getattr(self, name)
        item = self._next(connection)
        if item is None:
            setattr(self, name, None)
            self.handle(lost)
        elif isinstance(item, tuple):
            assert name == "fetch" or (name == "up" and self.core.up.receiving), "data that was not requested"
            self._store(item)
        elif item != "nothing":
            if name == "fetch" and isinstance(item, PipelineHeartbeat):
                assert self.asked is not None
                connection.put(self, self.asked)
            self.handle(received(item))
        return item != "nothing"

    def _next(self, connection: Connection | None) -> Item | str:
        """Take what comes next over a connection, if it has come, and there is room for data."""
        item = "nothing" if connection is None else connection.incoming[self].peek()
        if connection is None or item == "nothing" or (isinstance(item, tuple) and not self._room(item)):
            return "nothing"
        connection.incoming[self].take()
        return item

    def _read_fetchers(self) -> bool:
        for connection in list(self.fetchers):
            item = self._next(connection)
            if item == "nothing":
                continue
            if item is None:
                self.fetchers.remove(connection)
            elif isinstance(item, Pget):
                self._serve_fetch(connection, item)
            return True
        return False

    def _serve_fetch(self, connection: Connection, asked: Pget) -> None:
        if asked.offset < self.first_held():
            connection.put(self, Forget(self.first_held()))
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
        if self.place not in self.world.rings or self.core.down.alone or self.position - self.core.down.taken < LAG:
            return True
        self.core.hold_up()
        return False

    def _store(self, item: tuple[int, bytes]) -> None:
        offset, data = item
        assert offset == len(self.received), f"{offset} after {len(self.received)}"
        self.received += data
        self.waited_until = self.world.now + PAUSE
        self.taken_by = self.world.now + len(data) / self.faults.rate
        self.storing.put(len(data), self.world.now)
        self.handle(BytesArrived(len(self.received)))

    def _see_store(self, core: NodeCore) -> None:
        self.obey(core.store_does(*self.storing.look(self.world.now), self.world.now))
        if self.ended is None and self.completing and self.storing.waiting == 0:
            self.completing = False
            self.handle(DataStored())

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
            way = self.down.outgoing[self]
            stop = self.position if self.core.node.stop is None else self.core.node.stop
            if self.offset >= min(stop, self.position):
                return
            if self.offset < self.first_held():
                self.handle(BytesNoLongerHeld(self.first_held()))
                return
            if way.bytes >= BUFFER or way.closed:
                return
            data = self.received if self.place else self.world.content
            piece = bytes(data[self.offset : min(self.offset + PIECE, stop, self.position)])
            self.down.put(self, (self.offset, piece))
            self.offset += len(piece)
            self.handle(BytesSent(self.offset))


LONGEST = 300.0
MAX_STEPS = 400_000


class World:
    """Runs one phase to its end."""

    def __init__(
        self,
        content: bytes,
        faults: list[Faults],
        *,
        rings: dict[int, int] | None = None,
        source_rate: float | None = None,
        slowest_rate: float = 0.0,
        between_racks: tuple[int, float] | None = None,
    ) -> None:
        """`between_racks`: the first place in another rack, and the rate (bytes/s) of what enters or leaves it."""
        self.now = 0.0
        self.content = content
        self.source_rate = source_rate
        self.slowest_rate = slowest_rate
        self.between_racks = between_racks
        self.members = tuple(ChainMember(f"n{place}", "host", 1) for place in range(len(faults) + 1))
        self.steps = 0
        self.rings = rings or {}
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()
        self.hosts = [Host(self, place, fault) for place, fault in enumerate([Faults(), *faults])]

    def readable(self, source: Host) -> int:
        if self.source_rate is None:
            return len(self.content)
        ring = self.rings.get(source.place)
        come = int(self.now * self.source_rate)
        if come < len(self.content):
            come -= come % PIECE
        # A stream is read ahead as far as there is room, and what the successor has taken makes some.
        room = come if ring is None else min(come, source.core.down.taken + ring)
        return min(len(self.content), max(room, source.core.node.position))

    def rate(self, writer: Host, reader: Host) -> float:
        """Of a connection, in this direction."""
        rate = min(RATE, writer.faults.link)
        if self.between_racks is not None:
            first, between = self.between_racks
            if (writer.place < first) != (reader.place < first):
                return min(rate, between)
        return rate

    def wake(self, host: Host, when: float) -> None:
        """Activate the host at this time, unless it is to be activated before: it knows what it waits for."""
        when = max(when, self.now)
        if when < host.alarm:
            host.alarm = when
            self.at(when, lambda: host.activate() if host.alarm == when else None)

    def at(self, when: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._heap, (max(when, self.now), next(self._numbers), action))

    def open(self, caller: Host, place: int) -> Connection | None:
        """Connect and send Join. Return None if the callee refuses."""
        callee = self.hosts[place]
        if callee.dead or callee.ended is not None:
            return None
        connection = Connection(self, caller, callee)
        callee.waiting.append(connection)
        connection.put(caller, Join(1, 1, bytes(16), caller.core.node.phase.chain[caller.place].name))
        return connection

    def connect(self, caller: Host, place: int) -> None:
        if self.now < caller.silent.get(place, 0.0):
            self.at(self.now, lambda: self._silent(caller, place))
        elif self.hosts[place].vanished:
            self.at(self.now + TIMINGS.answer, lambda: self._refused(caller, place, True))
        elif (connection := self.open(caller, place)) is not None:
            caller.down = connection
        else:
            self.at(self.now + LATENCY, lambda: self._refused(caller, place, False))

    def probe(self, caller: Host, place: int) -> None:
        """Report a silent host as unreachable after the timeout of a probe."""
        target, seconds = self.hosts[place], TIMINGS.probe

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
            caller.handle(SuccessorLost("refused", unanswered))
            caller.activate()

    def run(self) -> None:
        for host in self.hosts:
            self.at(0.0, lambda host=host: (host.handle(Started()), host.activate()))  # type: ignore[misc]
            if host.faults.killed < float("inf"):
                self.at(host.faults.killed, host.break_all)
            if host.faults.thawed < float("inf"):
                self.at(host.faults.thawed, host.activate)
        while any(host.ended is None and not self._never_again(host) for host in self.hosts):
            assert self._heap, "nothing will happen any more"
            self.now, _, action = heapq.heappop(self._heap)
            action()
            self.steps += 1
            assert self.now < LONGEST, "the phase does not end"
            assert self.steps < MAX_STEPS, "too many steps"

    def _never_again(self, host: Host) -> bool:
        return host.dead or host.vanished or (host.stopped and host.faults.thawed == float("inf"))

    def complete(self, host: Host) -> bool:
        ended = host.ended
        return ended is not None and ended.outcome is NodeOutcome.COMPLETE and bytes(host.received) == self.content
