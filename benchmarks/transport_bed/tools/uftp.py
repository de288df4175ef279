"""uftp (Debian `uftp`) without congestion control, at the rate of the links or as fast as it can."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from transport_bed.bed import PACKETS
from transport_bed.tools.tool import Tool

if TYPE_CHECKING:
    from transport_bed.run import Run

_START_SECONDS = 1.0
_SHARE_OF_RATE = 0.95
"""It counts its payload: above this the shaper's queue overflows."""


class Uftp(Tool):
    """Multicast over the packet network; its receivers are daemons."""

    name = "uftp"
    title = "uftp, no congestion control"
    commands = ("uftp", "uftpd")

    def prepare(self, run: Run) -> None:
        """They join its announcement group."""
        for receiver in run.receivers:
            where = ["-D", str(run.directory(receiver)), "-L", str(run.folder / f"uftpd-{receiver}.log")]
            who = ["-U", f"0x{receiver:08x}"]
            run.start(receiver, "uftpd", ["uftpd", "-d", "-t", "-I", PACKETS, "-B", "16000000", *where, *who])
        time.sleep(_START_SECONDS)

    def send(self, run: Run) -> tuple[float, dict[str, Any]]:
        """Copies get their name when they are whole (-t)."""
        rate = run.bed.plan.shape.rate_mbps
        speed = "-1" if rate is None else f"{rate * 1000 * _SHARE_OF_RATE:.0f}"
        command = [
            "uftp",
            "-I",
            PACKETS,
            "-R",
            speed,
            "-B",
            "4000000",
            "-r",
            "0.05:0.01:1",
            "-C",
            "none",
            str(run.source),
        ]
        run.await_outputs(run.start_sender("uftp", command))
        return time.monotonic(), {}
