"""Optical properties of the fabric's elements, where configured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from algorithms.power_budget import Passive, Piece, Transceiver
from blast_controller.core.model.identifiers import SwitchId


@dataclass(frozen=True)
class Optics:
    """Ports and splitters by element name, passes by optical switch. Elements without an entry have no power budget."""

    ports: Mapping[str, Transceiver] = field(default_factory=dict)
    splitters: Mapping[str, Piece] = field(default_factory=dict)
    passes: Mapping[str, Passive] = field(default_factory=dict)

    def budgeted(self, switch: SwitchId) -> bool:
        """Return true if trees on this switch have a power budget."""
        return switch in self.passes
