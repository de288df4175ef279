"""State of a running phase, for planning the next one."""

from __future__ import annotations

from blast_transport.base.frozen_record import FrozenRecord


class HostFlow(FrozenRecord):
    """Data from one host to another, of all trees together: `rate` bits/s over the last second or so.

    `planned`: bits/s that were to go. `held_back`: most of the time the network took less than was ready and permitted.
    """

    parent: str
    child: str
    rate: float
    planned: float
    held_back: bool


class PhaseMeasurement(FrozenRecord):
    """Measurements since the phase began, `seconds` ago.

    `lost`: hosts that are lost. `broken`: (parent, child) without a connection, although both live.
    """

    seconds: float
    flows: tuple[HostFlow, ...] = ()
    lost: tuple[str, ...] = ()
    broken: tuple[tuple[str, str], ...] = ()
