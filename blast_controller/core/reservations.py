"""Reservations and their steps on devices: opening, changing, releasing, and what device answers mean for them.

Steps go into the outbox; answers come back as `StepConfirmed` and `StepFailed`, and each one that completes a step
yields an outcome for the core to act on.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from blast_controller.core.events import Device, StepConfirmed, StepFailed
from blast_controller.core.fabric import CrossConnect
from blast_controller.core.layout import Layout, Step, adding, lighting, releasing, removing
from blast_controller.core.ledger import Ledger
from blast_controller.core.outbox import Outbox
from blast_controller.core.requests import MulticastRequest, RequestKey
from blast_controller.core.reservation import Change, ChangePhase, Reservation
from blast_controller.core.reservation_states import ReservationEvent, ReservationState

_S, _E = ReservationState, ReservationEvent

UNTRACKED = 0
"""Number of a step whose answer nobody waits for; those that count begin at 1."""


@dataclass(frozen=True, slots=True)
class Lit:
    """Every device has confirmed: the grant may go out."""

    reservation: Reservation


@dataclass(frozen=True, slots=True)
class NotLit:
    """A device could not do its share; the reservation is being released."""

    reservation: Reservation
    reason: str


@dataclass(frozen=True, slots=True)
class Changed:
    """A change is in force."""

    reservation: Reservation
    change: Change


@dataclass(frozen=True, slots=True)
class ChangeRefused:
    """A device could not do its share of a change; the old state is in force."""

    reservation: Reservation
    reason: str


@dataclass(frozen=True, slots=True)
class Gone:
    """Everything is undone and its resources are free."""

    reservation: Reservation


@dataclass(frozen=True, slots=True)
class Stuck:
    """A step that cannot be given up failed and must be tried again: undoing, or restoring what a ToR forgot."""

    reservation: Reservation


Outcome = Lit | NotLit | Changed | ChangeRefused | Gone | Stuck


class Reservations:
    """All live reservations. Owns their states; the ledger and the outbox are shared with the core."""

    def __init__(self, ledger: Ledger, outbox: Outbox) -> None:
        self._ledger = ledger
        self._outbox = outbox
        self._last_id = 0
        self.live: dict[int, Reservation] = {}

    # --------------------------------------------------------------------------------------------- begin

    def open(self, request: RequestKey, part: int, layout: Layout, group_address: str) -> Reservation:
        """Take the layout's elements and tell devices to light it."""
        number = self._last_id + 1
        self._ledger.take(layout.elements, number)
        self._last_id = number
        reservation = Reservation(number, request, part, group_address, layout)
        self.live[number] = reservation
        self._begin(reservation, lighting(layout))
        return reservation

    def change(
        self, reservation: Reservation, target: Layout, request: MulticastRequest, extra_lease: float
    ) -> list[Outcome]:
        """Start to change a lit reservation; the outcome comes at once when no device has anything to do."""
        self._ledger.take(target.elements, reservation.id)
        reservation.take(_E.CHANGE_WANTED)
        reservation.change = Change(target, request, extra_lease)
        self._begin(reservation, adding(reservation.layout, target))
        return self._completed(reservation)

    def release(self, reservation: Reservation, event: ReservationEvent = _E.PART_ENDED) -> None:
        """Start to undo a reservation, whatever it is doing."""
        reservation.take(event)
        self._begin(reservation, releasing(reservation.layouts))

    def retry(self, reservation: Reservation) -> None:
        """Give the failed share of an undoing step to its devices again, as far as they are there."""
        present = {device for device in reservation.failed if device not in self._ledger.away}
        if not present or reservation.current_step is None or reservation.waiting:
            return
        for device in present:
            del reservation.failed[device]
        reservation.waiting = self._outbox.step(reservation.id, reservation.step, reservation.current_step, present)

    def restore_forwards(self, datapath: int) -> None:
        """Give a ToR that came back all its rules again; rules that survived are overwritten."""
        for reservation in self.live.values():
            if any(datapath in layout.forwards for layout in reservation.layouts):
                self._restore(reservation, datapath)

    def _restore(self, reservation: Reservation, datapath: int) -> None:
        match reservation.state:
            case _S.CHANGING:
                self._restore_amid_change(reservation, datapath)
            case _S.CONFIGURING | _S.LIT if datapath not in reservation.waiting:
                reservation.failed.pop(datapath, None)
                reservation.current_step = lighting(reservation.layout)
                reservation.waiting |= self._outbox.step(
                    reservation.id, reservation.step, reservation.current_step, {datapath}
                )

    def _restore_amid_change(self, reservation: Reservation, datapath: int) -> None:
        if mine := reservation.in_force.forwards.get(datapath):
            self._outbox.step(reservation.id, UNTRACKED, Step((), (), {}, {datapath: mine}))
        reservation.returned.add(datapath)
        self._doubt(reservation, datapath, f"the ToR {datapath:016x} came back in the middle of the change")

    def _begin(self, reservation: Reservation, step: Step) -> None:
        reservation.step += 1
        reservation.current_step = step
        reservation.failed.clear()
        reservation.elapsed.clear()
        reservation.waiting = self._outbox.step(reservation.id, reservation.step, step)

    # -------------------------------------------------------------------------------------------- answers

    def answered(self, event: StepConfirmed | StepFailed) -> list[Outcome]:
        """Take a device's answer; answers to steps that are no longer wanted are ignored."""
        reservation = self.live.get(event.reservation)
        if reservation is None or event.step != reservation.step or event.device not in reservation.waiting:
            return []
        reservation.waiting.remove(event.device)
        if isinstance(event, StepConfirmed):
            reservation.elapsed[event.device] = event.elapsed
        else:
            reservation.failed[event.device] = event.reason
        return self._completed(reservation)

    def _completed(self, reservation: Reservation) -> list[Outcome]:
        # A step without devices completes at once, and the next one may too.
        while not reservation.waiting:
            outcome = self._next(reservation)
            if outcome is not None:
                return [outcome]
            if reservation.state is _S.LIT:
                break
        return []

    def _next(self, reservation: Reservation) -> Outcome | None:
        match reservation.state:
            case _S.LIT:
                return Stuck(reservation) if reservation.failed else None
            case _S.CONFIGURING:
                return self._configured(reservation)
            case _S.CHANGING:
                return self._changed(reservation)
            case _S.RELEASING:
                return self._released(reservation)
            case _:
                raise AssertionError(f"a reservation in state {reservation.state} has no step to complete")

    def _configured(self, reservation: Reservation) -> Outcome:
        if reason := reservation.failure:
            self.release(reservation, _E.FAILURE)
            return NotLit(reservation, reason)
        reservation.take(_E.CONFIRMED)
        return Lit(reservation)

    def _released(self, reservation: Reservation) -> Outcome:
        if reservation.failed:
            return Stuck(reservation)
        reservation.take(_E.CONFIRMED)
        self._ledger.free(reservation.elements)
        self._ledger.free_address(reservation.group_address)
        del self.live[reservation.id]
        return Gone(reservation)

    def _changed(self, reservation: Reservation) -> Outcome | None:
        change = reservation.change
        if change is None:
            raise AssertionError("a reservation that is changing has no change")
        if change.phase is ChangePhase.ADDING:
            if reason := reservation.failure:
                change.phase, change.refusal = ChangePhase.UNDOING, reason
                self._begin(reservation, removing(change.target, reservation.layout))
            else:
                change.phase = ChangePhase.REMOVING
                self._begin(reservation, removing(reservation.layout, change.target))
            return None
        if reservation.failed:
            return Stuck(reservation)
        if change.phase is ChangePhase.UNDOING:
            self._settle(reservation, reservation.layout, _E.FAILURE)
            return ChangeRefused(reservation, change.refusal or "")
        self._settle(reservation, change.target, _E.CONFIRMED)
        return Changed(reservation, change)

    def _settle(self, reservation: Reservation, layout: Layout, event: ReservationEvent) -> None:
        surplus = reservation.elements - layout.elements
        reservation.layout, reservation.change = layout, None
        reservation.take(event)
        self._ledger.free(surplus)
        for datapath in reservation.returned & set(layout.forwards):
            self._restore(reservation, datapath)
        reservation.returned.clear()

    # ------------------------------------------------------------------------------------------- observed

    def circuits(self, switch: str) -> set[CrossConnect]:
        """Every cross-connect on `switch` that is ours, wanted or on its way out."""
        layouts = [layout for reservation in self.live.values() for layout in reservation.layouts]
        return {c for layout in layouts for c in layout.circuits if c.switch == switch}

    def dark(self, switch: str, observed: Collection[CrossConnect]) -> list[Reservation]:
        """Lit or changing reservations of which `switch` has lost a cross-connect that is in force."""
        return [
            reservation
            for reservation in self.live.values()
            if reservation.state in (_S.LIT, _S.CHANGING) and _lacking(reservation.in_force, switch, observed)
        ]

    def doubt(self, switch: str, observed: Collection[CrossConnect]) -> None:
        """Let what is being lit or added fail if `switch` had confirmed its share and has lost some of it since."""
        for reservation in self.live.values():
            if _lacking(reservation.layouts[-1], switch, observed):
                self._doubt(reservation, switch, f"{switch} came back without its cross-connects")

    @staticmethod
    def _doubt(reservation: Reservation, device: Device, reason: str) -> None:
        adding = reservation.change is not None and reservation.change.phase is ChangePhase.ADDING
        still_to_come = isinstance(device, str) and device in reservation.waiting
        if (reservation.state is _S.CONFIGURING or adding) and not still_to_come:
            reservation.failed[device] = reason

    def stuck_on(self, device: Device) -> list[Reservation]:
        """Reservations with a failed step on `device` that is to be tried again."""
        return [r for r in self.live.values() if device in r.failed and not r.waiting]


def _lacking(layout: Layout, switch: str, observed: Collection[CrossConnect]) -> bool:
    return any(c.switch == switch and c not in observed for c in layout.circuits)
