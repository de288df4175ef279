"""The carrier `optical` at the sender: blocks in order, paced, as far as is permitted, while there is light."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import replace

from blast_transport.base.errors import ForgottenError, WrongInputError
from blast_transport.blocks.masks import runs
from blast_transport.carriers.choices import CarrierChoice, Dark, Light
from blast_transport.carriers.optical.burst import Burst
from blast_transport.carriers.optical.interface import open_sender_socket
from blast_transport.carriers.optical.offload import DatagramSender
from blast_transport.carriers.optical.pacing import Pacer, check_rate
from blast_transport.carriers.optical.parameters import OpticalParameters
from blast_transport.carriers.sending import Granted, SendingCarrier, SendingContext, SendingEvent, Sent
from blast_transport.wire.datagram import HEADER, wire_bytes
from blast_transport.wire.fields import to_parameters
from blast_transport.wire.messages import Leg

_DARK_SECONDS = 1.0
_BLOCKED_SECONDS = 0.02
_STREAM_SECONDS = 0.5
# A machine that cannot keep up with the rate must still get to read what the receivers say.
_BURSTS_PER_TURN = 16
_BURST_SECONDS, _WHOLE_SECONDS = 0.001, 0.0015
"""A burst is a block where one takes no longer than the latter: who receives it in pieces has to put them together."""


class OpticalSender(SendingCarrier):
    """Multicasts while the light lasts that it was given. Raises WrongInputError, LightPathError."""

    def __init__(self, leg: Leg, choice: Light, around: SendingContext) -> None:
        if around.interface_address is None:
            raise WrongInputError("sending by light needs the address of our interface on the light path")
        self._socket = open_sender_socket(around.interface_address, choice.group, choice.port)
        source, port = self._socket.getsockname()
        said = OpticalParameters(choice.group, choice.port, source, port)
        super().__init__(replace(leg, parameters=to_parameters(said)))
        self._light, self._reader, self._held = choice, around.reader, around.held
        layout = around.reader.layout
        self._burst, self._again = Burst(leg.session, layout), Burst(leg.session, layout)
        self._sender = DatagramSender(self._socket, HEADER.size + layout.segment_size)
        self._retransmits: deque[tuple[int, int]] = deque()
        self._events: list[SendingEvent] = [Granted(choice.rate)]
        self._rate = choice.rate
        self._pacer: Pacer | None = None
        self._piece = 1
        # The block that leaves next, and its next segment; those before `_stop` may leave.
        self._block, self._segment = leg.first, 0
        self._stop = leg.first

    def follow(self, choice: CarrierChoice) -> bool:
        """The same light for longer, or at another rate, or none for now: mostly the same one comes back."""
        if isinstance(choice, Dark):
            self._light = replace(self._light, until=-math.inf)
            self._retransmits.clear()
            return True
        if not isinstance(choice, Light) or (choice.group, choice.port) != (self._light.group, self._light.port):
            return False
        if choice.rate != self._light.rate:
            self._events.append(Granted(choice.rate))
        self._light = choice
        return True

    def permit(self, stop: int) -> None:
        """The window reaches so far."""
        self._stop = stop

    def pace(self, rate: float) -> None:
        """The schedule begins anew. Raises WrongInputError for a rate that is none."""
        check_rate(rate)
        self._rate, self._pacer = rate, None

    def room(self, now: float) -> int:
        """No more than this turn sends, if it sends: what waits when the light ends has to be asked for again."""
        waits = self._retransmits or now >= self._light.until or self._pacer is None or self._pacer.delay(now) > 0
        return 0 if waits else _BURSTS_PER_TURN

    def retransmit(self, block: int, mask: int) -> None:
        """Before the blocks that come next."""
        self._retransmits.append((block, mask))

    def work(self, now: float) -> float:
        """Send what is due."""
        before = self._block
        try:
            wait = self._flow(self._pacer or self._schedule(now), now)
        finally:
            if self._block != before:
                self._events.append(Sent(self._block))
        if wait is None:
            # What more is permitted is known only when the session has heard how far this is.
            return _BLOCKED_SECONDS if self._block == before else 0.0
        return wait

    def events(self) -> list[SendingEvent]:
        """How far it is."""
        events, self._events = self._events, []
        return events

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def _schedule(self, now: float) -> Pacer:
        layout = self._reader.layout
        datagram = wire_bytes(layout.segment_size)
        self._pacer = Pacer(self._rate, datagram, now, self._light.window_bytes)
        self._piece = _segments_at_once(layout.block_segments, datagram * 8 / self._rate)
        return self._pacer

    def _flow(self, pacer: Pacer, now: float) -> float | None:
        """Send until that is enough for a turn; seconds to wait, None: until more is permitted."""
        for _ in range(_BURSTS_PER_TURN):
            if now >= self._light.until:
                self._retransmits.clear()
                return _DARK_SECONDS
            if (delay := pacer.delay(now)) > 0:
                return delay
            if self._retransmits:
                self._send_again(*self._retransmits.popleft(), pacer, now)
                continue
            if self._burst.segments == 0:
                if self._reader.last(self._block):
                    self.over = True
                    return None
                if not self._reader.ready(self._block):
                    return _STREAM_SECONDS
                if self._block in self._held:
                    self._reader.digest(self._block + 1 - self._reader.digested)
                    self._block += 1
                    continue
                if self._block >= self._stop:
                    return None
                self._burst.load(self._block, self._reader.load(self._block, self._burst.payload))
                self._segment = 0
            self._send_piece(pacer, now)
        return 0

    def _send_piece(self, pacer: Pacer, now: float) -> None:
        burst = self._burst
        count = min(self._piece, burst.segments - self._segment)
        self._send(burst, self._segment, count, pacer, now)
        self._segment += count
        if self._segment == burst.segments:
            self._block += 1
            burst.segments = 0

    def _send_again(self, block: int, mask: int, pacer: Pacer, now: float) -> None:
        try:
            image = self._reader.image(block)
        except ForgottenError:
            # Of a stream nothing is kept that everybody has got meanwhile.
            return
        self._again.payload[: len(image)] = image
        self._again.load(block, len(image))
        for first, count in runs(mask & ((1 << self._again.segments) - 1)):
            self._send(self._again, first, count, pacer, now)

    def _send(self, burst: Burst, first: int, count: int, pacer: Pacer, now: float) -> None:
        self._sender.send(burst.parts(first, count))
        self.offload = self._sender.offload
        pacer.sent(burst.wire_bytes(first, count), now)
        self.datagrams += count


def _segments_at_once(block_segments: int, seconds: float) -> int:
    """Of a block's segments, of which each takes so many seconds on the path."""
    whole = block_segments * seconds
    bursts = 1 if whole <= _WHOLE_SECONDS else math.ceil(whole / _BURST_SECONDS)
    return max(1, math.ceil(block_segments / bursts))
