"""Receivers that stand on every host of a bed for one transfer after the other; who has failed is started anew."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import blast_transport
from transport_bed.bed import Bed
from transport_bed.bytecode import compiled_once
from transport_bed.failures import RunFailed
from transport_bed.run import Run, opened
from transport_bed.struck import Moments, Struck, at_moments, nothing, watched
from transport_bed.tools.blast import Blast
from transport_bed.ways import Way

_PACKAGE = Path(blast_transport.__file__).parent
_START_SECONDS = 2.0
"""In which a receiver starts on a busy machine, one after the other."""
_WARM_AT_ONCE = 10
_WARM_BYTES = 1 << 10


@dataclass
class _SomeRun(Run):
    """A run to some of the receivers only."""

    some: Sequence[int] = ()

    @property
    def receivers(self) -> Sequence[int]:  # type: ignore[override]
        """Their hosts."""
        return self.some


class Standing:
    """A context manager, in which `tool` carries `source` again and again. Raises RunFailed, HostError."""

    def __init__(self, tool: Blast, bed: Bed, source: Path) -> None:
        self._tool, self._bed, self._source = tool, bed, source
        self._undo = ExitStack()

    def __enter__(self) -> Standing:
        with ExitStack() as undo:
            undo.enter_context(compiled_once(_PACKAGE, self._source.parent / "bytecode"))
            self._run = undo.enter_context(opened(self._bed, self._source))
            self._allow(len(self._run.receivers))
            self._tool.prepare(self._run)
            self._warm(self._run.receivers)
            self._undo = undo.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._undo.close()

    def carry(self, limit_seconds: float, way: Way | None = None, moments: Moments = ()) -> Struck:
        """Carry the file once while receivers fail. What happened is undone when this returns. Raises RunFailed."""
        victims = {victim for _, some in moments for victim in some}
        strike = nothing if way is None else at_moments(moments, way.strike)
        try:
            struck = watched(self._tool, self._run, limit_seconds, strike, victims=victims, failing=victims)
        except RunFailed as failure:
            struck = Struck(limit_seconds, limit_seconds, {}, (str(failure),))
        if way is not None:
            self._allow(len(victims))
            way.bury(self._tool, self._run, victims)
        # Of a transfer that has failed nobody knows what the others still do.
        self._renew(sorted(victims) if struck.report else self._run.receivers)
        for receiver in self._run.receivers:
            self._run.output(receiver).unlink(missing_ok=True)
        return struck

    def _renew(self, receivers: Sequence[int]) -> None:
        """Start these anew, in empty directories; everything else that a transfer has started has ended after this."""
        self._allow(len(receivers))
        standing = [self._tool.receivers[receiver] for receiver in self._run.receivers if receiver not in receivers]
        for program in [program for program in self._run.programs if program not in standing]:
            program.end()
            self._run.programs.remove(program)
        for receiver in receivers:
            shutil.rmtree(self._run.directory(receiver))
            self._run.directory(receiver).mkdir()
            self._tool.receivers[receiver] = self._tool.start_receiver(self._run, receiver)
        for receiver in receivers:
            self._tool.receivers[receiver].await_event("listening", self._run.deadline)

        self._warm(receivers)

    def _warm(self, receivers: Sequence[int]) -> None:
        """Bring them something small: in its first session a receiver loads what it needs, and may be late for that.

        A hundred at once would be late on few processors even so. Raises RunFailed.
        """
        small = self._source.with_name("small")
        small.write_bytes(bytes(_WARM_BYTES))
        for start in range(0, len(receivers), _WARM_AT_ONCE):
            some = receivers[start : start + _WARM_AT_ONCE]
            self._allow(len(some))
            run = _SomeRun(self._bed, small, self._run.folder, self._run.folder, self._run.deadline, some=some)
            sender = self._tool.start_sender(run)
            try:
                for receiver in some:
                    self._tool.receivers[receiver].await_event("received", run.deadline)
                    run.output(receiver).unlink()
                sender.await_end(run.deadline)
            finally:
                sender.end()

    def _allow(self, starts: int) -> None:
        self._run.deadline = time.monotonic() + _START_SECONDS * (10 + starts)
