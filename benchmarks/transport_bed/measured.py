"""One transfer by one command, from nothing but a remote shell on every host: what starting took, and what the rest.

The clock starts with the command and stops when the last receiver has its whole copy, which is then compared byte by
byte. Start-up is over when the first byte of the file has come to any receiver.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from transport_bed.bed import Bed
from transport_bed.failures import RunFailed
from transport_bed.first_piece import FirstPiece
from transport_bed.processor import Processor
from transport_bed.run import Run, opened
from transport_bed.tools.tool import Tool


@dataclass(frozen=True)
class Measured:
    """What came out; `failure` is empty when every receiver has the file, and `late` says that time was up.

    `processor_seconds` are those of the transfer behind start-up; `others_share` is what of the machine's time went to
    who had no part in it. None where the kernel does not tell them.
    """

    seconds: float
    start_seconds: float
    processor_seconds: float | None
    others_share: float | None
    failure: str = ""
    late: bool = False


_LONGEST_REASON = 200


def measured(  # noqa: PLR0913, PLR0917 - what, where, and until when
    tool: Tool, bed: Bed, source: Path, programs: Path, limit_seconds: float, parent: Path
) -> Measured:
    """Carry the file once, copies to below `parent`."""
    with Processor() as processor, opened(bed, source, programs, parent) as run:
        try:
            tool.prepare(run)
            return _carried(tool, run, processor, limit_seconds)
        except RunFailed as failure:
            late = run.started > 0 and time.monotonic() > run.deadline
            return Measured(limit_seconds, limit_seconds, None, None, str(failure)[:_LONGEST_REASON], late)


def _carried(tool: Tool, run: Run, processor: Processor, limit_seconds: float) -> Measured:
    begun: list[float | None] = []
    folders = [run.directory(receiver) for receiver in run.receivers]
    started = run.begin(limit_seconds)
    with FirstPiece(folders, run.size, lambda: begun.append(processor.seconds)) as first:
        ended, _ = tool.send(run)
    used, others = processor.seconds, processor.others_share
    starting = max(0.0, first.began(ended, run.size) - started)
    paid = used - begun[0] if used is not None and begun and begun[0] is not None else None
    broken = sorted(set(run.receivers).difference(run.intact(run.receivers)))
    names = ", ".join(f"h{receiver}" for receiver in broken)
    return Measured(ended - started, starting, paid, others, names and f"another file than was sent at {names}")
