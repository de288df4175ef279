"""Blocks to a multicast group, in order, paced, as far as is permitted; the transports differ in when and how fast."""

from __future__ import annotations

import math
import socket
import time
from collections import deque

from blast_transport.datagrams.bursts import BurstLimit, Retransmission
from blast_transport.datagrams.compiled_bursts import open_bursts
from blast_transport.datagrams.pacing import Pacer, check_rate
from blast_transport.transports.sending import ParityRun, SendingContext, SendingEvent, SendingTransport, Sent
from blast_transport.wire.datagram import wire_bytes
from blast_transport.wire.messages import Phase

_DARK_SECONDS = 1.0
"""Between looks while there is no grant; an event ends the wait."""
_BLOCKED_SECONDS = 0.02
"""While the window is full: a credit usually ends the wait."""
_STREAM_SECONDS = 0.5
"""While a stream has no data: new data ends the wait."""
# A machine that cannot keep up with the rate must still read the receivers' messages.
_BURSTS_PER_STEP = 16
SHORTEST_WAIT = 0.00025
"""Seconds; the pacer tolerates more, and a step of the session for every block would cost more than the block."""
_BURST_SECONDS, _WHOLE_SECONDS = 0.001, 0.0015
"""A burst is a whole block if that takes at most the latter: receivers have to reassemble pieces."""


