"""Which optical ports of ToRs have no link, and since when. A dark receiver has none and may be good."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from blast_controller.core.model.fabric import Fabric, OpticalPort
from blast_controller.core.model.identifiers import LinkId


class Links:
    """Moments on the core's clock."""

    def __init__(self, fabric: Fabric) -> None:
        self._fabric = fabric
        self._down_since: dict[LinkId, float] = {}

    @property
    def down_since(self) -> Mapping[LinkId, float]:
        """Return the ports that have lost their link."""
        return MappingProxyType(self._down_since)

    def of(self, port: OpticalPort) -> LinkId:
        """Return the link of a rack's optical port."""
        return LinkId(self._fabric.racks[port.rack].datapath, port.port)

    def are_up(self, ports: Iterable[OpticalPort]) -> bool:
        """Return true if all of these ports have their link."""
        return not self._down_since or self._down_since.keys().isdisjoint(map(self.of, ports))

    def note(self, link: LinkId, up: bool, now: float) -> None:
        """Note that a port gained or lost its link."""
        if up:
            self._down_since.pop(link, None)
        else:
            self._down_since.setdefault(link, now)
