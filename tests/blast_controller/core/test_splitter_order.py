"""Ordered splitters return the first ones of a sorted list after any insertions and removals."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from blast_controller.core.inventory.splitter_order import OrderedSplitters, Place
from blast_controller.core.model.fabric import Splitter
from blast_controller.core.model.identifiers import SwitchId

places = st.tuples(st.booleans(), st.integers(0, 9))
steps = st.lists(st.one_of(places, st.integers(0, 25)), max_size=80)


def splitter(place: Place) -> Splitter:
    return Splitter(f"s{place}", SwitchId("ocs"), 1, (2, 3))


@given(steps)
def test_ordered_splitters_behave_like_a_sorted_list(steps):
    ordered, expected = OrderedSplitters(), dict[Place, Splitter]()
    for step in steps:
        if isinstance(step, int):
            assert ordered.first(step) == [expected[place] for place in sorted(expected)][:step]
        elif step in expected:
            ordered.take(step)
            del expected[step]
        else:
            expected[step] = splitter(step)
            ordered.put(step, expected[step])
        assert len(ordered) == len(expected)
        assert sorted(one.name for one in ordered) == sorted(one.name for one in expected.values())


def test_repeated_insertions_and_removals_leave_no_entries():
    ordered = OrderedSplitters()
    for _ in range(1000):
        ordered.put((False, 1), splitter((False, 1)))
        ordered.take((False, 1))
    assert len(ordered._heap) == 1
