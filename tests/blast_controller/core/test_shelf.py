"""The first splitters of a shelf are those of a sorted list, whatever has come and gone."""

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
def test_it_is_a_sorted_list(steps):
    shelf, there = OrderedSplitters(), dict[Place, Splitter]()
    for step in steps:
        if isinstance(step, int):
            assert shelf.first(step) == [there[place] for place in sorted(there)][:step]
        elif step in there:
            shelf.take(step)
            del there[step]
        else:
            there[step] = splitter(step)
            shelf.put(step, there[step])
        assert len(shelf) == len(there)
        assert sorted(one.name for one in shelf) == sorted(one.name for one in there.values())


def test_who_comes_and_goes_leaves_nothing_behind():
    shelf = OrderedSplitters()
    for _ in range(1000):
        shelf.put((False, 1), splitter((False, 1)))
        shelf.take((False, 1))
    assert len(shelf._heap) == 1
