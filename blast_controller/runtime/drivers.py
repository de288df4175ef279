"""Interfaces of the runtime to the drivers of devices and the optimizer."""

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
        """Repair rules other than forwards and read a ToR's rules, after all earlier commands.

        The answer is TableObserved.
        """

    def look(self, datapath: DatapathId) -> None:
        """Read a ToR's rules like `read`, without any repair."""

    def probe(self, datapath: DatapathId, port: int, payload: bytes) -> None:
        """Send a probe frame from a port; ProbeReceived reports its arrival."""


class OptimizerDriver(Protocol):
    """Thinks about decisions; answers every question by Optimized; never blocks."""

    def ask(self, command: Optimize) -> None:
        """Find out whom to serve first."""
