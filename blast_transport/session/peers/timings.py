"""How long a sender waits for what."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SenderTimings:
    """Seconds that a sender waits.

    `connect`: for control connections. `ready`: for the answer to an invitation or a phase. `stall`: without progress
    of a receiver that owes us an answer or is owed data, nor of others that are served over the same link; `patience`:
    at most, whatever becomes of the others. `heartbeat`: between two signs of life. `freeze`: without progress of a
    receiver that the light waits for; `hold_up`: for which one alone may keep the others waiting. `late`: without a
    word from an invited receiver before the others begin without it.
    """

    connect: float = 2.0
    ready: float = 3.0
    stall: float = 5.0
    patience: float = 60.0
    heartbeat: float = 1.0
    freeze: float = 1.0
    hold_up: float = 0.1
    # Longer than a receiver is silent that checks what an earlier session has left.
    late: float = 0.4
