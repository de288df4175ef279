"""Random bytes and mutated transcripts, whole and byte by byte: the same messages, and no untyped exception.

Half of the inputs are mutations of valid messages. Beside the decoder itself: the session above it, the rows that
dialects read, and the emulated switch's reader of commands. A longer run, with its counts, and the branches reached:

    BLAST_FUZZ_INPUTS=1000000 python -m tests.fuzz.test_tl1_fuzz
    coverage run --branch --include='tl1_driver/*' -m tests.fuzz.test_tl1_fuzz
    coverage report --include='tl1_driver/codec.py,tl1_driver/scanner.py,tl1_driver/messages.py,tl1_driver/payload.py'
"""

from __future__ import annotations

import logging
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.fuzzing import inputs
from tl1_driver.codec import Decoder, encode_command
from tl1_driver.dialects import DIALECTS, Polatis
from tl1_driver.emulator.agent import EmulatedSwitch
from tl1_driver.emulator.crossbar import Refusal
from tl1_driver.emulator.languages import LANGUAGES
from tl1_driver.emulator.requests import RequestReader
from tl1_driver.errors import InvalidCommand, MalformedAnswer
from tl1_driver.messages import Autonomous, Command, Message, Response, Unparsed
from tl1_driver.payload import parameters, quote, split_blocks, unquote
from tl1_driver.session import Answered, Failed, Session

DATA = Path(__file__).parent.parent / "data" / "tl1"
SEEDS = 20
USUAL = 40_000
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
SPOKEN = [
    replace(dialect, inputs=8, outputs=8, tid="ocs") if isinstance(dialect, Polatis) else dialect
    for dialect in DIALECTS.values()
]


def transcripts() -> list[bytes]:
    """Pieces of golden transcripts, short enough to be fed byte by byte many times."""
    texts = [path.read_bytes().replace(b"\n", b"\r\n") for path in sorted(DATA.glob("*.txt"))]
    pieces = [piece for text in texts for piece in UNFINISHED.split(text)]
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


def unfinished(rng: random.Random) -> bytes:
    """Many messages of which the last part never comes, some of them with an open quote."""
    rows = [b'   "row"', b'   "open', b"   /* open", b"   row"]
    header = b"\r\n\n   sw1 26-11-20 10:00:00\r\nM  %d COMPLD\r\n%s\r\n>"
    return b"".join(header % (number, rng.choice(rows)) for number in range(rng.randint(60, 80)))


def noise(rng: random.Random) -> bytes:
    return bytes(rng.choice(ALPHABET) if rng.random() < 0.8 else rng.randrange(256) for _ in range(rng.randint(1, 80)))


def described(message: Message) -> object:
    return (message.text, type(message.error)) if isinstance(message, Unparsed) else message


def check_decoder(data: bytes, limit: int) -> list[Message]:
    whole = Decoder(limit)
    messages = whole.feed(data)
    decoder = Decoder(limit)
    single = [message for at in range(len(data)) for message in decoder.feed(data[at : at + 1])]
    messages, single = messages + whole.finish(), single + decoder.finish()
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
        if isinstance(message, Autonomous):
            for dialect in SPOKEN:
                assert all(alarm.condition for alarm in dialect.alarms(message) if alarm.port)
        if isinstance(message, Response):
            assert message.error_code.isascii()
            assert isinstance(message.error_text, str)
            assert all(isinstance(parameters(line), dict) and split_blocks(unquote(line)) for line in message.lines)
            for dialect in SPOKEN:
                for procedure in (dialect.circuits(), dialect.powers()):
                    check_reading(procedure, message)


def check_reading(procedure, answer: Response) -> None:
    """A reading procedure that gets this answer to whatever it asks ends with a list, or with a typed error."""
    try:
        next(procedure)
        while True:
            procedure.send(replace(answer, code="COMPLD"))
    except MalformedAnswer:
        return
    except StopIteration as end:
        assert all(one.number >= 1 for one in end.value if isinstance(end.value, dict))
        assert all(one.input >= 1 and one.output >= 1 for one in end.value if isinstance(end.value, list))


async def nothing(_removed, _added) -> None:
    pass


def check_requests(data: bytes) -> None:
    reader = RequestReader()
    single = [request for at in range(len(data)) for request in reader.feed(data[at : at + 1])]
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
            except Refusal:
                continue


def check_encoding(rng: random.Random) -> None:
    """What can be encoded is read as it was meant; the rest is refused, never sent in part."""
    fields = [noise(rng).decode("latin-1")[: rng.randint(0, 6)] for _ in range(3)]
    try:
        fields = [quote(field) if rng.random() < 0.7 else field for field in fields]
        command = Command("ed-x", fields[0], ("", fields[1] or "x"), tid=fields[2])
        wire = encode_command(command, rng.choice(["1", "a.b", "bad tag"]), limit=rng.choice([20, 200]))
    except InvalidCommand:
        return
    [request] = RequestReader().feed(wire)
    assert (request.verb, request.aid, request.tid) == ("ED-X", unquote(fields[0]), unquote(fields[2]))
    assert [block.strip() for block in request.payload] == [(fields[1] or "x").strip()], wire


def fuzz_transcripts(rng: random.Random, seeds: list[bytes], counts: Counter[str]) -> None:
    data = mutated(rng, seeds if rng.random() < 0.99 else [unfinished(rng)])
    messages = check_decoder(data, rng.choice(LIMITS))
    check_rows(messages)
    if rng.random() < 0.1:
        check_session(data)
    counts["mutated transcripts"] += 1
    counts["... understood at least in part"] += any(not isinstance(message, Unparsed) for message in messages)


def fuzz_noise(rng: random.Random, _seeds: list[bytes], counts: Counter[str]) -> None:
    data = noise(rng)
    check_rows(check_decoder(data, rng.choice(LIMITS)))
    check_requests(data)
    counts["noise"] += 1


def fuzz_commands(rng: random.Random, _seeds: list[bytes], counts: Counter[str]) -> None:
    check_requests(mutated(rng, COMMANDS))
    check_encoding(rng)
    counts["mutated commands"] += 1


Fuzz = Callable[[random.Random, list[bytes], Counter[str]], None]
KINDS: dict[Fuzz, float] = {fuzz_transcripts: 0.5, fuzz_noise: 0.5, fuzz_commands: 0.1}
"""What part of the inputs each kind gets; commands, which only the emulated switch decodes, come on top."""


def run(fuzz: Fuzz, seed: int, rounds: int) -> Counter[str]:
    rng, seeds, counts = random.Random(f"{fuzz.__name__}/{seed}"), transcripts(), Counter[str]()
    for _ in range(rounds):
        fuzz(rng, seeds, counts)
    return counts


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("fuzz", KINDS)
def test_fuzz(fuzz: Fuzz, seed: int) -> None:
    rounds = round(inputs(USUAL) * KINDS[fuzz] / SEEDS)
    counts = run(fuzz, seed, rounds)
    assert max(counts.values()) == rounds
    assert fuzz is not fuzz_transcripts or counts["... understood at least in part"] > rounds / 4


def main() -> None:
    logging.disable(logging.WARNING)
    began, total = time.monotonic(), Counter[str]()
    for fuzz, share in KINDS.items():
        for seed in range(SEEDS):
            total += run(fuzz, seed, round(inputs(USUAL) * share / SEEDS))
    for name, count in total.items():
        print(f"{count:10d} {name}")
    print(f"{time.monotonic() - began:10.1f} s, no untyped exception", file=sys.stderr)


if __name__ == "__main__":
    main()
