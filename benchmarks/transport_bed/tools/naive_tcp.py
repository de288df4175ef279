"""One TCP connection for each receiver, by sendfile: what a program does that knows nothing better."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from transport_bed.program import Program, await_exits
from transport_bed.tools.tool import Tool

if TYPE_CHECKING:
    from transport_bed.run import Run

PORT = "7100"


class NaiveTcp(Tool):
    """`programs/naive_tcp.c`."""

    name = "naive"
    title = "naive TCP, sendfile to each"
    programs: ClassVar[tuple[str, ...]] = ("naive_tcp",)

    receives = "naive_tcp"
    """The program that receives."""

    def prepare(self, run: Run) -> None:
        """They listen."""
        program = run.programs_folder / self.receives
        self.receivers = [
            run.start(receiver, "naive", [program, "receive", PORT, run.output(receiver)]) for receiver in run.receivers
        ]
        for one in self.receivers:
            one.await_line("ready", run.deadline)

    def send(self, run: Run) -> tuple[float, dict[str, Any]]:
        """Copies get their name when they are whole."""
        sender = self.start_sender(run)
        ended = run.await_outputs(sender)
        await_exits([sender], run.deadline)
        return ended, {}

    def start_sender(self, run: Run) -> Program:
        """It connects to all of them."""
        addresses = [run.bed.packet_address(receiver) for receiver in run.receivers]
        return run.start_sender("naive", [run.programs_folder / "naive_tcp", "send", run.source, PORT, *addresses])
