"""Counts of optical ports and splitters that are kept up to date piece by piece, so that nobody counts all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nsmallest

from algorithms.b_matching.residual import Residual
from blast_controller.core.fabric import OpticalPort, Splitter
from blast_controller.core.identifiers import ElementId, SwitchId

Piece = OpticalPort | Splitter


@dataclass(slots=True)
class Tally:
    """Ports per end, and splitters by size in the fabric's order, on each switch.

    `order` says of every splitter's name which one comes first, `gained` how often a piece of each switch has come.
    """

    order: Mapping[str, int] = field(repr=False)
    _counted: dict[ElementId, Piece] = field(default_factory=dict)
    _ports: dict[SwitchId, dict[str, int]] = field(default_factory=dict)
    _splitters: dict[SwitchId, dict[int, dict[int, Splitter]]] = field(default_factory=dict)
    _last: set[int] = field(default_factory=set)
    gained: Counter[SwitchId] = field(default_factory=Counter)

    def put(self, element: ElementId, piece: Piece | None, last: bool = False) -> None:
        """From now on count `element` as `piece`, which may have lost legs; as nothing if that is None.

        Splitters that are to be `last` are taken when there are no others.
        """
        self._note_last(piece, last)
        before = self._counted.get(element)
        if before == piece:
            return
        if before is not None:
            self._remove(before)
            del self._counted[element]
        if piece is not None:
            self._add(piece)
            self._counted[element] = piece

    def _note_last(self, piece: Piece | None, last: bool) -> None:
        if isinstance(piece, Splitter):
            place = self.order[piece.name]
            (self._last.add if last else self._last.discard)(place)

    def _add(self, piece: Piece) -> None:
        self.gained[piece.switch] += 1
        if isinstance(piece, OpticalPort):
            ends = self._ports.setdefault(piece.switch, {})
            ends[piece.end] = ends.get(piece.end, 0) + 1
        else:
            sizes = self._splitters.setdefault(piece.switch, {})
            sizes.setdefault(piece.ways, {})[self.order[piece.name]] = piece

    def _remove(self, piece: Piece) -> None:
        if isinstance(piece, OpticalPort):
            ends = self._ports[piece.switch]
            ends[piece.end] -= 1
            if not ends[piece.end]:
                del ends[piece.end]
        else:
            sizes = self._splitters[piece.switch]
            del sizes[piece.ways][self.order[piece.name]]
            if not sizes[piece.ways]:
                del sizes[piece.ways]

    def residual(
        self, switches: Iterable[SwitchId], most_splitters: int | None, allowance: Mapping[str, int] | None = None
    ) -> Residual:
        """What is counted, as the matching sees it."""
        names = tuple(switches)
        ports: dict[str, Mapping[str, int]] = {switch: self._ports.get(switch, {}) for switch in names}
        sizes: dict[str, Mapping[int, int]] = {switch: self.sizes(switch) for switch in names}
        return Residual(ports, sizes, most_splitters, allowance)

    def sizes(self, switch: SwitchId) -> dict[int, int]:
        """How many splitters of each size there are on `switch`."""
        return {ways: len(found) for ways, found in self._splitters.get(switch, {}).items()}

    def all_splitters(self, switch: SwitchId) -> list[Splitter]:
        """The splitters on `switch`, first ones first."""
        found = [pair for sizes in self._splitters.get(switch, {}).values() for pair in sizes.items()]
        return [splitter for _, splitter in sorted(found, key=lambda pair: (pair[0] in self._last, pair[0]))]

    def splitters(self, switch: SwitchId, ways: Sequence[int]) -> list[Splitter]:
        """The first splitters of these sizes on `switch`. Raises LookupError when there are not as many."""
        first = {size: iter(self._first(switch, size, ways.count(size))) for size in set(ways)}
        return [next(first[size]) for size in ways]

    def _first(self, switch: SwitchId, size: int, count: int) -> list[Splitter]:
        found = self._splitters.get(switch, {}).get(size, {})
        if len(found) < count:
            raise LookupError(f"{len(found)} splitters 1:{size} on {switch}, wanted {count}")
        return [found[place] for place in nsmallest(count, found, key=lambda place: (place in self._last, place))]
