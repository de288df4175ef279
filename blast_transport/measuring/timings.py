"""How long an end of a measurement waits for others. Seconds."""

from __future__ import annotations

DIAL_SECONDS = 2.0
"""For a connection, proofs included."""
ANSWER_SECONDS = 2.0
"""For Waiting or Refused, from anybody who lives."""
JOIN_SECONDS = DIAL_SECONDS + ANSWER_SECONDS + 1.0
"""How long a sink waits for probes to begin."""


def drain_seconds(seconds: float) -> float:
    """How long what is on its way may take to arrive, after so many seconds of sending.

    What queues stand on a path is less than what has come out of them, because TCP sends twice as much at most.
    """
    return seconds + 2.0
