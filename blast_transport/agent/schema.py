"""From TOML tables to frozen dataclasses: unknown keys are refused with the nearest known one named.

A field of such a dataclass is annotated with a reader, `name: Annotated[str, text()]`, which checks a value and turns
it into what the field holds; a field without default is a key that must be there. Readers raise ValueError with the
end of a sentence.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Callable, Mapping
from typing import TypeVar, get_type_hints

from blast_transport.base.errors import SettingsError

Section = TypeVar("Section")
Value = TypeVar("Value")
Reader = Callable[[object, str], Value]
"""Takes a value and the place where it stands."""


def read_section(kind: type[Section], table: object, place: str = "") -> Section:
    """Read the section of `kind` from a table; `place` is its position. Raise SettingsError."""
    if not isinstance(table, Mapping):
        raise SettingsError(f"{place}: must be a table (found {table!r}).")
    readers = _readers(kind)
    for name in table:
        if name not in readers:
            raise SettingsError(_unknown(_join(place, name), name, readers))
    for field in dataclasses.fields(kind):  # type: ignore[arg-type]
        if field.default is dataclasses.MISSING and field.name not in table:
            raise SettingsError(f"the key {_join(place, field.name)} is missing.")
    return kind(**{name: _read(readers[name], value, _join(place, name)) for name, value in table.items()})


def _readers(kind: type) -> dict[str, Reader[object]]:
    hints = get_type_hints(kind, include_extras=True)
    return {name: hint.__metadata__[0] for name, hint in hints.items() if hasattr(hint, "__metadata__")}


def _read(reader: Reader[object], value: object, place: str) -> object:
    try:
        return reader(value, place)
    except ValueError as error:
        raise SettingsError(f"{place}: {error} (found {value!r}).") from error


def _unknown(place: str, name: str, known: Mapping[str, object]) -> str:
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.4)
    return f"unknown key {place}; " + (f"did you mean {near[0]}?" if near else "remove it.")


def _join(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


# ------------------------------------------------------------------------------------------------ readers


def section(kind: type[Section]) -> Reader[Section]:
    """Return a reader of a table."""
    return lambda value, place: read_section(kind, value, place)


def sections(kind: type[Section]) -> Reader[tuple[Section, ...]]:
    """Return a reader of an array of tables."""

    def read(value: object, place: str) -> tuple[Section, ...]:
        if not isinstance(value, list):
            raise ValueError("must be an array of tables")
        return tuple(read_section(kind, one, f"{place}[{number}]") for number, one in enumerate(value, 1))

    return read


def text(check: Callable[[str], str] = lambda one: one) -> Reader[str]:
    """Return a reader of a string, which `check` validates and converts."""

    def read(value: object, _: str) -> str:
        if not isinstance(value, str):
            raise ValueError("must be a string")
        return check(_without_nul(value))

    return read


def texts(check: Callable[[str], str] = lambda one: one) -> Reader[tuple[str, ...]]:
    """Return a reader of an array of at least one string."""

    def read(value: object, _: str) -> tuple[str, ...]:
        if not isinstance(value, list) or not value or not all(isinstance(one, str) for one in value):
            raise ValueError("must be an array of strings, with at least one")
        return tuple(check(_without_nul(one)) for one in value)

    return read


def _without_nul(value: str) -> str:
    # Neither a path nor an argument of a program can contain it.
    if "\0" in value:
        raise ValueError("must not contain a NUL character")
    return value


def one_of(*known: str) -> Reader[str]:
    """Return a reader of one of these strings."""

    def check(one: str) -> str:
        if one not in known:
            raise ValueError(f"must be one of {', '.join(known)}")
        return one

    return text(check)


def flag() -> Reader[bool]:
    """Return a reader of true or false."""

    def read(value: object, _: str) -> bool:
        if not isinstance(value, bool):
            raise ValueError("must be true or false")
        return value

    return read


def whole(min_value: int, max_value: int) -> Reader[int]:
    """Return a reader of a whole number within bounds."""

    def read(value: object, _: str) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not min_value <= value <= max_value:
            raise ValueError(f"must be a whole number from {min_value} to {max_value}")
        return value

    return read


def positive(max_value: float, min_value: float = 0.0) -> Reader[float]:
    """Return a reader of a number above zero, and at least `min_value`."""

    def read(value: object, _: str) -> float:
        if (
            not isinstance(value, int | float)
            or isinstance(value, bool)
            or not (min_value <= value <= max_value and value > 0)
        ):
            raise ValueError(
                f"must be a number {f'from {min_value:g} to' if min_value else 'above 0, at most'} {max_value:g}"
            )
        return float(value)

    return read
