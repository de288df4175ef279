"""The carrier `optical` at a receiver: datagrams are read as they come, some at a time, and make up blocks."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from blast_transport.base.errors import WrongInputError
from blast_transport.base.moderation import Moderation
from blast_transport.carriers.optical.light_socket import LightSocket
from blast_transport.carriers.optical.parameters import optical_parameters
from blast_transport.carriers.receiving import Arrived, ReceivingCarrier, ReceivingContext
from blast_transport.store.assembly import Assembly, Piece
from blast_transport.wire.messages import Leg

_GATHERING_SECONDS = 0.002
"""Light may gather for so long before it is read, or until half a credit is due: a sender must not wait for that."""


class LightIntake:
    """Takes segments into `assembly` as far as they can be the sender's, and notes which have passed."""

    def __init__(self, assembly: Assembly) -> None:
        self.stop = 0
        """No segment from there on is taken."""
        self._assembly = assembly
        self._runs: list[tuple[int, int]] = []
        self._new = 0

    def take(self, pieces: Sequence[Piece]) -> None:
        """Segments came. Raises StoreError."""
        runs, possible = self._runs, list[Piece]()
        for piece in pieces:
            first, stop = piece[0], piece[0] + piece[1]
            if stop > self.stop:
                self._assembly.refused += piece[1]
                continue
            possible.append(piece)
            if runs and runs[-1][1] == first:
                runs[-1] = (runs[-1][0], stop)
            else:
                runs.append((first, stop))
        self._new += self._assembly.add_all(possible)

    def arrived(self, began: float) -> Arrived:
        """What came since the last call, of which the first was read when it `began`."""
        arrived = Arrived(self._runs, self._new, began)
        self._runs, self._new = [], 0
        return arrived


class OpticalReceiver(ReceivingCarrier):
    """Listens to the group that a leg names. Raises RemoteProtocolError, WrongInputError, OSError."""

    def __init__(self, leg: Leg, around: ReceivingContext) -> None:
        if around.interface_address is None:
            raise WrongInputError("this host has no interface on a light path")
        said, layout = optical_parameters(leg), around.assembly.store.layout
        sock = around.open_group(around.interface_address, said.group, said.port)
        self.descriptor = sock.fileno()
        self._light = LightSocket(sock, (said.source, said.source_port), leg.session, layout)
        self._moderation = Moderation(leg.credit * layout.block_size // 2, _GATHERING_SECONDS)
        self._assembly = around.assembly
        self._intake = LightIntake(around.assembly)
        self._events: list[Arrived] = []

    def work(self) -> None:
        """Let more come before what has come is read. Raises StoreError."""
        time.sleep(self._moderation.pause(time.monotonic()))
        now = time.monotonic()
        self._moderation.read(self._read(now), now)

    def drain(self) -> None:
        """The light is over. Raises StoreError."""
        self._read(time.monotonic())

    def _read(self, began: float) -> int:
        size = self._light.read(self._intake.take)
        self._assembly.refused += self._light.take_refused()
        self._events.append(self._intake.arrived(began))
        return size

    def events(self) -> Iterable[Arrived]:
        """What came."""
        events, self._events = self._events, []
        return events

    def permit(self, stop: int) -> None:
        """The sender is not so far."""
        self._intake.stop = stop

    def close(self, reason: str) -> None:
        """Leave the group."""
        self._light.close()
