"""Fuzz tests of TL1: random bytes and mutated transcripts yield the same messages whole and in pieces, or typed errors.

Half of the inputs are mutations of valid messages. Besides the decoder, the tests cover the session above it, the rows
that dialects read, and the emulated switch's reader of commands.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import cycle, islice
from pathlib import Path

from optical_switch.emulator.crossbar import RefusalError
from tests.support.fuzzing import Decoder as Fuzzed
from tests.support.fuzzing import fuzz, inputs
from tl1_driver.dialects import DIALECTS, Dialect
from tl1_driver.emulator.agent import EmulatedSwitch
from tl1_driver.emulator.languages import LANGUAGES
from tl1_driver.emulator.requests import RequestReader
from tl1_driver.protocol.alarms import AlarmRow, read_rows
from tl1_driver.protocol.codec import Tl1Decoder, encode_command
from tl1_driver.protocol.errors import InvalidCommandError, MalformedResponseError
from tl1_driver.protocol.messages import Autonomous, Message, Response, Tl1Command, Unparsed
from tl1_driver.protocol.payload import parameters, quote, split_blocks, unquote
from tl1_driver.protocol.procedure import Procedure
from tl1_driver.protocol.session import Answered, CommandFailed, Tl1Session

DATA = Path(__file__).parent.parent / "data" / "tl1"
LONGEST = 2000
USUAL = 6000
LIMITS = [10, 50, 300, 1 << 20]
ALPHABET = b'\r\n;><"\\/* M1:,=AIPOK\x1b[\xff09-'
COMMANDS = [
    b'act-user::admin:1::"p;w";',
    b"ent-crs-fiber::10001&10002,20001&20003:2:::opmode=sync;",
    b"dlt-crs-fiber::10001&&10003:3;",
    b"rtrv-crs-fiber::all:4;\r\n",
    b"ENT-CRS::1.1.1,1.1.2:5::BLAST,1WAY;ACT-CRS::1.1.1,1.1.2:6::1.1.1>1.1.2,BLAST;",
    b"ent-crs-bulk::1.1.1>1.1.2&1.1.3>1.1.4:7;RTRV-SAVERECALL:::8;CANC-CRS:::9::1.1.1>1.1.2;",
    b"ENT-PATCH::1,6:10;DLT-PATCH::1&2:11;RTRV-PORT-POWER::1&&7:12;RTRV-EQPT::SYSTEM:13:::PARAMETER=SIZE;",
]
UNFINISHED = re.compile(rb"(?<=;\r\n)(?=<|\r\n| )")
PORTS = ("1.1.1", "1.1.2", "1.1.3", "1.2.5", "1.2.1", "2.1.1")
SETTINGS = {"polatis": [{"inputs": 8, "outputs": 8, "tid": "ocs"}, {}], "calient": [{"names": PORTS}, {}]}
SPOKEN = [
    replace(dialect, **settings)
    for name, dialect in DIALECTS.items()
    for settings in SETTINGS.get(name.partition("-")[0], [{}])
]


def transcripts() -> list[bytes]:
    """Return pieces of golden transcripts, short enough for many runs byte by byte."""
    texts = [path.read_bytes().replace(b"\n", b"\r\n") for path in sorted(DATA.glob("*.txt"))]
    pieces = [piece for text in texts for piece in UNFINISHED.split(text)]
    return [piece for piece in (*pieces, *texts) if 20 < len(piece) < LONGEST]


def mutated_transcript(rng: random.Random, seed: bytes) -> bytes:
    if rng.random() < 0.01:
        return unfinished(rng)
    return mutated(rng, seed + rng.choice(PIECES) if rng.random() < 0.3 else seed)


def mutated(rng: random.Random, seed: bytes) -> bytes:
    data = bytearray(seed)
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
    return bytes(data[:LONGEST])


def unfinished(rng: random.Random) -> bytes:
    """Return many messages without their last part, some of them with an open quote."""
    rows = [b'   "row"', b'   "open', b"   /* open", b"   row"]
    header = b"\r\n\n   sw1 26-11-20 10:00:00\r\nM  %d COMPLD\r\n%s\r\n>"
    return b"".join(header % (number, rng.choice(rows)) for number in range(rng.randint(60, 80)))


def noise(rng: random.Random) -> bytes:
    return bytes(rng.choice(ALPHABET) if rng.random() < 0.8 else rng.randrange(256) for _ in range(rng.randint(1, 80)))


def described(message: Message) -> object:
    return (message.text, type(message.error)) if isinstance(message, Unparsed) else message


def check_decoder(rng: random.Random, data: bytes, limit: int) -> list[Message]:
    whole = Tl1Decoder(limit)
    messages = whole.feed(data)
    decoder = Tl1Decoder(limit)
    maximum = 1 if rng.random() < 0.1 else 60
    pieces = [message for piece in cut(rng, data, maximum) for message in decoder.feed(piece)]
    messages, pieces = messages + whole.finish(), pieces + decoder.finish()
    assert [described(m) for m in messages] == [described(m) for m in pieces]
    return messages


def cut(rng: random.Random, data: bytes, max_size: int) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        end = at + rng.randint(1, max_size)
        yield data[at:end]
        at = end


def check_session(data: bytes) -> None:
    """Check that each command ends exactly once, whatever is received."""
    session = Tl1Session()
    awaited = {session.send(Tl1Command("RTRV-HDR"), 0.0) for _ in range(3)}
    events = session.receive(data, 0.5)
    for now in range(1, 200):
        events += session.handle_timer(float(now))
    ended = [event.ctag for event in events if isinstance(event, Answered | CommandFailed)]
    assert sorted(ended) == sorted(awaited)
    assert session.next_timer() is None


def check_rows(rng: random.Random, messages: list[Message]) -> None:
    for message in messages:
        if isinstance(message, Autonomous):
            for dialect in SPOKEN:
                assert all(alarm.condition for alarm in dialect.alarms(message) if alarm.port)
        if isinstance(message, Response):
            assert message.error_code.isascii()
            assert isinstance(message.error_text, str)
            assert all(isinstance(parameters(line), dict) and split_blocks(unquote(line)) for line in message.lines)
    responses = [message for message in messages if isinstance(message, Response)]
    first = rng.randrange(len(responses)) if responses else 0
    for dialect in SPOKEN if responses else ():
        for procedure in (dialect.circuits(), dialect.powers(), dialect.introduce()):
            check_reading(procedure, responses[first:])


def check_reading(procedure: Procedure, answers: list[Response]) -> None:
    """Check that a reading procedure with these answers returns a value, or raises a typed error."""
    try:
        next(procedure)
        for answer in islice(cycle(answers), 50):
            procedure.send(replace(answer, code="COMPLD"))
    except MalformedResponseError:
        return
    except StopIteration as end:
        if isinstance(end.value, dict):
            assert all(port.number >= 1 for port in end.value)
        elif isinstance(end.value, list):
            assert all(one.input >= 1 and one.output >= 1 for one in end.value)
        else:
            assert isinstance(end.value, Dialect)
        return
    raise AssertionError(f"{procedure} asks for ever")


async def nothing(_removed, _added) -> None:
    pass


def check_requests(rng: random.Random, data: bytes) -> bool:
    reader = RequestReader()
    single = [request for piece in cut(rng, data, 5) for request in reader.feed(piece)]
    assert list(RequestReader().feed(data)) == single
    for name in LANGUAGES if single else ():
        language = EmulatedSwitch(4, 3, apply=nothing, dialect=name)._language
        for request in single:
            assert isinstance(request.settings, dict)
            handler = language.reads.get(request.verb) or language.changes.get(request.verb)
            try:
                language.check_target(request)
                if handler is not None:
                    handler(request)
            except RefusalError:
                continue
    return bool(single)


def check_encoding(rng: random.Random) -> None:
    """Check that encodable input decodes to the same value, and that other input is refused and never sent in part."""
    fields = [noise(rng).decode("latin-1")[: rng.randint(0, 6)] for _ in range(3)]
    try:
        fields = [quote(field) if rng.random() < 0.7 else field for field in fields]
        command = Tl1Command("ed-x", fields[0], ("", fields[1] or "x"), tid=fields[2])
        wire = encode_command(command, rng.choice(["1", "a.b", "bad tag"]), limit=rng.choice([20, 200]))
    except InvalidCommandError:
        return
    [request] = RequestReader().feed(wire)
    assert (request.verb, request.aid, request.tid) == ("ED-X", unquote(fields[0]), unquote(fields[2]))
    assert [block.strip() for block in request.payload] == [(fields[1] or "x").strip()], wire


def check_transcript(rng: random.Random, data: bytes) -> str:
    messages = check_decoder(rng, data, rng.choice(LIMITS))
    check_rows(rng, messages)
    if rng.random() < 0.1:
        check_session(data)
    if not messages:
        return "nothing whole"
    understood = any(not isinstance(message, Unparsed) for message in messages)
    return "understood, at least in part" if understood else "unparsed"


def check_command(rng: random.Random, data: bytes) -> str:
    understood = check_requests(rng, data)
    check_encoding(rng)
    return "understood, at least in part" if understood else "nothing whole"


PIECES = transcripts()
TRANSCRIPTS = Fuzzed(
    "tl1 messages",
    PIECES,
    mutated_transcript,
    noise,
    check_transcript,
    (
        "/codec.py",
        "/scanner.py",
        "/messages.py",
        "/payload.py",
        "/base.py",
        "/calient.py",
        "/glimmerglass.py",
        "/polatis.py",
    ),
)
TYPED = Fuzzed(
    "tl1 commands",
    COMMANDS,
    mutated,
    noise,
    check_command,
    ("/tl1_driver/protocol/codec.py", "/emulator/requests.py", "/emulator/languages.py"),
)


def test_an_alarm_that_names_no_condition_is_none() -> None:
    assert read_rows(['"1.1.1:CR,,11-20,10-01-35"', '"1.1.2:CR, LOS"']) == [AlarmRow("1.1.2", "CR", "LOS")]


def test_messages() -> None:
    run = fuzz(TRANSCRIPTS, inputs(USUAL))
    assert run.outcomes["understood, at least in part"] > run.inputs / 5, run.outcomes
    assert run.outcomes["unparsed"] > run.inputs / 50, run.outcomes


def test_commands() -> None:
    run = fuzz(TYPED, USUAL // 3)
    assert run.outcomes["understood, at least in part"] > run.inputs / 5, run.outcomes
