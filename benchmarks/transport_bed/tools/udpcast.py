"""udpcast (Debian `udpcast`) in full duplex, with feedback: the fastest of its modes that loses nothing."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from transport_bed.bed import PACKETS
from transport_bed.program import await_exits
from transport_bed.tools.tool import Tool

if TYPE_CHECKING:
    from transport_bed.run import Run

_START_SECONDS = 0.5
"""A receiver asks for a sender once, when it starts; there is nothing that could be waited for."""


class Udpcast(Tool):
    """Multicast over the packet network."""

    name = "udpcast"
    title = "udpcast, full duplex"
    commands = ("udp-sender", "udp-receiver")

    def prepare(self, run: Run) -> None:
        """They wait for a sender."""
        quiet = ["--interface", PACKETS, "--nokbd", "--no-progress"]
        self._receivers = [
            run.start(receiver, "udpcast", ["udp-receiver", "--file", str(run.output(receiver)), *quiet])
            for receiver in run.receivers
        ]
        time.sleep(_START_SECONDS)

    def send(self, run: Run) -> tuple[float, dict[str, Any]]:
        """A receiver ends when its copy is whole."""
        command = ["udp-sender", "--file", str(run.source), "--interface", PACKETS, "--full-duplex", "--nokbd"]
        command += ["--rexmit-hello-interval", "100", "--min-receivers", str(len(run.receivers)), "--no-progress"]
        run.start_sender("udpcast", command)
        await_exits(self._receivers, run.deadline)
        return time.monotonic(), {}
