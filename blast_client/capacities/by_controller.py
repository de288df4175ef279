"""Capacities from the controller's configuration, without measurement.

The configuration has racks, their hosts, and optionally the rate of each access link and rack uplink. The rate of a
path is the minimum of these. The form cannot express that the hosts of a rack share its uplink, and the controller
does not know other traffic.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from blast_api.ttypes import FabricStatus, RackStatus
from blast_client.api.base_error import InvalidArgumentError
from blast_client.capacities.capacities import Capacities


class UnknownRateError(InvalidArgumentError):
    """The controller does not know a host or its rate."""


class _FabricClient(Protocol):
    def fabric(self) -> FabricStatus:
        """Return the fabric."""


class ControllerCapacities:
    """A CapacitySource that reads the controller's configuration."""

    def __init__(self, client: _FabricClient) -> None:
        self._client = client

    def capacities(self, root: str, receivers: Sequence[str]) -> Capacities:
        """Return the capacities between the root and the receivers. Raises UnknownRateError, BlastError."""
        hosts = (root, *receivers)
        racks: dict[str, RackStatus] = {name: rack for rack in self._client.fabric().racks for name in rack.hosts}
        if unknown := [name for name in hosts if name not in racks]:
            raise UnknownRateError(f"the controller knows no host {unknown[0]!r}: `blast fabric show` lists its hosts")
        access = {name: _access_rate(racks[name], name) for name in hosts}
        links = {
            (start, end): min(access[start], access[end], _between(racks[start], racks[end]))
            for start in hosts
            for end in hosts
            if end not in (start, root)
        }
        into = {name: rate for name, rate in access.items() if name != root}
        return Capacities(hosts, root, tuple(receivers), links, access, into)


def _access_rate(rack: RackStatus, host: str) -> float:
    rate = (rack.accessBitsPerSecond or {}).get(host)
    if rate is None:
        raise UnknownRateError(
            f"the controller does not know the rate of {host}'s access link: write `access_rate_gbps` beside it in the "
            "configuration, or let the agents measure (without --topology)"
        )
    return float(rate)


def _between(one: RackStatus, other: RackStatus) -> float:
    """Return the rate of the uplinks between two racks; infinite within a rack, or if it is not configured."""
    if one.name == other.name:
        return float("inf")
    return min(float(rack.uplinkBitsPerSecond or "inf") for rack in (one, other))
