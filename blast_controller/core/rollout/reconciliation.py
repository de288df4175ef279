"""Reconciliation: differences between the actual and the intended state of devices, and the steps that repair them.

Theory of operation. A device is read when its session begins, when an operator requests it, and in every audit. Each
live reservation knows its intended state on the device; its rules carry its number, and its circuits are recognized by
their ends. The difference becomes one step of the reservation, as if it had changed. Rules of reservations that no
longer live are deleted; circuits that Blast did not make are foreign, and are reported, never touched. A circuit that
an earlier command made after its reservation had ended (`late_writes.py`) is removed. A reading is older than the
answer to an outstanding command, so it is not used for that command's reservation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from blast_controller.core.light.forwarding import Forwards
from blast_controller.core.light.layout import DeviceState, Step, step_between
from blast_controller.core.model.commands import Forward
from blast_controller.core.model.fabric import CrossConnect
from blast_controller.core.model.identifiers import Device, SwitchId
from blast_controller.core.rollout.late_writes import NO_RESERVATION, LateWrites
from blast_controller.core.rollout.outbox import Outbox
from blast_controller.core.rollout.outcomes import Outcome
from blast_controller.core.rollout.reservation import Reservation
from blast_controller.core.rollout.reservation_states import ReservationState
from blast_controller.core.rollout.reservations import Reservations
from blast_controller.core.rollout.rollout import TargetState

UNTRACKED = 0
"""The number of a step without an awaited answer; other numbers begin at 1."""


@dataclass(frozen=True, slots=True)
class DeviceReading:
    """The state read from a device: cross-connects of an optical switch, or Blast's rules on a ToR."""

    device: Device
    circuits: frozenset[CrossConnect] = frozenset()
    rules: frozenset[tuple[int, Forward]] = frozenset()

    def by_reservation(self) -> dict[int, Forwards]:
        """Return the rules that each reservation has on this ToR."""
        if isinstance(self.device, str):
            return {}
        found: dict[int, tuple[Forward, ...]] = {}
        for number, forward in sorted(self.rules):
            found[number] = (*found.get(number, ()), forward)
        return {number: {self.device: forwards} for number, forwards in found.items()}


class OwnCircuits(Protocol):
    """Cross-connects that are ours and belong to no reservation."""

    def circuits(self, switch: SwitchId) -> frozenset[CrossConnect]:
        """Return the circuits that may exist on a switch."""


