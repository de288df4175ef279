"""Checks of what a user has written: every refusal is one sentence that names the place."""

from __future__ import annotations

import difflib
import math
from collections.abc import Collection, Hashable, Iterable
from typing import TypeVar

One = TypeVar("One", bound=Hashable)


class InputError(ValueError):
    """A file or an option is wrong; the message names the correction."""


class PluginFailedError(Exception):
    """Plug-in code, a policy or a method, failed; the text is a sentence that names it."""


def entry_of(value: object, where: str, needed: Collection[str], optional: Collection[str] = ()) -> dict[str, object]:
    """Return `value` as a table that has all the `needed` keys and no unknown ones. Raises InputError."""
    if not isinstance(value, dict):
        raise InputError(f"{where} must be a table of keys and values, not {shown(value)}")
    known = [*needed, *optional]
    for key in value:
        if key not in known:
            near = difflib.get_close_matches(str(key), known, n=1, cutoff=0.4)
            hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known)}"
            raise InputError(f"{where} has an unknown key {shown(key)}: {hint}")
    for key in needed:
        if key not in value:
            raise InputError(f"{where} has no {key!r}")
    return value


def list_of(value: object, where: str) -> list[object]:
    """Return `value` as a list. Raises InputError."""
    if not isinstance(value, list):
        raise InputError(f"{where} must be a list, not {shown(value)}")
    return value


def whole(value: object, where: str, minimum: int, maximum: int) -> int:
    """Return `value` as a whole number from `minimum` to `maximum`. Raises InputError."""
    # JSON's true is an int to Python.
    if isinstance(value, bool) or not isinstance(value, int) or not minimum <= value <= maximum:
        raise InputError(f"{where} must be a whole number from {minimum} to {maximum}, not {shown(value)}")
    return value


def number(value: object, where: str, minimum: float, maximum: float = 1e15) -> float:
    """Return `value` as a finite number from `minimum` to `maximum`. Raises InputError."""
    found = _as_float(value)
    if not math.isfinite(found) or not minimum <= found <= maximum:
        raise InputError(f"{where} must be a number from {minimum:g} to {maximum:g}, not {shown(value)}")
    return found


def truth(value: object, where: str) -> bool:
    """Return `value` if it is true or false. Raises InputError."""
    if not isinstance(value, bool):
        raise InputError(f"{where} must be true or false, not {shown(value)}")
    return value


def first_repeated(values: Iterable[One]) -> One | None:
    """Return the first value that repeats an earlier one, or None."""
    seen = set[One]()
    for value in values:
        if value in seen:
            return value
        seen.add(value)
    return None


def shown(value: object) -> str:
    """Return `value` as a user would recognize it, in at most 60 characters and on one line."""
    try:
        text = repr(value)
    except ValueError:
        # Python refuses to print whole numbers of thousands of digits.
        return "a number of thousands of digits"
    return text if len(text) <= 60 else f"{text[:57]}..."


def _as_float(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf
