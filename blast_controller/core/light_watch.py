"""Leaves that are dark: links that are waited for, alarms, and the repair of a branch while the others stay lit."""

from __future__ import annotations

from collections.abc import Iterator

from blast_controller.core.light.fault_localizer import NO_LIGHT
from blast_controller.core.light.light_tree import Leaf, LightTree
from blast_controller.core.light.static_tree import StaticLight
from blast_controller.core.model.events import LightAlarm, PortChanged
from blast_controller.core.model.identifiers import LinkId
from blast_controller.core.model.timers import LeafDown, LinkDue
from blast_controller.core.rollout.change import Change
from blast_controller.core.rollout.outcomes import Outcome
from blast_controller.core.rollout.reservation import Reservation
from blast_controller.core.rollout.reservation_states import ReservationState
from blast_controller.core.state import State


class LightWatch:
    """Decides about dark leaves; what comes of it are outcomes like those of any step."""

    def __init__(self, state: State) -> None:
        self._state = state

    def on_port_changed(self, event: PortChanged, now: float) -> list[Outcome]:
        """A ToR's port has, or has lost, its link."""
        link = LinkId(event.datapath, event.port)
        self._state.links.note(link, event.up, now)
        if event.up:
            self._take_back(link)
            return self._state.reservations.link_up(link)
        # A receiver that locks flaps: look again before anything is moved.
        self._state.timers.keep(now + self._state.orders.settings.flap_tolerance, LeafDown(link))
        for reservation in self._state.reservations.link_down(link):
            self.await_links(reservation, now)
        return []

    def await_links(self, reservation: Reservation, now: float) -> None:
        """Wait for the ports of new leaves, but not for ever."""
        if reservation.rollout.links:
            due = LinkDue(reservation.id, reservation.rollout.begun)
            self._state.timers.add(now + self._state.orders.settings.link_wait, due)

    def on_leaf_down(self, deadline: LeafDown, now: float) -> list[Outcome]:
        """A port had lost its link a while ago; if it still has none, its branch is repaired."""
        since = self._state.links.down_since.get(deadline.link)
        if since is None:
            return []
        due = since + self._state.orders.settings.flap_tolerance
        leaf = self._leaf_at(deadline.link)
        if leaf is not None and leaf[0].state is ReservationState.IDLE:
            return self._spoil(*leaf)
        if due > now or (leaf is not None and leaf[0].busy):
            self._state.timers.keep(due if due > now else now + self._state.orders.settings.flap_tolerance, deadline)
            return []
        return self._branch_lost(*leaf, now) if leaf is not None else []

    def on_alarm(self, event: LightAlarm, now: float) -> list[Outcome]:
        """An optical switch sees no light at an output. What is being moved anyway is dark for a moment."""
        for reservation, leaf in self._leaves():
            if (leaf.port.switch, leaf.port.output) == (event.switch, event.output):
                if reservation.state is ReservationState.IDLE:
                    return self._spoil(reservation, leaf)
                if not reservation.busy:
                    return self.repair(reservation, frozenset({event.output}), now)
                if all(x.tree is not None and leaf in x.tree.leaves for x in reservation.layouts):
                    reservation.rollout.dark.alarmed.add(event.output)
        return []

    def _spoil(self, reservation: Reservation, leaf: Leaf) -> list[Outcome]:
        reservation.rollout.dark.alarmed.add(leaf.port.output)
        return self._state.reservations.completed(reservation)

    def _leaves(self) -> Iterator[tuple[Reservation, Leaf]]:
        """The leaves of all trees that are not on their way out."""
        for reservation in self._state.reservations.live.values():
            tree = reservation.layout.tree
            if tree is not None and reservation.state is not ReservationState.RELEASING:
                yield from ((reservation, leaf) for leaf in tree.leaves)

    def _leaf_at(self, link: LinkId) -> tuple[Reservation, Leaf] | None:
        link_of = self._state.links.of
        return next((found for found in self._leaves() if link_of(found[1].port) == link), None)

    def look_at_fixed_leaves(self, reservation: Reservation, now: float) -> None:
        """Say of a static tree that has just been granted which of its leaves are known to be dark."""
        tree = reservation.layout.tree
        for leaf in tree.leaves if isinstance(tree, StaticLight) else ():
            if not self._state.links.are_up([leaf.port]):
                self._branch_lost(reservation, leaf, now)

    def _branch_lost(self, reservation: Reservation, leaf: Leaf, now: float) -> list[Outcome]:
        tree = reservation.layout.tree
        if not isinstance(tree, StaticLight):
            return self.repair(reservation, frozenset({leaf.port.output}), now)
        reason = f"no light at {leaf.port.element}, and the fibres of the static tree {tree.name} are fixed"
        self._state.table.explain(*self._state.table.part_of(reservation), reason)
        return []

    def _take_back(self, link: LinkId) -> None:
        """A leaf has its link again: nothing is missing any longer."""
        leaf = self._leaf_at(link)
        if leaf is not None and leaf[0].state is ReservationState.LIT:
            self._state.reservations.note_dark(leaf[0], False)
            self._state.table.explain(*self._state.table.part_of(leaf[0]), None)

    def diagnose(self, tree: LightTree, outputs: frozenset[int]) -> None:
        """Take the most likely culprits out of use. What the operator has taken out of use stays as it is."""
        diagnosis = self._state.localizer.dark(tree, outputs)
        quarantined = self._state.inventory.quarantined
        for element in diagnosis.clear:
            if quarantined.get(element, "").startswith(NO_LIGHT):
                self._state.quarantine(element, None)
        for element, reason in diagnosis.quarantine.items():
            if element not in quarantined:
                self._state.quarantine(element, reason)

    def explain(self, reservation: Reservation, outputs: frozenset[int]) -> None:
        """Say in the status which leaves that were promised light have none, and why they cannot get any."""
        tree = reservation.layout.tree
        dark = [leaf.port.element for leaf in tree.leaves if leaf.port.output in outputs] if tree else []
        blamed = [self._state.inventory.unusable(element) for element in dark]
        why = "; ".join(reason for reason in blamed if reason) or "and no open leg to lead it there"
        if dark:
            reason = f"no light at {', '.join(dark)}, {why}"
            self._state.reservations.note_dark(reservation, True)
            self._state.table.explain(*self._state.table.part_of(reservation), reason)

    def repair(self, reservation: Reservation, outputs: frozenset[int], now: float) -> list[Outcome]:
        """Move dark leaves of a lit tree to open legs; the others stay as they are."""
        tree = reservation.layout.tree
        if tree is None:
            return []
        self.diagnose(tree, outputs)
        mended = self._mended(tree, outputs)
        if mended is None:
            self.explain(reservation, outputs)
            return []
        request, part = self._state.table.part_of(reservation)
        target = self._state.layout_planner.layout(request.current, part.receivers, mended, reservation.group_address)
        outcomes = self._state.reservations.change(reservation, Change(target, request.current, 0.0))
        self.await_links(reservation, now)
        return outcomes

    def _mended(self, tree: LightTree, outputs: frozenset[int]) -> LightTree | None:
        """The tree with dark leaves on other legs; None where that helps nobody."""
        inventory = self._state.inventory
        curable = [
            leaf for leaf in tree.leaves if leaf.port.output in outputs and not inventory.unusable(leaf.port.element)
        ]
        if not curable:
            return None
        return self._state.layout_planner.mended(tree, [leaf.port.output for leaf in curable])
