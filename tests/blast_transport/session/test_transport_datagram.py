from __future__ import annotations

import pytest

from blast_transport.base.errors import WrongInputError
from blast_transport.wire.datagram import HEADER, segment_size_for, segments_for, wire_bytes


def test_header_is_16_bytes_little_endian() -> None:
    assert HEADER.pack(0x01020304, 0, 5).hex() == "04030201" + "00000000" + "0500000000000000"


@pytest.mark.parametrize(("mtu", "segment", "segments"), [(1500, 1456, 44), (9000, 8956, 7), (65536, 65491, 1)])
def test_segment_fills_mtu_and_block_fills_super_packet(mtu: int, segment: int, segments: int) -> None:
    assert segment_size_for(mtu) == segment
    assert segments_for(segment) == segments
    assert segment + 16 + 28 <= mtu
    assert segments * (segment + 16) <= 65507 < (segments + 1) * (segment + 16)


def test_wire_bytes_counts_every_header() -> None:
    assert wire_bytes(1456) == 1514


def test_mtu_below_minimum_is_rejected() -> None:
    with pytest.raises(WrongInputError, match="575"):
        segment_size_for(575)
