"""Messages between a sender and a rack leader, which carry the messages of the rack's members, and their encoding.

Above a number of receivers the sender opens one connection per rack instead of one per receiver. Relay opens it and
names the members, to which the leader connects; Member reports the result, and later the loss of a member. Envelope
then carries the members' messages unchanged, in both directions, and from the sender to several members at once. The
leader aggregates only credits: GroupCredit when all members have advanced, MemberCredits periodically.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TypeVar

from blast_transport.base.errors import RemoteProtocolError
from blast_transport.base.frozen_record import FrozenRecord
from blast_transport.wire.codec import FRAME, LARGEST_BODY, FrameDecoder, MessageForm, frame
from blast_transport.wire.fields import from_json, to_json

MAX_MEMBERS = 256
"""Members of one rack leader, which serves each of them."""
RELAY_TYPE = 64
"""Numbers from 64 on are those of rack leaders' messages."""

_MEMBER = struct.Struct("<H")
_CREDIT = struct.Struct("<HI")
_GROUP = struct.Struct("<IQQ")
_ROW = struct.Struct("<HQQQ")
_SESSION = struct.Struct("<I")
_JSON_BYTES = 1 << 16
"""Memory that the other side can cause."""


class Relay(FrozenRecord):
    """First message of a connection: lead these members, (name, host, port) each, numbered from 0."""

    members: tuple[tuple[str, str, int], ...]

    def check(self) -> None:
        """Raise RemoteProtocolError if the members are invalid."""
        ports = (port for _, _, port in self.members)
        if not 0 < len(self.members) <= MAX_MEMBERS or any(not 0 < port < 1 << 16 for port in ports):
            raise RemoteProtocolError(f"Relay names no member, more than {MAX_MEMBERS}, or a port out of range")


class Member(FrozenRecord):
    """From the leader: this member is connected, or `reason` states its final failure. To the leader: disconnect it."""

    number: int
    reason: str = ""


class Envelope(FrozenRecord):
    """Frame of a control message, to each of these members or from the one named."""

    members: tuple[int, ...]
    frame: bytes


class RelayCredit(FrozenRecord):
    """Report that the member's connection has accepted `count` more bytes of the frames sent to it."""

    member: int
    count: int


class GroupCredit(FrozenRecord):
    """Credit of all active members.

    They have handled every block before `handled`, and the members that are not in `behind` every block before `ahead`.
    """

    session: int
    handled: int
    ahead: int
    behind: tuple[int, ...] = ()


class MemberCredits(FrozenRecord):
    """Latest Credit of some members: (member, handled, position, written) each."""

    session: int
    rows: tuple[tuple[int, int, int, int], ...]


RelayMessage = Relay | Member | Envelope | RelayCredit | GroupCredit | MemberCredits
M = TypeVar("M", bound=RelayMessage)


def _decode_json(kind: type[M]) -> Callable[[bytes], M]:
    def decode(body: bytes) -> M:
        message = from_json(kind, body)
        if isinstance(message, Relay):
            message.check()
        return message

    return decode


def _numbers(members: tuple[int, ...]) -> bytes:
    return _MEMBER.pack(len(members)) + b"".join(map(_MEMBER.pack, members))


def _read_numbers(body: bytes, start: int) -> tuple[tuple[int, ...], int]:
    (count,) = _MEMBER.unpack_from(body, start)
    if count > MAX_MEMBERS:
        raise RemoteProtocolError(f"more than {MAX_MEMBERS} members")
    return struct.unpack_from(f"<{count}H", body, start + 2), start + 2 + 2 * count


def _decode_envelope(body: bytes) -> Envelope:
    members, start = _read_numbers(body, 0)
    inner = body[start:]
    if not members or FRAME.size + FRAME.unpack_from(inner)[0] != len(inner):
        raise RemoteProtocolError("Envelope names no member, or does not hold exactly one frame")
    return Envelope(members, inner)


def _encode_group(credit: GroupCredit) -> bytes:
    return _GROUP.pack(credit.session, credit.handled, credit.ahead) + _numbers(credit.behind)


def _decode_group(body: bytes) -> GroupCredit:
    behind, end = _read_numbers(body, _GROUP.size)
    if end != len(body):
        raise RemoteProtocolError("GroupCredit is too long")
    session, handled, ahead = _GROUP.unpack_from(body)
    return GroupCredit(session, handled, ahead, behind)


def _encode_rows(latest: MemberCredits) -> bytes:
    return _SESSION.pack(latest.session) + b"".join(_ROW.pack(*row) for row in latest.rows)


def _decode_rows(body: bytes) -> MemberCredits:
    (session,) = _SESSION.unpack_from(body)
    return MemberCredits(session, tuple(_ROW.iter_unpack(body[_SESSION.size :])))


_NUMBERS_BYTES = _MEMBER.size * (1 + MAX_MEMBERS)

FORMS: dict[int, MessageForm[RelayMessage]] = {
    RELAY_TYPE: MessageForm(Relay, to_json, _decode_json(Relay), _JSON_BYTES),
    65: MessageForm(Member, to_json, _decode_json(Member), _JSON_BYTES),
    66: MessageForm(
        Envelope,
        lambda envelope: _numbers(envelope.members) + envelope.frame,
        _decode_envelope,
        _NUMBERS_BYTES + FRAME.size + LARGEST_BODY,
    ),
    67: MessageForm(
        RelayCredit,
        lambda credit: _CREDIT.pack(credit.member, credit.count),
        lambda body: RelayCredit(*_CREDIT.unpack(body)),
        _CREDIT.size,
    ),
    68: MessageForm(GroupCredit, _encode_group, _decode_group, _GROUP.size + _NUMBERS_BYTES),
    69: MessageForm(MemberCredits, _encode_rows, _decode_rows, _SESSION.size + MAX_MEMBERS * _ROW.size),
}
_TYPES: dict[type[RelayMessage], int] = {form.message: number for number, form in FORMS.items()}


def encode_relay(message: RelayMessage) -> bytes:
    """Encode the message as one frame. Raise LocalProtocolError if a field does not fit."""
    number = _TYPES[type(message)]
    return frame(number, FORMS[number], message)


class RelayDecoder(FrameDecoder[RelayMessage]):
    """Decoder of the messages between a sender and a leader."""

    def __init__(self) -> None:
        super().__init__(FORMS)
