"""Keys of a scenario that are set or swept from the command line: KEY=VALUE and KEY=VALUE,VALUE."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from blast_sim.base.scenario_file import parsed_value
from blast_sim.base.wrong_input import InputError


def setting(text: str) -> tuple[str, object]:
    """Parse a key and its value. Raises InputError."""
    key, value = _assignment(text)
    return key, parsed_value(value)


def sweep(text: str) -> tuple[str, list[object]]:
    """Parse a key and its values: words or numbers between commas. Raises InputError."""
    key, listed = _assignment(text)
    values = [parsed_value(part) for part in listed.split(",") if part]
    if not values:
        raise InputError(f"--sweep {text!r} has no values: write KEY=VALUE,VALUE")
    return key, values


def combinations(swept: Mapping[str, Sequence[object]]) -> Iterator[dict[str, object]]:
    """Yield every combination of one value per key; the last key changes first."""
    for values in product(*swept.values()):
        yield dict(zip(swept, values, strict=True))


def _assignment(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise InputError(f"{text!r} is no setting: write KEY=VALUE, as in light.splitters=20")
    return key.strip(), value.strip()
