"""Capacities for people: a matrix of rates, from the hosts on the left to those above."""

from __future__ import annotations

from blast_client.capacities.capacities import Capacities
from blast_client.cli.text_table import text_table
from blast_client.cli.units import format_rate

_DEAD, _UNKNOWN, _ITSELF = "dead", "no limit", "-"


def capacities_table(found: Capacities) -> str:
    """Return a table of the rates from each host (lines) to each host (columns).

    The last column is what a host sends to all at once, the last line what it receives from all at once.
    """
    rows = [[_host(found, start), *(_link(found, start, end) for end in found.hosts), _access(found.out, start)]
            for start in found.hosts]  # fmt: skip
    rows.append(
        ["takes in all", *(_ITSELF if end == found.root else _access(found.into, end) for end in found.hosts), ""]
    )
    return text_table(["from \\ to", *found.hosts, "sends in all"], rows)


def _host(found: Capacities, name: str) -> str:
    return f"{name} (root)" if name == found.root else name


def _link(found: Capacities, start: str, end: str) -> str:
    if end in (start, found.root):
        return _ITSELF
    rate = found.links.get((start, end), 0.0)
    return format_rate(rate) if rate else _DEAD


def _access(rates: object, host: str) -> str:
    assert isinstance(rates, dict)
    return format_rate(rates[host]) if host in rates else _UNKNOWN
