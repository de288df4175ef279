"""A snapshot: all that a reader is told without asking the core itself, as of one commit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from immutables import Map

from blast_controller.core.model.errors import UnknownRequest
from blast_controller.core.model.fabric import Fabric
from blast_controller.core.model.identifiers import Device, ElementId
from blast_controller.core.model.requests import RequestKey
from blast_controller.core.snapshot.facts import FREE, RequestFacts, Standing, TreeFacts, WarmFacts
from blast_controller.core.snapshot.request_index import RequestIndex

Standings = Mapping[ElementId, Standing]


class Snapshot(NamedTuple):
    """By unit those of its elements that are not free; the devices that are away, and why; live reservations by number.

    A unit is a rack, by name, or a splitter or static tree, by element: `units` tells for every element of the fabric
    of which it is. `warm` is None where nothing is kept lit.
    """

    fabric: Fabric
    units: Mapping[ElementId, str]
    requests: RequestIndex
    standings: Map[str, Standings]
    away: Mapping[Device, str]
    trees: Map[int, TreeFacts]
    warm: WarmFacts | None

    def request(self, name: RequestKey) -> RequestFacts:
        """A request. Raises UnknownRequest."""
        found = self.requests.by_name.get(name)
        if found is None:
            raise UnknownRequest(name[1])
        return found

    def waiting_of(self, tenant: str | None) -> int:
        """How many parts of a tenant (None: of all) wait for light."""
        waiting = self.requests.waiting
        return sum(waiting.values()) if tenant is None else waiting.get(tenant, 0)

    def standing(self, element: ElementId) -> Standing:
        """How somebody has an element."""
        return self.standings.get(self.units[element], {}).get(element, FREE)