class Reconciliation:
    """Brings devices to what the live reservations want of them; nothing that is not ours is touched."""

    def __init__(self, reservations: Reservations, outbox: Outbox, probes: OwnCircuits, late: LateWrites) -> None:
        self._reservations = reservations
        self._outbox = outbox
        self._probes = probes
        self._late = late

    def differences(self, seen: DeviceReading) -> list[tuple[int, Step]]:
        """Return the repair of a device by reservation, given its state as read; foreign state is not touched.

        Reservations with an outstanding answer of the device are left out: the reading is older than that answer.
        """
        return [(number, step) for number, step in self._differing(seen) if not self._in_movement(number, seen.device)]

    def undecided(self, seen: DeviceReading) -> list[int]:
        """Return the reservations that differ, but that the device has still to answer for."""
        return [number for number, _ in self._differing(seen) if self._in_movement(number, seen.device)]

    def _in_movement(self, number: int, device: Device) -> bool:
        return number in self._reservations.live and self._reservations.live[number].rollout.waits_for(device)

    def _differing(self, seen: DeviceReading) -> list[tuple[int, Step]]:
        rules = seen.by_reservation()
        found = []
        concerned = {r.id: r for r in self._reservations.on(seen.device)}
        # A rule may name a reservation that has nothing to do with this ToR.
        concerned |= {number: live for number in rules if (live := self._reservations.live.get(number))}
        for reservation in concerned.values():
            if reservation.id not in rules and _has_nothing_on(reservation, seen.device):
                continue
            ours = reservation.provisioned.on(seen.device).circuits
            still = seen.circuits - self._reservations.taken_from(reservation)
            present = DeviceState(tuple(c for c in ours if c in still), rules.pop(reservation.id, {}))
            step = step_between(present, reservation.intended.on(seen.device))
            if step.devices:
                found.append((reservation.id, step))
        found += [(number, Step((), (), forwards, {})) for number, forwards in rules.items()]
        if isinstance(seen.device, str) and (late := self._come_late(seen.device, seen.circuits)):
            found.append((NO_RESERVATION, Step(late, (), {}, {})))
        return found

    def _come_late(self, switch: SwitchId, present: frozenset[CrossConnect]) -> tuple[CrossConnect, ...]:
        """Return late circuits that exist on the switch although they are not wanted."""
        late = present & self._late.circuits(switch)
        return tuple(sorted(late - self.circuits(switch) - self._probes.circuits(switch))) if late else ()

    def foreign(self, switch: SwitchId, present: frozenset[CrossConnect]) -> frozenset[CrossConnect]:
        """Return the foreign circuits on a switch."""
        return present - self.circuits(switch) - self._probes.circuits(switch) - self._late.circuits(switch)

    def begin_session(self, device: Device) -> None:
        """Begin a new session of a device with its state as read: answers to earlier commands are no longer awaited.

        A session that ends answers all outstanding commands, so this concerns commands that were sent between the start
        of the new session and its event; they were based on the earlier state.
        """
        for reservation in self._reservations.on(device):
            target = reservation.rollout.targets.get(device)
            if target is not None and target.state is TargetState.ASKED:
                reservation.rollout.failed(target, "its state was not read when it was queried")

    def reconcile(self, seen: DeviceReading) -> list[Outcome]:
        """Bring a device to what is wanted of it; a share of a step that turns out to be done counts as confirmed."""
        different = self.differences(seen)
        outcomes: list[Outcome] = []
        for number, step in different:
            if number in self._reservations.live:
                self._reservations.give(self._reservations.live[number], seen.device, step)
            else:
                self._outbox.step(number, UNTRACKED, step)
        numbers = {number for number, _ in different}
        failed = [r for r in self._reservations.on(seen.device) if r.rollout.has_failed(seen.device)]
        for reservation in [r for r in failed if r.id not in numbers]:
            if reservation.adding and isinstance(seen.device, str):
                # No light check followed the setup, so the step counts as failed.
                continue
            if (removal := self._removal(reservation, seen.device)).devices:
                self._reservations.give(reservation, seen.device, removal)
                continue
            reservation.rollout.found_done(seen.device)
            outcomes += self._reservations.completed(reservation)
        return outcomes

    def circuits(self, switch: SwitchId) -> set[CrossConnect]:
        """Return every cross-connect of Blast on `switch`, intended or being removed."""
        layouts = [layout for reservation in self._reservations.on(switch) for layout in reservation.layouts]
        return {c for layout in layouts for c in layout.circuits if c.switch == switch}

    def _removal(self, reservation: Reservation, device: Device) -> Step:
        """Return a step that removes all circuits of a released reservation, whatever the reading shows.

        Commands sent before the session's event are executed after the reading, and a circuit, unlike a rule, does not
        identify its owner.
        """
        if reservation.state is not ReservationState.RELEASING or not isinstance(device, str):
            return Step((), (), {}, {})
        circuits = reservation.provisioned.on(device).circuits
        taken = self._reservations.taken_from(reservation)
        return Step(tuple(c for c in circuits if c not in taken), (), {}, {})


def _has_nothing_on(reservation: Reservation, device: Device) -> bool:
    """Return true if the reservation has nothing on this device: the usual case when a machine room starts."""
    if isinstance(device, int):
        return all(device not in layout.forwards for layout in reservation.layouts)
    return all(layout.tree is None or layout.tree.switch != device for layout in reservation.layouts)
