"""The incremental greedy on cases that can be followed by hand, and how little it looks at."""

from __future__ import annotations

import pytest

from algorithms.b_matching.feasibility import Feasibility, by_count
from algorithms.b_matching.group import Group, bits
from algorithms.b_matching.incremental import IncrementalGreedy


def group(name, racks, weight=1.0, tenant=""):
    """`racks` as digits."""
    return Group(name, bits(map(int, racks)), len(racks), len(racks) - 1, weight, tenant)


def greedy(ports=1, pool=None, allowance=None, most=None):
    return IncrementalGreedy(Feasibility([ports] * 10, {4: 2} if pool is None else pool, by_count(most)), allowance)


def names(selection):
    return [found.name for found, _ in selection]


def test_arrivals_of_one_decision_compete_by_score():
    ours = greedy()
    assert names(ours.decide([group("low", "01"), group("high", "12", 5.0), group("far", "34", 2.0)])) == [
        "high",
        "far",
    ]
    assert [g.name for g in ours.pending] == ["low"]
    assert list(ours.running) == ["high", "far"]


def test_what_runs_is_never_moved():
    ours = greedy()
    ours.decide([group("running", "01", 1.0)])
    assert ours.decide([group("better", "12", 100.0)]) == []
    assert list(ours.running) == ["running"]


def test_a_completion_serves_the_best_that_it_freed():
    ours = greedy()
    ours.decide([group("running", "012")])
    ours.decide([group("low", "03", 1.0)])
    ours.decide([group("high", "04", 2.0), group("beside", "15", 0.5)])
    assert names(ours.decide(ended=["running"])) == ["high", "beside"]


def test_equal_scores_are_served_in_order_of_arrival():
    ours = greedy()
    ours.decide([group("running", "01")])
    ours.decide([group("first", "02")])
    ours.decide([group("second", "13"), group("third", "12")])
    assert names(ours.decide(ended=["running"])) == ["first", "second"]


def test_what_ends_and_what_arrives_at_once_compete():
    ours = greedy()
    ours.decide([group("running", "01")])
    ours.decide([group("waiting", "02", 2.0)])
    assert names(ours.decide([group("new", "02", 3.0)], ended=["running"])) == ["new"]


def test_a_withdrawn_group_is_not_served_and_its_name_is_free_again():
    ours = greedy()
    ours.decide([group("running", "01")])
    ours.decide([group("waiting", "02"), group("next", "03", 0.5)])
    assert ours.decide(ended=["waiting"]) == []
    again = group("waiting", "04", 0.1)
    assert ours.decide([again]) == []
    assert names(ours.decide(ended=["running"])) == ["next"]
    assert ours.decide(ended=["next"]) == [(again, ())]


def test_a_group_that_waits_for_splitters_is_served_when_they_come_back():
    ours = greedy(pool={4: 1})
    ours.decide([group("running", "012")])
    ours.decide([group("wide", "345678"), group("narrow", "678", 0.1)])
    assert ours.decide(ended=["running"]) == [(group("narrow", "678", 0.1), (4,))]
    assert ours.restore(pieces=(4, 4)) == [], "its racks are taken now"
    assert ours.decide(ended=["narrow"]) == [(group("wide", "345678"), (4, 4))]


@pytest.mark.parametrize(("for_a_rack", "for_a_splitter", "served"), [(2.0, 1.0, "rack"), (1.0, 2.0, "splitter")])
def test_who_waited_for_a_rack_and_who_waited_for_a_splitter_compete(for_a_rack, for_a_splitter, served):
    ours = greedy(pool={4: 1})
    ours.decide([group("running", "012")])
    ours.decide([group("rack", "067", for_a_rack), group("splitter", "345", for_a_splitter)])
    assert names(ours.decide(ended=["running"])) == [served]


def test_a_line_for_splitters_is_served_best_first_one_splitter_at_a_time():
    ours = greedy(ports=9, pool={4: 1})
    ours.decide([group("running", "012")])
    for number, weight in enumerate([2.0, 3.0, 1.0, 4.0]):
        ours.decide([group(number, "012", weight)])
    served, name = [], "running"
    while ours.running:
        found = ours.decide(ended=[name])
        served += names(found)
        name = served[-1]
    assert served == [3, 1, 0, 2]


def test_a_new_splitter_serves_who_waits_for_one():
    ours = greedy(pool={})
    assert ours.decide([group("x", "012")]) == []
    assert ours.restore(pieces=(8,)) == [(group("x", "012"), (8,))]


def test_a_quarantined_splitter_is_missed_and_comes_back():
    ours = greedy(pool={4: 1})
    ours.withhold(pieces=(4,))
    assert ours.decide([group("x", "012")]) == []
    assert names(ours.restore(pieces=(4,))) == ["x"]


