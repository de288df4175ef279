"""Faults put into the core, its journal's use and its devices on purpose: the machine must find every one of them.

Each is a small patch of one method. `LEAKS` are those that no client and no journal ever notices: they show only in
what devices are left with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from inspect import isfunction
from typing import Any

import pytest

from algorithms.leaf_assignment import Refusal
from algorithms.scheduling.scheduler import Scheduler
from blast_controller.core import durable
from blast_controller.core.applications import Applications
from blast_controller.core.auditor import Auditor
from blast_controller.core.durable import JournalWriter
from blast_controller.core.fibres import probe_circuits
from blast_controller.core.fibres.probe_circuits import ProbeCircuits
from blast_controller.core.inventory.addresses import GroupAddresses
from blast_controller.core.inventory.inventory import Inventory
from blast_controller.core.light.budgeted_tree import BudgetedTree, TreeEnds
from blast_controller.core.light.layout import NOTHING, Holding, Step, everything
from blast_controller.core.light.light_budget import LightBudget
from blast_controller.core.light.light_tree import build
from blast_controller.core.model.commands import Command, SetCircuits, SetForwarding
from blast_controller.core.model.errors import RequestError
from blast_controller.core.model.events import StepConfirmed, StepDark, StepFailed
from blast_controller.core.model.fabric import Splitter
from blast_controller.core.model.part_states import PartEvent, PartState
from blast_controller.core.model.records import Record
from blast_controller.core.model.requests import MulticastRequest, Request
from blast_controller.core.policy.splitter_limits import SplitterLimits
from blast_controller.core.requests.request_table import RequestTable
from blast_controller.core.rollout.change import ChangePhase
from blast_controller.core.rollout.outbox import Outbox
from blast_controller.core.rollout.outcomes import Outcome
from blast_controller.core.rollout.reconciliation import UNTRACKED, Reconciliation, Seen
from blast_controller.core.rollout.reservation import Reservation
from blast_controller.core.rollout.reservation_states import ReservationEvent, ReservationState
from blast_controller.core.rollout.reservations import Reservations
from tests.support.fake_devices import FakeDevice

Patch = pytest.MonkeyPatch


def act_before_journal(patch: Patch) -> None:
    """Devices hear of an intent before it is on disk."""
    drain = Outbox.drain

    def late_records(self: Outbox) -> list[Command]:
        return sorted(drain(self), key=lambda command: not isinstance(command, SetCircuits | SetForwarding))

    patch.setattr(Outbox, "drain", late_records)


def leaked_splitter(patch: Patch) -> None:
    """Splitters stay held when their reservation is gone."""
    free = Inventory.free

    def free_ports(self: Inventory, elements: set[str]) -> None:
        free(self, [element for element in elements if not element.startswith("splitter:")])

    patch.setattr(Inventory, "free", free_ports)


def foreign_circuit_deleted(patch: Patch) -> None:
    """An audit takes away what is not ours."""
    reconcile = Reconciliation.reconcile

    def tidy(self: Reconciliation, seen: Seen) -> list[Outcome]:
        if isinstance(seen.device, str):
            strangers = tuple(sorted(seen.circuits - self.circuits(seen.device)))
            if strangers:
                self._outbox.step(0, UNTRACKED, Step(strangers, (), {}, {}))
        return reconcile(self, seen)

    patch.setattr(Reconciliation, "reconcile", tidy)


def stale_epoch_writes(patch: Patch) -> None:
    """Devices obey a controller that was replaced."""
    patch.setattr(FakeDevice, "accepts", lambda self, epoch: True)


def grant_before_barrier(patch: Patch) -> None:
    """The first device that confirms counts for all of them."""
    answered = Reservations.answered

    def hasty(self: Reservations, event: StepConfirmed | StepFailed) -> list[Outcome]:
        reservation = self.live.get(event.reservation)
        if reservation and reservation.state is ReservationState.CONFIGURING and isinstance(event, StepConfirmed):
            for target in reservation.rollout.waiting:
                if target.device != event.device:
                    reservation.rollout.confirmed(target, 0.0)
            reservation.rollout.links.clear()
        return answered(self, event)

    patch.setattr(Reservations, "answered", hasty)


def double_grant_after_restart(patch: Patch) -> None:
    """A restart forgets that a part was granted, and lights it again."""
    load = durable.load_request

    def forget(body, now: float) -> Request:
        request = load(body, now)
        for part in request.parts:
            if part.state is PartState.ACTIVE:
                part.state = PartState.PENDING
        return request

    patch.setattr(durable, "load_request", forget)


def number_reused(patch: Patch) -> None:
    """The highest number of a reservation is not kept, so that cookies on devices mean something else later."""
    unwritten = JournalWriter.unwritten

    def without_number(self: JournalWriter) -> Iterator[Record]:
        return (record for record in unwritten(self) if record.kind != "meta")

    patch.setattr(JournalWriter, "unwritten", without_number)


def lease_not_rearmed(patch: Patch) -> None:
    """After a restart nobody looks when a lease is over."""
    adopt = RequestTable.adopt

    def adopt_without_lease(self: RequestTable, request, now: float) -> None:
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(RequestTable, "lease", lambda *_: None)
            adopt(self, request, now)

    patch.setattr(RequestTable, "adopt", adopt_without_lease)


def orphan_rule_left(patch: Patch) -> None:
    """Rules of reservations that are gone stay on a ToR that brings them back."""
    differences = Reconciliation.differences

    def of_the_living(self: Reconciliation, seen: Seen) -> list[tuple[int, Step]]:
        return [(number, step) for number, step in differences(self, seen) if number in self._reservations.live]

    patch.setattr(Reconciliation, "differences", of_the_living)


def delete_all_push_all(patch: Patch) -> None:
    """A ToR that returns gets its rules anew although they are right."""
    differences = Reconciliation.differences

    def rewrite(self: Reconciliation, seen: Seen) -> list[tuple[int, Step]]:
        found = dict(differences(self, seen))
        for number, forwards in seen.by_reservation().items():
            reservation = self._reservations.live.get(number)
            if number not in found and reservation and not reservation.busy:
                found[number] = Step((), (), forwards, forwards)
        return list(found.items())

    patch.setattr(Reconciliation, "differences", rewrite)


def delete_before_add(patch: Patch) -> None:
    """A change takes the old away before the new is there."""

    def wanted(self: Reservation) -> Holding:
        if self.state is ReservationState.RELEASING:
            return NOTHING
        if self.change is not None and self.change.phase is ChangePhase.ADDING:
            kept = set(self.change.target.holding.circuits)
            circuits = tuple(c for c in self.layout.circuits if c in kept)
            return replace(self.layout.holding, circuits=circuits)
        return self.in_force.holding

    patch.setattr(Reservation, "wanted", property(wanted))


def undo_lost_after_partial(patch: Patch) -> None:
    """What failed is taken to have had no effect, and is not undone."""
    release = Reservations.release

    def release_confirmed(
        self: Reservations, reservation: Reservation, event: ReservationEvent = ReservationEvent.PART_ENDED
    ) -> None:
        failed = {target.device for target in reservation.rollout.failures}
        if event is not ReservationEvent.FAILURE or not failed:
            release(self, reservation, event)
            return
        reservation.take(event)
        self._inventory.release(reservation.id, reservation.elements)
        held = everything(x.holding for x in reservation.layouts)
        present = Holding(
            tuple(c for c in held.circuits if c.switch not in failed),
            {datapath: forwards for datapath, forwards in held.forwards.items() if datapath not in failed},
        )
        self._begin(reservation, present, "releasing")

    patch.setattr(Reservations, "release", release_confirmed)


def free_before_confirmed(patch: Patch) -> None:
    """An undoing step that failed counts as done."""
    released = Reservations._released

    def careless(self: Reservations, reservation: Reservation) -> Outcome:
        for target in reservation.rollout.failures:
            reservation.rollout.found_done(target.device)
        return released(self, reservation)

    patch.setattr(Reservations, "_released", careless)


def old_answer_accepted(patch: Patch) -> None:
    """An answer counts whichever step it belongs to."""
    answered = Reservations.answered

    def any_step(self: Reservations, event: StepConfirmed | StepFailed) -> list[Outcome]:
        reservation = self.live.get(event.reservation)
        target = reservation.rollout.targets.get(event.device) if reservation else None
        return answered(self, event if target is None else replace(event, step=target.number))

    patch.setattr(Reservations, "answered", any_step)


def key_reuse_accepted(patch: Patch) -> None:
    """A key that is known is answered whatever the content."""
    submitted = Applications.on_submitted

    def lax(self: Applications, event, now: float) -> None:
        if event.request.id not in self._table.requests:
            submitted(self, event, now)

    patch.setattr(Applications, "on_submitted", lax)


def repetition_admitted_twice(patch: Patch) -> None:
    """The same key and content again begins anew."""
    submitted = Applications.on_submitted

    def forgetful(self: Applications, event, now: float) -> None:
        known: MulticastRequest | None = None
        request = self._table.requests.get(event.request.id)
        if request is not None and request.state.final:
            known = request.content
        if known == event.request:
            del self._table.requests[event.request.id]
        submitted(self, event, now)

    patch.setattr(Applications, "on_submitted", forgetful)


def refusal_leaves_a_trace(patch: Patch) -> None:
    """An extension that is refused has taken a group address and given it back: the next one is another."""
    extend = Applications.on_extension

    def careless(self: Applications, event, now: float) -> None:
        try:
            extend(self, event, now)
        except RequestError:
            self._extensions._reservations.addresses.next += 1
            raise

    patch.setattr(Applications, "on_extension", careless)


def end_not_journalled(patch: Patch) -> None:
    """A part that has ended is active again after a restart."""
    move = RequestTable.move

    def silent(self: RequestTable, request, part, event: PartEvent) -> None:
        move(self, request, part, event)
        if event is PartEvent.FINISHED:
            self.touched.pop(request.current.id, None)

    publish = RequestTable.publish

    def silent_publish(self: RequestTable, request, part, kind, **more) -> None:
        publish(self, request, part, kind, **more)
        if more.get("state") is PartState.DONE:
            self.touched.pop(request.current.id, None)

    patch.setattr(RequestTable, "move", silent)
    patch.setattr(RequestTable, "publish", silent_publish)


def dry_run_repairs(patch: Patch) -> None:
    """A dry run of an audit changes devices."""
    begin = Auditor.begin

    def lying(self: Auditor, dry_run: bool) -> None:
        begin(self, dry_run)
        if self._round is not None and self._round.unread:
            self._round.dry_run = False

    patch.setattr(Auditor, "begin", lying)


def removal_forgotten(patch: Patch) -> None:
    """A change that was confirmed leaves the old rules and circuits where they were."""
    begin = Reservations._begin

    def only_add(self: Reservations, reservation: Reservation, present: Holding, note: str, *more: Any) -> None:
        if reservation.change is not None and reservation.change.phase is ChangePhase.REMOVING:
            present = reservation.wanted
        begin(self, reservation, present, note, *more)

    patch.setattr(Reservations, "_begin", only_add)


def address_given_back_early(patch: Patch) -> None:
    """A group address is free while the rules for it are still being removed."""
    release = Reservations.release

    def hasty(
        self: Reservations, reservation: Reservation, event: ReservationEvent = ReservationEvent.PART_ENDED
    ) -> None:
        release(self, reservation, event)
        self.addresses._used.discard(reservation.group_address)

    patch.setattr(Reservations, "release", hasty)
    patch.setattr(GroupAddresses, "free", lambda self, address: self._used.discard(address))


def quota_ignored(patch: Patch) -> None:
    """A tenant gets splitters beyond what it may hold."""
    patch.setattr(SplitterLimits, "in_all", lambda self, now: {})
    patch.setattr(SplitterLimits, "left", lambda self, now: {})


def dark_counts_as_lit(patch: Patch) -> None:
    """A switch that sees no light at a leaf counts as having lit it."""
    answered = Reservations.answered

    def blind(self: Reservations, event: StepConfirmed | StepFailed | StepDark) -> list[Outcome]:
        if isinstance(event, StepDark):
            event = StepConfirmed(event.device, event.reservation, event.step, 0.0)
        return answered(self, event)

    patch.setattr(Reservations, "answered", blind)


def link_not_awaited(patch: Patch) -> None:
    """A grant leaves although a leaf's port has no link."""
    patch.setattr(Reservations, "_links_awaited", lambda self, reservation, step: set())


