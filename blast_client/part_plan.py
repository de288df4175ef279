"""What the sender of one part does with its grants, and when. No sockets, no clock.

Theory of operation. A grant is light for the time of its lease. Who may pause tells in each lease how far the data is,
early enough that the controller knows it when the lease ends; it stops by itself at that end, and goes on when the
controller says so: a new lease at once, or a new grant after a pause. As soon as all bytes have gone by light and a
look at the clock is due, or every receiver has confirmed, the part is finished: repairs need no light. A paused part
cannot be finished; the controller hears that nothing is left to send, and what it grants then is given back at once.
"""

from __future__ import annotations

from dataclasses import dataclass

from blast_api.ttypes import Grant
from blast_transport.transports.choices import Light

TELL_AT = 0.6
"""Share of a lease after which the controller is told how far the data is."""

STOP_BEFORE = 0.01
"""Seconds before the lease's end at which the light is not used any more: the controller's count began earlier."""


class WrongGrant(Exception):
    """The controller's fault: it continues at a byte that has not been reached. One sentence."""


@dataclass(frozen=True, slots=True)
class Shine:
    """Send by this light."""

    light: Light


@dataclass(frozen=True, slots=True)
class Darken:
    """Stop sending."""


@dataclass(frozen=True, slots=True)
class Tell:
    """Tell the controller that all bytes before `reached` have been sent."""

    reached: int


@dataclass(frozen=True, slots=True)
class Finish:
    """Give the light back."""


Action = Shine | Darken | Tell | Finish


class PartPlan:
    """One part of a request of `size` bytes. Times are in seconds of one clock."""

    def __init__(self, size: int, *, may_pause: bool) -> None:
        self._size = size
        self._may_pause = may_pause
        self._confirmed = False
        self._granted = self._given_back = False
        self._tell_at: float | None = None
        self._stop_at: float | None = None

    def grant(self, grant: Grant, reached: int, now: float) -> list[Action]:
        """There is light, for a first, another or a longer lease. Raises WrongGrant."""
        if grant.firstByte > reached:
            raise WrongGrant(f"{grant.key} is to continue at byte {grant.firstByte}, but only {reached} were sent")
        self._granted = True
        lease = grant.leaseMs / 1000
        self._tell_at = now + TELL_AT * lease if self._may_pause else None
        self._stop_at = now + lease - STOP_BEFORE
        if self._over(reached):
            return self._finish()
        return [Shine(Light(grant.groupAddress, grant.groupPort, grant.rateBitsPerSecond, self._stop_at))]

    def pause(self, reached: int) -> list[Action]:
        """The light is gone until another grant."""
        self._granted = self._given_back = False
        self._tell_at = self._stop_at = None
        return [Darken(), Tell(reached)] if self._may_pause else [Darken()]

    def confirm(self) -> list[Action]:
        """No receiver waits for anything any more."""
        self._confirmed = True
        return self._finish() if self._granted else []

    @property
    def waits(self) -> bool:
        """There is no light, and there was none to be given back."""
        return not (self._granted or self._given_back)

    def decline(self) -> list[Action]:
        """The light is not wanted: the data goes another way."""
        return self._finish()

    def deadline(self) -> float | None:
        """When `tick` has something to do; None if never."""
        return min((at for at in (self._tell_at, self._stop_at) if at is not None), default=None)

    def tick(self, reached: int, now: float) -> list[Action]:
        """Do what is due."""
        telling = self._tell_at is not None and now >= self._tell_at
        stopping = self._stop_at is not None and now >= self._stop_at
        if telling:
            self._tell_at = None
        if stopping:
            self._stop_at = None
        if (telling or stopping) and self._over(reached):
            return self._finish()
        return [Tell(reached)] if telling else []

    def _over(self, reached: int) -> bool:
        return self._confirmed or reached >= self._size

    def _finish(self) -> list[Action]:
        self._granted, self._given_back = False, True
        self._tell_at = self._stop_at = None
        return [Finish()]
