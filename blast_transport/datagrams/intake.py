"""Reading of an optical phase's datagrams into an assembly, and the events of it."""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence
from typing import Protocol

from blast_transport.base.moderation import ReadWindow
from blast_transport.datagrams.group_socket import Address, GroupSocket
from blast_transport.store.blocks.block_assembly import BlockAssembly, Piece
from blast_transport.transports.receiving import SegmentsArrived


class DatagramIntake(Protocol):
    """Datagrams of one optical phase on their way into an assembly. `stop`: segments from there on are rejected.

    `emptied`: the last read took all available data. `read_at`: time of that read.
    """

    stop: int
    emptied: bool
    read_at: float

    def read(self, stay: ReadWindow | None = None) -> int:
        """Take the data that arrives while the call may `stay`; return the number of bytes. Raises StoreError."""

    def arrived(self, began: float) -> SegmentsArrived:
        """Return the arrivals since the last call; the first was read at `began`."""

    def close(self) -> None:
        """Leave the group."""


class AssemblyIntake:
    """Intake of valid segments into `assembly`, which records the ones that have passed."""

    def __init__(self, assembly: BlockAssembly) -> None:
        self.stop = 0
        """No segment from there on is taken."""
        self._assembly = assembly
        self._runs: list[tuple[int, int]] = []
        self._new = 0

    def take(self, pieces: Sequence[Piece]) -> None:
        """Process received segments. Raise StoreError."""
        runs, possible = self._runs, list[Piece]()
        for piece in pieces:
            first, stop = piece[0], piece[0] + piece[1]
            if stop > self.stop:
                self._assembly.refuse(piece[1])
                continue
            possible.append(piece)
            if runs and runs[-1][1] == first:
                runs[-1] = (runs[-1][0], stop)
            else:
                runs.append((first, stop))
        self._new += self._assembly.add_all(possible)

    def arrived(self, began: float) -> SegmentsArrived:
        """Return the arrivals since the last call; the first was read at `began`."""
        arrived = SegmentsArrived(self._runs, self._new, began)
        self._runs, self._new = [], 0
        return arrived


class PythonIntake(AssemblyIntake):
    """A `DatagramIntake` that Python reads: the reference."""

    def __init__(self, sock: socket.socket, source: Address, session: int, assembly: BlockAssembly) -> None:
        super().__init__(assembly)
        self._socket = GroupSocket(sock, source, session, assembly.store.layout)
        self.emptied, self.read_at = True, 0.0

    def read(self, stay: ReadWindow | None = None) -> int:
        """Read once, as the session calls again anyway."""
        self.read_at = time.monotonic()
        size, self.emptied = self._socket.read(self.take)
        self._assembly.refuse(self._socket.take_refused())
        return size

    def close(self) -> None:
        """Leave the group."""
        self._socket.close()
