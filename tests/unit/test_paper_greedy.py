"""The paper's greedy on cases that can be followed by hand, with one switch, several switches and mixed splitters."""

from __future__ import annotations

import pytest

from algorithms.b_matching.paper_greedy import score, select
from algorithms.b_matching.residual import Choice, Group, Residual
from algorithms.policies import POLICIES


def group(name, racks, volume=1.0):
    return Group(name, frozenset(racks.split()), len(racks.split()) - 1, volume)


def residual(racks="a b c d e f", ports=1, splitters=None, most=None, switches=("ocs1",)):
    counts = dict.fromkeys(racks.split(), ports)
    pools = {4: 2} if splitters is None else splitters
    return Residual(dict.fromkeys(switches, counts), dict.fromkeys(switches, pools), most)


def names(selection):
    return [found.name for found, _ in selection]


def test_score_is_volume_per_port():
    assert score(group("x", "a b c", 12.0)) == 4.0


def test_best_score_first_and_disjoint_racks():
    groups = [group("wide", "a b c d", 8.0), group("dense", "a b", 6.0), group("other", "e f", 1.0)]
    assert names(select(groups, residual())) == ["dense", "other"]


def test_equal_scores_keep_their_order():
    assert names(select([group("first", "a b"), group("second", "b c")], residual())) == ["first"]
    assert names(select([group("second", "b c"), group("first", "a b")], residual())) == ["second"]


def test_splitters_run_out_before_ports():
    groups = [group("x", "a b c", 9.0), group("y", "d e f", 6.0), group("z", "g h", 0.1)]
    found = select(groups, residual("a b c d e f g h", splitters={4: 1}))
    assert names(found) == ["x", "z"], "two racks need no splitter"


def test_a_rack_with_two_ports_is_met_by_two_groups():
    groups = [group("x", "a b", 3.0), group("y", "a c", 2.0), group("z", "a d", 1.0)]
    assert names(select(groups, residual(ports=2))) == ["x", "y"]


def test_constraint_1_leaves_a_wide_group_out():
    groups = [group("wide", "a b c d e f", 99.0), group("small", "a b c", 1.0)]
    assert names(select(groups, residual(splitters={4: 9}, most=1))) == ["small"]


def test_the_second_switch_takes_what_the_first_cannot():
    left = residual(switches=("ocs1", "ocs2"), splitters={4: 1})
    found = select([group("x", "a b c", 3.0), group("y", "a d e", 2.0), group("z", "b f", 1.0)], left)
    assert [(g.name, choice.switch) for g, choice in found] == [("x", "ocs1"), ("y", "ocs2"), ("z", "ocs2")]


def test_a_tree_lies_on_one_switch():
    left = Residual({"ocs1": {"a": 1, "b": 0}, "ocs2": {"a": 0, "b": 1}}, {})
    assert left.fit(group("x", "a b")) is None


def test_mixed_splitters_follow_the_rule():
    left = residual("a b c d e f g h", splitters={2: 1, 4: 1, 8: 1})
    assert left.fit(group("x", "a b c")) == Choice("ocs1", (2,))
    assert left.fit(group("x", "a b c d")) == Choice("ocs1", (4,))
    assert left.fit(group("x", "a b c d e f g h")) == Choice("ocs1", (8,))


def test_what_is_taken_is_gone():
    left = residual("a b c d", splitters={4: 1})
    wanted = group("x", "a b c")
    choice = left.fit(wanted)
    assert choice is not None
    left.take(wanted, choice)
    assert left.fit(group("y", "a d")) is None
    assert left.fit(group("y", "d d")) is not None
    assert left.fit(Group("y", frozenset("d"), 2, 1.0)) is None, "the splitter is taken"


@pytest.mark.parametrize("count", [36, 40])
def test_section_vi_has_no_contention(count):
    """120 racks, 40 splitters 1:4, disjoint groups of three racks: all are served."""
    racks = [f"r{n}" for n in range(120)]
    groups = [group(n, " ".join(racks[3 * n : 3 * n + 3]), 300 * 119) for n in range(count)]
    left = Residual({"ocs": dict.fromkeys(racks, 1)}, {"ocs": {4: 40}})
    assert len(select(groups, left)) == count


def test_the_policy_is_known_by_name():
    assert POLICIES["paper"] is select
