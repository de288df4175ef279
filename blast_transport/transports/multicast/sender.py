"""The transport `multicast` at the sender: segments in flight, and their rate, as its congestion control permits.

It begins with a probe. Receivers that do not answer are served afterwards by a pipeline; without any answer, and for a
stream, which cannot be sent again, the pipeline serves all. A group with datagrams of another sender is replaced by
another one.
"""

from __future__ import annotations

import math
import secrets
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

from blast_transport.base.errors import LightPathError, RemoteProtocolError, WrongInputError
from blast_transport.datagrams.compiled_bursts import can_encode
from blast_transport.datagrams.interface import open_group_socket, open_sender_socket
from blast_transport.datagrams.pacing import Pacer
from blast_transport.datagrams.sender import SHORTEST_WAIT, GroupSender, segments_at_once
from blast_transport.transports.choices import MulticastChoice, TransportChoice
from blast_transport.transports.multicast.control import CongestionControl
from blast_transport.transports.multicast.feedback import decode_report, encode_order
from blast_transport.transports.multicast.probe import GroupProbe, ProbeEvent, ProbeState
from blast_transport.transports.sending import (
    Granted,
    OrderGiven,
    PeersUnreached,
    PhaseRequested,
    RateChanged,
    Reached,
    SendingContext,
    SendingEvent,
)
from blast_transport.wire.datagram import HEADER, IP_UDP_HEADERS, IPV6_UDP_HEADERS
from blast_transport.wire.fields import to_parameters
from blast_transport.wire.groups import GroupParameters
from blast_transport.wire.messages import Phase

_GROUP_BLOCKS = 8
"""Blocks of a coding group (benchmarks/transfers/loss.py): more need less parity for the same loss, but wait longer."""
_QUEUE_BYTES = 32 << 10
"""Queue of each path: half of it, the initial window of TCP (RFC 6928), may leave at once if the sender is late."""
_BURSTS_PER_WINDOW = 4
"""A burst is at most that part of a window."""
_RATE_CHANGE = 0.02
"""Smaller changes of the rate are not worth a new schedule."""
_DESERTED_SECONDS = 1.0
"""Time without any receiver that keeps up, after which datagrams count as lost to all: not all are slower than others,
but a switch without a querier forgets all memberships."""
_MAX_GROUPS = 3
"""A range in which three random groups are in use has hardly a free one, or a host floods it."""
_MAX_PICKS = 16
"""Groups that are drawn at most: with less than half of a range to avoid, one of them is another one."""
_MAX_NAMED = 3
"""Receivers that a note names."""
_MAX_FOREIGN_READ = 64
"""Datagrams of the group that are read at once, among them those of this sender itself."""
_REMEDY = (
    "check that the interface of {source} leads to the receivers (or give --multicast-address), that switches that "
    "snoop have an IGMP or MLD querier, that no firewall drops UDP, that the network carries packets of {size} bytes, "
    "and, with routers on the path, --hops"
)


