"""Counts in bit planes against a list of numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from algorithms.b_matching.group import bits
from algorithms.b_matching.port_counts import PortCounts


@given(
    st.lists(st.integers(-3, 9), max_size=12),
    st.lists(st.tuples(st.booleans(), st.integers(0, 2**12 - 1)), max_size=60),
    st.integers(0, 60),
)
def test_port_counts_equal_list_of_numbers(start, changes, when):
    counts, plain = PortCounts(start), list(start)
    copied, copied_plain = counts.copy(), list(plain)
    for step, (is_taken, chosen) in enumerate(changes):
        vertices = [v for v in range(len(start)) if chosen >> v & 1]
        if step == when:
            copied, copied_plain = counts.copy(), list(plain)
        if is_taken:
            counts.take(bits(vertices))
        else:
            freed = counts.give_back(bits(vertices))
            assert freed == bits(v for v in vertices if plain[v] == 0)
        for v in vertices:
            plain[v] += -1 if is_taken else 1
        assert [counts[v] for v in range(len(plain))] == plain
        assert counts.empty == bits(v for v, count in enumerate(plain) if count <= 0)
    assert [copied[v] for v in range(len(copied_plain))] == copied_plain
    assert copied.empty == bits(v for v, count in enumerate(copied_plain) if count <= 0)


@pytest.mark.parametrize("call", [PortCounts.take, PortCounts.give_back])
def test_unknown_vertex_raises_index_error(call):
    with pytest.raises(IndexError, match="no vertex 3"):
        call(PortCounts([1, 1, 1]), bits([0, 3]))
