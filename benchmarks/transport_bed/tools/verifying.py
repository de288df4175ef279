"""What verifies too, and does nothing else: naive TCP with a digest at the receivers, and the floor with one."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from transport_bed.program import Program, await_exits, await_received
from transport_bed.tools.naive_tcp import NaiveTcp
from transport_bed.tools.tool import Tool

if TYPE_CHECKING:
    from transport_bed.run import Run

_PROGRAM = "verifying"


class VerifyingTcp(NaiveTcp):
    """As naive TCP, and every receiver takes the digest of all that comes (BLAKE3) while it is hot."""

    name = "verifying"
    title = "naive TCP that verifies"
    programs = ("naive_tcp", _PROGRAM)
    receives = _PROGRAM

    def send(self, run: Run) -> tuple[float, dict[str, Any]]:
        """A receiver says when its copy is whole."""
        sender = self.start_sender(run)
        began, ended = await_received(self.receivers, run.deadline)
        await_exits([sender], run.deadline)
        return ended, {"since_first_byte": ended - began}


class VerifyingFloor(Tool):
    """N processes digest and write pieces of 64,064 bytes from a buffer that stays in the cache; one more digests."""

    name = "verifying_floor"
    title = "floor: N processes digest and write, one more digests"
    programs = (_PROGRAM,)
    carries = False

    def prepare(self, run: Run) -> None:
        """Start them; they wait for a line."""
        program, size = run.programs_folder / _PROGRAM, str(run.size)
        self._all: list[Program] = [
            run.start(receiver, self.name, [program, "floor", size, run.output(receiver)]) for receiver in run.receivers
        ]
        self._all.append(run.start_sender(self.name, [program, "digest", size]))
        for one in self._all:
            one.await_line("ready", run.deadline)

    def send(self, run: Run) -> tuple[float, dict[str, Any]]:
        """Let them go, and wait for the last."""
        for one in self._all:
            one.tell("go")
        began, ended = await_received(self._all, run.deadline)
        await_exits(self._all, run.deadline)
        return time.monotonic(), {"since_first_byte": ended - began}
