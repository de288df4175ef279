"""Fuzz tests of measurement messages and network files: the result is a message, or one typed error."""

from __future__ import annotations

import random

import pytest

from blast_client.capacities.capacities import InvalidNetworkFileError, read_capacities
from blast_sim.base.wrong_input import InputError
from blast_sim.trees.network_file import parse_network
from blast_transport.base.errors import RemoteProtocolError
from blast_transport.wire.codec import FRAME, VERSION
from blast_transport.wire.measuring import (
    MAX_STREAMS,
    TOKEN_BYTES,
    Accepted,
    Measure,
    MeasurementResult,
    MeasuringDecoder,
    MeasuringMessage,
    Probe,
    Refused,
    SourceResult,
    encode_measuring,
)
from tests.blast_sim.planning.test_network_fuzz import NETWORK
from tests.blast_transport.agent.test_agent_fuzz import bytes_changed
from tests.support.fuzzing import Decoder, fuzz, inputs

TOKEN = bytes(range(TOKEN_BYTES))
SAMPLES: list[MeasuringMessage] = [
    Measure(TOKEN, 8 << 20, 0.5, 4),
    Measure(TOKEN, 1 << 30, 10.0, 2, (("h2", "10.0.0.2", 9095), ("h3", "fe80::1", 1))),
    Probe(TOKEN),
    Accepted(),
    Refused("another measurement is at work on this host", busy=True),
    MeasurementResult(8 << 20, 0.51, 131_072_000.5),
    SourceResult(8 << 20, (("h2", "cannot connect"),)),
]


def invented(rng: random.Random) -> bytes:
    body = rng.choice([rng.randbytes(rng.randrange(60)), b"{}", b'{"token":"%s"}' % TOKEN.hex().encode()])
    return FRAME.pack(len(body), rng.choice([*range(94, 104), 1, 64]), VERSION) + body


def decoded(stream: bytes, cut: int) -> list[MeasuringMessage] | None:
    decoder = MeasuringDecoder()
    try:
        return decoder.feed(stream[:cut]) + decoder.feed(stream[cut:])
    except RemoteProtocolError as error:
        assert str(error).isprintable()
        return None


def check(rng: random.Random, stream: bytes) -> str:
    found = decoded(stream, 0)
    assert found == decoded(stream, rng.randrange(len(stream) + 1))
    if found is None:
        return "refused"
    for message in found:
        if isinstance(message, Measure):
            assert message.max_bytes > 0 and 0 < message.max_seconds < 1000
            assert 0 < message.streams * max(1, len(message.targets)) <= MAX_STREAMS
    # Encoding a decoded message and decoding it again yields the same message.
    assert decoded(b"".join(map(encode_measuring, found)), 0) == found
    return "understood" if found else "too short"


MESSAGES = Decoder(
    "measuring",
    [encode_measuring(message) for message in SAMPLES],
    bytes_changed,
    invented,
    check,
    ("wire/measuring.py", "wire/codec.py", "wire/fields.py"),
)


def test_measuring_messages_are_decoded_or_rejected() -> None:
    run = fuzz(MESSAGES, inputs(8_000))
    assert min(run.outcomes[name] for name in ("refused", "understood", "too short")) > run.inputs // 200, run.outcomes


@pytest.mark.parametrize(
    "measure",
    [
        Measure(TOKEN[1:], 1 << 20, 1.0),
        Measure(TOKEN, 1, 1.0),
        Measure(TOKEN, 1 << 41, 1.0),
        Measure(TOKEN, 1 << 20, 0.0),
        Measure(TOKEN, 1 << 20, 61.0),
        Measure(TOKEN, 1 << 20, 1.0, MAX_STREAMS + 1),
        Measure(TOKEN, 1 << 20, 1.0, MAX_STREAMS, (("a", "a", 1), ("b", "b", 2))),
        Measure(TOKEN, 1 << 20, 1.0, 1, (("a", "a", 0),)),
    ],
)
def test_measure_request_out_of_bounds_is_rejected(measure: Measure) -> None:
    with pytest.raises(RemoteProtocolError):
        MeasuringDecoder().feed(encode_measuring(measure))


@pytest.mark.parametrize(
    "answer",
    [
        MeasurementResult(-1, 1.0, 1.0),
        MeasurementResult(10**400, 1.0, 1.0),
        MeasurementResult(1, -1.0, 1.0),
        MeasurementResult(1, 1.0, 1e16),
        SourceResult(-1),
        SourceResult(1, (("h2", "two\nlines"),)),
    ],
)
def test_impossible_measurement_result_is_rejected(answer: MeasuringMessage) -> None:
    with pytest.raises(RemoteProtocolError):
        MeasuringDecoder().feed(encode_measuring(answer))


def test_control_characters_in_reason_are_replaced() -> None:
    assert decoded(encode_measuring(Refused("\x1b[2J")), 0) == [Refused("?[2J")]


def compare_with_simulator(_: random.Random, text: str) -> str:
    """Check that the client and the simulator accept the same files, with the same content."""
    data = text.encode(errors="surrogatepass")
    try:
        network = parse_network(data)
    except InputError:
        network = None
    try:
        found = read_capacities(data)
    except InvalidNetworkFileError as error:
        assert network is None, f"{error}: the simulator accepts it"
        assert str(error).strip() and "\n" not in str(error)
        return "refused"
    assert network is not None, "the simulator rejects it"
    places = {name: place for place, name in enumerate(network.hosts)}
    assert (found.hosts, found.root) == (network.hosts, network.hosts[network.root])
    assert [places[name] for name in found.receivers] == list(network.receivers)
    assert all(network.rates[places[one], places[other]] == rate for (one, other), rate in found.links.items())
    assert all(network.out[places[name]] == rate for name, rate in found.out.items())
    assert all(network.into[places[name]] == rate for name, rate in found.into.items())
    return "read"


CAPACITIES = Decoder(
    "capacities",
    NETWORK.seeds,
    NETWORK.mutate,
    NETWORK.invent,
    compare_with_simulator,
    ("capacities/capacities.py", "/network_file.py", "/named_network.py"),
)


def test_client_and_simulator_read_network_files_alike() -> None:
    run = fuzz(CAPACITIES, inputs(6_000))
    assert min(run.outcomes[name] for name in ("read", "refused")) > run.inputs // 100, run.outcomes
