"""The decisions of the sender of one part on its grants, without sockets or clock.

Theory of operation. A grant reserves the optical path for the time of its lease. A sender that may pause reports its
progress in each lease, early enough that the controller knows it when the lease ends. At the end of the lease it stops
sending; it continues with a renewed lease at once, or with a new grant after a pause. The sender finishes the part when
all bytes were sent over the optical path and a deadline is due, or when every receiver has confirmed: repairs do not
need the optical path. A paused part cannot be finished; its report states that no byte is left, and a later grant is
released at once.
"""

from __future__ import annotations

from dataclasses import dataclass

from blast_api.ttypes import Grant
from blast_transport.transports.choices import OpticalChoice

REPORT_AT = 0.6
"""Share of a lease after which the sender reports its progress."""

STOP_BEFORE = 0.01
"""Seconds before the end of a lease at which sending stops: the controller's lease began earlier."""


class InvalidGrantError(Exception):
    """A faulty grant: it continues at a byte that the transfer has not reached."""


@dataclass(frozen=True, slots=True)
class StartOpticalSending:
    """Command: send over this optical path."""

    light: OpticalChoice


@dataclass(frozen=True, slots=True)
class StopOpticalSending:
    """Command: stop sending."""


@dataclass(frozen=True, slots=True)
class ReportProgress:
    """Command: report to the controller that all bytes before `reached` have been sent."""

    reached: int


@dataclass(frozen=True, slots=True)
class Finish:
    """Command: finish the part, which releases its resources."""


Action = StartOpticalSending | StopOpticalSending | ReportProgress | Finish


class PartPlan:
    """The state of one part of a request of `size` bytes. Times are in seconds of one clock."""

    def __init__(self, size: int, *, may_pause: bool) -> None:
        self._size = size
        self._may_pause = may_pause
        self._confirmed = False
        self._granted = self._released = False
        self._report_at: float | None = None
        self._stop_at: float | None = None

    def grant(self, grant: Grant, reached: int, now: float) -> list[Action]:
        """Handle a grant: a first, another or a longer lease. Raises InvalidGrantError."""
        if grant.firstByte > reached:
            raise InvalidGrantError(
                f"the grant of {grant.key} begins at byte {grant.firstByte}, but only {reached} were sent"
            )
        self._granted = True
        lease = grant.leaseMs / 1000
        self._report_at = now + REPORT_AT * lease if self._may_pause else None
        self._stop_at = now + lease - STOP_BEFORE
        if self._over(reached):
            return self._finish()
        return [
            StartOpticalSending(
                OpticalChoice(grant.groupAddress, grant.groupPort, grant.rateBitsPerSecond, self._stop_at)
            )
        ]

    def pause(self, reached: int) -> list[Action]:
        """Handle a pause: the optical path is lost until another grant."""
        self._granted = self._released = False
        self._report_at = self._stop_at = None
        return [StopOpticalSending(), ReportProgress(reached)] if self._may_pause else [StopOpticalSending()]

    def confirm(self) -> list[Action]:
        """Handle the confirmation of every receiver."""
        self._confirmed = True
        return self._finish() if self._granted else []

    @property
    def waits(self) -> bool:
        """True while the part has no grant and has released none."""
        return not (self._granted or self._released)

    def decline(self) -> list[Action]:
        """Release a grant that the transfer does not use."""
        return self._finish()

    def deadline(self) -> float | None:
        """Return the time of the next call of `tick`, or None."""
        return min((at for at in (self._report_at, self._stop_at) if at is not None), default=None)

    def tick(self, reached: int, now: float) -> list[Action]:
        """Return the commands that are due."""
        reporting = self._report_at is not None and now >= self._report_at
        stopping = self._stop_at is not None and now >= self._stop_at
        if reporting:
            self._report_at = None
        if stopping:
            self._stop_at = None
        if (reporting or stopping) and self._over(reached):
            return self._finish()
        return [ReportProgress(reached)] if reporting else []

    def _over(self, reached: int) -> bool:
        return self._confirmed or reached >= self._size

    def _finish(self) -> list[Action]:
        self._granted, self._released = False, True
        self._report_at = self._stop_at = None
        return [Finish()]
