"""Orders of hosts for a chain: each host once, each rack contiguous, each boundary crossed once."""

from __future__ import annotations

from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blast_transport.base.errors import WrongInputError
from blast_transport.base.host_order import as_given, by_name, by_racks, natural_key

names = st.from_regex(r"[a-c]{0,2}[0-9]{0,3}[a-c]?", fullmatch=True).filter(bool)
hosts = st.lists(names, unique=True, max_size=12)
rack_names = st.sampled_from(["r1", "r2", "r10", "R1", "rack"])


@given(names, hosts, st.data())
def test_chain_visits_each_rack_once_and_senders_rack_first(
    sender: str, receivers: list[str], data: st.DataObject
) -> None:
    receivers = [name for name in receivers if name != sender]
    racks = {name: data.draw(rack_names) for name in [sender, *receivers]}
    order = by_racks(sender, receivers, racks)
    assert sorted(order) == sorted(receivers)
    visited = [rack for rack, _ in groupby([sender, *order], key=racks.__getitem__)]
    assert len(visited) == len(set(visited)) == len(set(racks.values()))


@given(hosts, st.randoms())
def test_order_by_name_does_not_depend_on_order_of_request(receivers: list[str], chance: object) -> None:
    mixed = list(receivers)
    chance.shuffle(mixed)  # type: ignore[attr-defined]
    assert by_name(mixed) == by_name(receivers)


@given(names, st.integers(0, 10**6), st.integers(0, 10**6))
def test_names_with_same_stem_sort_by_number(stem: str, first: int, second: int) -> None:
    stem = stem.rstrip("0123456789")
    if first != second:
        assert (natural_key(f"{stem}{first}") < natural_key(f"{stem}{second}")) == (first < second)


@given(names, names)
def test_natural_keys_are_unique_for_each_name(one: str, other: str) -> None:
    assert (natural_key(one) == natural_key(other)) == (one == other)


def test_numbers_in_names_sort_numerically() -> None:
    assert by_name(["node10", "node2", "node1", "node02"]) == ["node1", "node02", "node2", "node10"]
    assert by_name(["rack2-h1", "rack1-h10", "rack1-h9"]) == ["rack1-h9", "rack1-h10", "rack2-h1"]
    assert by_name(["b", "a10", "a", "10"]) == ["10", "a", "a10", "b"]


def test_order_by_racks_starts_with_senders_rack() -> None:
    racks = {"h1": "rack2", "h2": "rack10", "h3": "rack2", "h4": "rack1", "h10": "rack10"}
    assert by_racks("h2", ["h1", "h3", "h4", "h10"], racks) == ["h10", "h4", "h1", "h3"]


def test_hosts_without_rack_come_last() -> None:
    assert by_racks("s", ["x2", "a", "x1"], {"a": "r"}) == ["a", "x1", "x2"]
    assert by_racks("s", ["x", "a", "b"], {"s": "r2", "a": "r1", "b": "r2"}) == ["b", "a", "x"]


def test_given_order_may_name_additional_hosts() -> None:
    assert as_given(["a", "b"], ["c", "b", "a"]) == ["b", "a"]


def test_incomplete_or_duplicate_order_is_rejected() -> None:
    with pytest.raises(WrongInputError, match="does not name b, c"):
        as_given(["c", "a", "b"], ["a"])
    with pytest.raises(WrongInputError, match="a is named twice"):
        by_name(["a", "b", "a"])
    with pytest.raises(WrongInputError, match="b is named twice"):
        as_given(["a", "b"], ["b", "a", "b"])
