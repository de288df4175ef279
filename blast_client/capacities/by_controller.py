"""Capacities as the controller's configuration has them: nothing is measured.

It knows racks and their hosts, and where the operator has written it the rate of each host's access link and of each
rack's uplink. A path is then as fast as the slowest of these on its way. That the hosts of a rack share its uplink, a
network of this form cannot say; and of what else is sent there the controller knows nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from blast_api.ttypes import FabricStatus, RackStatus
from blast_client.base_error import WrongArgument
from blast_client.capacities.capacities import Capacities


class RatesUnknown(WrongArgument):
    """The controller does not know these hosts, or no rate of theirs."""


class _Asked(Protocol):
    def fabric(self) -> FabricStatus:
        """As of `blast_client.Client`."""


class ControllerCapacities:
    """A CapacitySource."""

    def __init__(self, client: _Asked) -> None:
        self._client = client

    def capacities(self, root: str, receivers: Sequence[str]) -> Capacities:
        """Raises RatesUnknown, and what the client raises."""
        hosts = (root, *receivers)
        racks: dict[str, RackStatus] = {name: rack for rack in self._client.fabric().racks for name in rack.hosts}
        if strangers := [name for name in hosts if name not in racks]:
            raise RatesUnknown(
                f"the controller knows no host {strangers[0]!r}: `blast fabric show` lists those it knows"
            )
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
        raise RatesUnknown(
            f"the controller does not know the rate of {host}'s access link: write `access_rate_gbps` beside it in the "
            "configuration, or let the agents measure (without --topology)"
        )
    return float(rate)


def _between(one: RackStatus, other: RackStatus) -> float:
    """What the uplinks let through; within a rack, and where nobody knows, anything."""
    if one.name == other.name:
        return float("inf")
    return min(float(rack.uplinkBitsPerSecond or "inf") for rack in (one, other))
