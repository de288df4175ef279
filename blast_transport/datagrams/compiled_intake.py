"""Light from a socket into a file, compiled: receive, check, assemble, digest, write, all without Python's lock."""

from __future__ import annotations

import os
import socket

from blast_transport.base.moderation import ReadWindow
from blast_transport.datagrams.group_socket import Address, listen_to
from blast_transport.datagrams.intake import DatagramIntake, PythonIntake
from blast_transport.store.blocks.block_assembly import BlockAssembly
from blast_transport.store.blocks.compiled_assembly import CompiledAssembly, OpticalReader
from blast_transport.transports.receiving import SegmentsArrived


def open_datagrams(
    sock: socket.socket, source: Address, session: int, assembly: BlockAssembly, coding: int = 0
) -> DatagramIntake:
    """Open the datagrams of a session of the sender at `source`, from a joined socket, by the engine of the assembly.

    The sender sends parity of groups of `coding` blocks, if not 0; Python rejects it. A subclass of socket may receive
    differently, which only Python can call.
    """
    if isinstance(assembly, CompiledAssembly) and type(sock) is socket.socket:
        return CompiledDatagrams(sock, source, session, assembly, coding)
    return PythonIntake(sock, source, session, assembly)


class CompiledDatagrams:
    """A `DatagramIntake` into a compiled assembly."""

    def __init__(
        self, sock: socket.socket, source: Address, session: int, assembly: CompiledAssembly, coding: int = 0
    ) -> None:
        self.stop = 0
        self.emptied, self.read_at = True, 0.0
        self._socket = sock
        self._taken = OpticalReader(assembly, source, session, joined=listen_to(sock, source), coding=coding)
        self._runs: list[tuple[int, int]] = []
        self._new = 0

    def read(self, stay: ReadWindow | None = None) -> int:
        """Read datagrams for the time of `stay`; return their bytes."""
        descriptor = self._socket.fileno()
        stay = stay or ReadWindow(0.0, 0, 0.0, 0.0, (descriptor, descriptor))
        runs, new, amount, self.emptied, self.read_at, broken = self._taken.read(descriptor, self.stop, stay)
        self._runs += runs
        self._new += new
        if broken is not None:
            raise OSError(broken, os.strerror(broken))
        return amount

    def arrived(self, began: float) -> SegmentsArrived:
        """Return the arrivals since the last call."""
        arrived = SegmentsArrived(self._runs, self._new, began)
        self._runs, self._new = [], 0
        return arrived

    def close(self) -> None:
        """Leave the group."""
        self._socket.close()
