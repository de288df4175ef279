"""What the runtime asks of whoever brings its commands to devices, and to the optimizer."""

from __future__ import annotations

from typing import Protocol

from blast_controller.core.model.commands import Optimize, SetCircuits, SetForwarding
from blast_controller.core.model.identifiers import DatapathId, SwitchId


class OpticalDriver(Protocol):
    """Sets cross-connects; answers every step by an event; never blocks."""

    def apply(self, command: SetCircuits) -> None:
        """Carry out one decision's changes on one optical switch."""

    def read(self, switch: SwitchId) -> None:
        """Read what an optical switch holds, after what was handed in before; answered by CircuitsObserved."""


class ForwardingDriver(Protocol):
    """Sets rules on ToRs; answers every step by an event; never blocks."""

    def apply(self, command: SetForwarding) -> None:
        """Carry out one decision's changes on one ToR."""

    def read(self, datapath: DatapathId) -> None:
        """Mend what is not a forward and read what a ToR holds, after what was handed in; answered by TableObserved."""

    def look(self, datapath: DatapathId) -> None:
        """The same, but write nothing."""

    def probe(self, datapath: DatapathId, port: int, payload: bytes) -> None:
        """Send a probe frame out of a port; ProbeSeen tells where it arrives."""


class OptimizerDriver(Protocol):
    """Thinks about decisions; answers every question by Optimized; never blocks."""

    def ask(self, command: Optimize) -> None:
        """Find out whom to serve first."""
