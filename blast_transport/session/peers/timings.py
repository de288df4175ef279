"""Timeouts of a sender."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SenderTimings:
    """Timeouts in seconds.

    `connect`: for control connections. `ready`: for the answer to an invitation or a phase. `stall`: without progress
    of a receiver that has to answer or is to get data, nor of others behind the same link; `stall_limit`: the same
    regardless of others. `heartbeat`: interval of heartbeats. `freeze`: without progress of a receiver that the optical
    transport waits for; `hold_up`: for which one receiver may block the window. `late`: for the answer of an invited
    receiver, before the others begin without it.
    """

    connect: float = 2.0
    ready: float = 3.0
    stall: float = 5.0
    stall_limit: float = 60.0
    heartbeat: float = 1.0
    freeze: float = 1.0
    hold_up: float = 0.1
    # Longer than a receiver is silent that checks what an earlier session has left.
    late: float = 0.4
