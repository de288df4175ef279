"""Decision whether a demoted receiver keeps up again.

It has to stay within the window for a second and while several windows of data pass: without optical data every
receiver keeps up. The time doubles with every further demotion, so that an unstable receiver costs the others less and
less.
"""

from __future__ import annotations

from dataclasses import dataclass

SECONDS = 1.0
WINDOWS = 8
MAX_DEMOTIONS = 3
"""Maximum demotions after which a receiver is readmitted between two phases, where no time shows that it keeps up."""


@dataclass(slots=True)
class Readmission:
    """Progress of one receiver since its `demotions`-th demotion."""

    demotions: int = 0
    _since: float | None = None
    _sent: int = 0

    def begin(self) -> None:
        """Record a demotion."""
        self.demotions += 1
        self._since = None

    @property
    def spared(self) -> bool:
        """Return whether it may be readmitted without having kept up for a time."""
        return self.demotions <= MAX_DEMOTIONS

    def made(self, reached: int, sent: int, window: int, now: float) -> bool:
        """Record that it has `reached` this block when those before `sent` have left; return whether it keeps up."""
        if reached < sent - window:
            self._since = None
            return False
        if self._since is None:
            self._since, self._sent = now, sent
        seconds = SECONDS * (1 << (self.demotions - 1))
        return now >= self._since + seconds and sent >= self._sent + WINDOWS * window
