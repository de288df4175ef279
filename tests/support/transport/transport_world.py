"""A sender's core and its receivers' cores on a simulated network, in virtual time.

Light loses, doubles, delays and changes what it carries, for each receiver on its own; control connections are orderly
and break when a host crashes. A host works one item after the other, so that a slow one lags and a frozen one stands
still while its kernel goes on taking what comes. The transports are reduced to what the cores see of them. Whatever is
promised at every moment is checked at every moment.
"""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from blast_transport.blocks.masks import runs
from blast_transport.datagrams.intake import AssemblyIntake
from blast_transport.session.peers.peer import PeerState
from blast_transport.session.receiver_core import ReceiverCore, ReceiverState
from blast_transport.session.sender_core import SenderCore
from blast_transport.store.blocks.assembly import Assembly
from blast_transport.store.blocks.store import SessionStore
from blast_transport.store.targets.memory_target import MemoryTarget
from blast_transport.wire.messages import (
    Abort,
    Demoted,
    Digests,
    EndOfData,
    Fin,
    Heartbeat,
    Hello,
    Message,
    Nack,
    Phase,
    Readmitted,
    Ready,
    Repair,
)
from blast_transport.wire.transports import OPTICAL, PIPELINE, UNICAST
from tests.support.transport.transport_data import SUITE, Data, InOrder

SPACING = 0.001
"""Seconds between two blocks on the optical transport, and on the pipeline."""
LIGHT_DELAY, CONTROL_DELAY, HOP_DELAY = 0.0005, 0.002, 0.004
MESSAGE_SECONDS = 0.0001
GATHER = 0.005
NOTICE_SECONDS = 0.05
CONNECT_SECONDS = 2.0
UNDER_WAY = 5
"""Blocks that a chain still brings when it is left."""
DIGEST_BATCH = 4
LONGEST = 400.0
MAX_STEPS = 300_000

FOREVER = float("inf")
EVER = ((0.0, FOREVER),)
Spans = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Faults:
    """Faults of the optical path to a receiver: shares of the datagrams."""

    loss: float = 0.0
    duplication: float = 0.0
    reordering: float = 0.0
    corruption: float = 0.0


@dataclass
class Host:
    """A receiver. `up` and `frozen` are times; `pace` is seconds for a block; `early`: it feeds a command."""

    name: str
    faults: Faults = Faults()
    up: Spans = EVER
    frozen: Spans = ()
    pace: float = 0.0
    early: bool = False
    buffer: int = 1 << 30
    core: ReceiverCore | None = None
    store: SessionStore | None = None
    disk: dict[int, bytes] = field(default_factory=dict)
    inbox: deque[tuple[str, object]] = field(default_factory=deque)
    free_at: float = 0.0
    wakes_at: float = 0.0
    result: bytes | None = None
    life: int = 0
    line: int = 0
    queued: int = 0
    listens: bool = False
    nacked: int = 0
    rushed: int = 0
    complete_at: float = FOREVER

    @property
    def data(self) -> bytes:
        assert self.store is not None
        target = self.store.target
        assert isinstance(target, MemoryTarget | InOrder)
        return bytes(target.data)

    def frozen_until(self, now: float) -> float:
        """Return the end of its current freeze; 0 if it is not frozen."""
        return max((stop for start, stop in self.frozen if start <= now < stop), default=0.0)


@dataclass
class Chain:
    """An active pipeline: blocks from `first` to before `stop` to its `members`; it breaks before `broken_at`.

    A member is stored with its life number: a restarted receiver is not a member.
    """

    first: int
    members: dict[str, int]
    broken_at: float
    brought: int
    stop: int
    over: bool = False