class MulticastSender(GroupSender):
    """Multicast over a packet network. Raises WrongInputError, LightPathError."""

    def __init__(self, phase: Phase, choice: MulticastChoice, around: SendingContext) -> None:
        source = choice.interface_address or around.own_address
        if (":" in source) != (":" in around.own_address):
            raise LightPathError(
                f"{source} of --multicast-address and {around.own_address}, from which this host reaches the "
                "receivers, have different IP versions; give an address of the receivers' version"
            )
        group = _pick(choice, source)
        sock = open_sender_socket(source, group, choice.port, hops=choice.hops, dscp=choice.dscp)
        self._own = (str(sock.getsockname()[0]), int(sock.getsockname()[1]))
        specific = choice.groups.is_source_specific(group)
        coding = _GROUP_BLOCKS if around.decodes and can_encode(around.reader) else 0
        parameters = GroupParameters(group, choice.port, *self._own, specific, coding)
        super().__init__(replace(phase, parameters=to_parameters(parameters)), sock, around, _QUEUE_BYTES)
        self.group_blocks = coding
        self._choice, self._control, self._probe = choice, CongestionControl(), GroupProbe()
        # Datagrams of others for a group of one source do not arrive at its receivers, nor here.
        self._listener = None if specific else _listen(source, group, choice.port)
        self._max_rate, self._reported_rate = choice.max_rate, 0.0
        self._group, self._place = group, f"the group {group} (UDP port {choice.port})"
        # Whether a receiver keeps up, None before the first; since when none does.
        self._present: bool | None = None
        self._deserted_at = math.inf
        self._probed, self._requested = (0, 0), False
        self._events.append(Granted(choice.max_rate))

    def follow(self, choice: TransportChoice) -> bool:
        """Continue with the same choice only."""
        return choice == self._choice

    def pace(self, rate: float) -> None:
        """Set the limit of the rate, which the receivers accept."""
        self._max_rate = rate
        self._set_rate(time.monotonic())

    def allowed(self) -> int:
        """Return the bursts for which the window has room; the first one is the probe."""
        if self._requested or self._present is False:
            return 0
        if not self._probe.decided:
            return int(self._probe.state is ProbeState.WAITING)
        return self._control.room // self._piece

    def left(self, first: int, stop: int, began: float) -> None:
        """Record when these segments left."""
        now = time.monotonic()
        self._control.sent(first, stop, began, now)
        if first < stop and self._probe.state is ProbeState.WAITING:
            block, index = divmod(first, self._reader.layout.block_segments)
            self._probed = block, 1 << index
            self._probe.left(now)

    def work(self, now: float) -> float:
        """Send the segments that are due."""
        if self._control.tick(now):
            self._set_rate(now)
        self._continue_probe(now)
        self._deserted_at = min(self._deserted_at, now) if self._present is False else math.inf
        if self._control.reaches_none or now >= self._deserted_at + _DESERTED_SECONDS:
            self._request(None, f"datagrams of {self._place} no longer reach any receiver: {self._remedy}")
        return min(super().work(now), max(SHORTEST_WAIT, self._control.wait(now)))

    def look(self, reached: Mapping[str, Reached], now: float) -> None:
        """Let only receivers that keep up represent the others."""
        if reached or self._present:
            self._present = bool(reached)
        self._control.admit(reached.keys())
        if not self._probe.decided:
            self._probe.expect(reached)
        elif unreached := self._control.unreached(now):
            self._exclude(frozenset(unreached))

    def close(self) -> None:
        """Close the sockets."""
        super().close()
        self._stop_listening()

    def receive_report(self, name: str, body: bytes, now: float) -> None:
        """Follow the report of a receiver. Raise RemoteProtocolError."""
        report = decode_report(body)
        if report.stop > self._segment:
            raise RemoteProtocolError("a receiver has passed segments that were not sent")
        self._probe.answer(name)
        self._control.receive(name, report, now)
        self._set_rate(now)

    def events(self) -> list[SendingEvent]:
        """Return the progress, and orders to receivers."""
        orders, self._control.orders = self._control.orders, []
        return [*super().events(), *(OrderGiven(name, encode_order(segments)) for name, segments in orders)]

    def _continue_probe(self, now: float) -> None:
        """Repeat the probe, or follow its result, when that is due."""
        if self._listener is not None and (other := self._read_foreign(self._listener)) is not None:
            self._leave_group(other)
        match self._probe.take_event(now):
            case ProbeEvent.REPEAT_DUE:
                self.retransmit(*self._probed)
            case ProbeEvent.ALL_ANSWERED | ProbeEvent.ANSWERS_OVERDUE:
                self._stop_listening()
                self._set_rate(now)
                if self._probe.unanswered or not self._probe.reaches_any:
                    self._follow_probe(frozenset(self._probe.unanswered))

    def _follow_probe(self, unreached: frozenset[str]) -> None:
        if not self._probe.reaches_any and not unreached:
            self._request(None, f"no receiver takes part in {self._place}; see the reason of each")
        elif not self._probe.reaches_any:
            self._request(None, f"no receiver got a datagram of {self._place}: {self._remedy}")
        elif self._reader.layout.size is None:
            names = ", ".join(sorted(unreached)[:_MAX_NAMED])
            self._request(None, f"no datagram of {self._place} arrived at {names}: {self._remedy}")
        else:
            self._exclude(unreached)

    def _exclude(self, names: frozenset[str]) -> None:
        self._events.append(PeersUnreached(names, f"no datagram of {self._place} arrived there: {self._remedy}"))

    def _leave_group(self, other: str) -> None:
        """Continue with another group, or without one if several were in use."""
        avoided = self._choice.avoided | {self._group}
        used = f"{other} sends to {self._place} too"
        if self._group not in self._choice.avoided and len(avoided) < _MAX_GROUPS:
            self._request(replace(self._choice, avoided=avoided), f"{used}; another group is used")
        else:
            self._request(None, f"{used}, and no free group was found: give another range by --groups")

    def _request(self, choice: MulticastChoice | None, note: str) -> None:
        self._stop_listening()
        if not self._requested:
            self._requested = True
            self._events.append(PhaseRequested(choice, note))

    def _read_foreign(self, listener: socket.socket) -> str | None:
        """Return the address of another sender to the group, None without any."""
        with suppress(OSError):
            for _ in range(_MAX_FOREIGN_READ):
                source = listener.recvfrom(1)[1]
                if source[:2] != self._own:
                    return str(source[0])
        return None

    def _stop_listening(self) -> None:
        if self._listener is not None:
            self._listener.close()
            self._listener = None

    @property
    def _remedy(self) -> str:
        headers = IP_UDP_HEADERS if ":" not in self._own[0] else IPV6_UDP_HEADERS
        return _REMEDY.format(source=self._own[0], size=headers + HEADER.size + self._reader.layout.segment_size)

    def _schedule(self, now: float) -> Pacer:
        pacer = super()._schedule(now)
        self._limit_piece()
        return pacer

    def _set_rate(self, now: float) -> None:
        bits = self._datagram_bytes * 8
        rate = min(self._control.rate(bits), self._max_rate)
        if not self._reported_rate / 2 < rate < self._reported_rate * 2:
            self._reported_rate = rate
            self._events.append(RateChanged(rate))
        if self._pacer is None:
            super().pace(rate)
        elif abs(rate - self._rate) > _RATE_CHANGE * self._rate:
            self._rate = rate
            self._pacer.change(rate, now)
        self._limit_piece()

    def _limit_piece(self) -> None:
        """Limit a burst to what the window and the path allow, and the probe to one segment."""
        window = self._control.segments if self._probe.decided else 1
        seconds = self._datagram_bytes * 8 / self._rate
        at_once = segments_at_once(self._reader.layout.block_segments, seconds)
        self._piece = min(at_once, max(1, int(window / _BURSTS_PER_WINDOW)))


def _pick(choice: MulticastChoice, source: str) -> str:
    """Return a group of the range at random, and none to avoid if there is another one. Raises LightPathError."""
    try:
        groups = [choice.groups.pick(source, secrets.randbits) for _ in range(_MAX_PICKS)]
    except WrongInputError as error:
        raise LightPathError(str(error)) from error
    return next((group for group in groups if group not in choice.avoided), groups[0])


def _listen(source: str, group: str, port: int) -> socket.socket | None:
    """Open a socket for datagrams to the group; None if this host, unlike its receivers perhaps, cannot join it."""
    with suppress(OSError, WrongInputError):
        return open_group_socket(source, group, port)
    return None
