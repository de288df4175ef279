"""Reservations and their steps on devices: opening, changing, releasing, and what device answers mean for them.

Steps go into the outbox; answers come back as `StepConfirmed` and `StepFailed`, and each one that completes a step
yields an outcome for the core to act on.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import replace

from blast_controller.core.inventory.addresses import GroupAddresses
from blast_controller.core.inventory.inventory import Inventory
from blast_controller.core.inventory.links import Links
from blast_controller.core.light.layout import NOTHING, DeviceState, Layout, Step, both, step_between
from blast_controller.core.light.light_tree import Leaf
from blast_controller.core.model.events import LightNotDetected, StepConfirmed, StepFailed
from blast_controller.core.model.fabric import CrossConnect
from blast_controller.core.model.identifiers import Device, ElementId, LinkId, SwitchId
from blast_controller.core.model.requests import RequestKey
from blast_controller.core.rollout.change import Change, ChangePhase
from blast_controller.core.rollout.outbox import Outbox
from blast_controller.core.rollout.outcomes import (
    Changed,
    ChangeRefused,
    LeavesDark,
    LightLost,
    Lit,
    Outcome,
    Released,
    ReleaseFailed,
    SetupFailed,
    WarmTreeFailed,
)
from blast_controller.core.rollout.reservation import Reservation
from blast_controller.core.rollout.reservation_index import ReservationIndex
from blast_controller.core.rollout.reservation_states import ReservationEvent, ReservationState

_S, _E = ReservationState, ReservationEvent


class Reservations:
    """All live reservations and their states; the resources are shared with the core."""

    def __init__(self, inventory: Inventory, addresses: GroupAddresses, links: Links, outbox: Outbox) -> None:
        self._inventory = inventory
        self.addresses = addresses
        self._links = links
        self._outbox = outbox
        self.last_id = 0
        self.live: dict[int, Reservation] = {}
        self._index = ReservationIndex()
        self.releasing: dict[int, Reservation] = {}
        self._lenders: dict[int, Reservation] = {}
        self._lighting: defaultdict[SwitchId, set[int]] = defaultdict(set)
        self.touched: dict[int, str] = {}

    # --------------------------------------------------------------------------------------------- begin

    def open(
        self,
        request: RequestKey,
        part: int,
        layout: Layout,
        group_address: str,
        lenders: frozenset[int] = frozenset(),
    ) -> Reservation:
        """Take the layout's elements and command devices to set it up, after the circuits of `lenders` are removed."""
        number = self.last_id + 1
        self._inventory.take(layout.elements, number)
        self.last_id = number
        reservation = Reservation(number, request, part, group_address, layout)
        self.live[number] = reservation
        self._index.note_request(request)
        self._begin(reservation, NOTHING, "configuring", lenders)
        return reservation

    def change(self, reservation: Reservation, change: Change, lenders: frozenset[int] = frozenset()) -> list[Outcome]:
        """Start to change a lit reservation; the outcome comes at once when no device has anything to do."""
        self._inventory.take(change.target.elements, reservation.id)
        reservation.take(_E.CHANGE_REQUESTED)
        reservation.change = change
        self._begin(reservation, reservation.layout.device_state, "changing", lenders)
        return self.completed(reservation)

    def keep(self, reservation: Reservation) -> None:
        """Leave a lit reservation as it is on the devices; its elements count as free."""
        reservation.take(_E.KEPT)
        self._inventory.keep_lit(reservation.elements)
        self.touched[reservation.id] = "idle"

    def ask_again(self, reservation: Reservation, request: RequestKey, part: int) -> None:
        """Let an idle reservation serve another part, for which devices have nothing to do."""
        reservation.take(_E.ASKED_AGAIN)
        self._inventory.reclaim(reservation.elements)
        self._index.forget_request(reservation.request)
        self._index.note_request(request)
        reservation.request, reservation.part = request, part
        reservation.rollout.reuse_circuits()
        self.touched[reservation.id] = "lit"

    def note_dark(self, reservation: Reservation, unlit: bool) -> None:
        """Note that a leaf of a lit reservation is dark, or that none is any longer."""
        if reservation.unlit != unlit:
            reservation.unlit = unlit
            self.touched[reservation.id] = "dark" if unlit else "lit"

    def hand_over(self, reservation: Reservation, elements: Collection[ElementId]) -> None:
        """Release an idle reservation in favor of one that is opened in the same decision and takes `elements`.

        Devices disconnect before they connect, so one round serves both. Elements whose removal fails return to this
        one.
        """
        requested = reservation.elements.intersection(elements)
        self.release(reservation, _E.NEEDED)
        reservation.handed_over |= requested
        self._lenders[reservation.id] = reservation
        self._inventory.free(requested)

    def release(self, reservation: Reservation, event: ReservationEvent = _E.PART_ENDED) -> None:
        """Start to undo a reservation, whatever it is doing."""
        reservation.left_behind |= reservation.state is _S.IDLE
        reservation.take(event)
        self._begin_release(reservation)

    def _begin_release(self, reservation: Reservation) -> None:
        self.releasing[reservation.id] = reservation
        self._inventory.release(reservation.id, reservation.elements)
        self._begin(reservation, reservation.provisioned, "releasing")

    def on(self, device: Device) -> list[Reservation]:
        """Return the reservations that a device may hold something of, in order."""
        return [self.live[number] for number in self._index.on(device)]

    def has_hardware(self, request: RequestKey) -> bool:
        """Return true if a request has a reservation, or one of it is still being released."""
        return self._index.has_hardware(request)

    def retry(self, reservation: Reservation) -> list[Outcome]:
        """Give the failed shares of an undoing step to their devices again, as far as they are there."""
        taken = self.taken_from(reservation)
        for target in [target for target in reservation.rollout.failures if target.device not in self._inventory.away]:
            share = target.share
            left = tuple(c for c in share.disconnect if c not in taken)
            self.give(reservation, target.device, replace(share, disconnect=left))
        return self.completed(reservation)

    def taken_from(self, reservation: Reservation) -> set[CrossConnect]:
        """Return cross-connects on handed-over elements that now belong to their new holder."""
        if not reservation.handed_over:
            return set()
        takers = [r for r in self.live.values() if r is not reservation and r.elements & reservation.handed_over]
        return {c for taker in takers for layout in taker.layouts for c in layout.circuits}

    def _begin(
        self, reservation: Reservation, present: DeviceState, note: str, lenders: frozenset[int] = frozenset()
    ) -> None:
        """Let devices that hold `present` go to the intended state."""
        step = step_between(present, reservation.intended)
        number = reservation.rollout.begin(step)
        self._index.note_devices(reservation.id, reservation.rollout.targets)
        self._outbox.step(reservation.id, number, step, _leaves(reservation), lenders)
        reservation.rollout.links = self._links_awaited(reservation, step)
        self._note_lighting(reservation)
        self.touched[reservation.id] = note

    def give(self, reservation: Reservation, device: Device, step: Step) -> None:
        """Send a device its share of a step, whatever commands it received before."""
        mine = step.only(device)
        number = reservation.rollout.give(device, mine)
        self._index.note_devices(reservation.id, (device,))
        self._outbox.step(reservation.id, number, mine, _leaves(reservation))
        self._note_lighting(reservation)

    def _note_lighting(self, reservation: Reservation) -> None:
        if reservation.adding:
            for target in reservation.rollout.waiting:
                if isinstance(target.device, str):
                    self._lighting[target.device].add(reservation.id)

    def is_lighting(self, switch: SwitchId) -> bool:
        """Return true while an optical switch sets up circuits: other commands would delay them."""
        numbers = self._lighting[switch]
        while numbers:
            number = next(iter(numbers))
            reservation = self.live.get(number)
            if reservation is not None and reservation.adding and reservation.rollout.waits_for(switch):
                return True
            numbers.discard(number)
        return False

    # ------------------------------------------------------------------------------------------- restart

    def adopt(self, reservation: Reservation) -> None:
        """Adopt a reservation of an earlier run.

        Unfinished changes continue, or are undone if clients were not notified.
        """
        self._inventory.take(reservation.elements, reservation.id)
        self.addresses.adopt(reservation.group_address)
        self.live[reservation.id] = reservation
        self._index.note_request(reservation.request)
        for layout in reservation.layouts:
            self._index.note_devices(reservation.id, layout.device_state.devices)
        if reservation.handed_over:
            self._lenders[reservation.id] = reservation
        self.last_id = max(self.last_id, reservation.id)
        match reservation.state:
            case _S.CONFIGURING:
                self.release(reservation, _E.FAILURE)
            case _S.IDLE:
                self._inventory.keep_lit(reservation.elements)
            case _S.RELEASING:
                self._begin_release(reservation)
            case _S.CHANGING if reservation.change is not None:
                if reservation.change.phase is ChangePhase.ADDING:
                    reservation.change.missed("the controller restarted during the change")
                present = both(reservation.layout.device_state, reservation.change.target.device_state)
                self._begin(reservation, present, "changing")

    # -------------------------------------------------------------------------------------------- answers

    def answered(self, event: StepConfirmed | StepFailed | LightNotDetected) -> list[Outcome]:
        """Take a device's answer; answers to steps that were superseded are ignored."""
        reservation = self.live.get(event.reservation)
        target = reservation.rollout.asked(event.device, event.step) if reservation is not None else None
        if reservation is None or target is None:
            return []
        match event:
            case StepConfirmed():
                reservation.rollout.confirmed(target, event.elapsed)
            case StepFailed():
                reservation.rollout.failed(target, event.reason)
            case LightNotDetected():
                reservation.rollout.confirmed_dark(target, event.outputs)
        return self.completed(reservation)

    def link_up(self, link: LinkId) -> list[Outcome]:
        """Handle a link that came up: steps that waited for it continue."""
        outcomes: list[Outcome] = []
        for reservation in [r for r in self.on(link.datapath) if link in r.rollout.links]:
            reservation.rollout.links.remove(link)
            outcomes += self.completed(reservation)
        return outcomes

    def link_down(self, link: LinkId) -> list[Reservation]:
        """Handle a lost link: reservations being set up over it wait for it again."""
        found = [r for r in self.on(link.datapath) if link in map(self._link_of, _coming(r))]
        for reservation in found:
            reservation.rollout.links.add(link)
        return found

    def links_overdue(self, number: int, step: int) -> list[Outcome]:
        """End the wait for links: leaves whose port still has no link count as dark."""
        reservation = self.live.get(number)
        if reservation is None or reservation.rollout.begun != step:
            return []
        overdue, reservation.rollout.links = reservation.rollout.links, set()
        for leaf in _all_leaves(reservation):
            if self._link_of(leaf) in overdue:
                reservation.rollout.dark.seen.add(leaf.port.output)
        return self.completed(reservation) if overdue else []

    def _links_awaited(self, reservation: Reservation, step: Step) -> set[LinkId]:
        """Return leaves of the step whose ports have no link yet; restored leaves may be dark."""
        if not (reservation.adding and self._links.down_since):
            return set()
        coming = {c.output for c in step.connect}
        leaves = [leaf for leaf in _all_leaves(reservation) if leaf.port.output in coming]
        return {link for link in map(self._link_of, leaves) if link in self._links.down_since}

    def _link_of(self, leaf: Leaf) -> LinkId:
        return self._links.of(leaf.port)

    def completed(self, reservation: Reservation) -> list[Outcome]:
        """Return the outcomes of a step that needs no further answers; empty otherwise.

        A step without devices completes at once, and the next one may as well.
        """
        outcomes: list[Outcome] = []
        while reservation.rollout.over:
            outcome = self._next(reservation)
            if outcome is not None:
                outcomes.append(outcome)
            at_rest = reservation.state in (_S.LIT, _S.IDLE) and not reservation.rollout.dark
            if at_rest or reservation.state is _S.RELEASED or isinstance(outcome, ReleaseFailed | LightLost):
                break
        return outcomes

    def _next(self, reservation: Reservation) -> Outcome | None:
        match reservation.state:
            case _S.LIT:
                return self._still_lit(reservation)
            case _S.IDLE:
                return self._still_idle(reservation)
            case _S.CONFIGURING:
                return self._configured(reservation)
            case _S.CHANGING:
                return self._changed(reservation)
            case _S.RELEASING:
                return self._released(reservation)
            case _:
                raise AssertionError(f"a reservation in state {reservation.state} has no step to complete")

    def _still_lit(self, reservation: Reservation) -> Outcome | None:
        """Return the loss of a lit reservation, or None: disconnected devices keep their state; a refusal is a loss."""
        tree, dark = reservation.layout.tree, reservation.rollout.dark.take()
        # A refusal does not report darkness but explains it.
        if refusals := reservation.rollout.refusals(self._inventory.away):
            return LightLost(reservation, "; ".join(refusals))
        if tree is not None and dark & tree.leaf_outputs:
            return LeavesDark(reservation, tree, dark & tree.leaf_outputs)
        return None

    def _still_idle(self, reservation: Reservation) -> Outcome | None:
        """Release an idle reservation with a fault: no receiver relies on it, so it is not repaired."""
        if not (reservation.rollout.refusals(self._inventory.away) or reservation.rollout.dark):
            return None
        reservation.rollout.dark.take()
        self.release(reservation, _E.FAILURE)
        return WarmTreeFailed(reservation)

    def _configured(self, reservation: Reservation) -> Outcome:
        if reason := reservation.rollout.failure:
            self.release(reservation, _E.FAILURE)
            return SetupFailed(reservation, reason)
        if reservation.layout.tree is not None and reservation.rollout.dark:
            outputs = reservation.rollout.dark.take()
            self.release(reservation, _E.FAILURE)
            return LeavesDark(reservation, reservation.layout.tree, outputs)
        reservation.take(_E.CONFIRMED)
        self.touched[reservation.id] = "lit"
        return Lit(reservation)

    def _released(self, reservation: Reservation) -> Outcome:
        if reservation.rollout.failures:
            return ReleaseFailed(reservation)
        reservation.take(_E.CONFIRMED)
        del self.live[reservation.id], self.releasing[reservation.id]
        self._index.forget_devices(reservation.id)
        self._index.forget_request(reservation.request)
        self._lenders.pop(reservation.id, None)
        self._give_back(reservation.elements)
        self._inventory.forget(reservation.id)
        self.addresses.free(reservation.group_address)
        self.touched[reservation.id] = "released"
        return Released(reservation)

    def _changed(self, reservation: Reservation) -> Outcome | None:
        change = reservation.change
        if change is None:
            raise AssertionError("a reservation that is changing has no change")
        if change.phase is ChangePhase.ADDING:
            present = reservation.present
            dark = frozenset(reservation.rollout.dark.seen)
            if refusal := reservation.rollout.failure or ("no light at the new leaves" if dark else ""):
                change.missed(refusal)
            else:
                change.added()
            self._begin(reservation, present, change.phase.value)
            return LeavesDark(reservation, change.target.tree, dark) if dark and change.target.tree else None
        if reason := self._unrelit(reservation):
            return LightLost(reservation, reason)
        if reservation.rollout.failures:
            return ReleaseFailed(reservation)
        if change.phase is ChangePhase.UNDOING:
            # A dark leaf that could not be led elsewhere is dark again: to try the same at once would never end.
            still_dark = frozenset(reservation.rollout.dark.seen & _moved(reservation.layout, change.target))
            reservation.rollout.dark.seen -= still_dark
            self._settle(reservation, reservation.layout, _E.FAILURE)
            return ChangeRefused(reservation, change.refusal or "", still_dark)
        fresh = _fresh(reservation.layout, change.target)
        self._settle(reservation, change.target, _E.CONFIRMED)
        return Changed(reservation, change, fresh)

    def _unrelit(self, reservation: Reservation) -> str:
        """Return why circuits that a switch lost during a change cannot be restored; empty if they can.

        Endless retries would hide the fault.
        """
        refused = (target for target in reservation.rollout.failures if target.device not in self._inventory.away)
        return "; ".join(target.reason for target in refused if target.share.connect)

    def _settle(self, reservation: Reservation, layout: Layout, event: ReservationEvent) -> None:
        surplus = reservation.elements - layout.elements
        reservation.layout, reservation.change = layout, None
        reservation.take(event)
        self._give_back(surplus)
        self.touched[reservation.id] = "lit"

    def _give_back(self, elements: frozenset[ElementId]) -> None:
        """Free elements, or return them to a reservation that handed them over and still has circuits on them."""
        self._inventory.free(elements)
        for lender in self._lenders.values():
            if back := lender.handed_over & elements:
                lender.handed_over -= back
                self._inventory.take(back, lender.id)
                self.touched[lender.id] = "releasing"


