"""In which order hosts stand in a pipeline, so that each link between racks carries the data once.

Given the racks, the sender's comes first and every other one once; within a rack, and wherever nothing is known, host
names go in their natural order, as in Kascade (section III-A): node2 before node10.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from blast_transport.base.errors import WrongInputError

_NUMBERS = re.compile(r"([0-9]+)")

NaturalKey = tuple[tuple[int, int, str], ...]


def natural_key(name: str) -> NaturalKey:
    """Return a sort key that orders names by their parts, and numbers by their value."""
    # Equal numbers may be written differently (node1, node01); the text decides then.
    parts = (part for part in _NUMBERS.split(name) if part)
    return tuple((0, int(part), part) if part[0] in "0123456789" else (1, 0, part) for part in parts)


def by_name(receivers: Iterable[str]) -> list[str]:
    """Return the receivers in the natural order of their names. Raise WrongInputError for a duplicate."""
    return sorted(_once(receivers), key=natural_key)


def by_racks(sender: str, receivers: Iterable[str], racks: Mapping[str, str]) -> list[str]:
    """Return the receivers rack by rack, the sender's rack first. `racks`: host name to rack.

    A receiver whose rack is not given stands in one of its own. Raises WrongInputError if one is named twice.
    """
    home = racks.get(sender)

    def key(name: str) -> tuple[bool, bool, NaturalKey, NaturalKey]:
        rack = racks.get(name)
        elsewhere = rack is None or rack != home
        return elsewhere, rack is None, natural_key(name if rack is None else rack), natural_key(name)

    return sorted(_once(receivers), key=key)


def as_given(receivers: Iterable[str], order: Sequence[str]) -> list[str]:
    """Return the receivers in the order of `order`, which names each of them, and possibly others.

    Raises WrongInputError if it misses a receiver, or one is named twice.
    """
    expected, places = set(_once(receivers)), _once(order)
    missing = expected.difference(places)
    if missing:
        raise WrongInputError(f"the given order does not name {', '.join(sorted(missing, key=natural_key))}")
    return [name for name in places if name in expected]


def _once(names: Iterable[str]) -> list[str]:
    listed = list(names)
    if len(set(listed)) < len(listed):
        twice = next(name for name in listed if listed.count(name) > 1)
        raise WrongInputError(f"{twice} is named twice; name each host once")
    return listed
