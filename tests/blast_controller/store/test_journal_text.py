"""The text of a record's body is that of `json`, which every release writes: digests in etcd depend on it."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from blast_controller.store.rows import encode


@dataclass(frozen=True, slots=True)
class Flat:
    """Fields as those of requests and grants have them."""

    name: str
    rate: float | None
    hosts: tuple[str, ...]


LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
DATA = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
FLAT = st.builds(
    Flat,
    st.text(),
    st.none() | st.floats(allow_nan=False, allow_infinity=False),
    st.lists(st.text(max_size=3), max_size=2).map(tuple),
)


def text_of(body: object) -> str:
    return json.dumps(body, allow_nan=False, separators=(",", ":"))


@given(DATA)
@example(
    {"small": 8.99e-05, "smallest common": 1e-4, "large": 1e16, "largest common": math.nextafter(1e16, 0), "-0": -0.0}
)
@example({"escaped": '\x00\x1f\x7f\u2028é\ud800"\\/', "big": 1 << 80})
def test_encoded_text_equals_that_of_json(body: object) -> None:
    assert encode(body) == text_of(body)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_encoded_number_equals_that_of_json(number: float) -> None:
    assert encode(number) == text_of(number)


@given(FLAT)
def test_dataclass_is_encoded_as_an_object_of_its_fields(flat: Flat) -> None:
    assert encode({"flat": [flat]}) == text_of({"flat": [asdict(flat)]})


def test_encoded_text_is_spliced_in() -> None:
    for names in (["a", "b"], ["é", "\x7f"]):
        assert encode({"raw": msgspec.Raw(msgspec.json.encode(names))}) == text_of({"raw": names})


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("where", [lambda n: {"a": n}, lambda n: [(n,)], lambda n: {"a": Flat("a", n, ())}])
def test_non_json_number_is_rejected_at_any_depth(number, where) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        encode(where(number))


@pytest.mark.parametrize("value", [b"a", {1}, frozenset(), object(), 1j])
def test_non_json_type_is_rejected(value) -> None:
    with pytest.raises(TypeError):
        encode({"a": [value]})
