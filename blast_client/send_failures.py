"""Why hosts do not have what was sent: in few words where many have the same reason, and a list of all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from blast_client.node_sets import folded
from blast_client.round import RoundResult
from blast_transport.base.errors import TransportError
from blast_transport.base.report import TransferResult

FEW = 4
"""So many hosts with the same reason get a line each."""


class NoReceiverReachedError(TransportError):
    """No host can receive; `reasons` says of each why."""

    def __init__(self, reasons: Mapping[str, str]) -> None:
        super().__init__("; ".join(f"{hosts}: {reason}" for hosts, reason in sentences(reasons)))
        self.reasons = reasons


def sentences(reasons: Mapping[str, str]) -> list[tuple[str, str]]:
    """(hosts, reason), each host once; many with the same reason are told together, in the order of the first."""
    alike: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        alike.setdefault(reason, []).append(name)
    told: list[tuple[str, str]] = []
    for reason, names in alike.items():
        told += [(name, reason) for name in names] if len(names) <= FEW else [(folded(names), reason)]
    return told


def failed_of(results: Sequence[TransferResult]) -> dict[str, str]:
    """Who does not have it, of those that were reached, and why."""
    return {one.name: one.reason for result in results for one in result.receivers if not one.complete}


def reasons_of(names: Sequence[str], sent: RoundResult, unreachable: Mapping[str, str]) -> dict[str, str]:
    """Why a host does not have it; those that have it are left out."""
    has = {one.name for result in sent.results for one in result.receivers if one.complete}
    known = {**unreachable, **sent.unreached, **failed_of(sent.results)}
    return {name: known.get(name, "nothing was sent to it") for name in names if name not in has}
