"""libtorrent (Debian `python3-libtorrent`) over TCP; the torrent is made, and the leechers joined, before the clock."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Any

from transport_bed.bed import SENDER
from transport_bed.failures import RunFailed
from transport_bed.programs import HERE
from transport_bed.tools.tool import Tool

if TYPE_CHECKING:
    from transport_bed.run import Run

# Debian's binding is for Debian's Python.
_PEER = ("/usr/bin/python3", str(HERE / "torrent_peer.py"))


class BitTorrent(Tool):
    """`programs/torrent_peer.py`; the sender is a seed that connects to all, and every leecher to those before it."""

    name = "libtorrent"
    title = "libtorrent, TCP"
    commands = (_PEER[0],)

    @property
    def missing(self) -> list[str]:
        """The binding."""
        there = subprocess.run([_PEER[0], "-c", "import libtorrent"], capture_output=True, check=False)
        return ["python3-libtorrent"] if there.returncode else []

    def prepare(self, run: Run) -> None:
        """Make the torrent, once for a file; start the leechers."""
        self._torrent = run.source.with_suffix(".torrent")
        if not self._torrent.exists():
            made = subprocess.run([*_PEER, "make", run.source, self._torrent], capture_output=True, check=False)
            if made.returncode:
                raise RunFailed(f"no torrent: {made.stderr.decode().strip()}")
        address = run.bed.packet_address
        self._leechers = []
        for receiver in run.receivers:
            others = [address(other) for other in run.receivers if other < receiver]
            folder = str(run.directory(receiver))
            command = [*_PEER, "receive", str(self._torrent), folder, address(receiver), *others]
            leecher = run.start(receiver, "libtorrent", command)
            leecher.await_line("ready", run.deadline)
            self._leechers.append(leecher)

    def send(self, run: Run) -> tuple[float, dict[str, Any]]:
        """Each says when it has checked its last piece."""
        peers = [run.bed.packet_address(receiver) for receiver in run.receivers]
        folder = str(run.source.parent)
        command = [*_PEER, "seed", str(self._torrent), folder, run.bed.packet_address(SENDER), *peers]
        run.start_sender("libtorrent", command)
        return max(leecher.await_line("complete", run.deadline) for leecher in self._leechers), {}