def probes_not_journalled(patch: Patch) -> None:
    """The circuits of a fibre check are made without a record."""
    record = Outbox.record

    def forgetful(self: Outbox, entry: Record) -> None:
        if entry.kind != probe_circuits.KIND:
            record(self, entry)

    patch.setattr(Outbox, "record", forgetful)


def probes_left_after_restart(patch: Patch) -> None:
    """A restart takes over a fibre check's circuits in its books, and does not remove them."""
    patch.setattr(ProbeCircuits, "back", lambda self, switch, circuits: False)


def static_tree_shared(patch: Patch) -> None:
    """Two groups get one static tree."""
    patch.setattr(Inventory, "available_static", Inventory.usable_static)
    take = Inventory.take

    def careless(self: Inventory, elements: Iterable[str], reservation: int) -> None:
        take(self, [e for e in elements if not e.startswith("static:") or e not in self.holders], reservation)

    patch.setattr(Inventory, "take", careless)


def budget_ignored(patch: Patch) -> None:
    """Trees are built by the number of legs alone, where the matching has found splitters."""
    tree = LightBudget.tree

    def by_number(
        self: LightBudget, ends: TreeEnds, matched: Sequence[Splitter], free: Sequence[Splitter], most: int | None
    ) -> BudgetedTree | Refusal:
        try:
            return BudgetedTree(build(ends.root, ends.receivers, matched, ends.loop_leaf), ())
        except ValueError:
            return tree(self, ends, matched, free, most)

    patch.setattr(LightBudget, "tree", by_number)


