"""Fuzz tests of NETCONF: random and mutated bytes yield the same events whole and in pieces, or typed errors."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from xml.etree.ElementTree import Element

from optical_switch.errors import OpticalSwitchError, ProtocolError
from optical_switch.netconf.framing import FramingError, NetconfDecoder, in_one_chunk, with_end
from optical_switch.netconf.markup import BASE
from optical_switch.netconf.messages import BASE_1_1, RpcReply, read_message
from optical_switch.netconf.operations import NOTIFICATIONS, commit
from optical_switch.netconf.polatis import (
    OPTICAL_SWITCH,
    POLATIS_SWITCH,
    PortNumbering,
    read_circuits,
    read_status,
    refusal,
)
from optical_switch.netconf.polatis_ports import read_alarm, read_attenuators, read_ports, read_powers
from optical_switch.netconf.session import NetconfSession, Notified, Replied, SessionBroken, SessionEvent
from tests.support.fuzzing import Decoder, fuzz, inputs, mutated_bytes, pieces

USUAL = 4000
LONGEST = 3000
NUMBERING = PortNumbering(17)
FILES = tuple(f"netconf/{name}.py" for name in ["framing", "markup", "messages", "session", "polatis", "polatis_ports"])
TOKENS = (
    b"\n#", b"\n##\n", b"]]>]]>", b"<!DOCTYPE a [<!ENTITY b 'c'>]>", b"&b;", b"<![CDATA[", b"]]>", b"<!--", b"-->",
    b"<pair>", b"<port>", b"</port>", b"<rpc-error>", b"</rpc-error>", b"xmlns=''", b"message-id='2'", b"\0", b"\xff",
    b"65536", b"-1", b"17", b"<data>", b"VOA_MODE_NONE", b"1e9", b"\xef\xbb\xbf", b"<hello>", b"99999999999", b"</",
)  # fmt: skip
STATUS = "<port><port-id>1</port-id><status>FAILED</status><label>a</label></port>"
VOA = "<port><port-id>17</port-id><atten-mode>VOA_MODE_ABSOLUTE</atten-mode><atten-level>-3</atten-level></port>"


def reply(message_id: int, content: str) -> bytes:
    return f'<rpc-reply xmlns="{BASE}" message-id="{message_id}">{content}</rpc-reply>'.encode()


def reading(name: str, content: str) -> bytes:
    return reply(1, f'<data><{name} xmlns="{OPTICAL_SWITCH}">{content}</{name}></data>')


def event(content: str) -> bytes:
    return f'<notification xmlns="{NOTIFICATIONS}"><eventTime>now</eventTime>{content}</notification>'.encode()


HELLO = (
    f'<hello xmlns="{BASE}"><capabilities><capability>{BASE_1_1}</capability></capabilities>'
    "<session-id>4</session-id></hello>"
).encode()
MESSAGES = [
    reply(1, "<ok/>"),
    reading("cross-connects", "<pair><ingress>1</ingress><egress>18</egress></pair>"),
    reading("port-config", STATUS),
    reading("opm-power", "<port><port-id>17</port-id><power>-3.20</power></port>"),
    reading("voa", VOA),
    reply(
        2,
        "<rpc-error><error-tag>lock-denied</error-tag><error-path>/pair[ingress='7']</error-path><error-message>m"
        "</error-message><error-info><session-id>4</session-id><bad-element>18</bad-element></error-info></rpc-error>",
    ),
    event(f'<port-power-alarm xmlns="{POLATIS_SWITCH}"><port-id>3</port-id></port-power-alarm>'),
    event(f'<system-error xmlns="{POLATIS_SWITCH}"><error-code>3</error-code></system-error>'),
]
READINGS: tuple[Callable[[Element, PortNumbering], object], ...] = (
    read_circuits, read_status, read_ports, read_powers, read_attenuators, read_alarm,
)  # fmt: skip


def mutated(rng: random.Random, seed: bytes) -> bytes:
    return mutated_bytes(rng, seed, TOKENS, LONGEST)


def mutated_message(rng: random.Random, seed: bytes) -> bytes:
    """Return bytes on the wire: the message changed inside its frame, or the frame changed as well."""
    if rng.random() < 0.7:
        message = mutated(rng, rng.choice(MESSAGES))
        return in_one_chunk(message) if message else b""
    return mutated(rng, seed)


def noise(rng: random.Random) -> bytes:
    return b"".join(rng.choice(TOKENS) if rng.random() < 0.8 else rng.randbytes(3) for _ in range(rng.randint(1, 20)))


def described(happened: SessionEvent) -> object:
    match happened:
        case SessionBroken(error):
            return type(error), str(error)
        case Replied(RpcReply(message_id, errors)):
            return message_id, errors
        case _:
            return type(happened)


def read_model(events: list[SessionEvent]) -> str:
    """Read everything that the events can contain; return the name of the last outcome."""
    outcome = "nothing"
    for happened in events:
        outcome = type(happened).__name__
        if isinstance(happened, Replied):
            for error in happened.reply.errors:
                assert str(refusal(error, NUMBERING)).isprintable() and str(error).isprintable()
        content = happened.event if isinstance(happened, Notified) else None
        if isinstance(happened, Replied):
            content = happened.reply.data
        for read in READINGS if content is not None else ():
            try:
                outcome = f"{read.__name__} {bool(read(content, NUMBERING))}"
            except ProtocolError as error:
                assert len(str(error)) < 500 and str(error).isprintable()
    return outcome


def check_session(rng: random.Random, received: bytes) -> str:
    def events_of(data: Iterator[bytes]) -> list[SessionEvent]:
        session = NetconfSession(2.0, 0.0)
        events = session.receive(with_end(HELLO), 0.0)
        for _ in range(2):
            session.request(commit(), 0.0)
        for piece in data:
            events += session.receive(piece, 1.0)
        broken = [isinstance(one, SessionBroken) for one in events]
        assert not any(broken[:-1]), "nothing follows the end"
        assert isinstance(session.next_timer(), float | None)
        return events

    whole, by_piece = events_of(iter([received])), events_of(pieces(rng, received))
    assert [described(one) for one in whole] == [described(one) for one in by_piece]
    return read_model(whole)


def check_first_framing(rng: random.Random, received: bytes) -> str:
    def messages_of(data: Iterator[bytes]) -> list[bytes]:
        decoder, found = NetconfDecoder(), []
        for piece in data:
            decoder.feed(piece)
            found += iter(decoder.next_message, None)
        return found

    whole, by_piece = messages_of(iter([received])), messages_of(pieces(rng, received))
    assert whole == by_piece == received.split(b"]]>]]>")[:-1]
    outcome = "none"
    for message in whole:
        try:
            outcome = type(read_message(message)).__name__
        except ProtocolError as error:
            outcome = type(error).__name__
            assert str(error).isprintable() and len(str(error)) < 500
    return outcome


def test_session_survives_any_bytes() -> None:
    decoder = Decoder(
        "netconf session", [in_one_chunk(message) for message in MESSAGES], mutated_message, noise, check_session, FILES
    )
    run = fuzz(decoder, inputs(USUAL))
    assert {"SessionBroken", "Replied", "read_alarm True"} <= run.outcomes.keys(), run.outcomes


def test_messages_in_the_first_framing_survive_any_bytes() -> None:
    seeds = [with_end(message) for message in (HELLO, *MESSAGES)]
    run = fuzz(Decoder("netconf messages", seeds, mutated, noise, check_first_framing, FILES), inputs(USUAL))
    assert {"RpcReply", "NetconfNotification", "ServerHello", "MarkupError", "none"} <= run.outcomes.keys(), (
        run.outcomes
    )


def test_framing_error_is_an_error_of_the_switch() -> None:
    assert issubclass(FramingError, OpticalSwitchError)
