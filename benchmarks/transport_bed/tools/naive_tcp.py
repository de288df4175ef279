"""One TCP connection for each receiver, by sendfile: what a program does that knows nothing better."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from transport_bed.tools.tool import Tool

if TYPE_CHECKING:
    from transport_bed.run import Run

PORT = "7100"


class NaiveTcp(Tool):
    """`programs/naive_tcp.c`."""

    name = "naive"
    title = "naive TCP, sendfile to each"
    programs = ("naive_tcp",)

    def prepare(self, run: Run) -> None:
        """They listen."""
        program = run.programs_folder / "naive_tcp"
        listening = [
            run.start(receiver, "naive", [program, "receive", PORT, run.output(receiver)]) for receiver in run.receivers
        ]
        for one in listening:
            one.await_line("ready", run.deadline)

    def send(self, run: Run) -> tuple[float, dict[str, Any]]:
        """Copies get their name when they are whole."""
        addresses = [run.bed.packet_address(receiver) for receiver in run.receivers]
        sender = run.start_sender("naive", [run.programs_folder / "naive_tcp", "send", run.source, PORT, *addresses])
        run.await_outputs(sender)
        return time.monotonic(), {}
