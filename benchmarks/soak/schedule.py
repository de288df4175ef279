"""When the hostile clients are at work and when, in their place, a process burns what CPU they used, as they did.

A ratio of two times on a shared machine means something only if both were taken close to each other: so baseline and
soak alternate, and the first stretch of hostile work only measures how much CPU it takes.
"""

from __future__ import annotations

from dataclasses import dataclass

CALIBRATION, BASELINE, SOAK, PAUSE = "calibration", "baseline", "soak", "pause"

PAUSE_SECONDS, MOST_PAUSE_SECONDS = 5.0, 120.0
"""After hostile work: those who went away are felt for a while, and a baseline waits for its end."""

ROUND_MINUTES = 6.0
BASELINE_SHARE = 1 / 6
LEAST_BASELINE_SECONDS = 20.0
MOST_CALIBRATION_SECONDS = 30.0
LEAST_ROUNDS = 2


@dataclass(frozen=True, slots=True)
class Slice:
    """A stretch of the run; one of hostile work lasts until the controller is done with what that left behind."""

    phase: str
    seconds: float


def slices(minutes: float) -> list[Slice]:
    """The run: calibration, then baseline and soak in turn, `minutes` together."""
    calibration = min(MOST_CALIBRATION_SECONDS, minutes * 60 / 8)
    left = minutes * 60 - calibration
    rounds = max(LEAST_ROUNDS, round(minutes / ROUND_MINUTES))
    baseline = min(max(LEAST_BASELINE_SECONDS, left / rounds * BASELINE_SHARE), left / rounds / 2)
    soak = left / rounds - baseline
    return [Slice(CALIBRATION, calibration), *(Slice(BASELINE, baseline), Slice(SOAK, soak)) * rounds]
