"""Makes true what the policy decides: parts are split, lit, kept lit or paused; and serves who needs no policy."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from algorithms.b_matching.residual import Choice
from algorithms.leaf_assignment import Refusal
from algorithms.scheduling.job import PartName
from algorithms.scheduling.selection import Start
from blast_controller.core.grants import make_grant
from blast_controller.core.lifecycle import Lifecycle
from blast_controller.core.light.light_budget import told
from blast_controller.core.light.light_tree import LightTree
from blast_controller.core.light.static_tree import StaticLight
from blast_controller.core.model.errors import Rejected
from blast_controller.core.model.part_states import PartEvent, PartState
from blast_controller.core.model.requests import EventKind, Part, Request
from blast_controller.core.policy.dispatcher import PartView
from blast_controller.core.policy.light_plan import Planned
from blast_controller.core.rollout.outcomes import Lit
from blast_controller.core.rollout.reservation import Reservation
from blast_controller.core.state import State


class Placements:
    """Opens reservations for parts that get light."""

    def __init__(self, state: State, lifecycle: Lifecycle) -> None:
        self._state = state
        self._lifecycle = lifecycle
        self._aside: dict[PartName, PartView] = {}

    # ------------------------------------------------------------------------------ what has to be looked at

    def part_views(self) -> list[PartView]:
        """The parts of every request about which something has changed."""
        state = self._state
        names = dict.fromkeys([*state.next_decision.take_requests(), *state.table.touched])
        found = [state.table.requests[name] for name in names if name in state.table.requests]
        return [state.part_view(request, part) for request in found for part in request.parts]

    def leases_over(self, now: float) -> list[PartView]:
        """The parts that compete anew. One whose tree is being changed, or is nobody else's loss, keeps it."""
        over = self._state.next_decision.take_leases()
        active = [view for view in over if view.part.state is PartState.ACTIVE]
        competing = [s for s in active if not s.busy and self._state.dispatcher.has_given_light_to(s.name)]
        for view in active:
            if view not in competing:
                self._go_on(view.request, view.part, now)
        return competing

    def end_again(self, leases: Iterable[PartView], names: Collection[PartName]) -> None:
        """Let these leases end at the next decision, since this one is postponed."""
        self._state.next_decision.end_leases(view for view in leases if view.name in names)

    # ------------------------------------------------------------------------------------ without the policy

    def serve_aside(self, views: Iterable[PartView], limits: Mapping[str, int], now: float) -> list[PartView]:
        """Light groups within one rack, and static trees: they cost nobody else any light. Returns whom it has lit."""
        for view in [view for view in views if view.part.state is PartState.PENDING]:
            wanted, part = view.request.current, view.part
            static = self._state.layout_planner.has_static(wanted, part.receivers)
            if static or not self._state.dispatcher.competes(wanted, part):
                self._aside[view.name] = view
        lit: list[PartView] = []
        for view in list(self._aside.values()):
            if view.part.state is not PartState.PENDING:
                del self._aside[view.name]
            elif not self._state.layout_planner.absent_datapaths(view.request.current, view.part.receivers):
                self._serve_alone(view, limits, now)
                lit += [view] if view.part.state is not PartState.PENDING else []
        return lit

    def _serve_alone(self, view: PartView, limits: Mapping[str, int], now: float) -> None:
        request, part = view.request, view.part
        if not self._state.dispatcher.competes(request.current, part):
            self._light(request, part, None, now)
        elif limits.get(request.current.tenant, 0) >= 0:
            tree = self._state.layout_planner.static_for(request.current, part.receivers)
            if tree is not None:
                self._light(request, part, tree, now)

    # --------------------------------------------------------------------------------------- with the policy

    def pause(self, names: Iterable[PartName], now: float) -> None:
        """Take the light from parts whose lease is over; whoever goes first may use their trees."""
        for name in names:
            request, part = self._state.table.named(name)
            reservation = self._state.reservations.live[part.reservation or 0]
            self._state.quota.dark(reservation.id, now)
            self._state.warm.keep_idle(reservation, request.current, now)
            part.grant = part.lease_end = part.reservation = None
            part.heard = False
            self._state.table.move(request, part, PartEvent.PAUSED)
            reason = f"The lease is over and others go first; it will continue at byte {part.reached}."
            self._state.table.publish(request, part, EventKind.PAUSED, reason=reason)

    def start(self, start: Start, allowance: Mapping[str, int], now: float) -> None:
        """Give a part what the policy has chosen for it; what cannot be had is asked for again at the next decision."""
        request, part = self._state.table.named(start.job.name)
        if part.state is PartState.ACTIVE:
            part.chunk = None if start.last else start.seconds
            self._go_on(request, part, now)
            return
        if part.state is not PartState.PENDING:
            return
        before, part.chunk = part.chunk, None if start.last else start.seconds
        self._begin(request, part, start, allowance, now)
        if part.state is PartState.PENDING:
            part.chunk = before

    def _begin(self, request: Request, part: Part, start: Start, allowance: Mapping[str, int], now: float) -> None:
        if start.rest is not None:
            kept = self._state.dispatcher.receivers_of(start, request.current, part)
            self._state.table.split(request, part, kept, start.job.parts)
        planned = self._state.plan.take((request.current.id, part.slot))
        if planned is not None:
            lit = self._light_as_planned(request, part, planned, now)
        else:
            lit = self._light_again(request, part, start, allowance, now) or self._light_anew(request, part, start, now)
        if not lit:
            self._state.next_decision.look_again([request.current.id])

    def _light_as_planned(self, request: Request, part: Part, planned: Planned, now: float) -> bool:
        if planned.kept:
            kept = self._state.kept.find(request.current, part, {})
            return kept is not None and kept.layout.tree is planned.tree and self._relight(request, part, kept, now)
        free = all(self._state.inventory.is_available(element) for element in planned.tree.elements)
        return free and self._light(request, part, planned.tree, now)

    def _light_anew(self, request: Request, part: Part, start: Start, now: float) -> bool:
        tree = self._state.layout_planner.tree_of(request.current, part.receivers, Choice(start.switch, start.pieces))
        return tree is not None and self._light(request, part, tree, now)

    def refuse(self, now: float) -> bool:
        """Tell whom no tree of what is free would serve, and end it where nothing that could come free would.

        Whether somebody was ended, whom the policy has to forget.
        """
        ended = False
        for name, refusal in self._state.plan.refused.items():
            request, part = self._state.table.named(name)
            if part.state is PartState.PENDING:
                ended |= self._refuse(request, part, refusal, now)
        return ended

    def _refuse(self, request: Request, part: Part, refusal: Refusal, now: float) -> bool:
        limit = self._state.orders.limits(request.current.tenant).max_splitters
        try:
            self._state.layout_planner.check_light(request.current, part.receivers, limit)
        except Rejected as never:
            self._lifecycle.end(request, part, PartEvent.GIVEN_UP, never.sentence, now)
            return True
        self._state.table.explain(request, part, f"of what is free {told(refusal)}")
        return False

    def _go_on(self, request: Request, part: Part, now: float) -> None:
        """The part keeps its light for another lease."""
        reservation = self._state.reservations.live[part.reservation or 0]
        part.heard = False
        part.grant = make_grant(self._state, request, part, reservation, now)
        self._state.table.lease(request, part, now + part.grant.lease)
        self._state.table.publish(request, part, EventKind.CHANGED, grant=part.grant)

    def _light_again(
        self, request: Request, part: Part, start: Start, allowance: Mapping[str, int], now: float
    ) -> bool:
        """Use the tree that an earlier transfer has left lit, if it is what the policy has in mind."""
        reservation = self._state.kept.find(request.current, part, allowance)
        if reservation is None or _pieces(reservation) != (start.switch, tuple(sorted(start.pieces))):
            return False
        return self._relight(request, part, reservation, now)

    def _relight(self, request: Request, part: Part, reservation: Reservation, now: float) -> bool:
        self._state.warm.light_again(reservation, request.current, part, now)
        self._picked(request, part, reservation)
        self._lifecycle.act_on([Lit(reservation)], now)
        return True

    def _light(self, request: Request, part: Part, tree: LightTree | None, now: float) -> bool:
        address = self._state.addresses.take()
        if address is None:
            return False
        layout = self._state.layout_planner.layout(request.current, part.receivers, tree, address)
        if tree is not None and not isinstance(tree, StaticLight):
            self._state.warm.note_lit_anew(request.current, part, now)
        lenders = self._state.warm.hand_over(layout.elements)
        reservation = self._state.reservations.open(request.current.id, part.index, layout, address, lenders)
        self._picked(request, part, reservation)
        self._lifecycle.watch.await_links(reservation, now)
        self._lifecycle.act_on(self._state.reservations.completed(reservation), now)
        return True

    def _picked(self, request: Request, part: Part, reservation: Reservation) -> None:
        part.reservation = reservation.id
        self._state.table.move(request, part, PartEvent.PICKED)


def _pieces(reservation: Reservation) -> tuple[str, tuple[int, ...]]:
    tree = reservation.layout.tree
    return (tree.switch, tuple(sorted(h.splitter.ways for h in tree.splitters))) if tree is not None else ("", ())
