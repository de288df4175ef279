"""Reasons of hosts that do not have the data, grouped by reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from blast_client.send.node_sets import folded
from blast_client.send.round import RoundResult
from blast_transport.base.errors import TransportError
from blast_transport.base.report import TransferResult

FEW = 4
"""Up to this number of hosts with the same reason are listed in a line each."""


class NoReceiverReachedError(TransportError):
    """No receiver could be reached; `reasons` has the reason of each."""

    def __init__(self, reasons: Mapping[str, str]) -> None:
        super().__init__("; ".join(f"{hosts}: {reason}" for hosts, reason in sentences(reasons)))
        self.reasons = reasons


def sentences(reasons: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return (hosts, reason), each host once; hosts with the same reason are folded into one entry if they are many."""
    alike: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        alike.setdefault(reason, []).append(name)
    grouped: list[tuple[str, str]] = []
    for reason, names in alike.items():
        grouped += [(name, reason) for name in names] if len(names) <= FEW else [(folded(names), reason)]
    return grouped


def failed_of(results: Sequence[TransferResult]) -> dict[str, str]:
    """Return the reason of each reached receiver that does not have the data."""
    return {one.name: one.reason for result in results for one in result.receivers if not one.complete}


def reasons_of(names: Sequence[str], sent: RoundResult, unreachable: Mapping[str, str]) -> dict[str, str]:
    """Return the reason of each host that does not have the data."""
    has = {one.name for result in sent.results for one in result.receivers if one.complete}
    known = {**unreachable, **sent.unreached, **failed_of(sent.results)}
    return {name: known.get(name, "no data was sent to it") for name in names if name not in has}
