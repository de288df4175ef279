"""Reaction to leaves that go dark or recover: links, alarms, and the repair of a branch while the others stay lit."""

from __future__ import annotations

from collections.abc import Iterator

from blast_controller.core.inventory.links import Links
from blast_controller.core.lifecycle.missing_light import MissingLight
from blast_controller.core.lifecycle.scheduled_checks import ScheduledChecks
from blast_controller.core.light.fault_localizer import NO_LIGHT
from blast_controller.core.light.light_tree import Leaf, LightTree
from blast_controller.core.light.static_tree import StaticLight
from blast_controller.core.model.events import LightAlarmRaised, PortChanged
from blast_controller.core.model.fabric import CrossConnect
from blast_controller.core.model.identifiers import Device, LinkId
from blast_controller.core.model.timers import FlapToleranceExpired
from blast_controller.core.policy.layout_planner import LayoutPlanner
from blast_controller.core.requests.request_table import RequestTable
from blast_controller.core.rollout.change import Change
from blast_controller.core.rollout.outcomes import LeavesDark, Outcome, SetupFailed
from blast_controller.core.rollout.reservation import Reservation
from blast_controller.core.rollout.reservation_states import ReservationState
from blast_controller.core.rollout.reservations import Reservations


class LightRepair:
    """Moves dark leaves to free outputs and returns outcomes like those of any step."""

    def __init__(
        self,
        missing: MissingLight,
        layouts: LayoutPlanner,
        table: RequestTable,
        reservations: Reservations,
        scheduled_checks: ScheduledChecks,
    ) -> None:
        self._missing, self._layouts = missing, layouts
        self._table, self._reservations, self._scheduled_checks = table, reservations, scheduled_checks

    def on_dark(self, outcome: LeavesDark, now: float) -> list[Outcome]:
        """Repair the leaves that are dark after a step."""
        if outcome.reservation.state is ReservationState.LIT:
            return self.repair(outcome.reservation, outcome.outputs, now)
        self._missing.diagnose(outcome.tree, outcome.outputs)
        if outcome.reservation.state is ReservationState.CHANGING:
            self._missing.explain(outcome.reservation, outcome.outputs)
            return []
        places = [leaf.port.element for leaf in outcome.tree.leaves if leaf.port.output in outcome.outputs]
        return [SetupFailed(outcome.reservation, f"no light at {', '.join(places)}")]

    def repair(
        self, reservation: Reservation, outputs: frozenset[int], now: float, fault: str = NO_LIGHT
    ) -> list[Outcome]:
        """Move leaves of a lit tree that have a fault to open outputs; the others stay as they are."""
        tree = reservation.layout.tree
        if tree is None:
            return []
        self._missing.diagnose(tree, outputs, fault)
        curable = self._missing.curable(tree, outputs)
        mended = self._layouts.mended(tree, curable) if curable else None
        if mended is None:
            self._missing.explain(reservation, outputs, fault)
            return []
        request, part = self._table.part_of(reservation)
        target = self._layouts.layout(request.current, part.receivers, mended, reservation.group_address)
        outcomes = self._reservations.change(reservation, Change(target, request.current, 0.0))
        self._scheduled_checks.links(reservation, now)
        return outcomes


class LightWatch:
    """Handles dark leaves and returns outcomes like those of any step."""

    def __init__(
        self,
        links: Links,
        reservations: Reservations,
        missing: MissingLight,
        repair: LightRepair,
        scheduled_checks: ScheduledChecks,
    ) -> None:
        self._links, self._reservations, self._scheduled_checks = links, reservations, scheduled_checks
        self._missing, self._repair = missing, repair

    def on_port_changed(self, event: PortChanged, now: float) -> list[Outcome]:
        """Handle the gain or loss of the link at a ToR's port."""
        link = LinkId(event.datapath, event.port)
        self._links.note(link, event.up, now)
        if event.up:
            leaf = self._leaf_at(link)
            if leaf is not None and leaf[0].state is ReservationState.LIT:
                self._missing.note_over(leaf[0])
            return self._reservations.link_up(link)
        self._scheduled_checks.leaf(link, now)
        for reservation in self._reservations.link_down(link):
            self._scheduled_checks.links(reservation, now)
        return []

    def on_leaf_down(self, deadline: FlapToleranceExpired, now: float) -> list[Outcome]:
        """Handle the end of a port's flap tolerance: if it still has no link, its branch is repaired."""
        since = self._links.down_since.get(deadline.link)
        if since is None:
            return []
        leaf = self._leaf_at(deadline.link)
        if leaf is not None and leaf[0].state is ReservationState.IDLE:
            return self._spoil(*leaf)
        flaps = self._scheduled_checks.may_flap(since, now)
        if flaps or (leaf is not None and leaf[0].busy):
            self._scheduled_checks.leaf(deadline.link, since if flaps else now)
            return []
        return self._branch_lost(*leaf, now) if leaf is not None else []

    def on_alarm(self, event: LightAlarmRaised, now: float) -> list[Outcome]:
        """Handle an alarm of an optical switch. Leaves that are being moved are dark for a moment anyway."""
        for reservation, leaf in self._leaves(event.switch):
            if (leaf.port.switch, leaf.port.output) == (event.switch, event.output):
                if reservation.state is ReservationState.IDLE:
                    return self._spoil(reservation, leaf)
                if not reservation.busy:
                    return self._repair.repair(reservation, frozenset({event.output}), now)
                if all(x.tree is not None and leaf in x.tree.leaves for x in reservation.layouts):
                    reservation.rollout.dark.alarmed.add(event.output)
        return []

    def on_circuit_fault(self, circuit: CrossConnect, fault: str, now: float) -> list[Outcome]:
        """Handle a cross-connect that a switch reports as failed, or whose loss is above the plan."""
        for reservation in self._reservations.on(circuit.switch):
            tree = reservation.layout.tree
            if not isinstance(tree, LightTree) or circuit not in tree.circuits:
                continue
            outputs = tree.outputs_behind(circuit)
            if reservation.state is ReservationState.IDLE:
                reservation.rollout.dark.alarmed.update(outputs)
                return self._reservations.completed(reservation)
            if not reservation.busy:
                return self._repair.repair(reservation, outputs, now, fault)
            if all(x.tree is not None and circuit in x.tree.circuits for x in reservation.layouts):
                reservation.rollout.dark.alarmed.update(outputs)
        return []

    def _spoil(self, reservation: Reservation, leaf: Leaf) -> list[Outcome]:
        reservation.rollout.dark.alarmed.add(leaf.port.output)
        return self._reservations.completed(reservation)

    def _leaves(self, device: Device) -> Iterator[tuple[Reservation, Leaf]]:
        """Yield the leaves of all trees over this device that are not on their way out."""
        for reservation in self._reservations.on(device):
            tree = reservation.layout.tree
            if tree is not None and reservation.state is not ReservationState.RELEASING:
                yield from ((reservation, leaf) for leaf in tree.leaves)

    def _leaf_at(self, link: LinkId) -> tuple[Reservation, Leaf] | None:
        return next((found for found in self._leaves(link.datapath) if self._links.of(found[1].port) == link), None)

    def _branch_lost(self, reservation: Reservation, leaf: Leaf, now: float) -> list[Outcome]:
        tree = reservation.layout.tree
        if not isinstance(tree, StaticLight):
            return self._repair.repair(reservation, frozenset({leaf.port.output}), now)
        self._missing.explain_fixed(reservation, tree, leaf)
        return []
