"""Suggestions for unknown names."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_ALIKE = 0.6
_LONGEST = 64
"""Maximum length of compared names, which bounds the time."""


def nearest(written: str, known: Iterable[str]) -> str | None:
    """Return the most similar known name, or None if no name is similar."""
    # Imported only for a misspelled name.
    from difflib import get_close_matches

    names = {name.lower(): name for name in known if len(name) <= _LONGEST}
    near = get_close_matches(written[:_LONGEST].lower(), names, n=1, cutoff=_ALIKE)
    return names[near[0]] if near else None


def did_you_mean(written: str, known: Iterable[str]) -> str:
    """Return a question to append to "there is no WRITTEN", or an empty text."""
    name = nearest(written, known)
    return f": did you mean {name}?" if name else ""
