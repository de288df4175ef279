"""Changes of parts when their reservations are lit, changed, lost or released."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from blast_controller.core.lifecycle.admission_control import AdmissionControl
from blast_controller.core.lifecycle.endings import Endings
from blast_controller.core.lifecycle.grants import Grants
from blast_controller.core.lifecycle.light_watch import LightRepair
from blast_controller.core.lifecycle.missing_light import MissingLight
from blast_controller.core.lifecycle.scheduled_checks import ScheduledChecks
from blast_controller.core.model.part_states import PartEvent
from blast_controller.core.model.requests import EventKind
from blast_controller.core.model.settings import StandingOrders
from blast_controller.core.policy.quota import Quota
from blast_controller.core.requests.request_table import RequestTable
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


class Granting:
    """Grants light that is there as it was asked for, and takes note of it."""

    def __init__(self, table: RequestTable, grants: Grants, quota: Quota, missing: MissingLight) -> None:
        self._table, self._grants, self._quota, self._missing = table, grants, quota, missing

    def on_lit(self, outcome: Lit, now: float) -> None:
        """Grant a part whose reservation is lit."""
        request, part = self._table.part_of(outcome.reservation)
        self._table.move(request, part, PartEvent.CONFIRMED)
        part.reason, part.failures = None, 0
        self._count_light(outcome.reservation, now)
        if (tree := outcome.reservation.layout.tree) is not None:
            self._missing.note_lit(tree, tree.leaves)
        self._grants.give(request, part, now)
        self._missing.look_at_fixed_leaves(outcome.reservation)

    def _count_light(self, reservation: Reservation, now: float) -> None:
        """Start the lit time of a reservation; a group within one rack uses none."""
        if reservation.layout.tree is None:
            self._quota.dark(reservation.id, now)
        else:
            self._quota.lit(reservation.id, reservation.request[0], now)

    def on_changed(self, outcome: Changed, now: float) -> None:
        """Record a completed extension, or the repair of dark leaves."""
        request, part = self._table.part_of(outcome.reservation)
        self._missing.note_over(outcome.reservation)
        self._count_light(outcome.reservation, now)
        if (tree := outcome.reservation.layout.tree) is not None and outcome.fresh:
            self._missing.note_lit(tree, outcome.fresh)
        request.current = outcome.change.request
        part.receivers = outcome.change.target.receivers
        part.extra_lease += outcome.change.extra_lease
        self._grants.change(request, part, now)

    def on_change_refused(self, outcome: ChangeRefused, now: float) -> None:
        """Record a failed change: the part has its previous state."""
        request, part = self._table.part_of(outcome.reservation)
        self._table.publish(request, part, EventKind.CHANGED, grant=part.grant, reason=outcome.reason)
        self._missing.explain(outcome.reservation, outcome.still_dark)


class Failures:
    """Lets parts that could not be lit try again, but not for ever."""

    def __init__(
        self, table: RequestTable, orders: StandingOrders, admission: AdmissionControl, endings: Endings
    ) -> None:
        self._table, self._orders, self._admission, self._endings = table, orders, admission, endings

    def on_not_lit(self, outcome: SetupFailed, now: float) -> None:
        """Return a part to pending after a failed setup, or fail it."""
        request, part = self._table.part_of(outcome.reservation)
        part.failures += 1
        part.reason = outcome.reason
        hopeless = self._admission.hopeless(request.current)
        if hopeless is not None or part.failures >= self._orders.settings.failures_allowed:
            sentence = f"{outcome.reason}. {hopeless}" if hopeless else outcome.reason
            self._endings.end(request, part, PartEvent.GIVEN_UP, sentence, now)
        else:
            self._table.move(request, part, PartEvent.FAILURE)


class Lifecycle:
    """Acts on outcomes of reservations."""

    def __init__(
        self,
        granting: Granting,
        failures: Failures,
        endings: Endings,
        repair: LightRepair,
        scheduled_checks: ScheduledChecks,
    ) -> None:
        self._repair, self._scheduled_checks = repair, scheduled_checks
        self._outcomes: dict[type, Callable[..., None]] = {
            Lit: granting.on_lit,
            SetupFailed: failures.on_not_lit,
            Changed: granting.on_changed,
            ChangeRefused: granting.on_change_refused,
            LightLost: endings.on_light_lost,
            Released: endings.on_released,
            LeavesDark: self._on_dark,
            WarmTreeFailed: endings.on_spoilt,
            ReleaseFailed: scheduled_checks.on_release_failed,
        }

    def act_on(self, outcomes: Iterable[Outcome], now: float) -> None:
        """Let outcomes have their consequences."""
        for outcome in outcomes:
            self._outcomes[type(outcome)](outcome, now)

    def begun(self, reservation: Reservation, outcomes: Iterable[Outcome], now: float) -> None:
        """Register a reservation that devices work on, and process its first outcomes."""
        self._scheduled_checks.links(reservation, now)
        self.act_on(outcomes, now)

    def _on_dark(self, outcome: LeavesDark, now: float) -> None:
        self.act_on(self._repair.on_dark(outcome, now), now)
