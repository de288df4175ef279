"""Scheduling of the core's own deadlines, with the settings in force at that time."""

from __future__ import annotations

from blast_controller.core.model.identifiers import LinkId, SwitchId
from blast_controller.core.model.settings import StandingOrders
from blast_controller.core.model.timers import (
    AuditDue,
    FlapToleranceExpired,
    LinkTimedOut,
    ProbeClearRetryDue,
    ProbeDue,
    QuotaReviewDue,
    Retry,
    Timers,
)
from blast_controller.core.policy.quota import LOOK_AGAIN
from blast_controller.core.rollout.late_writes import LOOK, LateWrites
from blast_controller.core.rollout.outcomes import ReleaseFailed
from blast_controller.core.rollout.reservation import Reservation


class ScheduledChecks:
    """However often it is arranged, there is one audit and one look at quota at most."""

    def __init__(self, timers: Timers, orders: StandingOrders, late: LateWrites) -> None:
        self._timers, self._orders, self._late = timers, orders, late
        self._audit_at: float | None = None
        self._quota_look_due = False

    def audit(self, now: float) -> None:
        """Schedule the next reconciliation, if configured, in place of an earlier one."""
        every = self._orders.settings.reconcile_every
        if every is not None and self._late:
            every = min(every, LOOK)
        self._audit_at = None if every is None else now + every
        if self._audit_at is not None:
            self._timers.add(self._audit_at, AuditDue(self._audit_at))

    def audit_soon(self, now: float) -> None:
        """Schedule a reconciliation for late commands of a switch."""
        if self._audit_at is not None and self._audit_at > now + LOOK:
            self.audit(now)

    def is_kept(self, audit: AuditDue) -> bool:
        """Return true if the audit is still due; a later one may have replaced it."""
        return audit.at == self._audit_at

    def quota_look(self, now: float) -> None:
        """Schedule another decision for parts whose tenant has used its quota of lit time."""
        if not self._quota_look_due:
            self._quota_look_due = True
            self._timers.add(now + LOOK_AGAIN, QuotaReviewDue())

    def on_quota_look(self, deadline: QuotaReviewDue, now: float) -> None:
        """Note that the scheduled decision is due."""
        self._quota_look_due = False

    # ------------------------------------------------------------------------------------- steps and light

    def on_release_failed(self, outcome: ReleaseFailed, now: float) -> None:
        """Try again later what devices could not undo."""
        self._timers.add(now + self._orders.settings.retry_after, Retry(outcome.reservation.id))

    def links(self, reservation: Reservation, now: float) -> None:
        """Wait for the ports of new leaves, but not for ever."""
        if reservation.rollout.links:
            due = LinkTimedOut(reservation.id, reservation.rollout.begun)
            self._timers.add(now + self._orders.settings.link_wait, due)

    def leaf(self, link: LinkId, since: float) -> None:
        """Look again at a port without link: a receiver that locks flaps."""
        self._timers.keep(since + self._orders.settings.flap_tolerance, FlapToleranceExpired(link))

    def may_flap(self, since: float, now: float) -> bool:
        """Return true if a link lost at that time may still come back within the flap tolerance."""
        return since + self._orders.settings.flap_tolerance > now

    # ----------------------------------------------------------------------------------------------- probes

    def devices(self, serial: int, until: float) -> None:
        """Begin a check of fibers at this moment, whichever devices are there."""
        self._timers.add(until, ProbeDue(serial))

    def probes(self, serial: int, times: int, now: float) -> None:
        """Schedule checks for probes, `times` within the probe wait."""
        self._timers.add(now + self._orders.settings.probe_wait / times, ProbeDue(serial))

    def clear_again(self, switch: SwitchId, now: float) -> None:
        """Ask a switch later to give up the circuits of probes."""
        self._timers.add(now + self._orders.settings.retry_after, ProbeClearRetryDue(switch))
