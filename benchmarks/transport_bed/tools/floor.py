"""No transport at all: every receiver only writes as much as the file has into memory. No tool can beat this."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from transport_bed.program import await_exits
from transport_bed.tools.tool import Tool

if TYPE_CHECKING:
    from transport_bed.run import Run


class Floor(Tool):
    """N processes write pieces of 64,064 bytes from a buffer that stays in the cache."""

    name = "floor"
    title = "floor: N processes only write"
    programs = ("floor",)
    carries = False

    def prepare(self, run: Run) -> None:
        """Start them; they wait for a line."""
        self._writers = [
            run.start(receiver, "floor", [run.programs_folder / "floor", str(run.size), run.output(receiver)])
            for receiver in run.receivers
        ]
        for writer in self._writers:
            writer.await_line("ready", run.deadline)

    def send(self, run: Run) -> tuple[float, dict[str, Any]]:
        """Let them go, and wait for the last."""
        for writer in self._writers:
            writer.tell("go")
        await_exits(self._writers, run.deadline)
        return time.monotonic(), {}
