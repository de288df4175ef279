"""Sets the circuits of the hardware to a list: all of them in one change, or none of them."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from optical_switch.emulator.change import CrossbarChange
from optical_switch.emulator.crossbar import RefusalError
from optical_switch.emulator.hardware import OpticalHardware
from optical_switch.model import Circuit

log = logging.getLogger(__name__)


class CircuitFailureError(RefusalError):
    """Mirrors or a port failed while circuits were set."""


class CircuitDifference(NamedTuple):
    """Circuits that a change removes, and circuits that it sets."""

    removed: tuple[Circuit, ...]
    added: tuple[Circuit, ...]


async def set_circuits(hardware: OpticalHardware, target: Mapping[int, int]) -> CircuitDifference:
    """Set all circuits, and return when their light paths are set.

    Parameters
    ----------
    hardware : OpticalHardware
        The switch.
    target : Mapping[int, int]
        The output of each input that is to have a circuit.

    Returns
    -------
    CircuitDifference
        What has changed.

    Raises
    ------
    RefusalError
        If the change is refused. Nothing has changed, unless the fault `partial_bulk` is injected.
    CircuitFailureError
        If a circuit has failed while it was set. The circuits are as before.
    """
    planned: list[CrossbarChange] = []

    def plan() -> CrossbarChange:
        # Only here, since a change in progress may end between the request and its plan.
        found = _difference(hardware.crossbar.circuits, target)
        planned.append(_planned(hardware, found))
        return planned[0]

    try:
        await (await hardware.plan_and_set(plan))
    except RefusalError as refusal:
        if not planned or planned[0].refusal is not None:
            raise
        if refusal.partial:
            await _restore(hardware, planned[0])
        raise CircuitFailureError(refusal.reason, refusal.text, refusal.ports) from refusal
    return CircuitDifference(planned[0].removed, planned[0].added)


def _difference(circuits: Sequence[Circuit], target: Mapping[int, int]) -> CircuitDifference:
    removed = tuple(circuit for circuit in circuits if target.get(circuit.input) != circuit.output)
    added = tuple(Circuit(*pair) for pair in sorted(target.items() - set(circuits)))
    return CircuitDifference(removed, added)


def _planned(hardware: OpticalHardware, difference: CircuitDifference) -> CrossbarChange:
    if difference.added:
        return hardware.connecting(difference.added, difference.removed)
    if difference.removed:
        return hardware.disconnecting(difference.removed)
    return CrossbarChange()


async def _restore(hardware: OpticalHardware, change: CrossbarChange) -> None:
    """Undo the part of a change that was done before a circuit failed (RFC 6241 section 8.3.4.1)."""

    def plan() -> CrossbarChange:
        present = set(hardware.crossbar.circuits)
        done = tuple(circuit for circuit in change.added if circuit in present)
        return _planned(hardware, CircuitDifference(done, change.removed))

    with suppress(RefusalError):
        await (await hardware.plan_and_set(plan))
        return
    log.warning("circuits that were removed before another one failed cannot be set again: %d", len(change.removed))
