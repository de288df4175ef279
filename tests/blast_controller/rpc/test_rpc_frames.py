"""The frame decoder: whole frames from any pieces, and lengths that are refused before anything is buffered."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blast_controller.rpc.connections.errors import FrameLengthError, FrameTooLargeError
from blast_controller.rpc.connections.frames import FRAME_BYTES, RpcFrameDecoder, encode_frame


@given(st.lists(st.binary(min_size=1, max_size=40), max_size=8), st.data())
def test_decoder_returns_frames_of_a_split_stream(bodies, data):
    stream = b"".join(encode_frame(body) for body in bodies)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(stream)))))
    decoder, out = RpcFrameDecoder(), []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        decoder.receive(stream[start:end])
        out += iter(decoder.next_frame, None)
    assert out == bodies


def test_frame_has_a_length_and_a_body():
    assert encode_frame(b"abc") == b"\x00\x00\x00\x03abc"


@pytest.mark.parametrize("length", [0, -1, -(1 << 31)])
def test_decoder_rejects_a_length_that_is_not_positive(length):
    decoder = RpcFrameDecoder()
    decoder.receive(encode_frame(b"good") + struct.pack("!i", length))
    assert decoder.next_frame() == b"good"
    for _ in range(2):
        with pytest.raises(FrameLengthError, match="not positive"):
            decoder.next_frame()


@pytest.mark.parametrize("length", [FRAME_BYTES + 1, (1 << 31) - 1, 0x47455420])
def test_error_of_an_oversized_frame_has_the_received_bytes(length):
    decoder = RpcFrameDecoder()
    decoder.receive(struct.pack("!i", length) + b"begin")
    with pytest.raises(FrameTooLargeError, match="exceeds the cap") as refused:
        decoder.next_frame()
    assert refused.value.beginning == b"begin"


def test_decoder_accepts_a_frame_of_exactly_the_cap():
    decoder = RpcFrameDecoder(frame_bytes=8)
    decoder.receive(encode_frame(b"12345678"))
    assert decoder.next_frame() == b"12345678"
