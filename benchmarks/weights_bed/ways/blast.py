"""Ours: `blast_client.broadcast` on one host, `receive` on the others, beside agents that wait for no disk."""

from __future__ import annotations

import sys

from transport_bed.bed import SENDER
from transport_bed.failures import RunFailed
from transport_bed.program import Program
from transport_bed.run import Run
from transport_bed.tools.blast import BlastOptical, secret_file

from blast_transport.wire.carriers import OPTICAL, PIPELINE
from weights_bed.ways.way import PROGRAMS, Push, Way, await_word, push_by_order


class _Blast(Way):
    carrier: str

    def prepare(self, run: Run) -> None:
        """Agents, and a program beside each."""
        agents = BlastOptical()
        agents.prepare(run)
        words = [sys.executable, PROGRAMS / "blast_push.py", run.source, agents.addresses(run), secret_file(run)]
        words += [run.bed.light_address(SENDER), self.controller]
        self._sender = run.start_sender("push", words)
        self._receivers = [self._hold(run, receiver) for receiver in run.receivers]
        for program in (self._sender, *self._receivers):
            await_word(program, "ready", run.deadline)

    @property
    def controller(self) -> str:
        """Whom the sender asks for light; `none`: nobody."""
        return "none"

    @staticmethod
    def _hold(run: Run, receiver: int) -> Program:
        return run.start(receiver, "hold", [sys.executable, PROGRAMS / "blast_hold.py", run.directory(receiver)])

    def push(self, run: Run, what: str) -> Push:
        """One call here, one there."""
        pushed = push_by_order(self._sender, self._receivers, what, run.deadline)
        if pushed.notes["carriers"] != [self.carrier]:
            raise RunFailed(f"it went by {pushed.notes['carriers']}: {pushed.notes['no_light']}")
        return pushed


class ByLight(_Blast):
    """The request, the optical switch and the light's end are inside the clock."""

    name = "light"
    title = "Blast by light, with its request"
    carrier = OPTICAL

    @property
    def controller(self) -> str:
        """The bed's."""
        return self.setting.thrift


class ByPipeline(_Blast):
    """Without a controller."""

    name = "pipeline"
    title = "Blast along a pipeline"
    carrier = PIPELINE
