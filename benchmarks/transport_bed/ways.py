"""The ways in which a host fails, as those see it to which it is connected."""

from __future__ import annotations

import os
import signal
from collections.abc import Collection
from dataclasses import dataclass

from transport_bed.run import Run
from transport_bed.struck import Act
from transport_bed.tools.blast import Blast


@dataclass(frozen=True)
class Way:
    """`strike` makes hosts fail; `bury` ends what is left of them, unheard, and gives their places back."""

    name: str
    strike: Act
    bury: Act


def _signalling(number: signal.Signals) -> Act:
    def signal_them(tool: Blast, _run: Run, victims: Collection[int]) -> None:
        for victim in victims:
            # One that has ended already has given its number back.
            if tool.receivers[victim].status is None:
                os.killpg(tool.receivers[victim].pid, number)

    return signal_them


_kill = _signalling(signal.SIGKILL)


def _cut(_tool: Blast, run: Run, victims: Collection[int]) -> None:
    run.bed.cut(victims)


def _kill_and_mend(tool: Blast, run: Run, victims: Collection[int]) -> None:
    # In this order: nobody shall hear of the victims that they have ended.
    _kill(tool, run, victims)
    for victim in victims:
        tool.receivers[victim].await_end(run.deadline)
    run.bed.mend(victims)


WAYS = {
    way.name: way
    for way in (
        Way("killed", _kill, _kill),
        Way("frozen", _signalling(signal.SIGSTOP), _kill),
        Way("vanished", _cut, _kill_and_mend),
    )
}
"""killed: its kernel resets every connection at once. frozen: its kernel acknowledges what comes until its buffers are
full, and takes connections, but no program answers. vanished: not even a kernel answers."""
