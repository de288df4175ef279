"""Timeouts of measurements, in seconds."""

from __future__ import annotations

DIAL_SECONDS = 2.0
"""For a connection, authentication included."""
ANSWER_SECONDS = 2.0
"""For Accepted or Refused."""
JOIN_SECONDS = DIAL_SECONDS + ANSWER_SECONDS + 1.0
"""For all probes of a sink to begin."""


def drain_seconds(seconds: float) -> float:
    """Return the time in which sent data arrives, after `seconds` of sending.

    The data queued on a path is at most what has left it, because TCP sends at most twice the rate.
    """
    return seconds + 2.0
