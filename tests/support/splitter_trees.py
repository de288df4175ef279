"""Oracles for splitter trees under a power budget, written without the code that they judge."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence

from algorithms.power_budget import Light, Passive, Piece, Window

Slots = tuple[Light, ...]


def tiny_trees(
    root: Light, switch: Passive, supply: Mapping[Piece, int]
) -> Iterable[tuple[tuple[int, ...], list[Light]]]:
    """Every tree that can be hung by hand: (how many of each kind, the light at every open slot)."""
    kinds = list(supply)
    start = ((0,) * len(kinds), (root.rounded,))
    seen, waiting = {start}, [start]
    while waiting:
        counts, slots = waiting.pop()
        yield counts, list(slots)
        for place, index in itertools.product(range(len(slots)), range(len(kinds))):
            if counts[index] == supply[kinds[index]]:
                continue
            below = kinds[index].hung(slots[place], switch)
            if below is None:
                continue
            grown = (*slots[:place], *slots[place + 1 :], *[below] * kinds[index].ways)
            new = (
                tuple(n + (i == index) for i, n in enumerate(counts)),
                tuple(sorted(grown, key=lambda s: (s.worst, s.best))),
            )
            if new not in seen:
                seen.add(new)
                waiting.append(new)


def matched(lights: Sequence[Light], windows: Sequence[Window]) -> bool:
    """Whether every receiver can have a slot of its own that suits it (augmenting paths)."""
    holder: dict[int, int] = {}

    def place(receiver: int, tried: set[int]) -> bool:
        for slot, light in enumerate(lights):
            if slot not in tried and windows[receiver].fits(light):
                tried.add(slot)
                if slot not in holder or place(holder[slot], tried):
                    holder[slot] = receiver
                    return True
        return False

    return all(place(receiver, set()) for receiver in range(len(windows)))
