"""However racks and names are mixed: everybody once, each rack in one piece, each boundary crossed once."""

from __future__ import annotations

from itertools import groupby

from hypothesis import given
from hypothesis import strategies as st

from blast_transport.base.host_order import by_name, by_racks, natural_key

names = st.from_regex(r"[a-c]{0,2}[0-9]{0,3}[a-c]?", fullmatch=True).filter(bool)
hosts = st.lists(names, unique=True, max_size=12)
rack_names = st.sampled_from(["r1", "r2", "r10", "R1", "rack"])


@given(names, hosts, st.data())
def test_each_rack_is_visited_once_and_the_senders_first(
    sender: str, receivers: list[str], data: st.DataObject
) -> None:
    receivers = [name for name in receivers if name != sender]
    racks = {name: data.draw(rack_names) for name in [sender, *receivers]}
    order = by_racks(sender, receivers, racks)
    assert sorted(order) == sorted(receivers)
    visited = [rack for rack, _ in groupby([sender, *order], key=racks.__getitem__)]
    assert len(visited) == len(set(visited)) == len(set(racks.values()))


@given(hosts, st.randoms())
def test_the_order_does_not_depend_on_how_it_was_asked(receivers: list[str], chance: object) -> None:
    mixed = list(receivers)
    chance.shuffle(mixed)  # type: ignore[attr-defined]
    assert by_name(mixed) == by_name(receivers)


@given(names, st.integers(0, 10**6), st.integers(0, 10**6))
def test_same_stems_go_by_number(stem: str, first: int, second: int) -> None:
    stem = stem.rstrip("0123456789")
    if first != second:
        assert (natural_key(f"{stem}{first}") < natural_key(f"{stem}{second}")) == (first < second)


@given(names, names)
def test_different_names_have_different_keys(one: str, other: str) -> None:
    assert (natural_key(one) == natural_key(other)) == (one == other)
