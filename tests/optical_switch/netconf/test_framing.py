"""Framing of NETCONF by RFC 6242: the same messages in whatever pieces, and typed errors for all other bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optical_switch.netconf.framing import FramingError, NetconfDecoder, in_one_chunk, with_end

MESSAGES = st.lists(st.binary(min_size=1, max_size=40).filter(lambda data: b"]]>]]>" not in data + b"]]>"), max_size=5)


def all_of(decoder: NetconfDecoder) -> list[bytes]:
    return list(iter(decoder.next_message, None))


def in_pieces(decoder: NetconfDecoder, data: bytes, cuts: list[int]) -> list[bytes]:
    found, at = [], 0
    for size in cuts:
        decoder.feed(data[at : at + size])
        found += all_of(decoder)
        at += size
    decoder.feed(data[at:])
    return found + all_of(decoder)


def chunked() -> NetconfDecoder:
    decoder = NetconfDecoder()
    decoder.use_chunks()
    return decoder


# ------------------------------------------------------------------------------------------------------ messages


@given(MESSAGES, st.lists(st.integers(1, 9)))
def test_ended_messages_are_read_in_any_pieces(messages: list[bytes], cuts: list[int]) -> None:
    # A message whose last bytes begin an end mark is no XML.
    messages = [message + b"\n" for message in messages]
    assert in_pieces(NetconfDecoder(), b"".join(map(with_end, messages)), cuts) == messages


@given(MESSAGES, st.lists(st.integers(1, 9)), st.integers(1, 9))
def test_chunked_messages_are_read_in_any_pieces_and_chunks(messages: list[bytes], cuts: list[int], size: int) -> None:
    def several_chunks(message: bytes) -> bytes:
        parts = [message[at : at + size] for at in range(0, len(message), size)]
        return b"".join(b"\n#%d\n%s" % (len(part), part) for part in parts) + b"\n##\n"

    assert in_pieces(chunked(), b"".join(map(several_chunks, messages)), cuts) == messages
    assert in_pieces(chunked(), b"".join(map(in_one_chunk, messages)), cuts) == messages


def test_example_of_rfc_6242_is_read() -> None:
    decoder = chunked()
    decoder.feed(b'\n#4\n<rpc\n#18\n message-id="102"\n\n#79\n')
    assert decoder.next_message() is None
    body = b'     xmlns="urn:ietf:params:xml:ns:netconf:base:1.0">\n  <close-session/>\n</rpc>'
    decoder.feed(body + b"\n##\n")
    assert len(body) == 79
    assert decoder.next_message() == b'<rpc message-id="102"\n' + body


def test_bytes_after_hello_are_read_in_chunks() -> None:
    decoder = NetconfDecoder()
    decoder.feed(with_end(b"<hello/>") + in_one_chunk(b"<first/>") + in_one_chunk(b"<second/>"))
    assert decoder.next_message() == b"<hello/>"
    decoder.use_chunks()
    assert all_of(decoder) == [b"<first/>", b"<second/>"]


# -------------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    "data",
    [
        b"<rpc-reply/>",
        b"\n##\n",
        b"\n#0\n",
        b"\n#04\nabcd",
        b"\n#-1\n",
        b"\n#4abcd",
        b"\n#12345678901",
        b"\n#4\nabcd\n#x",
        b"\n#4\nabcde",
        b"\n#4\nabcd\n###",
    ],
)
def test_wrong_chunks_are_rejected_whole_and_byte_by_byte(data: bytes) -> None:
    whole = chunked()
    whole.feed(data)
    with pytest.raises(FramingError):
        all_of(whole)
    with pytest.raises(FramingError):
        in_pieces(chunked(), data, [1] * len(data))


@pytest.mark.parametrize(
    "data", [b"", b"\n", b"\n#", b"\n#4294967295", b"\n#4\nab", b"\n#4\nabcd\n#", b"\n#4\nabcd\n##"]
)
def test_unfinished_chunks_wait_for_more_bytes(data: bytes) -> None:
    decoder = chunked()
    decoder.feed(data)
    assert decoder.next_message() is None


def test_message_of_maximum_size_is_read_and_a_longer_one_rejected() -> None:
    for size, is_accepted in ((100, True), (101, False)):
        ended, in_chunks = NetconfDecoder(100), NetconfDecoder(100)
        in_chunks.use_chunks()
        ended.feed(with_end(b"x" * size))
        in_chunks.feed(b"".join(b"\n#1\nx" for _ in range(size)) + b"\n##\n")
        for decoder in (ended, in_chunks):
            if is_accepted:
                assert decoder.next_message() == b"x" * size
            else:
                with pytest.raises(FramingError, match="more than 100 bytes"):
                    decoder.next_message()


def test_message_that_never_ends_is_rejected() -> None:
    decoder = NetconfDecoder(1000)
    with pytest.raises(FramingError, match="more than 1000 bytes"):
        in_pieces(decoder, b"<" * 1100, [10] * 110)


def test_size_of_chunk_is_checked_before_its_data_arrive() -> None:
    decoder = chunked()
    decoder.feed(b"\n#4294967295\n")
    with pytest.raises(FramingError, match="more than"):
        decoder.next_message()


def test_search_for_end_mark_takes_linear_time() -> None:
    """Count the bytes that are searched: each piece, and the few in which an end mark may have begun."""

    class Counting(bytearray):
        searched = 0

        def find(self, mark: bytes, start: int = 0) -> int:
            Counting.searched += len(self) - start
            return super().find(mark, start)

    decoder = NetconfDecoder()
    decoder._received = Counting()
    for _ in range(1000):
        decoder.feed(b"x" * 10)
        assert decoder.next_message() is None
    assert Counting.searched < 1000 * 16
