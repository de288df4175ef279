"""Fuzz tests of the wire format: input in any pieces yields a message or a typed error, and takes little memory."""

from __future__ import annotations

import json
import random
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blast_transport.base.errors import RemoteProtocolError, UnsafeNameError
from blast_transport.store.files.file_names import plain_name
from blast_transport.wire.codec import FRAME, REPAIR_BYTES, VERSION, encode
from blast_transport.wire.codec import ControlDecoder as Frames
from blast_transport.wire.fields import from_json, to_json
from blast_transport.wire.messages import Abort, Demoted, Fin, Hello, Message, Phase, PhaseReady, Readmitted, Ready
from tests.support.fuzzing import Decoder, fuzz, inputs
from tests.support.transport.transport_data import mutated
from tests.support.transport.transport_messages import SAMPLES

JSON = (Hello, Ready, Phase, PhaseReady, Fin, Abort, Demoted, Readmitted)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)


def changed(rng: random.Random, data: bytes) -> bytes:
    return mutated(rng, data, (0, 1, 0x22, 0x2D, 0x39, 0x7F, 0x80, 0xFF))


def invented(rng: random.Random) -> bytes:
    """Return a frame of the right form with random content, or random bytes."""
    if rng.random() < 0.2:
        return rng.randbytes(rng.randrange(60))
    number = rng.randint(1, 14)
    body = rng.randbytes(rng.randrange(80))
    if rng.random() < 0.5:
        fields = ["session", "size", "held", "chain", "transport", "number", "first", "reason", "phase", "key"]
        fields += ["max_rate", "first_datagram"]
        values = [0, 1, -1, 1.5, True, None, "", "ab", "optical", [], [[1, 2]], {}, 1 << 70]
        values += [10**400, float("inf"), [[1]], [["", "h"]], [["", "h", 1], ["a", "h", 2]]]
        always = {"session": rng.choice([1, 1, 1, 1 << 40])} if rng.random() < 0.8 else {}
        body = json.dumps(always | {name: rng.choice(values) for name in rng.sample(fields, rng.randrange(6))}).encode()
    return FRAME.pack(len(body), number, VERSION) + body


def decoded(stream: bytes, pieces: list[int]) -> list[Message] | None:
    """Return the messages, or None if the stream is refused."""
    decoder, found = Frames(), list[Message]()
    try:
        for piece in pieces:
            found += decoder.feed(stream[:piece])
            stream = stream[piece:]
        return found + decoder.feed(stream)
    except RemoteProtocolError as error:
        assert str(error).isprintable()
        return None


def check(rng: random.Random, stream: bytes) -> str:
    found = decoded(stream, [])
    assert found == decoded(stream, [rng.randint(1, 20) for _ in range(rng.randrange(12))])
    if found is None:
        return "refused"
    # Encoding a decoded message and decoding it again yields the same message.
    assert Frames().feed(b"".join(map(encode, found))) == found
    return "understood" if found else "too short"


STREAM = Decoder(
    "transport control",
    [encode(message) for message in SAMPLES],
    changed,
    invented,
    check,
    ("wire/codec.py", "wire/fields.py", "wire/messages.py"),
)


def test_control_streams_are_decoded_or_rejected() -> None:
    run = fuzz(STREAM, inputs(12_000))
    assert min(run.outcomes[name] for name in ("refused", "understood", "too short")) > run.inputs // 100, run.outcomes


@given(st.lists(st.sampled_from(SAMPLES), max_size=6), st.lists(st.integers(0, 50)))
def test_messages_decode_for_any_cut_of_stream(sent: list[Message], cuts: list[int]) -> None:
    assert decoded(b"".join(map(encode, sent)), cuts) == sent


@given(st.sampled_from(JSON), json_values)
def test_any_json_is_decoded_or_rejected(kind: type, value: object) -> None:
    try:
        found = from_json(kind, json.dumps(value).encode())
    except RemoteProtocolError:
        return
    assert from_json(kind, to_json(found)) == found


@given(st.sampled_from([message for message in SAMPLES if isinstance(message, JSON)]), st.data())
def test_message_with_changed_field_is_decoded_or_rejected(message: Message, data: st.DataObject) -> None:
    fields = json.loads(to_json(message))
    fields[data.draw(st.sampled_from(sorted(fields)))] = data.draw(json_values)
    try:
        found = from_json(type(message), json.dumps(fields).encode())
    except RemoteProtocolError:
        return
    assert from_json(type(message), to_json(found)) == found


@pytest.mark.parametrize("body", [b"", b"1", b'"', b"\xff", b"nul", b'{"a":}', b"[" * 5000, b"9" * 5000])
def test_invalid_json_object_is_rejected(body: bytes) -> None:
    with pytest.raises(RemoteProtocolError):
        from_json(Abort, body)


def test_broken_frames_use_bounded_memory() -> None:
    """The decoder keeps nothing of frames beyond the limit, and at most one frame of the maximum length."""
    chance = random.Random(3)
    tracemalloc.start()
    try:
        for _ in range(300):
            decoded(FRAME.pack(chance.randrange(1 << 32), chance.randint(1, 14), VERSION) + bytes(1000), [])
        decoder = Frames()
        decoder.feed(FRAME.pack(REPAIR_BYTES, 8, VERSION))
        for _ in range(40):
            decoder.feed(bytes(1 << 16))
        assert tracemalloc.get_traced_memory()[1] < 3 * REPAIR_BYTES
    finally:
        tracemalloc.stop()


@given(st.text(alphabet="ab./\\\0\n-ü .\udcff", max_size=6) | st.text())
def test_plain_names_stay_in_directory(name: str) -> None:
    try:
        taken = plain_name(name)
    except UnsafeNameError as error:
        assert str(error).isprintable()
        return
    assert taken == name and "/" not in name and name not in ("", ".", "..") and "\0" not in name
