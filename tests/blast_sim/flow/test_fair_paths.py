"""Paths as one array, and the table of added and removed flows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blast_sim.fair import Demands, Paths
from blast_sim.fair.flow_table import FlowTable

LISTS = st.lists(st.lists(st.integers(0, 9), max_size=5), max_size=8)


def listed(paths: Paths) -> list[list[int]]:
    return [paths.links[first:last].tolist() for first, last in zip(paths.offsets[:-1], paths.offsets[1:], strict=True)]


@given(LISTS)
def test_paths_contain_the_given_links(paths: list[list[int]]) -> None:
    made = Paths.of(paths)
    assert listed(made) == paths
    assert len(made) == len(paths)
    assert made.lengths.tolist() == [len(path) for path in paths]


@given(LISTS, st.data())
def test_take_selects_the_paths_of_flows(paths: list[list[int]], data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.integers(0, len(paths) - 1), max_size=6) if paths else st.just([]))
    assert listed(Paths.of(paths).take(np.array(chosen, np.int64))) == [paths[flow] for flow in chosen]
    mask = np.array([len(path) > 1 for path in paths], np.bool_)
    assert listed(Paths.of(paths).take(mask)) == [path for path in paths if len(path) > 1]


@given(st.lists(LISTS, max_size=4))
def test_concatenated_paths_follow_one_another(parts: list[list[list[int]]]) -> None:
    assert listed(Paths.concatenate([Paths.of(part) for part in parts])) == [path for part in parts for path in part]


def test_rows_are_paths_of_one_length() -> None:
    assert listed(Paths.rows([[1, 2], [3, 4]])) == [[1, 2], [3, 4]]
    assert listed(Paths.none()) == []


@pytest.mark.parametrize(("offsets", "links"), [([1, 2], [0, 0]), ([0, 2, 1], [0]), ([0, 1], [0, 0]), ([], [])])
def test_offsets_must_rise_from_zero_to_the_number_of_links(offsets: list[int], links: list[int]) -> None:
    with pytest.raises(ValueError, match="offsets must rise"):
        Paths(np.array(offsets, np.int64), np.array(links, np.int32))


@given(st.lists(st.tuples(LISTS, st.floats(0, 1)), max_size=12))
def test_flows_keep_their_paths_while_others_are_added_and_removed(
    changes: list[tuple[list[list[int]], float]],
) -> None:
    """Ids are reused only after a recycling, which also compacts the links."""
    table = FlowTable()
    there: dict[int, list[int]] = {}
    resting: set[int] = set()
    for new, share in changes:
        ids = table.add(Paths.of(new), Demands.of(len(new))).tolist()
        assert not set(ids) & (set(there) | resting)
        there.update(zip(ids, new, strict=True))
        removed = sorted(there)[: round(share * len(there))]
        table.remove(np.array(removed, np.int64))
        resting |= set(removed)
        for flow in removed:
            del there[flow]
        if share > 0.5:
            table.recycle()
            resting.clear()
        assert len(table) == len(there)
        assert table.present.tolist() == sorted(there)
        assert listed(table.paths(table.present)) == [there[flow] for flow in sorted(there)]
