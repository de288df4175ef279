"""Any cutting of any frames gives the same frames."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from blast_controller.rpc.connections.frames import FrameDecoder, encode_frame


@given(st.lists(st.binary(min_size=1, max_size=40), max_size=8), st.data())
def test_cutting_does_not_matter(bodies, data):
    stream = b"".join(encode_frame(body) for body in bodies)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(stream)))))
    decoder, out = FrameDecoder(), []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        decoder.receive(stream[start:end])
        out += iter(decoder.next_frame, None)
    assert out == bodies


@given(st.lists(st.integers(1, 30_000), min_size=1, max_size=4), st.sampled_from([8191, 8192, 8193, 16384]))
def test_pieces_of_a_socket_buffer_s_size(lengths, piece):
    bodies = [bytes(length) for length in lengths]
    stream = b"".join(encode_frame(body) for body in bodies)
    decoder, out = FrameDecoder(), []
    for start in range(0, len(stream), piece):
        decoder.receive(stream[start : start + piece])
        out += iter(decoder.next_frame, None)
    assert out == bodies
