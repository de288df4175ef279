"""Collects what one event changes and hands it out as at most one command per device."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

from blast_controller.core.commands import (
    CircuitChange,
    Command,
    ForwardingChange,
    Publish,
    SetCircuits,
    SetForwarding,
)
from blast_controller.core.events import Device
from blast_controller.core.layout import Step


class Outbox:
    """Commands of one decision, merged per device."""

    def __init__(self) -> None:
        self._circuits: defaultdict[str, list[CircuitChange]] = defaultdict(list)
        self._forwarding: defaultdict[int, list[ForwardingChange]] = defaultdict(list)
        self._publish: list[Publish] = []

    def step(self, reservation: int, number: int, step: Step, only: Collection[Device] | None = None) -> set[Device]:
        """Give a reservation's step to its devices (or only to some); returns the devices that will answer."""
        devices: set[Device] = (step.switches | step.datapaths) if only is None else set(only)
        for device in devices:
            if isinstance(device, str):
                self._circuits[device].append(
                    CircuitChange(
                        reservation,
                        number,
                        tuple(c for c in step.disconnect if c.switch == device),
                        tuple(c for c in step.connect if c.switch == device),
                    )
                )
            else:
                self._forwarding[device].append(
                    ForwardingChange(reservation, number, step.remove.get(device, ()), step.add.get(device, ()))
                )
        return devices

    def publish(self, publish: Publish) -> None:
        """Tell a client something."""
        self._publish.append(publish)

    def drain(self) -> list[Command]:
        """All commands so far, optical switches first (they take longest)."""
        commands: list[Command] = [SetCircuits(switch, tuple(changes)) for switch, changes in self._circuits.items()]
        commands += [SetForwarding(datapath, tuple(changes)) for datapath, changes in self._forwarding.items()]
        commands += self._publish
        self._circuits.clear()
        self._forwarding.clear()
        self._publish = []
        return commands
