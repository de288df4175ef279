"""What the core looks at by itself from time to time, however often that is arranged."""

from __future__ import annotations

from blast_controller.core.model.timers import AuditDue, QuotaLook, Timers
from blast_controller.core.policy.quota import LOOK_AGAIN


class Appointments:
    """One of each kind at most."""

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self._audit_at: float | None = None
        self._quota_look_due = False

    def audit(self, every: float | None, now: float) -> None:
        """Have devices read again after so many seconds (None: never); an earlier appointment is off."""
        self._audit_at = None if every is None else now + every
        if self._audit_at is not None:
            self._timers.add(self._audit_at, AuditDue(self._audit_at))

    def is_kept(self, audit: AuditDue) -> bool:
        """Whether it is still to be: a later one may have taken its place."""
        return audit.at == self._audit_at

    def quota_look(self, now: float) -> None:
        """Decide again in a while for those who wait because their light is used up."""
        if not self._quota_look_due:
            self._quota_look_due = True
            self._timers.add(now + LOOK_AGAIN, QuotaLook())

    def quota_looked(self) -> None:
        """That decision is about to be made."""
        self._quota_look_due = False