class World:
    """One session. `changes` are (block, transport): from this block on, or soon after, data uses the transport."""

    def __init__(
        self,
        data: Data,
        hosts: Sequence[Host],
        changes: Sequence[tuple[int, str]] = ((0, OPTICAL),),
        *,
        seed: int = 0,
        window: int = 8,
        stream: bool = False,
        chains_break: Sequence[int] = (),
    ) -> None:
        layout = data.layout
        self.data, self.hosts = data, {host.name: host for host in hosts}
        size = None if stream else layout.size
        self.hello = Hello(9, size, layout.segment_size, layout.block_segments, SUITE.name, "memory", "m")
        self.now = 0.0
        self.random = random.Random(seed)
        self.sender = SenderCore(self.hello, self.hosts, 0.0)
        self.sender.window = window
        self.light_segments = 0
        self.max_demoted = 0
        self.phases: list[Phase] = []
        self._changes = deque(changes)
        self._transport = ""
        self._chains: list[Chain] = []
        self._chains_break = deque(chains_break)
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()
        self._send_at = 0.0
        self._free: dict[tuple[str, bool], float] = {}
        self._unconnected_since: float | None = None
        self._settled = False
        for host in hosts:
            for start, stop in host.up:
                self.at(start, lambda host=host: self._rise(host))
                if stop < FOREVER:
                    self.at(stop, lambda host=host: self._fall(host))
            if not any(start <= 0 for start, _ in host.up):
                self.sender.disconnected(host.name, "the host is down", 0.0)

    def run(self) -> World:
        """Run to the end, and return the world."""
        for _ in range(MAX_STEPS):
            if self.sender.over:
                break
            self._work()
            self._advance()
        assert self.sender.over, f"no end after {MAX_STEPS} steps, at {self.now:.3f} s"
        self._work()
        while self._events:
            self._advance()
        return self

    def outcome(self, name: str) -> PeerState:
        return self.sender.peers[name].state

    # ------------------------------------------------------------------------------------------------ the clock

    def at(self, when: float, action: Callable[[], None]) -> None:
        """Do something at this time."""
        if when < FOREVER:
            heapq.heappush(self._events, (max(when, self.now), next(self._numbers), action))

    def _advance(self) -> None:
        waits = [self._events[0][0]] if self._events else []
        if not self.sender.over:
            waits += [self._send_at] if self._transport == OPTICAL and self.sender.sending else []
            deadline = self.sender.deadline()
            assert deadline is not None
            waits.append(deadline)
        for host in self.hosts.values():
            if host.core is not None and (deadline := host.core.deadline()) is not None:
                waits.append(max(deadline, host.frozen_until(self.now), host.free_at))
        self.now = max(self.now, min(waits, default=self.now))
        assert self.now < LONGEST, "the session does not end"
        while self._events and self._events[0][0] <= self.now:
            heapq.heappop(self._events)[2]()
        for host in self.hosts.values():
            self._tick(host)
        if not self.sender.over:
            self.sender.tick(self.now)
            deadline = self.sender.deadline()
            assert self.sender.over or deadline is None or deadline > self.now, "the sender spins"

    def _tick(self, host: Host) -> None:
        if host.core is None or host.frozen_until(self.now) or host.free_at > self.now:
            return
        host.core.tick(self.now)
        deadline = host.core.deadline()
        assert deadline is None or deadline > self.now, f"{host.name} spins"
        self._answer(host)

    # ---------------------------------------------------------------------------------------------- the sender

    def _work(self) -> None:
        sender = self.sender
        self._check_connected()
        if not sender.ended and not sender.over and sender.sending:
            self._carry()
        self._count()
        if not sender.ended:
            slow = sum("slower" in peer.demoted for peer in sender.peers.values() if not peer.over)
            self.max_demoted = max(self.max_demoted, slow)
        for name in self.hosts:
            while repair := sender.take_repair(name, self.now):
                self._repair(name, repair)
        for name, message in sender.outbox:
            self._control(name, True, message)
        sender.outbox.clear()

    def _count(self) -> None:
        """Check that the sender's counters equal a count over all receivers."""
        sender, peers = self.sender, self.sender.peers
        states = [peer.state for peer in peers.values()]
        assert sender.over == all(peer.over for peer in peers.values())
        assert sender.attended == (PeerState.READY in states)
        assert sender.none_connected == all(state in (PeerState.ABSENT, PeerState.FAILED) for state in states)
        unserved = {name for name, peer in peers.items() if sender.ended and peer.state is PeerState.READY}
        assert set(sender.with_repairs) == unserved | {name for name, peer in peers.items() if peer.retransmits}

    def _check_connected(self) -> None:
        if not self.sender.none_connected or self.sender.over:
            self._unconnected_since = None
            return
        if self._unconnected_since is None:
            self._unconnected_since = self.now
            self.at(self.now + CONNECT_SECONDS, lambda: None)
        elif self.now >= self._unconnected_since + CONNECT_SECONDS:
            for name, peer in self.sender.peers.items():
                self.sender.lose(name, peer.reason)

    def _carry(self) -> None:
        sender = self.sender
        if not self._settled:
            self._settled = True
            sender.settle_held()
        if self._changes and sender.next_block >= min(self._changes[0][0], self.data.blocks):
            self._go(self._changes.popleft()[1])
            return
        over = False
        if self._transport == OPTICAL:
            over = self._shine()
        elif self._transport == UNICAST:
            self._digest(self.data.blocks)
            sender.owe(sender.digests)
            over = True
        elif self._transport == PIPELINE:
            over = self._chains[-1].over
            if over and self.hello.size is None and self._chains[-1].brought < self.data.blocks:
                self._go(UNICAST)
                return
        if over and all(chain.over for chain in self._chains):
            self._digest(self.data.blocks)
            sender.end_of_data(len(self.data.content), self.data.whole, self.now)

    def _go(self, transport: str) -> None:
        sender, number = self.sender, len(self.phases) + 1
        if self._transport == OPTICAL:
            sender.report_sent()
        if self._transport == PIPELINE and not self._chains[-1].over:
            chain = self._chains[-1]
            chain.stop = min(max(sender.next_block, chain.brought) + UNDER_WAY, self.data.blocks)
            sender.next_block = chain.stop
        self._transport = transport
        phase = Phase(9, number, transport, sender.next_block, max(1, sender.window // 4), sender.window)
        self.phases.append(phase)
        if transport != PIPELINE:
            sender.begin_phase(phase, lambda name: phase, self.now)
            return
        members = [name for name, peer in sender.peers.items() if peer.active]
        breaks = self._chains_break.popleft() if self._chains_break else FOREVER
        lives = {name: self.hosts[name].life for name in members}
        chain = Chain(phase.first, lives, breaks, phase.first, self.data.blocks)
        self._chains.append(chain)
        forms = {name: replace(phase, parameters={"position": place}) for place, name in enumerate(members, 1)}
        sender.begin_phase(phase, forms.get, self.now)
        self.at(self.now + SPACING, lambda: self._bring(chain))

    def _digest(self, stop: int) -> None:
        sender = self.sender
        for block in range(sender.digests, min(stop, self.data.blocks)):
            sender.digest(SUITE.block(self.data.block(block)))
        sender.send_digests()

    def _shine(self) -> bool:
        """Send a block over the optical transport if it is time; return True if no block is left."""
        sender = self.sender
        if self.now < self._send_at:
            return False
        self._send_at = self.now + SPACING
        if (shared := sender.take_shared_repair(self.now, GATHER)) is not None:
            self._expose(*shared)
            return False
        while sender.next_block in sender.everywhere and sender.next_block < self.data.blocks:
            sender.sent(sender.next_block)
        block = sender.next_block
        self._digest(block + 1 if sender.digests + DIGEST_BATCH <= block or block >= self.data.blocks else 0)
        if block >= self.data.blocks:
            return True
        if sender.permitted(self.now) <= sender.next_block:
            self._digest(block)
            return False
        for peer in sender.peers.values():
            assert not peer.active or block < peer.handled + sender.window, "further than the window"
        self._expose(block, (1 << self.data.layout.block_segments) - 1)
        sender.sent(block)
        return False

    def _expose(self, block: int, mask: int) -> None:
        layout = self.data.layout
        mask &= layout.all_segments(block)
        self.light_segments += mask.bit_count()
        for host in self.hosts.values():
            sent = [index for index in range(layout.block_segments) if mask >> index & 1]
            here = sum(1 << index for index in sent if self.random.random() >= host.faults.loss)
            for first, number in runs(here):
                self._fly(host, block, first, number)

    def _fly(self, host: Host, block: int, first: int, number: int) -> None:
        chance, faults, size = self.random.random, host.faults, self.data.layout.segment_size
        payload = self.data.block(block)[first * size : (first + number) * size]
        if chance() < faults.corruption:
            place = self.random.randrange(len(payload))
            payload = payload[:place] + bytes([payload[place] ^ self.random.randint(1, 255)]) + payload[place + 1 :]
        delay = LIGHT_DELAY + (chance() * 20 * SPACING if chance() < faults.reordering else 0)
        segment = block * self.data.layout.block_segments + first
        for _ in range(2 if chance() < faults.duplication else 1):
            self.datagrams(host, segment, number, payload, delay)

    def datagrams(self, host: Host, segment: int, number: int, payload: bytes, delay: float = 0.0) -> None:
        """Deliver optical datagrams to a host, from any sender."""
        life = host.life
        self.at(self.now + delay, lambda: self._light_arrives(host, life, (segment, number, payload)))

    def _repair(self, name: str, runs: list[tuple[int, int]]) -> None:
        size, pieces = self.data.layout.segment_size, []
        for segment, number in runs:
            block, first = divmod(segment, self.data.layout.block_segments)
            if data := self.data.block(block)[first * size : (first + number) * size]:
                pieces.append((segment, data))
        if pieces:
            self._control(name, True, Repair(9, tuple(pieces)))

    def _bring(self, chain: Chain) -> None:
        """Advance a pipeline by a block."""
        if chain.over:
            return
        if chain.brought >= chain.stop or chain.brought >= chain.broken_at:
            self.at(self.now + HOP_DELAY * len(chain.members), lambda: self._end_chain(chain))
            return
        block = chain.brought
        chain.brought += 1
        self._digest(max(block + 1, self.sender.digests))
        self.sender.next_block = max(self.sender.next_block, block)
        for place, (name, life) in enumerate(chain.members.items()):
            arrives = self.now + HOP_DELAY * (place + 1)
            self.at(arrives, lambda host=self.hosts[name], life=life: self._brought(host, life, block))
        self.at(self.now + SPACING, lambda: self._bring(chain))

    def _brought(self, host: Host, life: int, block: int) -> None:
        if host.store is None or host.core is None or host.life != life or host.core.over:
            return
        if host.frozen_until(self.now):
            self.sender.demote(host.name, "no heartbeat in the chain")
            return
        # The work runs in threads of its own and notifies the session now and then.
        host.store.put(block, self.data.block(block))
        host.core.progressed(self.now)
        self._answer(host)

    def _end_chain(self, chain: Chain) -> None:
        chain.over = True
        if chain.brought < chain.stop:
            for name in chain.members:
                self.sender.demote(name, "the chain broke")

    # ----------------------------------------------------------------------------------------------- control

    def _control(self, name: str, down: bool, message: Message) -> None:
        host = self.hosts[name]
        free = self._free[name, down] = max(self._free.get((name, down), 0.0), self.now) + MESSAGE_SECONDS
        life = host.line if down else host.life

        def arrive() -> None:
            if down and host.life == life:
                host.inbox.append(("control", message))
                self._attend(host)
            elif not down and host.line == life and not self.sender.over:
                self.sender.receive(host.name, message, self.now)

        self.at(free + CONTROL_DELAY, arrive)

    # ----------------------------------------------------------------------------------------------- the hosts

    def _rise(self, host: Host) -> None:
        host.life += 1
        host.free_at = self.now
        self._connect(host)

    def _fall(self, host: Host) -> None:
        if host.store is not None:
            for first, number in host.store.held.ranges():
                for block in range(first, first + number):
                    begin = self.data.layout.offset(block)
                    host.disk[block] = host.data[begin : begin + self.data.layout.length(block)]
        host.life += 1
        host.core, host.store, host.listens = None, None, False
        host.inbox.clear()
        host.queued = 0
        self.at(self.now + NOTICE_SECONDS, lambda: self._notice(host))

    def _notice(self, host: Host) -> None:
        if not self.sender.over:
            self.sender.disconnected(host.name, "the connection was lost", self.now)
            self._connect(host)

    def _connect(self, host: Host) -> None:
        """Let the sender try to connect, now and then."""
        up = any(start <= self.now < stop for start, stop in host.up)
        if up and not self.sender.over and self.outcome(host.name) is PeerState.ABSENT:
            host.line = host.life
            self.sender.connected(host.name, self.now)

    def _light_arrives(self, host: Host, life: int, datagrams: tuple[int, int, bytes]) -> None:
        if host.life != life or host.core is None or not host.listens:
            return
        if host.queued + len(datagrams[2]) > host.buffer:
            return
        host.queued += len(datagrams[2])
        host.inbox.append(("light", datagrams))
        self._attend(host)

    def _attend(self, host: Host) -> None:
        """Let a host work until nothing is left, or the work takes time."""
        while host.inbox:
            free = max(host.free_at, host.frozen_until(self.now))
            if free > self.now:
                if host.wakes_at != free:
                    host.wakes_at = free
                    self.at(free, lambda: self._attend(host))
                return
            kind, item = host.inbox.popleft()
            if kind == "light":
                self._take_light(host, *item)  # type: ignore[misc]
            else:
                self._take_message(host, item)  # type: ignore[arg-type]
            self._answer(host)

    def _take_light(self, host: Host, segment: int, number: int, payload: bytes) -> None:
        host.queued -= len(payload)
        if host.core is None or host.core.over:
            return
        host.free_at = self.now + host.pace * number / self.data.layout.block_segments
        intake = AssemblyIntake(host.core.assembly)
        intake.stop = host.core.light_end
        intake.take([(segment, number, payload)] if host.core.receiving else [])
        host.core.arrived(intake.arrived(self.now), self.now)

    def _take_message(self, host: Host, message: Message) -> None:
        if isinstance(message, Hello):
            self._begin(host, message)
            return
        core = host.core
        if core is None or core.over:
            return
        match message:
            case Phase():
                host.listens = message.transport == OPTICAL
                core.phase(message, self.now)
            case Repair():
                core.repaired_by(core.assembly.repair(message.pieces) if core.receiving else 0, self.now)
                host.free_at = self.now + host.pace * len(message.pieces) / self.data.layout.block_segments
            case Digests():
                assert host.store is not None
                host.store.expect(message.first, message.digests)
                core.heartbeat(0, self.now)
                core.stored(self.now)
            case Heartbeat():
                core.heartbeat(message.sent, self.now)
            case Demoted():
                core.demoted(self.now)
            case Readmitted():
                core.promoted(self.now)
            case EndOfData():
                assert core.state is ReceiverState.RECEIVING, "EndOfData a second time"
                core.assembly.settle(message.size)
                core.end_of_data(message, self.now)
            case Abort():
                core.fail(message.reason)

    def _begin(self, host: Host, hello: Hello) -> None:
        host.store = SessionStore(hello.layout, SUITE, InOrder() if host.early else MemoryTarget("m", 1 << 20))
        if not host.early:
            for block, data in host.disk.items():
                host.store.put(block, data)
        host.core = ReceiverCore(hello, Assembly(host.store), self.now)
        host.core.outbox.append(Ready(9, tuple(host.store.held.ranges()), early=host.early))

    def _answer(self, host: Host) -> None:
        core = host.core
        if core is None:
            return
        if wrong := core.assembly.take_wrong():
            core.wrong(wrong, self.now)
        if core.state is ReceiverState.COMMITTING:
            assert host.store is not None
            host.store.commit(core.digest)
            core.committed()
            host.complete_at, host.result = self.now, host.data
            assert host.result == self.data.content, "it looks whole and is not"
        for message in core.outbox:
            if isinstance(message, Nack):
                self._check_nack(host, message)
            self._control(host.name, False, message)
            if isinstance(message, Fin):
                assert core.over
        core.outbox.clear()

    def _check_nack(self, host: Host, nack: Nack) -> None:
        """Check that a receiver does not request blocks that a pipeline may still deliver."""
        assert host.core is not None
        host.nacked += sum(number for _, number in nack.ranges)
        if host.core.state is not ReceiverState.RECEIVING:
            return
        for chain in self._chains:
            if chain.over or chain.members.get(host.name) != host.life:
                continue
            for first, number in nack.ranges:
                blocks = range(first // self.data.layout.block_segments, -(-(first + number) // 4))
                host.rushed += sum(chain.first <= block < chain.stop for block in blocks)
