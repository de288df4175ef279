"""Suggestions for hosts that a controller does not know."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from blast_client.api.nearest import nearest

if TYPE_CHECKING:
    from blast_api.ttypes import FabricStatus

CODE = "unknown_host"
"""Code of the rejection of a request with an unknown host."""

_MAX_SUGGESTED = 3
"""Suggestions for more hosts would hide the error."""


def hosts_of(fabric: FabricStatus) -> dict[str, str]:
    """Return the rack of each host."""
    return {host: rack.name for rack in fabric.racks for host in rack.hosts}


def addresses_of(fabric: FabricStatus) -> dict[str, str]:
    """Return the address of each host on the data network, if it is configured."""
    return {host: address for rack in fabric.racks for host, address in (rack.addresses or {}).items()}


def meant(names: Iterable[str], known: Collection[str]) -> str:
    """Return a question with the most similar known hosts, or an empty text."""
    unknown = [host for host in dict.fromkeys(names) if host not in known][:_MAX_SUGGESTED]
    near = ((host, nearest(host, known)) for host in unknown)
    pairs = [f"{name} instead of {host}" for host, name in near if name is not None]
    return f"did you mean {', '.join(pairs)}?" if pairs else ""
