"""What one thing is of another, round by round, and whether it keeps its bar."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from median_interval import median_interval


@dataclass(frozen=True, slots=True)
class Ratio:
    """To something that is called `of`, round by round; `least` or `most` is the bar, where there is one."""

    of: str
    values: Sequence[float]
    least: float | None = None
    most: float | None = None

    def told(self) -> dict[str, Any]:
        """For the output; `kept` unless the whole interval lies beyond the bar."""
        low, ratio, high = median_interval(self.values)
        kept = (self.least is None or high >= self.least) and (self.most is None or low <= self.most)
        bar = {"least": self.least, "most": self.most}
        return {"of": self.of, "ratio": ratio, "interval": [low, high], **bar, "kept": kept}


def ratio_words(ratio: dict[str, Any]) -> str:
    """For people, what `Ratio.told` says."""
    low, high = ratio["interval"]
    bars = [f"{word} {ratio[word]:.2f}" for word in ("least", "most") if ratio[word] is not None]
    bar = f" (at {bars[0]})" if bars else ""
    return f"{ratio['of']}: x {ratio['ratio']:.3f} ({low:.3f}-{high:.3f}){bar}{'' if ratio['kept'] else '  MISSED'}"
