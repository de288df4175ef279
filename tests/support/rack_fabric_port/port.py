"""A port of the fabric: what it does with every event that comes from outside or that an arbiter chooses."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate

from blast_sim.fabric.trace import OVER_PAYLOAD_LINE, Kind, Reason
from tests.support.rack_fabric_port.congestion import CongestionPoint
from tests.support.rack_fabric_port.constants import LANES, Constants
from tests.support.rack_fabric_port.events import Disagreement, Effect, Event, demand, known, told
from tests.support.rack_fabric_port.frame import Frame
from tests.support.rack_fabric_port.headers import HeaderPools
from tests.support.rack_fabric_port.leaf import Leaf
from tests.support.rack_fabric_port.pause import Pause
from tests.support.rack_fabric_port.payload import PayloadPools
from tests.support.rack_fabric_port.sync_cam import SyncCam
from tests.support.rack_fabric_port.tables import Copy, Entry, Tables
from tests.support.rack_fabric_port.voq import Header, Voq

OF_AN_ARRIVAL = frozenset({Kind.HEADER_ACCEPTED, Kind.HEADER_DROPPED, Kind.HEAD_DROPPED})


class Port:
    """Takes a port's events in their order. Raises Disagreement where another one was foretold."""

    def __init__(self, number: int, constants: Constants, tables: Tables, leaf: Leaf) -> None:
        self._number = number
        self._surrogate = constants.is_surrogate(number)
        self._constants = constants
        self._tables = tables
        self._leaf = leaf
        self._payload = PayloadPools(constants, self._surrogate)
        self._headers = HeaderPools(constants)
        self._pause = Pause(constants, _by_class(number, tables))
        self._cam = SyncCam(constants)
        self._points: dict[int, CongestionPoint] = {}
        self._frames: dict[int, Frame] = {}
        self._voqs: dict[int, Voq] = {}
        self._copies: dict[int, Copy] = {}
        self._arriving: Frame | None = None
        self._dropped_from: list[int] = []
        self._effects: list[Effect] = []
        self._causes: dict[int, Callable[[Event], None]] = {
            Kind.FRAME_IN: self._frame_in,
            Kind.HEADER_ACCEPTED: self._header,
            Kind.HEADER_DROPPED: self._header,
            Kind.HEAD_DROPPED: self._head_dropped,
            Kind.GRANT: self._grant,
            Kind.BEGIN_FRAME: self._begin_frame,
            Kind.PACKET_SENT: self._packet_sent,
            Kind.ACKED: self._acked,
        }

    def take(self, event: Event) -> None:
        """The next event at this port."""
        self._cam.check(event)
        cause = self._causes.get(event.kind)
        if cause is not None:
            if event.kind not in OF_AN_ARRIVAL:
                self.settle(event)
            cause(event)
        elif not self._foretold(event):
            timeout = event.kind == Kind.RESUMED and event.value == Reason.TIMEOUT
            demand(timeout and self._cam.expire(event.voq, event.time), event, f"only {self._effects} is foretold")

    def settle(self, event: Event) -> None:
        """Before this event all has come that earlier ones had to bring about."""
        demand(not self._effects, event, f"{self._effects} must come first")
        demand(self._arriving is None and not self._dropped_from, event, "the headers must come first")

    def _foretold(self, event: Event) -> bool:
        place = next((place for place, effect in enumerate(self._effects) if effect.matches(event)), None)
        if place is not None:
            del self._effects[place]
        return place is not None

    # What arrives

    def _frame_in(self, event: Event) -> None:
        entry = self._tables[event.extra, self._number]
        packets = -(-entry.frame_bytes // self._constants.packet_bytes)
        demand(event.value == packets, event, f"the frame has {packets} packets")
        if not self._payload.fits(entry.lane, packets):
            demand(not self._constants.lossless(entry.lane), event, "a lossless lane has no space")
            self._effects.append(Effect(Kind.FRAME_DROPPED, frame=event.frame))
            return
        self._payload.take(entry.lane, event.extra, packets)
        copies = range(len(entry.copies) if entry.multicast else 1)
        self._arriving = Frame(event.frame, event.extra, entry, packets, set(copies))
        self._frames[event.frame] = self._arriving

    def _header(self, event: Event) -> None:
        frame = self._expected(event)
        voq = self._queue(event, frame.entry)
        accepted = event.kind == Kind.HEADER_ACCEPTED
        # Heads are dropped for a header that its pool has accepted.
        held = self._headers.held(voq.lane) + len(self._dropped_from)
        demand(event.value == held, event, f"the lane has {held} headers")
        demand(accepted or not self._dropped_from, event, "no head is dropped for a header that is not accepted")
        demand(accepted in self._fates(voq, held), event, "the header has another fate")
        demand(set(self._dropped_from) <= {event.voq}, event, "another queue has dropped its head")
        self._dropped_from.clear()
        if accepted:
            demand(not self._drops_head(voq), event, "a head must be dropped first")
            self._accept(Header(frame.number, event.extra, frame.packets), frame, voq, event.voq)
        frame.to_come.remove(event.extra)
        if not frame.to_come:
            self._arrived(frame)

    def _expected(self, event: Event) -> Frame:
        """Headers come in the order of the table (section 4.1), unless the scenario shuffles them."""
        frame = self._arriving
        if frame is None or frame.number != event.frame:
            raise Disagreement(f"this frame does not arrive: {told(event)}")
        legal = frame.to_come if self._constants.shuffle else {min(frame.to_come)}
        demand(event.extra in legal, event, f"the next header is one of {legal}")
        return frame

    def _queue(self, event: Event, entry: Entry) -> Voq:
        """A queue takes the copies for one egress port and lane, and all of them."""
        if entry.multicast:
            copy = entry.copies[event.extra]
            numbers = [number for number, other in self._copies.items() if other == copy]
            demand(numbers in ([], [event.voq]), event, f"the queue of {copy} is {numbers}")
            demand(self._copies.setdefault(event.voq, copy) == copy, event, f"the queue is not that of {copy}")
        else:
            # Its destination is drawn, and nothing tells it but the queue.
            copy = self._copies.get(event.voq, entry.copies[0])
            demand(copy in entry.copies, event, f"the frame does not go to {copy}")
        return self._voqs.setdefault(event.voq, Voq(copy.lane, self._constants.voq_threshold(self._number, copy.lane)))

    def _fates(self, voq: Voq, held: int) -> frozenset[bool]:
        if self._constants.drop == "tail" and voq.congested:
            return frozenset({False})
        return self._headers.fates(voq.lane, held)

    def _drops_head(self, voq: Voq) -> bool:
        return self._constants.drop == "head" and voq.congested and bool(voq.waiting)

    def _accept(self, header: Header, frame: Frame, voq: Voq, number: int) -> None:
        self._headers.take(voq.lane)
        frame.live.add(header.copy)
        self._asks(number, voq.add(header))

    def _asks(self, number: int, requests: list[int]) -> None:
        self._effects += [Effect(Kind.REQUEST, voq=number, value=packets) for packets in requests]

    def _arrived(self, frame: Frame) -> None:
        self._arriving = None
        self._free_if_done(frame)
        self._sample(frame)
        self._stop_or_go(frame.entry.lane)

    def _sample(self, frame: Frame) -> None:
        """A frame of which no copy was accepted has come, and gone."""
        if not self._constants.qcn_at_inputs:
            return
        lane = frame.entry.lane
        point = self._points.setdefault(lane, CongestionPoint(self._constants))
        feedback = point.arrived(frame.entry.frame_bytes, self._payload.held(lane))
        if feedback:
            flows = self._payload.largest(lane) if self._constants.largest_is_told else frozenset({frame.flow})
            self._effects.append(Effect(Kind.CNM, value=feedback, extras=flows))

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
        self._asks(event.voq, voq.give_back_part())

    def _count_as_sent(self, frame: Frame) -> None:
        """A dropped copy counts as sent (Figure 7): those that have sent the others may be waiting for it alone."""
        if frame.all_begun:
            self._effects += self._cam.caught_up(frame.begun.values(), frame.packets)

    # What leaves

    def _grant(self, event: Event) -> None:
        voq = known(self._voqs, event.voq, event)
        granted = list(accumulate(voq.requests))
        demand(event.value in granted, event, f"the first requests make {granted} packets")
        self._asks(event.voq, voq.grant(event.value))

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
            raise Disagreement(f"the queue is sending {copy}: {told(event)}")
        frame, line, cache = self._frames[event.frame], (event.frame, packet), self._leaf.cache
        hit, payload = line in cache, bool(event.flags & OVER_PAYLOAD_LINE)
        demand(hit != payload, event, "what is in the cache comes from there, and nothing else")
        self._leaf.send(event)
        frame.left[packet] += 1
        if hit:
            cache.use(line)
            self._evict_if_all_left(frame, packet)
        elif not frame.all_left(packet) and cache.writable:
            cache.write(line)
            self._effects.append(Effect(Kind.CACHE_WRITTEN, frame=frame.number, value=packet))
        copy.next_packet += 1
        if copy.next_packet == copy.packets:
            self._asks(event.voq, voq.finish())
            frame.flying.add(copy.copy)

    def _evict_if_all_left(self, frame: Frame, packet: int) -> None:
        line = (frame.number, packet)
        if line in self._leaf.cache and frame.all_left(packet):
            self._leaf.cache.drop(line)
            self._effects.append(Effect(Kind.CACHE_EVICTED, frame=frame.number, value=packet))

    # What is over

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
            self._payload.free(frame.entry.lane, frame.flow, frame.packets)
            self._effects.append(Effect(Kind.PAYLOAD_FREED, frame=frame.number, value=frame.packets))

    def _stop_or_go(self, lane: int) -> None:
        if self._surrogate or not self._constants.lossless(lane):
            return
        number = lane // LANES
        kind = self._pause.tell(number, self._payload.held(lane), self._headers.most(number))
        if kind is not None:
            self._effects.append(Effect(kind, value=number))


def _by_class(port: int, tables: Tables) -> dict[int, list[Entry]]:
    """The flows for which a port has a table."""
    found: dict[int, list[Entry]] = {}
    for (_, where), entry in tables.items():
        if where == port:
            found.setdefault(entry.lane // LANES, []).append(entry)
    return found
