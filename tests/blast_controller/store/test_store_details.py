"""Entries through Thrift: unchanged, in answers that fit into a frame, and with typed errors."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blast_controller.store.details import MAX_BYTES, InvalidEntryError, details, from_details, page, read_page
from blast_controller.store.interface import Entry

bodies = st.none() | st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=40), max_size=5)
times = st.floats(allow_nan=False, allow_infinity=False)
entries = st.builds(
    Entry, st.integers(1, 1 << 62), times, st.integers(1, 1 << 40), st.text(), st.text(), st.text(), bodies
)


@settings(max_examples=50)
@given(entries)
def test_entry_round_trips_unchanged(entry):
    assert from_details(entry.sequence, entry.kind, details(entry)) == entry


@settings(max_examples=50)
@given(st.lists(entries, max_size=8), st.integers(400, 2000))
def test_page_is_a_prefix_that_fits(found, max_bytes):
    answer = page(found, max_bytes)
    assert [(sequence, kind) for sequence, kind, _ in answer] == [(e.sequence, e.kind) for e in found[: len(answer)]]
    assert bool(answer) == bool(found)
    for (sequence, kind, text), entry in zip(answer, found, strict=False):
        shown = from_details(sequence, kind, text)
        assert shown == entry or (shown.body is None and "too large to show" in shown.note)
    if len(answer) > 1:
        assert sum(len(text) for *_, text in answer) <= max_bytes


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=4,
)

almost = st.fixed_dictionaries(
    {"at": times | json_values, "epoch": st.integers() | json_values},
    optional={"key": json_values, "note": json_values, "body": bodies | json_values},
)


@given(st.text() | almost.map(json.dumps))
def test_invalid_details_raise_invalid_entry_error(text):
    try:
        entry = from_details(1, "request", text)
    except InvalidEntryError:
        return
    assert isinstance(entry.at, float) and isinstance(entry.epoch, int)
    assert isinstance(entry.key, str) and isinstance(entry.note, str)
    assert entry.body is None or isinstance(entry.body, dict)


def test_unrepresentable_json_raises_invalid_entry_error():
    for text in ('{"at": 1e999999, "epoch": 1e999999}', "[" * 100_000, '{"at": ' + "9" * 5000 + "}"):
        with pytest.raises(InvalidEntryError):
            from_details(1, "request", text)


@settings(max_examples=40)
@given(st.integers(-2, 130), st.integers(-2, 130), st.sampled_from([10, 5_000, MAX_BYTES // 3, MAX_BYTES * 2]))
def test_page_reads_few_entries_beyond_those_that_fit(after, limit, size):
    read, body = [], {"x": "y" * size}

    def journal(after, limit):
        found = [Entry(n, 0.0, 1, "request", "a", "", body) for n in range(max(after, 0) + 1, 101)][:limit]
        read.extend(found)
        return found

    answer = read_page(journal, after, limit)
    assert [sequence for sequence, *_ in answer] == [entry.sequence for entry in read[: len(answer)]]
    assert len(answer) <= max(limit, 0)
    assert bool(answer) == (after < 100 and limit > 0)
    assert sum(len(text) for *_, text in answer) <= MAX_BYTES
    if size == 10:
        assert len(answer) == min(max(limit, 0), max(0, 100 - max(after, 0)))
    assert len(read) < len(answer) + 2 * 50
