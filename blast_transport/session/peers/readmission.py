"""Whether a receiver that was demoted keeps up again, for good.

It has to stay within the window for a second, and while many windows of light pass: in the dark everybody keeps up.
Twice as long after every further demotion, so that one that comes and goes costs the others less and less.
"""

from __future__ import annotations

from dataclasses import dataclass

SECONDS = 1.0
WINDOWS = 8
MAX_DEMOTIONS = 3
"""After so many nobody is taken back between two phases, where no time shows that it keeps up."""


@dataclass(slots=True)
class Readmission:
    """How one receiver does since it was demoted, for the `demotions`-th time."""

    demotions: int = 0
    _since: float | None = None
    _sent: int = 0

    def begin(self) -> None:
        """It has been demoted."""
        self.demotions += 1
        self._since = None

    @property
    def spared(self) -> bool:
        """It may be taken back without having kept up for a time."""
        return self.demotions <= MAX_DEMOTIONS

    def made(self, reached: int, sent: int, window: int, now: float) -> bool:
        """It has `reached` this block when those before `sent` have left; whether it keeps up for good."""
        if reached < sent - window:
            self._since = None
            return False
        if self._since is None:
            self._since, self._sent = now, sent
        seconds = SECONDS * (1 << (self.demotions - 1))
        return now >= self._since + seconds and sent >= self._sent + WINDOWS * window
