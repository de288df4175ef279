"""Limit of this process's open files and sockets, and the limits of connections that follow from it.

Limits whose sum exceeds the system's limit are ineffective: unauthenticated clients could take the last descriptor,
which the journal, a device or a known client would then lack.
"""

from __future__ import annotations

import resource
import sys
from dataclasses import dataclass

RESERVED = 96
"""For files, logs, libraries and sockets of the process's own."""


class DescriptorLimitError(Exception):
    """The operator's fault: the process may open too few files for its configuration. One sentence."""


@dataclass(frozen=True, slots=True)
class Descriptors:
    """`available` are shared out among connections, whose bounds are `requested` together."""

    available: int
    requested: int

    def share(self, bound: int) -> int:
        """Return a bound of connections, or its part where not all bounds fit; at least 4, if it was."""
        if self.requested <= self.available:
            return bound
        return max(min(4, bound), bound * self.available // self.requested)


def raise_limit() -> int:
    """Raise the soft limit on open files, 1024 by default, to the hard one, and return that."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return sys.maxsize if hard == resource.RLIM_INFINITY else hard


def descriptors(limit: int, own: int, requested: int, minimum: int) -> Descriptors:
    """Return what of `limit` is left for connections.

    Parameters
    ----------
    limit : int
        Open files that the process may have.
    own : int
        Of these, needed for devices and sessions.
    requested : int
        Sum of the bounds of connections.
    minimum : int
        Connections without which it would be of no use.

    Raises
    ------
    DescriptorLimitError
        Fewer than `minimum` would be left.
    """
    available = limit - RESERVED - own
    if available < minimum:
        raise DescriptorLimitError(
            f"This process may open {limit} files and needs {RESERVED + own + minimum}: raise its limit "
            "(ulimit -n, LimitNOFILE= of its service)."
        )
    return Descriptors(available, requested)
