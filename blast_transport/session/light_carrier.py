"""The carrier `optical` at the sender: blocks in order, paced, within the window, while there is light."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from blast_transport.blocks.masks import runs
from blast_transport.optical.burst import Burst
from blast_transport.optical.interface import open_sender_socket
from blast_transport.optical.offload import DatagramSender
from blast_transport.optical.pacing import Pacer
from blast_transport.optical.parameters import OpticalParameters
from blast_transport.session.carrier import DIGESTS_TOLD
from blast_transport.session.reader import BlockReader
from blast_transport.session.route import Light
from blast_transport.session.sender_core import SenderCore
from blast_transport.wire.carriers import OPTICAL
from blast_transport.wire.datagram import HEADER, wire_bytes
from blast_transport.wire.fields import to_parameters
from blast_transport.wire.messages import Leg

QUEUE_BYTES, QUEUE_SECONDS = 1 << 20, 0.0005
"""The smallest queue on a path of which nobody said more: the window is never larger. Faster ports have longer ones."""

_DARK_SECONDS = 1.0
_BLOCKED_SECONDS = 0.02
_STREAM_SECONDS = 0.5
# A machine that cannot keep up with the rate must still get to read what the receivers say.
_BURSTS_PER_STEP = 8
_BURST_SECONDS, _WHOLE_SECONDS = 0.001, 0.0015
"""A burst is a block where one takes no longer than the latter: who receives it in pieces has to put them together."""

_SHORTEST_GATHER, _LONGEST_GATHER = 0.001, 0.05


def queue_bytes(light: Light) -> int:
    """The smallest queue on this light's path, as far as is known."""
    return light.queue_bytes or max(QUEUE_BYTES, int(light.rate / 8 * QUEUE_SECONDS))


class LightCarrier:
    """Sends by `light` as long as it lasts. `datagrams` counts what left; `reached` is told every byte that did."""

    name = OPTICAL

    def __init__(
        self, interface_address: str, light: Light, leg: Leg, reader: BlockReader, reached: Callable[[int], None]
    ) -> None:
        self.datagrams = 0
        self._light, self._reader, self._reached = light, reader, reached
        self._socket = open_sender_socket(interface_address, light.group, light.port)
        source, port = self._socket.getsockname()
        said = OpticalParameters(light.group, light.port, source, port)
        self._leg = replace(leg, parameters=to_parameters(said))
        self._burst: Burst | None = None
        self._repair: Burst | None = None
        self._sender: DatagramSender | None = None
        self._pacer: Pacer | None = None
        self._piece = 1
        self._next = 0
        self._over = False

    @property
    def over(self) -> bool:
        """All blocks have left."""
        return self._over

    @property
    def offload(self) -> bool | None:
        """Whether super-packets are in use; None before the first one."""
        return self._sender.offload if self._sender else None

    def leg(self, name: str) -> Leg | None:
        """Everybody hears the same."""
        return self._leg

    def follow(self, light: Light) -> bool:
        """The same light for longer, or at another rate; False if it is another light."""
        if (light.group, light.port) != (self._light.group, self._light.port):
            return False
        if light.rate != self._light.rate:
            self._pacer = None
        self._light = light
        return True

    def leave(self, core: SenderCore) -> bool:
        """Nothing is under way; a loss at the end of the light shows by no gap, so say where it ended."""
        core.tell_sent()
        return False

    def drain(self, core: SenderCore) -> None:
        """Nothing is under way."""

    def quit(self, reason: str) -> None:
        """Nothing is under way."""

    def darken(self, core: SenderCore) -> None:
        """There is no light until it is followed again; a loss at its end shows by no gap, so say where it was."""
        self._light = replace(self._light, until=-math.inf)
        core.tell_sent()

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def step(self, core: SenderCore, now: float) -> float:
        """Send what is due. Raises SourceChangedError, LightPathError, WrongInputError."""
        burst, pacer = self._burst or self._begin(core), self._pacer or self._pace(core, now)
        for _ in range(_BURSTS_PER_STEP):
            if now >= self._light.until:
                return _DARK_SECONDS
            if (delay := pacer.delay(now)) > 0:
                return delay
            if shared := core.take_shared_repair(now, self._gather(core)):
                self._send_shared(core, *shared, now)
                continue
            if burst.segments == 0 and (wait := self._load(core, burst, now)) is not None:
                return wait
            self._send_piece(core, burst, pacer, now)
        return 0

    def _begin(self, core: SenderCore) -> Burst:
        layout = core.layout
        self._burst = Burst(core.hello.session, layout)
        self._repair = Burst(core.hello.session, layout)
        self._sender = DatagramSender(self._socket, HEADER.size + layout.segment_size)
        return self._burst

    def _pace(self, core: SenderCore, now: float) -> Pacer:
        layout = core.layout
        datagram = wire_bytes(layout.segment_size)
        rate = core.rate_of(self._light.rate)
        self._pacer = Pacer(rate, datagram, now, queue_bytes(self._light))
        self._piece = _segments_at_once(layout.block_segments, datagram * 8 / rate)
        return self._pacer

    def _gather(self, core: SenderCore) -> float:
        """About the time of a window: by then everybody who misses the same has said so."""
        window = core.window * core.layout.block_size * 8 / self._light.rate
        return min(max(window, _SHORTEST_GATHER), _LONGEST_GATHER)

    def _load(self, core: SenderCore, burst: Burst, now: float) -> float | None:
        """Get the next block ready; seconds to wait if there is none yet."""
        reader = self._reader
        while not core.wanted(block := core.next_block) and not reader.last(block) and reader.ready(block):
            reader.digest(block + 1, 1)
            core.sent(block)
        if reader.last(block):
            self._over = True
            return _BLOCKED_SECONDS
        if not reader.ready(block):
            core.tell_digests()
            return _STREAM_SECONDS
        if not core.may_send(now):
            if core.early:
                core.tell_digests()
            return _BLOCKED_SECONDS
        burst.load(block, reader.load(block, burst.payload))
        self._next = 0
        # A target that must have them early gets no block before, and gives no credit.
        if core.untold >= (max(1, core.window // 4) if core.early else DIGESTS_TOLD):
            core.tell_digests()
        return None

    def _send_piece(self, core: SenderCore, burst: Burst, pacer: Pacer, now: float) -> None:
        assert self._sender is not None
        count = min(self._piece, burst.segments - self._next)
        self._sender.send(burst.parts(self._next, count))
        pacer.sent(burst.wire_bytes(self._next, count), now)
        self.datagrams += count
        self._next += count
        if self._next == burst.segments:
            core.sent(burst.block)
            self._reached(min(core.layout.offset(burst.block + 1), self._reader.source.size or 1 << 62))
            burst.segments = 0

    def _send_shared(self, core: SenderCore, block: int, mask: int, now: float) -> None:
        assert self._repair is not None and self._sender is not None and self._pacer is not None
        image = self._reader.image(block)
        self._repair.payload[: len(image)] = image
        self._repair.load(block, len(image))
        for first, count in runs(mask & ((1 << self._repair.segments) - 1)):
            self._sender.send(self._repair.parts(first, count))
            self._pacer.sent(self._repair.wire_bytes(first, count), now)
            self.datagrams += count


def _segments_at_once(block_segments: int, seconds: float) -> int:
    """Of a block's segments, of which each takes so many seconds on the path."""
    whole = block_segments * seconds
    bursts = 1 if whole <= _WHOLE_SECONDS else math.ceil(whole / _BURST_SECONDS)
    return max(1, math.ceil(block_segments / bursts))
