"""Messages of a control connection as Hypothesis draws them, and one of each as an example."""

from __future__ import annotations

from hypothesis import strategies as st

from blast_transport.carriers.optical.parameters import OpticalParameters
from blast_transport.carriers.pipeline.parameters import PipelineParameters
from blast_transport.wire.carriers import CARRIERS, OPTICAL, PIPELINE, UNICAST
from blast_transport.wire.fields import to_parameters
from blast_transport.wire.messages import (
    KINDS,
    Alive,
    CarrierWord,
    Credit,
    Demoted,
    Digests,
    EndOfData,
    Fin,
    Hello,
    Leg,
    Message,
    Nack,
    OnLeg,
    Promoted,
    Quit,
    Ready,
    Repair,
)

CHAIN = (("", "10.0.0.1", 9), ("h2", "10.0.0.2", 10))
SAMPLES: list[Message] = [
    Hello(1, 10_000_000_000, 8956, 7, "blake3", "file", "naïve name.bin", "in", "c0ffee", bytes(range(32))),
    Hello(2, None, 1456, 44, "sha256", "command", "unpack"),
    Ready(3, ((0, 5), (9, 1)), 425984, True, 1e9, True),
    Ready(4),
    Leg(5, 1, OPTICAL, 0, 4, 12, parameters=to_parameters(OpticalParameters("239.1.2.3", 5000, "10.0.0.9", 40000))),
    Leg(6, 2, PIPELINE, 7, token=b"t" * 16, parameters=to_parameters(PipelineParameters(CHAIN, 1))),
    Leg(7, 3, UNICAST, 9),
    OnLeg(8, 1, "no interface"),
    Digests(9, 3, bytes(range(48))),
    Credit(10, 4, 3, 9),
    Nack(11, ((0, 1), (7, 100))),
    Repair(12, ((44, b"data"), (47, b"more"))),
    EndOfData(13, 95, bytes(range(32))),
    Fin(14, bytes(32), "", 12.5, 100, 2, 1),
    Fin(15, reason="disk full"),
    Fin(16, bytes(32), engine="compiled"),
    Alive(16, 12),
    Quit(17, "the user interrupted it"),
    Demoted(20),
    Promoted(21),
    CarrierWord(22, 3, b"{}"),
]

sessions = st.integers(0, 2**32 - 1)
numbers = st.integers(0, 2**64 - 1)
counts = st.integers(0, 2**62)
texts = st.text(st.characters(codec="utf-8"), max_size=20)
floats = st.floats(allow_nan=False, allow_infinity=False)
digest = st.binary(min_size=32, max_size=32)
ports = st.integers(0, 65535)

hellos = st.builds(
    Hello,
    sessions,
    st.none() | st.integers(0, 1 << 40),
    st.integers(1000, 60_000),
    st.integers(1, 64),
    texts,
    st.sampled_from(KINDS),
    texts,
    texts,
    texts,
    st.just(b"") | digest,
)
readies = st.builds(
    Ready,
    sessions,
    st.lists(st.tuples(counts, counts), max_size=5).map(tuple),
    counts,
    st.booleans(),
    st.none() | floats,
    st.booleans(),
)
parameters = st.dictionaries(texts, texts | ports | floats | st.lists(texts, max_size=3), max_size=5)
legs = st.builds(
    Leg,
    sessions,
    st.integers(1, 1 << 40),
    st.sampled_from(sorted(CARRIERS)),
    counts,
    st.integers(1, 1 << 30),
    st.integers(1, 1 << 30),
    st.binary(max_size=20),
    parameters,
)
nacks = st.builds(
    Nack,
    sessions,
    st.lists(st.tuples(st.integers(0, 1 << 30), st.integers(1, 1 << 30)), min_size=1, max_size=20).map(tuple),
)
pieces = st.lists(st.tuples(numbers, st.binary(min_size=1, max_size=200)), min_size=1, max_size=5).map(tuple)
messages: st.SearchStrategy[Message] = st.one_of(
    hellos,
    readies,
    legs,
    nacks,
    st.builds(OnLeg, sessions, counts, texts),
    st.builds(Digests, sessions, st.integers(0, 1 << 20), st.integers(1, 9).map(lambda count: bytes(16 * count))),
    st.builds(Credit, sessions, numbers, numbers, numbers),
    st.builds(Repair, sessions, pieces),
    st.builds(EndOfData, sessions, numbers, digest),
    st.builds(Fin, sessions, st.binary(max_size=32), texts, st.none() | floats, counts, counts, counts),
    st.builds(Alive, sessions, numbers),
    st.builds(Demoted, sessions),
    st.builds(Promoted, sessions),
    st.builds(CarrierWord, sessions, st.integers(0, 2**32 - 1), st.binary(max_size=300)),
    st.builds(Quit, sessions, texts),
)
