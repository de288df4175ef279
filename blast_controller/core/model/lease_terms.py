"""Length of leases: from size and rate, within the operator's bounds."""

from __future__ import annotations

from blast_controller.core.model.errors import RejectedError
from blast_controller.core.model.fabric import Fabric
from blast_controller.core.model.requests import MulticastRequest, Part
from blast_controller.core.model.settings import CoreSettings
from blast_controller.core.model.wording import duration, speed

LEASE_MARGIN = 0.1
"""Seconds that a lease of a part that may be paused is longer than what is to be sent in it takes."""
MIN_SHARE_OF_LINE = 1e-3
"""Default of the minimum rate: a request of a slower sender would hold its tree for hours."""


def rate_of(request: MulticastRequest, fabric: Fabric) -> float:
    """Return the bit/s at which a request's data is sent."""
    return min(fabric.light_rate, request.max_rate or fabric.light_rate)


def check_terms(request: MulticastRequest, fabric: Fabric, settings: CoreSettings) -> None:
    """Raise RejectedError if a request is too slow or needs longer than the maximum lease."""
    minimum = min_rate(fabric, settings)
    rate = rate_of(request, fabric)
    if rate < minimum:
        raise RejectedError(
            "bad_rate",
            f"The maximum rate {speed(rate)} is below this fabric's minimum {speed(minimum)}; request a higher rate.",
        )
    service = request.bytes * 8 / rate
    if service > settings.lease_maximum and not request.may_pause:
        raise RejectedError(
            "lease_too_long",
            f"At {speed(rate)} the transfer takes {duration(service)}, longer than the maximum lease of "
            f"{duration(settings.lease_maximum)}; request less data, a higher rate, or mayPause.",
        )


def check_longer(request: MulticastRequest, part: Part, added: float, fabric: Fabric, settings: CoreSettings) -> None:
    """Raise RejectedError if `added` seconds would make a lease longer than the maximum.

    The lease is that of the request's only part.
    """
    lease = _unlimited(request, part, fabric, settings) + added
    if added and lease > settings.lease_maximum:
        raise RejectedError(
            "lease_too_long",
            f"The extended lease would last {duration(lease)}, longer than the maximum of "
            f"{duration(settings.lease_maximum)}; request a shorter extension, or submit a new request when this "
            "lease ends.",
        )


def lease_of(request: MulticastRequest, part: Part, fabric: Fabric, settings: CoreSettings) -> float:
    """Return the lease of a part in seconds."""
    if part.chunk is not None:
        return min(part.chunk + LEASE_MARGIN, settings.lease_maximum)
    return min(_unlimited(request, part, fabric, settings), settings.lease_maximum)


def service_of(request: MulticastRequest, part: Part, fabric: Fabric) -> float:
    """Return the seconds needed to send the remaining data of a part."""
    return max(0, request.bytes - part.reached) * 8 / rate_of(request, fabric)


def min_rate(fabric: Fabric, settings: CoreSettings) -> float:
    """Return the minimum rate of a grant in bit/s."""
    return fabric.light_rate * MIN_SHARE_OF_LINE if settings.min_rate is None else settings.min_rate


def _unlimited(request: MulticastRequest, part: Part, fabric: Fabric, settings: CoreSettings) -> float:
    sent = part.reached if request.may_pause else 0
    service = max(0, request.bytes - sent) * 8 / rate_of(request, fabric)
    return max(settings.lease_minimum, service * settings.lease_factor) + part.extra_lease
