"""A model of the ports of a rack fabric, written from the paper alone, that follows a trace event by event.

Each port takes the events that come from outside or that an arbiter chooses, and foretells all others.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import NamedTuple, TypeVar

from blast_sim.fabric.trace import OVER_PAYLOAD_LINE, DropReason, TraceEventKind
from tests.support.rack_fabric_port.scenario import (
    LANES,
    Constants,
    Copy,
    Entry,
    Scenario,
    Tables,
    constants_of,
    tables_of,
)

T = TypeVar("T")

STEPS = 64
"""Feedback of a congestion point has 6 bits, whose upper three choose among eight sampling intervals."""
ADAPTER_NS = 50.0
LINE_BYTES_A_NS = 12.5
OF_AN_ARRIVAL = frozenset({TraceEventKind.HEADER_ACCEPTED, TraceEventKind.HEADER_DROPPED, TraceEventKind.HEAD_DROPPED})
ALL_COPIES_HAD_LEFT = 1
"""Flag of CACHE_EVICTED."""


class Event(NamedTuple):
    """A record of a trace."""

    time: int
    kind: int
    flags: int
    port: int
    frame: int
    voq: int
    value: int
    extra: int


class DisagreementError(AssertionError):
    """The trace holds what the paper rules out."""


class Effect(NamedTuple):
    """An event that must follow; None stands for any value. `extras` are as good as one another."""

    kind: TraceEventKind
    frame: int | None = None
    voq: int | None = None
    value: int | None = None
    extras: frozenset[int] | None = None

    def matches(self, event: Event) -> bool:
        return (
            event.kind == self.kind
            and self.frame in (None, event.frame)
            and self.voq in (None, event.voq)
            and self.value in (None, event.value)
            and (self.extras is None or event.extra in self.extras)
        )


def demand(condition: bool, event: Event, sentence: str) -> None:
    """Raise DisagreementError unless the paper's sentence holds."""
    if not condition:
        raise DisagreementError(f"{sentence}: {TraceEventKind(event.kind).name} {event._asdict()}")


def known(numbered: Mapping[int, T], number: int, event: Event) -> T:
    """Return the item with this number, or raise DisagreementError."""
    demand(number in numbered, event, f"{number} is unknown")
    return numbered[number]


@dataclass(slots=True)
class Frame:
    """A frame in the payload memory (section 2.2); its copies are numbered as in the multicast table."""

    number: int
    flow: int
    entry: Entry
    packets: int
    to_come: set[int]
    """Copies whose headers have not arrived."""
    live: set[int] = field(default_factory=set)
    """Copies that have a header: accepted, and not dropped."""
    begun: dict[int, int] = field(default_factory=dict)
    """Copies that a queue has begun to send, and that queue."""
    flying: set[int] = field(default_factory=set)
    """Copies that have left as a whole and are not acknowledged."""
    acknowledged: int = 0
    left: Counter[int] = field(default_factory=Counter)
    """The number of copies of each packet that have left."""

    @property
    def all_begun(self) -> bool:
        return bool(self.live) and self.live <= self.begun.keys()

    @property
    def done(self) -> bool:
        """Return True once the port no longer needs the payload."""
        return not self.to_come and self.acknowledged == len(self.live)

    def all_left(self, packet: int) -> bool:
        return self.left[packet] == len(self.live)


class HeaderPools:
    """Multicast headers of each lane (section 4.1), held until a copy is acknowledged or dropped from the head."""

    def __init__(self, constants: Constants) -> None:
        self._constants, self._held = constants, Counter[int]()

    def held(self, lane: int) -> int:
        return self._held[lane]

    def fullest(self, number: int) -> int:
        """Return the headers in the fullest lane of a class."""
        return max(self._held[lane] for lane in range(number * LANES, (number + 1) * LANES))

    def fates(self, lane: int, held: int) -> set[bool]:
        """Return the possible fates of a header, accepted or not, by the headers in its lane (early detection)."""
        constants = self._constants
        if constants.lossless(lane):
            return {True} if held < constants.lossless_headers else set()
        if held < constants.low:
            return {True}
        if held >= constants.high:
            return {False}
        return {0.0: {True}, 1.0: {False}}.get(constants.probability, {True, False})

    def take(self, lane: int) -> None:
        self._held[lane] += 1

    def free(self, lane: int) -> None:
        self._held[lane] -= 1


