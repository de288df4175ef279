"""Datagrams of a group at a receiver: they are read as they come, some at a time, and make up blocks."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable

from blast_transport.base.moderation import Moderation, ReadWindow
from blast_transport.datagrams.compiled_intake import open_datagrams
from blast_transport.datagrams.group_socket import Address
from blast_transport.transports.receiving import ReceivingContext, ReceivingTransport, SegmentsArrived, TransportEvent
from blast_transport.wire.groups import group_parameters
from blast_transport.wire.messages import Phase

_MAX_DRAINED = 32
"""Maximum reads, which a slow store shortens: more than a socket's buffer, except under a flood."""


class GroupReceiver(ReceivingTransport):
    """Receiver of a phase's multicast group.

    It reads `sock`, which has joined, from `source`; data may collect for `gathering` seconds before it is read, unless
    half a credit is due first.
    """

    def __init__(
        self, phase: Phase, sock: socket.socket, source: Address, around: ReceivingContext, gathering: float
    ) -> None:
        self._phase = phase
        self.descriptor = sock.fileno()
        self._datagrams = open_datagrams(sock, source, phase.session, around.assembly, group_parameters(phase).coding)
        credit = phase.credit * around.assembly.store.layout.block_size
        self._moderation = Moderation(credit // 2, gathering)
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
        self._moderation.read(size, self._datagrams.read_at, left=not self._datagrams.emptied)

    def drain(self) -> None:
        """Read all remaining data at the end of the phase. Raise StoreError."""
        for _ in range(_MAX_DRAINED):
            self._read(time.monotonic(), None)
            if self._datagrams.emptied:
                return

    def _read(self, began: float, stay: ReadWindow | None) -> int:
        size = self._datagrams.read(stay)
        self._events.append(self._datagrams.arrived(began))
        return size

    def events(self) -> Iterable[TransportEvent]:
        """Return the arrivals."""
        events, self._events = self._events, []
        return events

    def permit(self, stop: int) -> None:
        """Accept only segments before `stop`."""
        self._datagrams.stop = stop

    def close(self, reason: str) -> None:
        """Leave the group."""
        self._datagrams.close()
