"""A snapshot: the state of the core at one commit, for readers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from immutables import Map

from blast_controller.core.model.errors import UnknownRequestError
from blast_controller.core.model.fabric import Fabric
from blast_controller.core.model.identifiers import Device, ElementId
from blast_controller.core.model.requests import RequestKey
from blast_controller.core.snapshot.facts import FREE, ElementStanding, RequestFacts, TreeFacts, WarmFacts
from blast_controller.core.snapshot.request_index import RequestIndex

Standings = Mapping[ElementId, ElementStanding]


class Snapshot(NamedTuple):
    """By unit its elements that are not free; disconnected devices with reasons; live reservations by number.

    A unit is a rack, by name, or a splitter or static tree, by element: `units` maps every element to its unit. `warm`
    is None if no trees are kept warm.
    """

    fabric: Fabric
    units: Mapping[ElementId, str]
    requests: RequestIndex
    standings: Map[str, Standings]
    away: Mapping[Device, str]
    trees: Map[int, TreeFacts]
    warm: WarmFacts | None

    def request(self, name: RequestKey) -> RequestFacts:
        """Return a request. Raises UnknownRequestError."""
        found = self.requests.by_name.get(name)
        if found is None:
            raise UnknownRequestError(name[1])
        return found

    def waiting_of(self, tenant: str | None) -> int:
        """Return the number of pending parts of a tenant (None: of all)."""
        waiting = self.requests.waiting
        return sum(waiting.values()) if tenant is None else waiting.get(tenant, 0)

    def standing(self, element: ElementId) -> ElementStanding:
        """Return the holder and usability of an element."""
        return self.standings.get(self.units[element], {}).get(element, FREE)
