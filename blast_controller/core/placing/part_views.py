"""Input of the policy: changed parts and expired leases."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from algorithms.scheduling.job import PartName
from blast_controller.core.lifecycle.endings import Endings
from blast_controller.core.lifecycle.grants import Grants
from blast_controller.core.model.part_states import PartState
from blast_controller.core.model.requests import Part, Request
from blast_controller.core.policy.agenda import Agenda
from blast_controller.core.policy.dispatcher import Dispatcher, PartView
from blast_controller.core.requests.request_table import RequestTable
from blast_controller.core.rollout.reservations import Reservations


class PartViews:
    """Looks at parts with what they hold."""

    def __init__(self, agenda: Agenda, table: RequestTable, reservations: Reservations) -> None:
        self._agenda, self._table, self._reservations = agenda, table, reservations

    def of(self, request: Request, part: Part) -> PartView:
        """Return a part as it is now."""
        return PartView(request, part, self._reservations.live.get(part.reservation or 0))

    def end_lease(self, request: Request, part: Part) -> None:
        """Let a part whose lease is over compete again at the next decision."""
        self._agenda.end_leases([self.of(request, part)])

    def take_changed(self) -> list[PartView]:
        """Return the parts of every changed request, including forgotten ones."""
        names = dict.fromkeys([*self._agenda.take_requests(), *self._table.touched])
        found = self._table.take_forgotten()
        found += [self._table.requests[name] for name in names if name in self._table.requests]
        return [self.of(request, part) for request in found for part in request.parts]


class ExpiredLeases:
    """Parts whose lease is over compete again if other parts need their resources."""

    def __init__(
        self, agenda: Agenda, table: RequestTable, dispatcher: Dispatcher, grants: Grants, endings: Endings
    ) -> None:
        self._agenda, self._table, self._dispatcher = agenda, table, dispatcher
        self._grants, self._endings = grants, endings

    def take(self, now: float) -> list[PartView]:
        """Return the parts that compete again.

        A part whose tree is being changed, or that blocks no other part, keeps its tree.
        """
        active = [view for view in self._agenda.take_leases() if view.part.state is PartState.ACTIVE]
        competing = [s for s in active if not s.busy and self._dispatcher.has_given_light_to(s.name)]
        for view in active:
            if view not in competing:
                self._grants.go_on(view.request, view.part, now)
        return competing

    def end_again(self, leases: Iterable[PartView], names: Collection[PartName]) -> None:
        """Let these leases end at the next decision, since this one is postponed."""
        self._agenda.end_leases(view for view in leases if view.name in names)

    def pause(self, names: Iterable[PartName], now: float) -> None:
        """Pause these parts."""
        for name in names:
            self._endings.pause(*self._table.named(name), now)
