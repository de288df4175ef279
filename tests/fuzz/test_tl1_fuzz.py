"""Random bytes and mutated transcripts, whole and byte by byte: the same messages, and no untyped exception."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from tl1_driver.circuits import Circuit
from tl1_driver.codec import Decoder
from tl1_driver.dialects import DIALECTS
from tl1_driver.emulator.crossbar import Crossbar, Refusal
from tl1_driver.emulator.requests import RequestReader, circuits_to_delete, ports
from tl1_driver.errors import MalformedAnswer
from tl1_driver.messages import Command, Message, Response, Unparsed
from tl1_driver.session import Answered, Failed, Session

DATA = Path(__file__).parent.parent / "data" / "tl1"
ROUNDS = 1000
"""Inputs per seed: with 20 seeds and two kinds of input, 40,000 in all, half of them mutations."""
ALPHABET = b'\r\n;><"\\/* M1:,=AIPOK\x1b[\xff09-'
COMMANDS = [
    b'act-user::admin:1::"p;w";',
    b"ent-crs-fiber::10001&10002,20001&20003:2:::opmode=sync;",
    b"dlt-crs-fiber::10001&&10003:3;",
    b"rtrv-crs-fiber::all:4;\r\n",
]


def transcripts() -> list[bytes]:
    """Pieces of golden transcripts, short enough to be fed byte by byte many times."""
    texts = [path.read_bytes().replace(b"\n", b"\r\n") for path in sorted(DATA.glob("*.txt"))]
    pieces = [piece for text in texts for piece in re.split(rb"(?<=;\r\n)(?=<|\r\n| )", text)]
    return [piece for piece in pieces if 20 < len(piece) < 600]


def mutated(rng: random.Random, seeds: list[bytes]) -> bytes:
    data = bytearray(b"".join(rng.choices(seeds, k=rng.randint(1, 2))))
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(data) + 1)
        kind = rng.randrange(4)
        if kind == 0:
            data[at:at] = bytes([rng.choice(ALPHABET)])
        elif kind == 1:
            del data[at : at + rng.randint(1, 20)]
        elif kind == 2 and at < len(data):
            data[at] = rng.randrange(256)
        else:
            data[at:at] = data[rng.randrange(len(data) + 1) :][: rng.randint(1, 40)]
    return bytes(data)


def noise(rng: random.Random) -> bytes:
    return bytes(rng.choice(ALPHABET) if rng.random() < 0.8 else rng.randrange(256) for _ in range(rng.randint(1, 80)))


def described(message: Message) -> object:
    return (message.text, type(message.error)) if isinstance(message, Unparsed) else message


def check_decoder(data: bytes, limit: int) -> list[Message]:
    messages = Decoder(limit).feed(data)
    decoder = Decoder(limit)
    single = [message for at in range(len(data)) for message in decoder.feed(data[at : at + 1])]
    assert [described(m) for m in messages] == [described(m) for m in single]
    return messages


def check_session(data: bytes) -> None:
    """Each command ends exactly once, whatever is received."""
    session = Session()
    awaited = {session.send(Command("RTRV-HDR"), 0.0) for _ in range(3)}
    events = session.receive(data, 0.5)
    for now in range(1, 200):
        events += session.handle_timer(float(now))
    ended = [event.ctag for event in events if isinstance(event, Answered | Failed)]
    assert sorted(ended) == sorted(awaited)
    assert session.next_timer() is None


def check_rows(messages: list[Message]) -> None:
    for message in messages:
        if isinstance(message, Response):
            assert message.error_code.isascii()
            assert isinstance(message.error_text, str)
            for dialect in DIALECTS.values():
                try:
                    found = dialect.read_circuits(message.lines)
                except MalformedAnswer:
                    continue
                assert all(state.input >= 1 and state.output >= 1 for state in found)


def check_requests(data: bytes) -> None:
    crossbar = Crossbar(4, 3)
    crossbar.change([], [Circuit(1, 1)])
    reader = RequestReader()
    single = [request for at in range(len(data)) for request in reader.feed(data[at : at + 1])]
    assert list(RequestReader().feed(data)) == single
    for request in single:
        assert isinstance(request.settings, dict)
        for parse in (ports, circuits_to_delete):
            try:
                parse(request.aid, crossbar)
            except Refusal:
                continue


@pytest.mark.parametrize("seed", range(20))
def test_mutated_transcripts(seed: int) -> None:
    rng = random.Random(seed)
    seeds = transcripts()
    understood = 0
    for _ in range(ROUNDS):
        data = mutated(rng, seeds)
        messages = check_decoder(data, rng.choice([50, 300, 1 << 20]))
        understood += any(not isinstance(message, Unparsed) for message in messages)
        check_rows(messages)
        if rng.random() < 0.1:
            check_session(data)
    assert understood > ROUNDS / 4


@pytest.mark.parametrize("seed", range(20))
def test_noise(seed: int) -> None:
    rng = random.Random(1000 + seed)
    for _ in range(ROUNDS):
        data = noise(rng)
        check_decoder(data, rng.choice([10, 50, 1 << 20]))
        check_requests(data)


@pytest.mark.parametrize("seed", range(5))
def test_mutated_commands(seed: int) -> None:
    rng = random.Random(2000 + seed)
    for _ in range(ROUNDS):
        check_requests(mutated(rng, COMMANDS))
