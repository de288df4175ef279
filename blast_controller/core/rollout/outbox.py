"""Collects what a batch of events changes and hands it out as one command per device.

Only a reservation that changes twice needs a second one: within a command its order would be lost.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container
from typing import Generic, TypeVar

from blast_controller.core.light.layout import Step
from blast_controller.core.model.commands import (
    Announce,
    CircuitChange,
    Command,
    ForwardingChange,
    Optimize,
    Publish,
    ReadDevice,
    SendProbe,
    SetCircuits,
    SetForwarding,
)
from blast_controller.core.model.identifiers import DatapathId, Device, SwitchId
from blast_controller.core.model.records import Record

Change = TypeVar("Change", CircuitChange, ForwardingChange)


class _Rounds(Generic[Change]):
    """The changes on one device: as few rounds as do, none with the same reservation twice."""

    def __init__(self) -> None:
        self._rounds: list[dict[int, Change]] = [{}]

    def add(self, change: Change) -> None:
        if change.reservation in self._rounds[-1]:
            self._rounds.append({})
        self._rounds[-1][change.reservation] = change

    @property
    def changes(self) -> list[tuple[Change, ...]]:
        return [tuple(found.values()) for found in self._rounds]


class Outbox:
    """Commands of one decision, merged per device."""

    def __init__(self) -> None:
        self._circuits: defaultdict[SwitchId, _Rounds[CircuitChange]] = defaultdict(_Rounds)
        self._forwarding: defaultdict[DatapathId, _Rounds[ForwardingChange]] = defaultdict(_Rounds)
        self._publish: list[Publish] = []
        self._records: list[Record] = []
        self._others: list[ReadDevice | SendProbe | Announce | Optimize] = []

    def step(
        self,
        reservation: int,
        number: int,
        step: Step,
        leaves: Container[int] = (),
        after: frozenset[int] = frozenset(),
    ) -> None:
        """Give a reservation's step to its devices.

        `leaves` are the switch outputs that lead to ToRs: where they are connected, light is looked for. `after` are
        reservations of this decision that have to be off the switch first.
        """
        for device in step.devices:
            if isinstance(device, str):
                self._circuits[device].add(
                    CircuitChange(
                        reservation,
                        number,
                        tuple(c for c in step.disconnect if c.switch == device),
                        tuple(c for c in step.connect if c.switch == device),
                        tuple(c.output for c in step.connect if c.switch == device and c.output in leaves),
                        after,
                    )
                )
            else:
                self._forwarding[device].add(
                    ForwardingChange(reservation, number, step.remove.get(device, ()), step.add.get(device, ()))
                )

    def record(self, record: Record) -> None:
        """Queue a record, to be stored before any device receives commands."""
        self._records.append(record)

    def issue(self, command: ReadDevice | SendProbe | Announce | Optimize) -> None:
        """Queue any other command."""
        self._others.append(command)

    @property
    def devices(self) -> set[Device]:
        """Return the devices that this decision gives work to."""
        return set(self._circuits) | set(self._forwarding)

    def publish(self, publish: Publish) -> None:
        """Queue a notification of clients."""
        self._publish.append(publish)

    def drain(self) -> list[Command]:
        """Return and clear all commands: records, then optical switches (the slowest), then the rest."""
        commands: list[Command] = list(self._records)
        commands += [
            SetCircuits(switch, found) for switch, rounds in self._circuits.items() for found in rounds.changes
        ]
        commands += [SetForwarding(tor, found) for tor, rounds in self._forwarding.items() for found in rounds.changes]
        commands += self._others
        commands += self._publish
        self._circuits.clear()
        self._forwarding.clear()
        self._publish = []
        self._records = []
        self._others = []
        return commands
