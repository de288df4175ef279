"""The frame decoder: whole, cut anywhere, and refused before it is buffered."""

from __future__ import annotations

import struct

import pytest

from blast_controller.rpc.connections.errors import FrameLengthInvalid, FrameTooLarge
from blast_controller.rpc.connections.frames import FRAME_BYTES, FrameDecoder, encode_frame


def frames(decoder: FrameDecoder) -> list[bytes]:
    return list(iter(decoder.next_frame, None))


def test_a_frame_is_its_length_and_its_body():
    assert encode_frame(b"abc") == b"\x00\x00\x00\x03abc"


def test_several_frames_in_one_piece_come_out_in_order():
    decoder = FrameDecoder()
    decoder.receive(encode_frame(b"a") + encode_frame(b"bc") + encode_frame(b"d")[:4])
    assert frames(decoder) == [b"a", b"bc"]
    decoder.receive(b"d")
    assert frames(decoder) == [b"d"]


@pytest.mark.parametrize("length", [0, -1, -(1 << 31)])
def test_a_length_that_is_not_positive_is_refused(length):
    decoder = FrameDecoder()
    decoder.receive(encode_frame(b"good") + struct.pack("!i", length))
    assert decoder.next_frame() == b"good"
    for _ in range(2):
        with pytest.raises(FrameLengthInvalid, match="not positive"):
            decoder.next_frame()


@pytest.mark.parametrize("length", [FRAME_BYTES + 1, (1 << 31) - 1, 0x47455420])
def test_an_oversized_frame_is_refused_from_its_length_alone(length):
    decoder = FrameDecoder()
    decoder.receive(struct.pack("!i", length))
    with pytest.raises(FrameTooLarge, match="exceeds the cap"):
        decoder.next_frame()


def test_what_arrived_of_an_oversized_frame_is_handed_over():
    decoder = FrameDecoder(frame_bytes=8)
    decoder.receive(struct.pack("!i", 9) + b"begin")
    with pytest.raises(FrameTooLarge) as refused:
        decoder.next_frame()
    assert refused.value.beginning == b"begin"


def test_a_frame_of_exactly_the_cap_passes():
    decoder = FrameDecoder(frame_bytes=8)
    decoder.receive(encode_frame(b"12345678"))
    assert decoder.next_frame() == b"12345678"
