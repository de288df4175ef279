"""The transport `optical` at a receiver: datagrams are read as they come, some at a time, and make up blocks."""

from __future__ import annotations

import time
from collections.abc import Iterable

from blast_transport.base.errors import WrongInputError
from blast_transport.base.moderation import Moderation, ReadWindow
from blast_transport.transports.optical.compiled_light import open_light
from blast_transport.transports.optical.parameters import optical_parameters
from blast_transport.transports.receiving import ReceivingContext, ReceivingTransport, SegmentsArrived
from blast_transport.wire.messages import Phase

_GATHERING_SECONDS = 0.002
"""Time for which data may collect before it is read, unless half a credit is due first: the sender must not wait."""


_MAX_DRAINED = 32
"""Maximum reads, which a slow store shortens: more than a socket's buffer, except under a flood."""


class OpticalReceiver(ReceivingTransport):
    """Receiver of a phase's multicast group. Raises RemoteProtocolError, WrongInputError, OSError."""

    def __init__(self, phase: Phase, around: ReceivingContext) -> None:
        if around.interface_address is None:
            raise WrongInputError("this host has no interface on a light path")
        parameters, layout = optical_parameters(phase), around.assembly.store.layout
        sock = around.open_group(around.interface_address, parameters.group, parameters.port)
        self.descriptor = sock.fileno()
        self._light = open_light(sock, (parameters.source, parameters.source_port), phase.session, around.assembly)
        self._moderation = Moderation(phase.credit * layout.block_size // 2, _GATHERING_SECONDS)
        self._woken = around.woken
        self._stay: ReadWindow | None = None
        self._events: list[SegmentsArrived] = []

    def stay(self, until: float, segments: int) -> None:
        """Set the time for which the next `work` may read."""
        self._stay = self._moderation.stay(until, segments, self._woken())

    def work(self) -> None:
        """Let data collect before reading. Raise StoreError."""
        if (pause := self._moderation.pause(time.monotonic())) > 0:
            time.sleep(pause)
        stay, self._stay = self._stay, None
        size = self._read(time.monotonic(), stay)
        self._moderation.read(size, self._light.read_at, left=not self._light.emptied)

    def drain(self) -> None:
        """Read all remaining data at the end of the phase. Raise StoreError."""
        for _ in range(_MAX_DRAINED):
            self._read(time.monotonic(), None)
            if self._light.emptied:
                return

    def _read(self, began: float, stay: ReadWindow | None) -> int:
        size = self._light.read(stay)
        self._events.append(self._light.arrived(began))
        return size

    def events(self) -> Iterable[SegmentsArrived]:
        """Return the arrivals."""
        events, self._events = self._events, []
        return events

    def permit(self, stop: int) -> None:
        """Accept only segments before `stop`."""
        self._light.stop = stop

    def close(self, reason: str) -> None:
        """Leave the group."""
        self._light.close()
