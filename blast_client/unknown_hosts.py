"""Hosts that a controller does not know, and which of those it knows may be meant."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from blast_api.ttypes import FabricStatus
from blast_client.nearest import nearest

CODE = "unknown_host"
"""Of the refusal of a request that names such a host."""

_MAX_TOLD = 3


def hosts_of(fabric: FabricStatus) -> dict[str, str]:
    """The rack of each host."""
    return {host: rack.name for rack in fabric.racks for host in rack.hosts}


def addresses_of(fabric: FabricStatus) -> dict[str, str]:
    """The address of each host on the data network, as far as the controller says it."""
    return {host: address for rack in fabric.racks for host, address in (rack.addresses or {}).items()}


def meant(asked: Iterable[str], known: Collection[str]) -> str:
    """A question, or nothing where no known host is written like one that is not known."""
    unknown = [host for host in dict.fromkeys(asked) if host not in known][:_MAX_TOLD]
    near = ((host, nearest(host, known)) for host in unknown)
    pairs = [f"{name} where it says {host}" for host, name in near if name is not None]
    return f"did you mean {', '.join(pairs)}?" if pairs else ""
