"""The hardware that the scheduling policy may count on, and how that has changed since it was last told."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from blast_controller.core.fabric import OpticalPort
from blast_controller.core.identifiers import ElementId, SwitchId
from blast_controller.core.tally import Piece

Count = tuple[SwitchId, str | int]
"""(switch, end of which ports are meant, or ways of the splitters that are meant)"""


@dataclass(slots=True)
class Offered:
    """Ports and splitters that are free, or held by a part that the policy has given them to.

    `changes` are net counts per kind of hardware since the last `take_changes`.
    """

    _pieces: dict[ElementId, Piece] = field(default_factory=dict)
    _changes: Counter[Count] = field(default_factory=Counter)

    def put(self, element: ElementId, piece: Piece | None) -> None:
        """From now on an element is offered as this, or not at all."""
        before = self._pieces.get(element)
        if before == piece:
            return
        if before is not None:
            self._changes[_count(before)] -= 1
            del self._pieces[element]
        if piece is not None:
            self._changes[_count(piece)] += 1
            self._pieces[element] = piece

    def find(self, element: ElementId) -> Piece | None:
        """What an element is offered as."""
        return self._pieces.get(element)

    def tell_anew(self) -> None:
        """Somebody new wants to know: everything is a change."""
        self._changes = Counter(map(_count, self._pieces.values()))

    def take_changes(self) -> dict[Count, int]:
        """How much more (or, negative, less) there is of what; told once."""
        changes = {count: number for count, number in self._changes.items() if number}
        self._changes.clear()
        return changes


def _count(piece: Piece) -> Count:
    return piece.switch, piece.end if isinstance(piece, OpticalPort) else piece.ways
