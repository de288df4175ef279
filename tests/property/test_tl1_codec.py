"""Whatever arrives and however it is cut: the same messages; and what is encoded is decoded."""

from __future__ import annotations

import string

from hypothesis import given, settings
from hypothesis import strategies as st

from tl1_driver.codec import Decoder, encode_command
from tl1_driver.emulator.requests import RequestReader
from tl1_driver.messages import Command, Message, Response, Unparsed
from tl1_driver.payload import parameters, quote, unquote

FRAGMENTS = [
    b"\r\n\n   sw1 26-11-20 10:00:00\r\n",
    b"   26-11-20 10:00:00\n",
    b"M  1 COMPLD\r\n",
    b"M 2 DENY\r\n",
    b"*C 3 REPT ALM\r\n",
    b'   "GGN:A=1,B=;x"\r\n',
    b"IP 1\r\n",
    b">\r\n",
    b";",
    b'"',
    b"\\",
    b"/*",
    b"*/",
    b"/",
    b"*",
    b"<",
    b"agent>",
    b"\r",
    b"\n",
    b"\x1b[",
    b"\x1b[2J",
    b"\xff\xfd",
    b"rtrv-hdr:::1",
]
STREAMS = st.lists(st.one_of(st.sampled_from(FRAGMENTS), st.binary(max_size=8)), max_size=30).map(b"".join)
NAMES = st.text(string.ascii_uppercase, min_size=1, max_size=8)
PRINTABLE = st.text(st.characters(blacklist_categories=["Cc", "Cs"]), max_size=30)


def described(message: Message) -> object:
    return (message.text, type(message.error)) if isinstance(message, Unparsed) else message


def decode(chunks: list[bytes], limit: int) -> list[object]:
    decoder = Decoder(limit)
    return [described(message) for chunk in chunks for message in decoder.feed(chunk)]


@settings(max_examples=400)
@given(STREAMS, st.lists(st.integers(1, 40), max_size=20), st.sampled_from([1, 16, 40, 100, 1 << 20]))
def test_result_does_not_depend_on_chunking(data: bytes, sizes: list[int], limit: int) -> None:
    cuts = [0, *(sum(sizes[: n + 1]) for n in range(len(sizes)))]
    chunks = [data[start:end] for start, end in zip(cuts, [*cuts[1:], len(data)], strict=True)]
    whole = decode([data], limit)
    assert decode(chunks, limit) == whole
    assert decode([data[at : at + 1] for at in range(len(data))], limit) == whole


@given(st.lists(PRINTABLE, max_size=6), st.integers(0, 10**9))
def test_quoted_rows_arrive_unchanged_and_end_nothing(texts: list[str], ctag: int) -> None:
    rows = "".join('   "' + text.replace("\\", "\\\\").replace('"', '\\"') + '"\r\n' for text in texts)
    data = f"\r\n\n   sw1 26-11-20 10:00:00\r\nM  {ctag} COMPLD\r\n{rows};".encode()
    [message] = Decoder().feed(data)
    assert isinstance(message, Response)
    assert message.ctag == str(ctag)
    assert [unquote(line) for line in message.lines] == texts


@given(st.dictionaries(NAMES, st.text(string.ascii_letters + string.digits + " .:;-_/#<>", max_size=12), min_size=1))
def test_parameters_round_trip(pairs: dict[str, str]) -> None:
    row = '"GGN:' + ",".join(f"{name}={value}" for name, value in pairs.items()) + '"'
    assert parameters(row) == {name: value.strip() for name, value in pairs.items()}


@given(st.lists(st.tuples(PRINTABLE, PRINTABLE), max_size=4))
def test_commands_are_read_as_they_were_meant(fields: list[tuple[str, str]]) -> None:
    commands = [Command("ed-x", quote(aid) or "1", ("", quote(value) or "2")) for aid, value in fields]
    data = b"".join(encode_command(command, str(n), limit=8192) for n, command in enumerate(commands))
    requests = list(RequestReader().feed(data))
    assert [(r.verb, r.aid, r.ctag, unquote(r.payload[0])) for r in requests] == [
        ("ED-X", aid or "1", str(n), value or "2") for n, (aid, value) in enumerate(fields)
    ]


def test_fragments_do_make_messages() -> None:
    """The streams above are worth something only if some of them are TL1."""
    data = b"".join([FRAGMENTS[0], FRAGMENTS[2], FRAGMENTS[5], b";", FRAGMENTS[6]])
    assert len(decode([data], 1 << 20)) == 2