def _all_leaves(reservation: Reservation) -> list[Leaf]:
    trees = [layout.tree for layout in reservation.layouts if layout.tree is not None]
    return [leaf for tree in trees for leaf in tree.leaves]


def _coming(reservation: Reservation) -> tuple[Leaf, ...]:
    """Return the leaves that the current step is to light."""
    if reservation.state is _S.CONFIGURING:
        return reservation.layout.tree.leaves if reservation.layout.tree else ()
    change = reservation.change
    return _fresh(reservation.layout, change.target) if change and reservation.adding else ()


def _fresh(before: Layout, after: Layout) -> tuple[Leaf, ...]:
    old = before.tree.leaves if before.tree else ()
    return tuple(leaf for leaf in (after.tree.leaves if after.tree else ()) if leaf not in old)


def _moved(before: Layout, after: Layout) -> set[int]:
    """Return the switch outputs of leaves that change their feed."""
    feeds = {leaf.port.output: leaf.feed for leaf in before.tree.leaves} if before.tree else {}
    leaves = after.tree.leaves if after.tree else ()
    return {leaf.port.output for leaf in leaves if feeds.get(leaf.port.output, leaf.feed) != leaf.feed}


def _leaves(reservation: Reservation) -> frozenset[int]:
    return frozenset(leaf.port.output for leaf in _all_leaves(reservation))
