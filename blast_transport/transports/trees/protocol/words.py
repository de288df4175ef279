"""What a host of a phase along trees tells the sender now and then, over its control connection."""

from __future__ import annotations

from dataclasses import dataclass, replace

from blast_transport.base.errors import RemoteProtocolError
from blast_transport.store.store_pace import StorePace
from blast_transport.wire.fields import from_json, to_json
from blast_transport.wire.reasons import safe_reason

MAX_TOLD = 100
"""Of flows, and of lost neighbors, in one word; a plan with wider hosts is measured in part."""
_TEXT = 80


@dataclass(frozen=True, slots=True)
class Told:
    """A flow to the child at this place: bits/s, and whether the network holds it back."""

    child: int
    rate: float
    held_back: bool


@dataclass(frozen=True, slots=True)
class Word:
    """`flows`: (child, bits/s, held back) each. `lost`: (parent, child, why) of edges here that are lost.

    `store`: how ours does, as in StorePace, and for how long it has taken nothing, in seconds.
    """

    flows: tuple[tuple[int, float, bool], ...] = ()
    lost: tuple[tuple[int, int, str], ...] = ()
    store: int = 0
    writing: float = 0.0


def encode_word(word: Word) -> bytes:
    """Its bytes, which are bounded."""
    lost = tuple((parent, child, reason[:_TEXT]) for parent, child, reason in word.lost[:MAX_TOLD])
    return to_json(Word(word.flows[:MAX_TOLD], lost, word.store, word.writing))


def decode_word(body: bytes, members: int) -> Word:
    """The word of one of so many members. Raises RemoteProtocolError."""
    word = from_json(Word, body)
    places = [child for child, _, _ in word.flows] + [place for edge in word.lost for place in edge[:2]]
    possible = all(0 <= place < members for place in places)
    if not possible or word.store not in StorePace._value2member_map_ or word.writing < 0:
        raise RemoteProtocolError("a word of a place, or of a pace, that there is not")
    return replace(word, lost=tuple((parent, child, safe_reason(why)) for parent, child, why in word.lost))