def refused_for_ever(patch: Patch) -> None:
    """Whom the power budget has refused is not looked at again when more is free."""
    patch.setattr(Scheduler, "_may_do", lambda self, waiting, found, hold: found.switch.name not in waiting.refused)


def splitter_counted_twice(patch: Patch) -> None:
    """What is given back counts as dark, and once more when it has been."""
    release = Inventory.release

    def forgetful(self: Inventory, holder: int, elements: Iterable[str]) -> None:
        gone = list(elements)
        release(self, holder, gone)
        for element in gone:
            if element.startswith("splitter:"):
                account = self._accounts[element]
                self._accounts[element] = account._replace(counts=account.counts._replace(idle=False, dark=False))

    patch.setattr(Inventory, "release", forgetful)


BUGS: dict[str, Callable[[Patch], None]] = {
    name: bug for name, bug in list(globals().items()) if isfunction(bug) and bug.__module__ == __name__
}

LEAKS = ("act_before_journal", "orphan_rule_left", "undo_lost_after_partial", "free_before_confirmed")

SEEDS = {
    "act_before_journal": 18,
    "stale_epoch_writes": 9,
    "number_reused": 15,
    "orphan_rule_left": 21,
    "undo_lost_after_partial": 15,
    "old_answer_accepted": 11,
    "dry_run_repairs": 20,
    "quota_ignored": 15,
    "dark_counts_as_lit": 76,
    "static_tree_shared": 17,
    "refused_for_ever": 88,
}
"""Episodes that find a bug at once which the first ones do not; a seed that no longer does only costs time."""
