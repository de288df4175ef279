"""Reconciliation of all devices with the journal, on demand and at the interval of the settings."""

from __future__ import annotations

from dataclasses import dataclass, field

from blast_controller.core.inventory.inventory import Inventory
from blast_controller.core.light.layout import Step
from blast_controller.core.model.commands import Announce, ReadDevice
from blast_controller.core.model.errors import RejectedError
from blast_controller.core.model.events import CircuitsObserved, TableObserved
from blast_controller.core.model.fabric import CrossConnect, Fabric
from blast_controller.core.model.identifiers import Device, device_name
from blast_controller.core.rollout.late_writes import NO_RESERVATION
from blast_controller.core.rollout.outbox import Outbox
from blast_controller.core.rollout.reconciliation import DeviceReading, Reconciliation


@dataclass(frozen=True, slots=True)
class AuditReport:
    """The result of a reconciliation: the commands sent (or, in a dry run, to be sent) and foreign state.

    Both concern the devices `compared` only; `not_compared` lists all others, each with a reason.
    """

    dry_run: bool
    commands: tuple[str, ...]
    foreign: tuple[str, ...]
    compared: tuple[str, ...] = ()
    not_compared: tuple[tuple[str, str], ...] = ()


@dataclass(slots=True)
class _Round:
    """State of a reconciliation.

    `unread` devices have not answered yet; `stale` devices received commands since they were queried.
    """

    dry_run: bool
    unread: set[Device]
    stale: set[Device] = field(default_factory=set)
    commands: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)
    compared: list[str] = field(default_factory=list)
    not_compared: dict[str, str] = field(default_factory=dict)

    def report(self) -> AuditReport:
        return AuditReport(
            self.dry_run,
            tuple(self.commands),
            tuple(self.foreign),
            tuple(sorted(self.compared)),
            tuple(sorted(self.not_compared.items())),
        )


class Auditor:
    """One round at a time; its report is announced under its number."""

    def __init__(self, fabric: Fabric, inventory: Inventory, reconciliation: Reconciliation, outbox: Outbox) -> None:
        self._fabric = fabric
        self._inventory = inventory
        self._reconciliation = reconciliation
        self._outbox = outbox
        self._round: _Round | None = None
        self.number = 0

    @property
    def busy(self) -> bool:
        """Return true while a reconciliation runs."""
        return self._round is not None

    def begin(self, dry_run: bool) -> None:
        """Read the state of every connected device. Raises RejectedError while a round runs."""
        if self._round is not None:
            raise RejectedError("busy", "Another reconciliation is reading the devices; try again when it is complete.")
        self.number += 1
        devices: list[Device] = list(self._fabric.switches)
        devices += dict.fromkeys(rack.datapath for rack in self._fabric.racks.values())
        away = self._inventory.away
        present = [device for device in devices if device not in away]
        absent = {device_name(device): f"disconnected: {away[device]}" for device in devices if device in away}
        self._round = _Round(dry_run, set(present), not_compared=absent)
        for device in present:
            self._outbox.issue(ReadDevice(device, dry_run))
        self._conclude()

    def note_work(self) -> None:
        """Remember which devices this decision gives work to: an answer on its way may be older than that."""
        if self._round is not None:
            self._round.stale |= self._round.unread & self._outbox.devices

    @property
    def unread(self) -> list[str]:
        """Return the devices that the round still waits for."""
        return sorted(map(device_name, self._round.unread)) if self._round is not None else []

    def lost(self, device: Device, reason: str) -> None:
        """Note that a device disconnected during the round; it is reconciled when it returns."""
        if self._round is not None and device in self._round.unread:
            self._round.unread.discard(device)
            self._round.not_compared[device_name(device)] = f"disconnected before it replied: {reason}"
            self._conclude()

    def observed(self, event: CircuitsObserved | TableObserved) -> DeviceReading | None:
        """Process a device's answer. Return the state to reconcile, or None."""
        current = self._round
        if current is None or event.device not in current.unread:
            return None
        if event.device in current.stale:
            current.stale.remove(event.device)
            self._outbox.issue(ReadDevice(event.device, current.dry_run))
            return None
        seen = self._compare(current, event)
        current.unread.remove(event.device)
        self._conclude()
        return None if current.dry_run else seen

    def _compare(self, current: _Round, event: CircuitsObserved | TableObserved) -> DeviceReading:
        if isinstance(event, CircuitsObserved):
            seen = DeviceReading(event.switch, circuits=event.circuits)
        else:
            seen = DeviceReading(event.datapath, rules=event.rules)
            if event.foreign:
                current.foreign.append(f"{event.foreign} rules on {event.datapath:016x}")
        current.foreign += [f"{c.input} to {c.output} on {c.switch}" for c in sorted(self._foreign(seen))]
        for number, step in self._reconciliation.differences(seen):
            current.commands += describe(number, step)
        name = device_name(event.device)
        current.compared.append(name)
        for number in self._reconciliation.undecided(seen):
            current.not_compared[f"reservation {number} on {name}"] = "a change of it is in progress"
        return seen

    def note_foreign(self, seen: DeviceReading) -> None:
        """Plan around what is not ours on an optical switch."""
        if isinstance(seen.device, str):
            self._inventory.note_foreign(seen.device, self._foreign(seen))

    def _foreign(self, seen: DeviceReading) -> frozenset[CrossConnect]:
        if not isinstance(seen.device, str):
            return frozenset()
        return self._reconciliation.foreign(seen.device, seen.circuits)

    def _conclude(self) -> None:
        if self._round is not None and not self._round.unread:
            self._outbox.issue(Announce(self.number, self._round.report()))
            self._round = None


def describe(reservation: int, step: Step) -> list[str]:
    """Return a step's commands in words."""
    whose = "late write" if reservation == NO_RESERVATION else f"reservation {reservation}"
    words = [f"{whose}: delete {c.input} to {c.output} on {c.switch}" for c in step.disconnect]
    words += [f"{whose}: connect {c.input} to {c.output} on {c.switch}" for c in step.connect]
    for verb, forwards in (("remove", step.remove), ("add", step.add)):
        for datapath, found in forwards.items():
            words += [
                f"{whose}: {verb} the rule for {f.group} from port {f.in_port} to "
                f"{', '.join(map(str, f.outputs)) or 'nowhere'} on {datapath:016x}"
                for f in found
            ]
    return words
