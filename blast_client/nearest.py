"""What somebody may have meant who wrote a name that there is not."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_ALIKE = 0.6
_LONGEST = 64
"""Nobody means a name by more than this; to compare takes time."""


def nearest(written: str, known: Iterable[str]) -> str | None:
    """The known name that is written most alike, if one is alike at all."""
    # Loaded when somebody has mistyped.
    from difflib import get_close_matches

    names = {name.lower(): name for name in known if len(name) <= _LONGEST}
    near = get_close_matches(written[:_LONGEST].lower(), names, n=1, cutoff=_ALIKE)
    return names[near[0]] if near else None


def did_you_mean(written: str, known: Iterable[str]) -> str:
    """To be put behind "there is no WRITTEN": a question, or nothing."""
    name = nearest(written, known)
    return f": did you mean {name}?" if name else ""
