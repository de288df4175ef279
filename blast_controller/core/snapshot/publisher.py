"""From one snapshot to the next, at the price of what has changed between them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from types import MappingProxyType

from immutables import Map

from blast_controller.core.inventory.inventory import Inventory
from blast_controller.core.model.fabric import Fabric
from blast_controller.core.model.identifiers import ElementId, static_element
from blast_controller.core.model.requests import RequestKey
from blast_controller.core.model.settings import CoreSettings
from blast_controller.core.policy.warm_trees import WarmTrees
from blast_controller.core.requests.request_table import RequestTable
from blast_controller.core.rollout.reservation import Reservation
from blast_controller.core.rollout.reservations import Reservations
from blast_controller.core.snapshot.changes import ChangeCollector, Changes
from blast_controller.core.snapshot.facts import (
    FREE,
    ElementStanding,
    RequestFacts,
    TreeFacts,
    WarmFacts,
    request_facts,
    tree_facts,
)
from blast_controller.core.snapshot.request_index import RequestIndex, renew
from blast_controller.core.snapshot.reserves import Reserves
from blast_controller.core.snapshot.snapshot import Snapshot, Standings

_ALL_FREE: Standings = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Known:
    """The parts of the core that snapshots describe."""

    table: RequestTable
    reservations: Reservations
    inventory: Inventory
    warm: WarmTrees


class Publisher:
    """Holds the latest snapshot. It is the only reader of the inventory's changes."""

    def __init__(self, fabric: Fabric, known: Known) -> None:
        self._known = known
        self._reserves = Reserves(known.inventory)
        self._changes = ChangeCollector()
        units = MappingProxyType(dict(_units(fabric)))
        self.latest = Snapshot(fabric, units, RequestIndex(), Map(), MappingProxyType({}), Map(), None)

    def publish(self, requests: Iterable[RequestKey], reservations: Collection[int], settings: CoreSettings) -> None:
        """Update the next snapshot for these objects and for the inventory's changes."""
        inventory, before = self._known.inventory, self.latest
        changes = inventory.take_changes()
        self._reserves.count(changes.kinds, settings.warm_reserve)
        after = before._replace(
            requests=before.requests.with_changes(found := {name: self._request(name) for name in requests}),
            standings=self._standings(changes.elements) if changes.elements else before.standings,
            away=MappingProxyType(dict(inventory.away)) if changes.devices else before.away,
            trees=self._trees(reservations) if reservations else before.trees,
            warm=self._warm(settings),
        )
        self._changes.note(found, reservations, {before.units[e] for e in changes.elements if e in before.units})
        if changes.devices:
            self._changes.note_away()
        if after.warm != before.warm:
            self._changes.note_warm()
        self.latest = after

    def take_changes(self) -> Changes:
        """Return the differences between the latest snapshot and the one at the previous call."""
        return self._changes.take()

    def _request(self, name: RequestKey) -> RequestFacts | None:
        found = self._known.table.requests.get(name)
        return None if found is None else request_facts(found)

    def _trees(self, touched: Iterable[int]) -> Map[int, TreeFacts]:
        live, trees = self._known.reservations.live, self.latest.trees.mutate()
        for number in touched:
            found = live.get(number)
            renew(trees, number, None if found is None else tree_facts(found, self._rack_of_sender(found)))
        return trees.finish()

    def _rack_of_sender(self, reservation: Reservation) -> str:
        known = self._known.table.requests.get(reservation.request)
        return "" if known is None else self.latest.fabric.hosts[known.current.sender].rack

    def _standings(self, elements: Iterable[ElementId]) -> Map[str, Standings]:
        inventory, units, before = self._known.inventory, self.latest.units, self.latest.standings
        holders, unusable = inventory.holders, inventory.unusable
        changed: dict[str, dict[ElementId, ElementStanding]] = {}
        for element in elements:
            if (unit := units.get(element)) is None:
                continue
            known = before.get(unit, _ALL_FREE)
            holder, reason = holders.get(element), unusable(element)
            standing = FREE if holder is None and reason is None else ElementStanding(holder, reason)
            if standing == known.get(element, FREE):
                continue
            found = changed[unit] if unit in changed else changed.setdefault(unit, dict(known))
            if standing == FREE:
                found.pop(element, None)
            else:
                found[element] = standing
        after = before.mutate()
        for unit, found in changed.items():
            renew(after, unit, MappingProxyType(found) if found else None)
        return after.finish()

    def _warm(self, settings: CoreSettings) -> WarmFacts | None:
        warm = self._known.warm
        if not (settings.keep_warm or len(warm)):
            return None
        return WarmFacts(len(warm), warm.counts, self._reserves.latest)


def _units(fabric: Fabric) -> Iterator[tuple[ElementId, str]]:
    """Yield every port, splitter, splitter output and static tree with its unit, in display order."""
    for rack in fabric.racks.values():
        yield from ((port.element, rack.name) for port in rack.optical_ports)
    splitters = fabric.splitters.values()
    yield from ((splitter.element, splitter.element) for splitter in splitters)
    yield from (
        (splitter.output_element(output), splitter.element) for splitter in splitters for output in splitter.outputs
    )
    yield from ((static_element(name), static_element(name)) for name in fabric.static_trees)