class PayloadPools:
    """Packets of each lane and flow (sections 2.1, 2.2 and 4.1); the pools of lossy lanes share one threshold."""

    def __init__(self, constants: Constants, surrogate: bool) -> None:
        self._constants, self._surrogate = constants, surrogate
        self._held: defaultdict[int, Counter[int]] = defaultdict(Counter)

    def fits(self, lane: int, packets: int) -> bool:
        """Return whether a frame leaves the pool within its threshold."""
        constants = self._constants
        if constants.lossless(lane):
            threshold = constants.surrogate_lossless if self._surrogate else constants.terminal_lossless
            return self.held(lane) + packets <= threshold
        shared = sum(self.held(other) for other in self._held if not constants.lossless(other))
        threshold = constants.surrogate_lossy if self._surrogate else constants.terminal_lossy
        return shared + packets <= threshold

    def held(self, lane: int) -> int:
        return self._held[lane].total()

    def largest(self, lane: int) -> frozenset[int]:
        """Return the flows with the most packets."""
        maximum = max(self._held[lane].values())
        return frozenset(flow for flow, held in self._held[lane].items() if held == maximum)

    def add(self, frame: Frame, packets: int) -> None:
        self._held[frame.entry.lane][frame.flow] += packets


class CongestionPoint:
    """Samples arrivals, and more often the worse the congestion is (section 4.2 and IEEE 802.1Qau)."""

    def __init__(self, constants: Constants) -> None:
        self._constants, self._before, self._until_sample = constants, 0, float(constants.sample_bytes)

    def arrived(self, size: int, packets: int) -> int:
        """Return the feedback, 0 for none, for a frame of `size` bytes that meets `packets` in the pool."""
        constants = self._constants
        self._until_sample -= size
        if self._until_sample > 0:
            return 0
        occupancy = packets * constants.packet_bytes
        congestion = occupancy - constants.equilibrium_bytes + constants.weight * (occupancy - self._before)
        maximum = constants.equilibrium_bytes * (2 * constants.weight + 1)
        feedback = max(0, min(STEPS - 1, int(congestion * STEPS / maximum)))
        self._before = occupancy
        self._until_sample += constants.sample_bytes / (1 + feedback // 8)
        return feedback


class Pause:
    """The lossless classes that a terminal's host must not send (section 4.2)."""

    def __init__(self, constants: Constants) -> None:
        self._constants, self._stopped = constants, set[int]()

    def change(self, number: int, packets: int, headers: int, flows: Sequence[Entry]) -> TraceEventKind | None:
        """Return PAUSE or GO if a class must send it, with `packets` of the class and `headers` in its fullest lane."""
        constants, ahead = self._constants, _headers_ahead(flows)
        stop = constants.lossless_headers - ahead
        if number not in self._stopped and (packets > constants.stop or headers > stop):
            self._stopped.add(number)
            return TraceEventKind.PAUSE
        if number in self._stopped and packets < constants.go and headers <= stop - min(ahead, stop // 2):
            self._stopped.discard(number)
            return TraceEventKind.GO
        return None


def _headers_ahead(flows: Sequence[Entry]) -> int:
    """Return the headers that may come before a host stops: of two frames, and of frames on the line meanwhile.

    The paper does not define it: this is the rule of the simulator.
    """
    copies = [(len(flow.copies) if flow.multicast else 1, flow.frame_bytes) for flow in flows]
    return 2 * max(n for n, _ in copies) + math.ceil(max(ADAPTER_NS * n * LINE_BYTES_A_NS / size for n, size in copies))


@dataclass(slots=True)
class Header:
    """A copy of a frame that waits or is on its way, and the packet of it that is sent next."""

    frame: int
    copy: int
    packets: int
    next_packet: int = 0


@dataclass(slots=True)
class Voq:
    """A virtual output queue: copies for one egress port and lane, with credits in packets (sections 2.1, 2.2, 4.1).

    Methods return the requests that a change takes, in packets.
    """

    lane: int
    threshold: int | None
    """No copy is dropped without one."""
    waiting: deque[Header] = field(default_factory=deque)
    sending: Header | None = None
    backlog: int = 0
    requests: deque[int] = field(default_factory=deque)
    """Packets of each frame that has been asked for and not been granted."""
    granted: int = 0
    """Packets that have been granted and not been used."""

    @property
    def congested(self) -> bool:
        return self.threshold is not None and self.backlog >= self.threshold

    def add(self, header: Header) -> list[int]:
        self.waiting.append(header)
        self.backlog += header.packets
        return self._ask()

    def drop_head(self) -> Header:
        header = self.waiting.popleft()
        self.backlog -= header.packets
        return header

    def grant(self, packets: int) -> list[int]:
        """Grant the first requests."""
        self.granted += packets
        while packets > 0:
            packets -= self.requests.popleft()
        return self._give_back() + self._ask()

    def begin(self) -> None:
        self.sending = self.drop_head()
        self.granted -= self.sending.packets

    def finish(self) -> list[int]:
        """Note that the last packet of a copy has left."""
        self.sending = None
        return self._give_back()

    def _give_back(self) -> list[int]:
        """Return credits of dropped copies when nothing waits for them. The paper does not define this case."""
        if not self.waiting:
            self.granted = 0
        return self.give_back_part()

    def give_back_part(self) -> list[int]:
        """Return credits that are only a part of what the head needs, and request the head whole."""
        if not self.waiting or not 0 < self.granted < self.waiting[0].packets:
            return []
        head = self.waiting[0].packets
        self.granted = 0
        asked = []
        if all(request < head for request in self.requests):
            self.requests.append(head)
            asked.append(head)
        return asked + self._ask()

    def _ask(self) -> list[int]:
        """Request whole frames like the last one for what is neither granted nor requested; at most one message."""
        missing = self.backlog - sum(self.requests) - self.granted
        if missing <= 0:
            return []
        size = self.waiting[-1].packets
        frames = -(-missing // size)
        self.requests += [size] * frames
        return [size * frames]


@dataclass(slots=True)
class CamEntry:
    """The lead of a queue in packets, and the latest end of its suspension, if any."""

    packets_ahead: int = 0
    deadline: int | None = None


class SyncCam:
    """Loose synchronization of queues by a small CAM (section 3.1): entries, the least recently used first."""

    def __init__(self, constants: Constants, port: int) -> None:
        self._constants, self._in_use = constants, constants.synchronizes(port)
        self._entries: dict[int, CamEntry] = {}

    def check(self, event: Event) -> None:
        """Demand that no suspension should have ended before this event."""
        for voq, entry in self._entries.items():
            demand(entry.deadline is None or event.time <= entry.deadline, event, f"queue {voq} is still suspended")

    def suspended(self, voq: int) -> bool:
        return voq in self._entries and self._entries[voq].deadline is not None

    def expire(self, voq: int, time: int) -> bool:
        """End a suspension for which it is time; False if there is none."""
        entry = self._entries.get(voq)
        if entry is None or entry.deadline != time:
            return False
        entry.deadline = None
        return True

    def ahead(self, voq: int, packets: int, time: int) -> list[Effect]:
        """Count a frame that a queue begins and of which other copies are still to be sent."""
        if not self._in_use:
            return []
        effects = [] if voq in self._entries else self._allocate(voq)
        self._touch(voq)
        entry = self._entries[voq]
        entry.packets_ahead += packets
        if entry.packets_ahead > self._constants.block and entry.deadline is None:
            entry.deadline = time + self._constants.timeout_ps
            effects.append(Effect(TraceEventKind.SUSPENDED, voq=voq, value=entry.packets_ahead))
        return effects

    def caught_up(self, senders: Iterable[int], packets: int) -> list[Effect]:
        """Count that the last copy of a frame, which these queues have sent before, is begun or dropped."""
        return [effect for voq in senders if voq in self._entries for effect in self._caught_up_with(voq, packets)]

    def _touch(self, voq: int) -> None:
        self._entries[voq] = self._entries.pop(voq)

    def _allocate(self, voq: int) -> list[Effect]:
        full = len(self._entries) >= self._constants.entries
        effects = self._release(next(iter(self._entries)), DropReason.RELEASED) if full else []
        self._entries[voq] = CamEntry()
        return [*effects, Effect(TraceEventKind.CAM_ALLOCATED, voq=voq)]

    def _caught_up_with(self, voq: int, packets: int) -> list[Effect]:
        entry = self._entries[voq]
        # An entry that was given up and allocated again has not counted this frame.
        entry.packets_ahead = max(0, entry.packets_ahead - packets)
        if entry.packets_ahead == 0:
            return self._release(voq, DropReason.COUNT)
        return self._resume(voq, entry, DropReason.COUNT) if entry.packets_ahead < self._constants.resume else []

    def _release(self, voq: int, reason: DropReason) -> list[Effect]:
        return [Effect(TraceEventKind.CAM_RELEASED, voq=voq), *self._resume(voq, self._entries.pop(voq), reason)]

    def _resume(self, voq: int, entry: CamEntry, reason: DropReason) -> list[Effect]:
        if entry.deadline is None:
            return []
        entry.deadline = None
        return [Effect(TraceEventKind.RESUMED, voq=voq, value=reason)]


Line = tuple[int, int]
"""A frame and the number of one of its packets."""


class Cache:
    """The multicast cache of a leaf (section 3): lines with the slot of their last use, the least recent first."""

    def __init__(self, constants: Constants) -> None:
        self._constants = constants
        self._lines: dict[Line, int] = {}
        self._slot, self._written = 0, False

    def __contains__(self, line: Line) -> bool:
        return line in self._lines

    def begin_slot(self, time: int) -> None:
        self._slot, self._written = time, False

    @property
    def writable(self) -> bool:
        """Return True if a packet that is sent now is also written: one per slot."""
        return not self._written and len(self._lines) < self._constants.cache

    def write(self, line: Line) -> None:
        self._written = True
        self._lines[line] = self._slot

    def use(self, line: Line) -> None:
        """Take a packet from the cache for a copy."""
        del self._lines[line]
        self._lines[line] = self._slot

    def drop(self, line: Line) -> None:
        """Remove a line: all copies have left, or space is needed."""
        del self._lines[line]

    def victim(self) -> Line | None:
        """Return the line that is evicted next in this slot, although copies are still to come (Figure 4c)."""
        if self._constants.cache - len(self._lines) >= self._constants.reserve:
            return None
        return next((line for line, slot in self._lines.items() if slot != self._slot), None)


class Leaf:
    """The shared parts of the ports of a leaf: the cache, and the packet slots of the crossbar (section 3)."""

    def __init__(self, constants: Constants) -> None:
        self.cache = Cache(constants)
        self._constants = constants
        self._time = -1
        self._headers: Counter[int] = Counter()
        self._payloads: set[int] = set()
        self._queues: set[int] = set()

    def pass_time(self, event: Event) -> None:
        """Demand that lines were evicted in their slot, which is over if the event comes later."""
        if event.time > self._time:
            demand(self.cache.victim() is None, event, f"{self.cache.victim()} is not evicted before")

    def send(self, event: Event) -> None:
        """Let a packet leave a port."""
        if event.time != self._time:
            demand(event.time % self._constants.slot_ps == 0, event, "a slot is a packet's time")
            self._time = event.time
            for sent in (self._headers, self._payloads, self._queues):
                sent.clear()
            self.cache.begin_slot(event.time)
        demand(event.voq not in self._queues, event, "a queue sends one packet in a slot")
        self._queues.add(event.voq)
        self._headers[event.port] += 1
        demand(self._headers[event.port] <= self._constants.headers_per_slot, event, "a port has one header in a cycle")
        inputs = self._constants.inputs
        demand(inputs is None or self._headers.total() <= inputs, event, "an input takes one packet in a slot")
        if event.flags & OVER_PAYLOAD_LINE:
            demand(event.port not in self._payloads, event, "a port sends one payload in a slot")
            self._payloads.add(event.port)

    def evict(self, event: Event) -> None:
        """Remove a line from the cache before its last copy has left."""
        line, victim = (event.frame, event.value), self.cache.victim()
        demand(event.time == self._time and line == victim, event, f"the line to be evicted is {victim}")
        self.cache.drop(line)


class Port:
    """Takes a port's events in their order. Raises DisagreementError where another one was foretold."""

    def __init__(self, number: int, constants: Constants, tables: Tables, leaf: Leaf) -> None:
        self._number, self._surrogate = number, constants.is_surrogate(number)
        self._constants, self._leaf = constants, leaf
        self._entries = {flow: entry for (flow, port), entry in tables.items() if port == number}
        self._payload = PayloadPools(constants, self._surrogate)
        self._headers, self._pause, self._cam = HeaderPools(constants), Pause(constants), SyncCam(constants, number)
        self._points: dict[int, CongestionPoint] = {}
        self._frames: dict[int, Frame] = {}
        self._voqs: dict[int, Voq] = {}
        self._copies: dict[int, Copy] = {}
        self._arriving: Frame | None = None
        self._dropped_from: list[int] = []
        self._effects: list[Effect] = []
        self._causes = {
            TraceEventKind.FRAME_IN: self._frame_in,
            TraceEventKind.HEADER_ACCEPTED: self._header,
            TraceEventKind.HEADER_DROPPED: self._header,
            TraceEventKind.HEAD_DROPPED: self._head_dropped,
            TraceEventKind.GRANT: self._grant,
            TraceEventKind.BEGIN_FRAME: self._begin_frame,
            TraceEventKind.PACKET_SENT: self._packet_sent,
            TraceEventKind.ACKED: self._acked,
        }

    def take(self, event: Event) -> None:
        """Follow the next event at this port."""
        self._cam.check(event)
        cause = self._causes.get(TraceEventKind(event.kind))
        if cause is not None:
            if event.kind not in OF_AN_ARRIVAL:
                self.settle(event)
            cause(event)
            return
        place = next((place for place, effect in enumerate(self._effects) if effect.matches(event)), None)
        if place is not None:
            del self._effects[place]
            return
        timeout = event.kind == TraceEventKind.RESUMED and event.value == DropReason.TIMEOUT
        demand(timeout and self._cam.expire(event.voq, event.time), event, f"only {self._effects} is foretold")

    def settle(self, event: Event) -> None:
        """Demand that before this event all has come that earlier ones had to bring about."""
        demand(not self._effects, event, f"{self._effects} must come first")
        demand(self._arriving is None and not self._dropped_from, event, "the headers must come first")

    # Arrivals

    def _frame_in(self, event: Event) -> None:
        entry = self._entries[event.extra]
        packets = -(-entry.frame_bytes // self._constants.packet_bytes)
        demand(event.value == packets, event, f"the frame has {packets} packets")
        if not self._payload.fits(entry.lane, packets):
            demand(not self._constants.lossless(entry.lane), event, "a lossless lane has no space")
            self._effects.append(Effect(TraceEventKind.FRAME_DROPPED, frame=event.frame))
            return
        copies = set(range(len(entry.copies) if entry.multicast else 1))
        self._arriving = self._frames[event.frame] = Frame(event.frame, event.extra, entry, packets, copies)
        self._payload.add(self._arriving, packets)

    def _header(self, event: Event) -> None:
        frame = self._arriving
        if frame is None or frame.number != event.frame:
            raise DisagreementError(f"this frame does not arrive: {event}")
        # Headers come in the order of the table (section 4.1), unless the scenario shuffles them.
        legal = frame.to_come if self._constants.shuffle else {min(frame.to_come)}
        demand(event.extra in legal, event, f"the next header is one of {legal}")
        voq = self._queue(event, frame.entry)
        accepted = event.kind == TraceEventKind.HEADER_ACCEPTED
        # Heads are dropped for a header that its pool has accepted.
        held = self._headers.held(voq.lane) + len(self._dropped_from)
        demand(event.value == held, event, f"the lane has {held} headers")
        demand(accepted or not self._dropped_from, event, "no head is dropped for a header that is not accepted")
        tail_dropped = self._constants.drop == "tail" and voq.congested
        fates = {False} if tail_dropped else self._headers.fates(voq.lane, held)
        demand(accepted in fates, event, "the header has another fate")
        demand(set(self._dropped_from) <= {event.voq}, event, "another queue has dropped its head")
        self._dropped_from.clear()
        if accepted:
            demand(not self._drops_head(voq), event, "a head must be dropped first")
            self._headers.take(voq.lane)
            frame.live.add(event.extra)
            self._ask(event.voq, voq.add(Header(frame.number, event.extra, frame.packets)))
        frame.to_come.remove(event.extra)
        if not frame.to_come:
            self._arriving = None
            self._free_if_done(frame)
            self._sample(frame)
            self._stop_or_go(frame.entry.lane)

    def _queue(self, event: Event, entry: Entry) -> Voq:
        """Return the queue, which takes the copies for one egress port and lane, and all of them."""
        if entry.multicast:
            copy = entry.copies[event.extra]
            numbers = [number for number, other in self._copies.items() if other == copy]
            demand(numbers in ([], [event.voq]), event, f"the queue of {copy} is {numbers}")
            demand(self._copies.setdefault(event.voq, copy) == copy, event, f"the queue is not that of {copy}")
        else:
            # The simulator draws the destination, which only the queue reveals.
            copy = self._copies.get(event.voq, entry.copies[0])
            demand(copy in entry.copies, event, f"the frame does not go to {copy}")
        return self._voqs.setdefault(event.voq, Voq(copy.lane, self._constants.voq_threshold(self._number, copy.lane)))

    def _drops_head(self, voq: Voq) -> bool:
        return self._constants.drop == "head" and voq.congested and bool(voq.waiting)

    def _ask(self, number: int, requests: list[int]) -> None:
        self._effects += [Effect(TraceEventKind.REQUEST, voq=number, value=packets) for packets in requests]

    def _sample(self, frame: Frame) -> None:
        """Sample a frame's arrival, also where no copy was accepted and it has gone again."""
        if not self._constants.qcn_at_inputs:
            return
        lane = frame.entry.lane
        point = self._points.setdefault(lane, CongestionPoint(self._constants))
        feedback = point.arrived(frame.entry.frame_bytes, self._payload.held(lane))
        if feedback:
            flows = self._payload.largest(lane) if self._constants.marks_by_occupancy else frozenset({frame.flow})
            self._effects.append(Effect(TraceEventKind.CNM, value=feedback, extras=flows))

    def _head_dropped(self, event: Event) -> None:
        voq, frame = known(self._voqs, event.voq, event), known(self._frames, event.frame, event)
        demand(self._drops_head(voq), event, "no head is to be dropped")
        self._check_head(voq, event)
        voq.drop_head()
        self._dropped_from.append(event.voq)
        self._headers.free(voq.lane)
        frame.live.remove(event.extra)
        self._count_as_sent(frame)
        for packet in range(frame.packets):
            self._evict_if_all_left(frame, packet)
        self._free_if_done(frame)
        self._ask(event.voq, voq.give_back_part())

    def _count_as_sent(self, frame: Frame) -> None:
        """Count a dropped copy as sent (Figure 7): the queues that have sent the others may wait for it alone."""
        if frame.all_begun:
            self._effects += self._cam.caught_up(frame.begun.values(), frame.packets)

    # Departures

    def _grant(self, event: Event) -> None:
        voq = known(self._voqs, event.voq, event)
        granted = list(accumulate(voq.requests))
        demand(event.value in granted, event, f"the first requests make {granted} packets")
        self._ask(event.voq, voq.grant(event.value))

    def _begin_frame(self, event: Event) -> None:
        voq, frame = known(self._voqs, event.voq, event), known(self._frames, event.frame, event)
        demand(voq.sending is None, event, "the queue is sending a frame")
        demand(not self._cam.suspended(event.voq), event, "the queue is suspended")
        demand(voq.granted >= event.value, event, f"{voq.granted} packets are granted")
        self._check_head(voq, event)
        voq.begin()
        others = list(frame.begun.values())
        frame.begun[event.extra] = event.voq
        if frame.all_begun:
            self._effects += self._cam.caught_up(others, frame.packets)
        else:
            self._effects += self._cam.ahead(event.voq, frame.packets, event.time)

    def _check_head(self, voq: Voq, event: Event) -> None:
        head = voq.waiting[0] if voq.waiting else None
        demand(head == Header(event.frame, event.extra, event.value), event, f"the head is {head}")

    def _packet_sent(self, event: Event) -> None:
        voq, packet = known(self._voqs, event.voq, event), event.value
        copy = voq.sending
        if copy is None or (copy.frame, copy.next_packet) != (event.frame, packet):
            raise DisagreementError(f"the queue is sending {copy}: {event}")
        frame, line, cache = self._frames[event.frame], (event.frame, packet), self._leaf.cache
        hit, payload = line in cache, bool(event.flags & OVER_PAYLOAD_LINE)
        demand(hit != payload, event, "a packet comes from the cache if and only if the cache has it")
        self._leaf.send(event)
        frame.left[packet] += 1
        if hit:
            cache.use(line)
            self._evict_if_all_left(frame, packet)
        elif not frame.all_left(packet) and cache.writable:
            cache.write(line)
            self._effects.append(Effect(TraceEventKind.CACHE_WRITTEN, frame=frame.number, value=packet))
        copy.next_packet += 1
        if copy.next_packet == copy.packets:
            self._ask(event.voq, voq.finish())
            frame.flying.add(copy.copy)

    def _evict_if_all_left(self, frame: Frame, packet: int) -> None:
        line = (frame.number, packet)
        if line in self._leaf.cache and frame.all_left(packet):
            self._leaf.cache.drop(line)
            self._effects.append(Effect(TraceEventKind.CACHE_EVICTED, frame=frame.number, value=packet))

    # Ends

    def _acked(self, event: Event) -> None:
        frame = known(self._frames, event.frame, event)
        demand(event.extra in frame.flying, event, "the copy has not left")
        frame.flying.remove(event.extra)
        frame.acknowledged += 1
        self._headers.free(known(self._voqs, event.voq, event).lane)
        self._free_if_done(frame)
        self._stop_or_go(frame.entry.lane)

    def _free_if_done(self, frame: Frame) -> None:
        if frame.done:
            del self._frames[frame.number]
            self._payload.add(frame, -frame.packets)
            self._effects.append(Effect(TraceEventKind.PAYLOAD_FREED, frame=frame.number, value=frame.packets))

    def _stop_or_go(self, lane: int) -> None:
        if self._surrogate or not self._constants.lossless(lane):
            return
        number = lane // LANES
        flows = [entry for entry in self._entries.values() if entry.lane // LANES == number]
        kind = self._pause.change(number, self._payload.held(lane), self._headers.fullest(number), flows)
        if kind is not None:
            self._effects.append(Effect(kind, value=number))


def follow(scenario: Scenario, events: Iterable[Event], constants: Constants | None = None) -> None:
    """Check a trace against the model. Raise DisagreementError at the first event that the paper rules out."""
    constants = constants or constants_of(scenario)
    tables, event = tables_of(scenario, constants), None
    leaves: dict[int, Leaf] = {}
    ports: dict[int, Port] = {}
    for event in events:
        leaf = leaves.setdefault(event.port // constants.ports, Leaf(constants))
        leaf.pass_time(event)
        if event.kind == TraceEventKind.CACHE_EVICTED and not event.flags & ALL_COPIES_HAD_LEFT:
            leaf.evict(event)
        elif event.kind != TraceEventKind.FRAME_OUT:
            if event.port not in ports:
                ports[event.port] = Port(event.port, constants, tables, leaf)
            ports[event.port].take(event)
    if event is not None:
        for port in ports.values():
            port.settle(event)