def test_a_splitter_quarantined_in_use_does_not_come_back_with_its_group():
    ours = greedy(pool={4: 1})
    ours.decide([group("x", "012")])
    ours.withhold(pieces=(4,))
    ours.decide([group("y", "345")])
    assert ours.decide(ended=["x"]) == []
    assert names(ours.restore(pieces=(4,))) == ["y"]


def test_a_port_quarantined_in_use_does_not_come_back_with_its_group():
    ours = greedy()
    ours.decide([group("x", "01")])
    ours.withhold(bits([0]))
    ours.decide([group("y", "02")])
    assert ours.decide(ended=["x"]) == []
    assert names(ours.restore(bits([0]))) == ["y"]


def test_a_port_more_at_a_rack():
    ours = greedy()
    ours.decide([group("x", "01")])
    ours.decide([group("y", "02")])
    assert names(ours.restore(bits([0]))) == ["y"]
    assert list(ours.running) == ["x", "y"]


def test_adopted_groups_hold_what_they_hold():
    ours = greedy(pool={4: 1})
    ours.adopt(group("found", "012"), (4,))
    ours.decide([group("x", "234"), group("y", "345", 0.5)])
    assert names(ours.decide(ended=["found"])) == ["x"]


def test_a_tenant_stays_within_its_allowance():
    ours = greedy(pool={4: 9}, allowance={"small": 1})
    served = ours.decide([group("a", "012", 9.0, "small"), group("b", "345", 6.0, "small"), group("c", "678", 3.0)])
    assert names(served) == ["a", "c"]
    assert names(ours.decide(ended=["a"])) == ["b"]


def test_a_tenant_without_light_waits_until_it_may_have_some():
    ours = greedy(allowance={"barred": -1})
    assert ours.decide([group("pair", "01", 1.0, "barred"), group("tree", "234", 1.0, "barred")]) == []
    assert names(ours.allow("barred", 0)) == ["pair"]
    assert names(ours.allow("barred", None)) == ["tree"]


def test_a_limit_that_comes_later_holds_for_who_waits_already():
    ours = greedy(pool={4: 1})
    ours.decide([group("running", "012")])
    ours.decide([group("x", "345", 2.0, "late"), group("y", "678", 1.0)])
    assert ours.allow("late", 0) == []
    assert names(ours.decide(ended=["running"])) == ["y"]
    ours.decide(ended=["y"])
    assert names(ours.allow("late", 1)) == ["x"]


def test_ends_that_come_twice_and_unknown_names_do_nothing():
    ours = greedy()
    ours.decide([group("x", "01")])
    ours.decide(ended=["x", "x", "never"])
    ours.decide(ended=["x"])
    assert names(ours.decide([group("y", "01")])) == ["y"]
    assert ours.decide([group("z", "01")]) == []


@pytest.mark.parametrize("name", ["runs", "waits"])
def test_a_name_is_used_once(name):
    ours = greedy()
    ours.decide([group("runs", "01"), group("waits", "01", 0.5)])
    with pytest.raises(ValueError, match=name):
        ours.decide([group(name, "23")])
    with pytest.raises(ValueError, match=name):
        ours.adopt(group(name, "23"), ())


class Questions:
    """The counting rule, and how often it was asked."""

    def __init__(self):
        self.asked = 0
        self._rule = by_count()

    def __call__(self, leaves, pool):
        self.asked += 1
        return self._rule(leaves, pool)


def test_who_waits_elsewhere_is_not_looked_at():
    """A thousand groups wait for rack 0; what ends at racks 5 and 6 asks none of them."""
    looked = []

    class Watched(int):
        """Bits that say when somebody looks at them."""

        def __rand__(self, other):
            looked.append(int(self))
            return other & int(self)

    ours = greedy()
    ours.decide([group("here", "01"), group("there", "56")])
    for number in range(1000):
        ours.decide([Group(number, Watched(0b101), 2, 1, 1.0)])
    looked.clear()
    ours.decide(ended=["there"])
    assert looked == []
    assert names(ours.decide(ended=["here"])) == [0]
    assert len(looked) >= 1000, "these were woken: the test would notice"


def test_a_long_line_for_splitters_is_one_question():
    questions = Questions()
    ours = IncrementalGreedy(Feasibility([2000] * 10, {4: 2}, questions))
    ours.decide([group("one", "012"), group("two", "345")])
    ours.decide([group(number, "0123456") for number in range(1000)])
    questions.asked = 0
    assert ours.decide(ended=["one"]) == []
    assert questions.asked < 10
    assert names(ours.decide(ended=["two"])) == [0], "six leaves take both"
