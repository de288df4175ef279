"""Framing of messages on the device's side (RFC 6242 section 4), without a connection."""

from __future__ import annotations

import contextlib
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optical_switch.emulator.netconf_server.messages import framing
from optical_switch.emulator.netconf_server.messages.framing import MessageReader, ServerFramingError, framed


def read(data: bytes, *, chunked: bool, cuts: list[int] | None = None) -> list[bytes]:
    """Return the messages in bytes that arrive in pieces."""
    reader = MessageReader()
    reader.chunked = chunked
    places = [0, *sorted(cut % (len(data) + 1) for cut in cuts or []), len(data)]
    pieces = [data[begin:end] for begin, end in itertools.pairwise(places)]
    return [message for piece in pieces for message in reader.feed(piece)]


TEXTS = st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(lambda text: "]]>" not in text))


@given(TEXTS, st.booleans(), st.lists(st.integers(0, 10_000), max_size=8))
def test_messages_survive_any_division_into_pieces(texts: list[str], chunked: bool, cuts: list[int]) -> None:
    data = b"".join(framed(text, chunked=chunked) for text in texts)
    assert read(data, chunked=chunked, cuts=cuts) == [text.encode() for text in texts]


def test_message_arrives_byte_by_byte() -> None:
    data = b'\n#4\n<rpc\n#18\n message-id="102"\n\n##\n'
    assert read(data, chunked=True, cuts=list(range(len(data)))) == [b'<rpc message-id="102"\n']


def test_framing_changes_within_one_piece() -> None:
    """RFC 6242 section 4.1: chunks may follow the hello message at once."""
    reader, found = MessageReader(), []
    for message in reader.feed(b"<hello/>]]>]]>\n#6\n<rpc/>\n##\n\n#2\n<a"):
        found.append(message)
        reader.chunked = True
    assert found == [b"<hello/>", b"<rpc/>"]
    assert list(reader.feed(b"\n#2\n/>\n##\n")) == [b"<a/>"]


@pytest.mark.parametrize(
    "data",
    [
        b"\n#0\n",
        b"\n#01\nx",
        b"\n#-1\nx",
        b"\n#x\n",
        b"\n##\n",
        b"#4\n",
        b"\n#4\n<a/>##\n",
        b"\n#99999999999",
        b"\n#12 \n",
        b"<rpc/>]]>]]>",
    ],
)
def test_wrong_chunks_are_violations(data: bytes) -> None:
    with pytest.raises(ServerFramingError):
        read(data, chunked=True)


@pytest.mark.parametrize("data", [b"\n#1048577\n", b"\n#1048576\n" + b"x" * 1048576 + b"\n#1\n", b"\n#4294967295\n"])
def test_chunked_message_beyond_bound_is_violation(data: bytes) -> None:
    with pytest.raises(ServerFramingError, match="more than 1048576 bytes"):
        read(data, chunked=True)


def test_delimited_message_beyond_bound_is_violation() -> None:
    fits = b"x" * framing.MAX_MESSAGE
    assert read(fits + framing.END_OF_MESSAGE, chunked=False) == [fits]
    with pytest.raises(ServerFramingError):
        read(fits + b"x" + framing.END_OF_MESSAGE, chunked=False)
    with pytest.raises(ServerFramingError):
        # No end in sight: the buffer must not grow further.
        read(fits + b"x" * 16, chunked=False)


@given(st.binary(max_size=80), st.booleans())
def test_any_bytes_are_messages_or_violation(data: bytes, chunked: bool) -> None:
    with contextlib.suppress(ServerFramingError):
        assert all(isinstance(message, bytes) for message in read(data, chunked=chunked))
