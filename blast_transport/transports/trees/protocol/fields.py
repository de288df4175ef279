"""Periodic report of a host of a trees phase to the sender, over its control connection."""

from __future__ import annotations

from dataclasses import dataclass, replace

from blast_transport.base.errors import RemoteProtocolError
from blast_transport.store.blocks.store_pace import StorePace
from blast_transport.wire.fields import from_json, to_json
from blast_transport.wire.reasons import safe_reason

MAX_REPORTED = 100
"""Maximum flows and lost neighbors in one report; larger plans are measured in part."""
_TEXT = 80
"""Characters of a reason in a report of many losses."""


@dataclass(frozen=True, slots=True)
class FlowReport:
    """Flow to a child: bits/s, and whether the network limits it."""

    child: int
    rate: float
    held_back: bool


@dataclass(frozen=True, slots=True)
class HostReport:
    """Report of a host.

    `flows`: (child, bits/s, limited by the network) each. `lost`: (parent, child, reason) of lost edges at this host.
    `store`: pace of its store, as in StorePace. `writing`: seconds for which the store has accepted nothing.
    """

    flows: tuple[tuple[int, float, bool], ...] = ()
    lost: tuple[tuple[int, int, str], ...] = ()
    store: int = 0
    writing: float = 0.0


def encode_report(word: HostReport) -> bytes:
    """Encode a report; its length is bounded."""
    lost = tuple((parent, child, reason[:_TEXT]) for parent, child, reason in word.lost[:MAX_REPORTED])
    return to_json(HostReport(word.flows[:MAX_REPORTED], lost, word.store, word.writing))


def decode_report(body: bytes, members: int) -> HostReport:
    """Decode a report of one of `members` hosts. Raise RemoteProtocolError if it is invalid."""
    word = from_json(HostReport, body)
    places = [child for child, _, _ in word.flows] + [place for edge in word.lost for place in edge[:2]]
    possible = all(0 <= place < members for place in places)
    if not possible or word.store not in StorePace._value2member_map_ or word.writing < 0:
        raise RemoteProtocolError("a tree report has an unknown host, an unknown store state, or a negative time")
    return replace(word, lost=tuple((parent, child, safe_reason(text)) for parent, child, text in word.lost))