class GroupSender(SendingTransport):
    """Sends blocks over a socket that is connected to a group.

    A subclass sets the rate in bits/s by `pace`, may end sending at `ends_at`, and may limit what leaves by `allowed`.
    `queue_bytes`: the smallest queue on the path.
    """

    def __init__(self, phase: Phase, sock: socket.socket, around: SendingContext, queue_bytes: int = 0) -> None:
        super().__init__(phase)
        self.ends_at = math.inf
        self._socket, self._reader, self._held, self._queue_bytes = sock, around.reader, around.held, queue_bytes
        # Blocks before `_stop` may leave.
        self._bursts, self._stop = open_bursts(sock, phase, around.reader, around.woken), phase.first
        self._retransmits: deque[Retransmission] = deque()
        self._parity: deque[ParityRun] = deque()
        self._events: list[SendingEvent] = []
        self._until = -math.inf
        self._pacer: Pacer | None = None
        self._rate = 0.0
        self._datagram_bytes, self._piece = wire_bytes(around.reader.layout.segment_size), 1

    def allowed(self) -> int:
        """Return the bursts that may leave now, apart from the window and the schedule."""
        return _BURSTS_PER_STEP

    def left(self, first: int, stop: int, began: float) -> None:
        """Handle that the segments from `first` to before `stop` have left since `began`."""

    def permit(self, stop: int) -> None:
        """Set the end of the window."""
        self._stop = stop

    def pace(self, rate: float) -> None:
        """Restart the schedule with this rate. Raise WrongInputError if it is invalid."""
        check_rate(rate)
        self._rate, self._pacer = rate, None

    def room(self, now: float) -> int:
        """Return the retransmissions that this step can send: more would wait past the end of the grant and be lost."""
        dark = now >= self.ends_at or self._pacer is None or self._pacer.delay(now) > 0
        return 0 if dark or self._retransmits or self._parity else _BURSTS_PER_STEP

    def retransmit(self, block: int, mask: int) -> None:
        """Queue a retransmission before the next blocks."""
        self._retransmits.append((block, mask))

    def send_parity(self, parity: ParityRun) -> None:
        """Queue parity segments before the next blocks."""
        self._parity.append(parity)

    def stay(self, until: float) -> None:
        """Send what becomes due meanwhile."""
        self._until = until

    def work(self, now: float) -> float:
        """Send the segments that are due."""
        bursts, before = self._bursts, self._bursts.block
        try:
            wait = self._flow(self._pacer or self._schedule(now), now)
        finally:
            if bursts.block != before:
                self._events.append(Sent(bursts.block))
        if wait is None:
            # The window moves only after the session has processed the receivers' messages.
            return _BLOCKED_SECONDS if bursts.block == before else 0.0
        return wait

    def events(self) -> list[SendingEvent]:
        """Return the progress."""
        events, self._events = self._events, []
        return events

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def _schedule(self, now: float) -> Pacer:
        datagram = self._datagram_bytes
        self._pacer = Pacer(self._rate, datagram, now, self._queue_bytes)
        self._piece = segments_at_once(self._reader.layout.block_segments, datagram * 8 / self._rate)
        return self._pacer

    def _flow(self, pacer: Pacer, now: float) -> float | None:
        """Send for one turn; return the seconds to wait, None: until more is permitted."""
        bursts, reader, left = self._bursts, self._reader, _BURSTS_PER_STEP
        while left > 0:
            if now >= self.ends_at:
                self._retransmits.clear()
                self._parity.clear()
                return _DARK_SECONDS
            if (delay := pacer.delay(now)) > 0:
                return max(delay, SHORTEST_WAIT)
            if self._retransmits:
                left -= self._send_again(pacer, now, left)
                continue
            if self._parity:
                self._send_parity(pacer, now)
                left -= 1
                continue
            if bursts.segment == 0:
                if reader.last(bursts.block):
                    self.over = True
                    return None
                if not reader.ready(bursts.block):
                    return _STREAM_SECONDS
                if bursts.block in self._held:
                    reader.digest(bursts.block + 1 - reader.digested)
                    bursts.block += 1
                    left -= 1
                    continue
                if bursts.block >= self._stop:
                    return None
            if (allowed := min(left, self.allowed())) <= 0:
                return None
            left -= self._send_on(pacer, now, allowed)
            if now < self._until:
                now = max(now, time.monotonic())
        return 0

    def _send_on(self, pacer: Pacer, now: float, max_bursts: int) -> int:
        """Send bursts of the next blocks that may leave now; return their number."""
        bursts, first = self._bursts, self._segment
        stop = self._held.first_held(bursts.block + 1, min(self._stop, self._reader.readable))
        try:
            count = bursts.go_on(stop, self._piece, pacer, BurstLimit(max_bursts, now, min(self._until, self.ends_at)))
        finally:
            self._count()
            self.left(first, self._segment, now)
        # A signal may have come before the first.
        return max(1, count)

    @property
    def _segment(self) -> int:
        """Return the number of the next segment."""
        return self._bursts.block * self._reader.layout.block_segments + self._bursts.segment

    def _send_again(self, pacer: Pacer, now: float, max_blocks: int) -> int:
        """Send retransmissions that may leave now, of at most `max_blocks` blocks; return the number of blocks."""
        retransmissions, size, allowed = list[Retransmission](), 0, pacer.allowance(now)
        while self._retransmits and len(retransmissions) < max_blocks and size <= allowed:
            retransmissions.append(self._retransmits.popleft())
            size += retransmissions[-1][1].bit_count() * self._datagram_bytes
        before = self._bursts.wire_bytes
        try:
            self._bursts.again(retransmissions)
        finally:
            pacer.sent(self._bursts.wire_bytes - before, now)
            self._count()
        return len(retransmissions)

    def _send_parity(self, pacer: Pacer, now: float) -> None:
        """Send the next parity segments, as many as a burst has."""
        group, first, stop = self._parity.popleft()
        end = min(stop, first + self._piece)
        if end < stop:
            self._parity.appendleft(ParityRun(group, end, stop))
        before = self._bursts.wire_bytes
        try:
            self._bursts.send_parity(ParityRun(group, first, end), self.group_blocks)
        finally:
            pacer.sent(self._bursts.wire_bytes - before, now)
            self._count()

    def _count(self) -> None:
        """Count the datagrams that left, even if the path has failed."""
        bursts = self._bursts
        if bursts.datagrams:
            self.datagrams, self.offload = bursts.datagrams, bursts.offload


def segments_at_once(block_segments: int, seconds: float) -> int:
    """Return the segments of a burst, of which each takes `seconds` on the path."""
    whole = block_segments * seconds
    bursts = 1 if whole <= _WHOLE_SECONDS else math.ceil(whole / _BURST_SECONDS)
    return max(1, math.ceil(block_segments / bursts))
