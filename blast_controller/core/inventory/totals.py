"""Totals of pieces for one purpose, updated incrementally so that no reader has to count all pieces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from algorithms.b_matching.residual import Residual
from blast_controller.core.inventory.kinds import Piece, PieceKind
from blast_controller.core.inventory.splitter_order import OrderedSplitters, Place
from blast_controller.core.model.fabric import OpticalPort, Splitter
from blast_controller.core.model.identifiers import SwitchId


@dataclass(slots=True)
class PieceTotals:
    """Pieces to choose from; `place` returns the allocation order of a splitter."""

    place: Callable[[Splitter], Place]
    counts: Counter[PieceKind] = field(default_factory=Counter)
    _ports: dict[SwitchId, dict[str, int]] = field(default_factory=dict)
    _splitters: dict[SwitchId, dict[int, OrderedSplitters]] = field(default_factory=dict)
    _places: dict[str, Place] = field(default_factory=dict)

    def add(self, piece: Piece, kind: PieceKind) -> None:
        """Add a piece."""
        self.counts[kind] += 1
        if isinstance(piece, OpticalPort):
            ends = self._ports.setdefault(piece.switch, {})
            ends[kind.end] = ends.get(kind.end, 0) + 1
        else:
            place = self._places[piece.name] = self.place(piece)
            sizes = self._splitters.setdefault(piece.switch, {})
            if piece.fan_out not in sizes:
                sizes[piece.fan_out] = OrderedSplitters()
            sizes[piece.fan_out].put(place, piece)

    def remove(self, piece: Piece, kind: PieceKind) -> None:
        """Remove a piece."""
        self.counts[kind] -= 1
        if isinstance(piece, OpticalPort):
            ends = self._ports[piece.switch]
            ends[kind.end] -= 1
            if not ends[kind.end]:
                del ends[kind.end]
        else:
            sizes = self._splitters[piece.switch]
            sizes[piece.fan_out].take(self._places.pop(piece.name))
            if not sizes[piece.fan_out]:
                del sizes[piece.fan_out]

    def sizes(self, switch: SwitchId) -> dict[int, int]:
        """Return the number of splitters of each fan-out on `switch`."""
        return {fan_out: len(found) for fan_out, found in self._splitters.get(switch, {}).items()}

    def splitters(self, switch: SwitchId) -> list[Splitter]:
        """Return the splitters on `switch`."""
        return [splitter for found in self._splitters.get(switch, {}).values() for splitter in found]

    def first_splitters(self, switch: SwitchId, fan_out: int, count: int) -> list[Splitter]:
        """Return the first `count` splitters of one size in order, or fewer if there are not as many."""
        found = self._splitters.get(switch, {}).get(fan_out)
        return [] if found is None else found.first(count)

    def residual(
        self,
        switches: Iterable[SwitchId],
        max_splitters_per_tree: int | None,
        allowance: Mapping[str, int] | None = None,
    ) -> Residual:
        """Return a view of the pieces for the matching; `allowance` limits the splitters of some tenants."""
        names = tuple(switches)
        ports: dict[str, Mapping[str, int]] = {switch: self._ports.get(switch, {}) for switch in names}
        splitters: dict[str, Mapping[int, OrderedSplitters]] = {
            switch: self._splitters.get(switch, {}) for switch in names
        }
        return Residual(ports, splitters, max_splitters_per_tree, allowance)
