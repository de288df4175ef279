"""The optimizer on instances whose answer is known."""

from __future__ import annotations

import random

import pulp
import pytest

from algorithms.b_matching import optimizer, oscillation
from algorithms.b_matching.annealing import annealed
from algorithms.b_matching.branching import branched
from algorithms.b_matching.budget import StepBudget
from algorithms.b_matching.conflicts import independent
from algorithms.b_matching.covers import covers
from algorithms.b_matching.exact import exact
from algorithms.b_matching.feasibility import Feasibility, by_count
from algorithms.b_matching.group import CompetingGroup, bits
from algorithms.b_matching.optimizer import optimize, warm_up
from algorithms.b_matching.options import options
from algorithms.b_matching.oscillation import oscillated
from algorithms.b_matching.packing import OptionPacking
from algorithms.b_matching.relaxation import Relaxation, to_whole_units
from algorithms.b_matching.rounding import core, open_options, questions, rounded
from algorithms.b_matching.scores import FLOOR, OTHERS, best_of, by_score
from tests.support.simulators.matching import faults, matching, seeded


def group(name, racks, weight):
    return CompetingGroup(name, bits(racks), len(racks), len(racks) - 1, weight)


def names(selection):
    return {chosen.name for chosen, _ in selection}


def star(size=10):
    """`size` disjoint groups, and a bait with a barely better score that touches all of them."""
    good = [group(n, range(size * n, size * n + size), float(size)) for n in range(size)]
    bait = group("bait", range(0, size * size, size), size * (1 + 1e-6))
    return [*good, bait], Feasibility([1] * size * size, {4: size * size})


def never():
    return False


def test_optimizer_avoids_bait_that_defeats_paper_score():
    groups, feasibility = star()
    assert names(by_score(FLOOR[0], groups, feasibility)) == {"bait"}
    found = optimize(groups, feasibility, StepBudget(200), random.Random(1))
    assert names(found.selection) == set(range(10))
    assert found.certified


def test_optimizer_prefers_wide_group_to_pair():
    groups = [group("wide", range(50), 50.0), group("pair", (0, 1), 2.0002)]
    found = optimize(groups, Feasibility([1] * 50, {4: 50}), StepBudget(50), random.Random(1))
    assert names(found.selection) == {"wide"}


def test_score_by_root_of_racks_selects_wide_group():
    groups = [group("wide", range(50), 50.0), group("pair", (0, 1), 2.0002)]
    feasibility = Feasibility([1] * 50, {4: 50})
    assert names(by_score((1.0, 0.0), groups, feasibility)) == {"pair"}
    assert names(best_of(FLOOR, groups, feasibility)) == {"wide"}
    assert names(best_of(OTHERS, groups, feasibility)) == {"wide"}


def test_the_same_steps_and_generator_give_the_same_selection():
    groups, feasibility = matching(seeded("repeat"), racks=30, groups=120, sizes=(4, 16), budget=1)
    first, second = (optimize(groups, feasibility, StepBudget(400), random.Random("same")) for _ in range(2))
    assert first == second


def test_exhausted_budget_still_returns_floor_and_weak_bound():
    groups, feasibility = star()
    found = optimize(groups, feasibility, lambda: 1.0, random.Random(1))
    assert found.value >= by_score(FLOOR[1], groups, feasibility)[0][0].weight
    assert found.bound >= 100.0
    assert not found.certified
    assert faults(found.selection, feasibility) == []


def test_mixed_pool_is_divided_so_that_both_groups_are_served():
    """Largest-fit gives the 1:16 to the five-leaf group and leaves nothing for the wide one."""
    small, wide = group("small", range(6), 6.0), group("wide", range(6, 22), 5.0)
    feasibility = Feasibility([1] * 22, {4: 2, 16: 1})
    found = optimize([small, wide], feasibility, StepBudget(100), random.Random(1))
    assert {(chosen.name, tuple(sorted(pieces))) for chosen, pieces in found.selection} == {
        ("small", (4, 4)),
        ("wide", (16,)),
    }


def test_covers_are_the_sets_without_a_splitter_to_spare():
    assert {tuple(sorted(c)) for c in covers(7, Feasibility([], {4: 3, 8: 1}))} == {(4, 4), (8,)}
    assert {tuple(sorted(c)) for c in covers(9, Feasibility([], {4: 3, 8: 1}))} == {(4, 4, 4), (4, 8)}
    assert covers(7, Feasibility([], {4: 3, 8: 1}, by_count(1))) == [(8,)]
    assert covers(1, Feasibility([], {})) == [()]
    assert covers(20, Feasibility([], {4: 3, 8: 1})) == []


def test_only_trees_that_the_fabric_s_own_rule_builds_are_chosen():
    """A rule by power instead of count: one splitter deep at most."""

    def one_deep(leaves, pool):
        return next(((fan_out,) for fan_out in sorted(pool) if pool[fan_out] > 0 and fan_out >= leaves), None)

    groups = [group("a", range(6), 6.0), group("b", range(6, 12), 5.0)]
    feasibility = Feasibility([1] * 12, {4: 9, 16: 1}, one_deep)
    for answer in (
        optimize(groups, feasibility, StepBudget(100), random.Random(1)),
        exact(groups, feasibility, seconds=5),
    ):
        assert [(chosen.name, pieces) for chosen, pieces in answer.selection] == [("a", (16,))]


PENTAGON = [group(n, (n, (n + 1) % 5), 1.0) for n in range(5)], Feasibility([1] * 5, {})
"""Five pairs in a ring: the relaxation takes half of each, 2.5; the optimum is 2."""


def test_branch_and_bound_proves_optimum_above_relaxation():
    choices = options(*PENTAGON)
    relaxation = Relaxation(choices, never)
    relaxed = relaxation.solve()
    assert relaxed.bound == 2
    assert questions(choices, relaxed) == pytest.approx(5)
    selected, bound = branched(choices, relaxation, relaxed, [], lambda: True)
    assert len(selected) == 2
    assert bound == 2
    found = optimize(*PENTAGON, StepBudget(1000), random.Random(1))
    assert (found.value, found.bound, found.certified) == (2.0, 2.0, True)


def test_stopped_branch_and_bound_keeps_bound():
    choices = options(*PENTAGON)
    relaxation = Relaxation(choices, never)
    relaxed = relaxation.solve()
    assert branched(choices, relaxation, relaxed, [0], lambda: False) == ([0], 2)


def chains(racks=60):
    """Pairs of neighboring racks, whose relaxation is whole, and the pivots that it takes."""
    rng = seeded("chains")
    groups = [group(rack, (rack, rack + 1), rng.randint(100, 900)) for rack in range(racks - 1)]
    choices, pivots = options(groups, Feasibility([1] * racks, {})), []
    optimum = Relaxation(choices, lambda: bool(pivots.append(1))).solve().bound
    return choices, optimum, len(pivots)


def test_relaxation_stopped_during_repair_has_no_answer():
    choices, _, _ = chains()
    stops = []
    relaxation = Relaxation(choices, lambda: bool(stops))
    fractions = relaxation.solve().fractions
    stops.append("now")
    for option in (option for option, fraction in enumerate(fractions) if fraction < 0.5):
        relaxation.fix(option, 1)
        break
    assert relaxation.solve() is None


def test_fixing_and_freeing_options_restores_bound():
    relaxation = Relaxation(options(*PENTAGON), never)
    before = relaxation.solve().bound
    relaxation.fix(0, 0)
    relaxation.fix(2, 0)
    relaxation.fix(1, 0)
    assert relaxation.solve().bound == 1
    for option in (0, 1, 2):
        relaxation.free(option)
    assert relaxation.solve().bound == before


def test_annealing_reaches_optimum_from_poor_start():
    groups, feasibility = star()
    choices = options(groups, feasibility)
    weights = choices.weights
    found = annealed(choices, weights, [10], StepBudget(200), random.Random(1))
    assert choices.total(found) == pytest.approx(100.0)


def tight(seed):
    """Wide groups with four ports at each rack: no exchange of a few of them fits, and the relaxation bounds weakly."""
    rng = seeded(seed)
    groups = [group(n, rng.sample(range(12), rng.randint(3, 8)), rng.randint(500, 1000)) for n in range(30)]
    return groups, Feasibility([4] * 12, {4: 16})


def test_oscillation_finds_tightly_packed_selection():
    groups, feasibility = tight("tight")
    choices = options(groups, feasibility)
    best = exact(groups, feasibility, seconds=20)
    assert best.certified
    found = oscillated(choices, [], [], StepBudget(200), random.Random(1))
    assert faults([(groups[choices.owners[j]], choices.pieces[j]) for j in found], feasibility) == []
    assert choices.total(found) == pytest.approx(best.value, rel=0.005)


def test_annealing_replaces_oscillation_when_arrays_would_be_too_large(monkeypatch):
    calls = []
    for limit in ("MAX_CELLS", "MAX_QUESTIONS", "MAX_MISSING"):
        monkeypatch.setattr(optimizer, limit, 0)
    monkeypatch.setattr(optimizer, "annealed", lambda *given: calls.append(1) or annealed(*given))
    monkeypatch.setattr(optimizer, "oscillated", None)
    groups, feasibility = tight("tight")
    found = optimize(groups, feasibility, StepBudget(1000), random.Random(1))
    assert calls
    assert faults(found.selection, feasibility) == []
    assert found.value >= 0.97 * exact(groups, feasibility, seconds=20).value


def test_prices_stay_finite_in_long_oscillation(monkeypatch):
    """The unit of the weights is set back again and again, and nothing runs out of floating point."""
    monkeypatch.setattr(oscillation, "LARGEST", 1.5)
    groups, feasibility = star()
    found = oscillated(options(groups, feasibility), [], [10], StepBudget(100), random.Random(1))
    assert set(found) == set(range(10))


def test_a_search_s_core_keeps_the_optimum_of_the_adversary():
    groups, feasibility = star()
    choices, grid = to_whole_units(options(groups, feasibility))
    relaxed = Relaxation(choices, never).solve()
    start = rounded(choices, relaxed)
    assert set(start) == set(range(10))
    assert set(open_options(relaxed, 90.0 / grid.weight(1))) >= set(range(10))
    assert set(core(choices, relaxed, [10])) >= set(range(10))


def test_packing_rejects_evictions_above_limit():
    choices = options([group("a", (0, 1), 3.0), group("b", (1, 2), 4.0)], Feasibility([1] * 3, {}))
    packing = OptionPacking(choices, [3.0, 4.0])
    packing.add(0)
    assert packing.evictions(1, 2.9, random.Random(1)) is None
    assert packing.evictions(1, 3.0, random.Random(1)) == [0]


@pytest.mark.filterwarnings("ignore:.*PULP_CBC_CMD:DeprecationWarning")
def test_exact_uses_cbc_without_highs(monkeypatch):
    groups, feasibility = matching(seeded("cbc"), racks=12, groups=20, sizes=(4, 8), budget=1)
    by_highs = exact(groups, feasibility, seconds=5)
    monkeypatch.setattr(pulp.HiGHS, "available", lambda self: False)
    by_cbc = exact(groups, feasibility, seconds=5)
    assert by_cbc.value == pytest.approx(by_highs.value)
    assert by_cbc.certified
    assert faults(by_cbc.selection, feasibility) == []


def test_warm_up_runs_without_arguments():
    warm_up()


def test_mutually_exclusive_wide_groups_are_solved_exactly():
    rng = seeded("wide")
    groups = [group(n, rng.sample(range(40), rng.randint(3, 12)), rng.randint(1, 10**7)) for n in range(40)]
    feasibility = Feasibility([1] * 40, {4: 13})
    choices = options(groups, feasibility)
    found, settled = independent(choices, [], lambda: True)
    best = exact(groups, feasibility, seconds=20)
    assert settled
    assert best.certified
    assert choices.total(found) == pytest.approx(best.value)
    assert optimize(groups, feasibility, StepBudget(2000), rng).certified


def test_a_search_among_wide_groups_that_is_stopped_keeps_its_start():
    groups = [group(0, range(8), 5.0), group(1, range(8, 16), 4.0)]
    found = independent(options(groups, Feasibility([1] * 16, {4: 9})), [1], lambda: False)
    assert found == ([1], False)


def test_too_many_kinds_of_trees_yield_no_bound():
    """With seven sizes to mix a wide group has more trees than are looked at, so a bound over them proves nothing."""
    pool = dict.fromkeys((2, 3, 4, 5, 6, 7, 8), 9)
    groups = [group("wide", range(40), 1.0)]
    for answer in (
        optimize(groups, Feasibility([1] * 40, pool), StepBudget(50), random.Random(1)),
        exact(groups, Feasibility([1] * 40, pool), seconds=5),
    ):
        assert answer.value == 1.0
        assert answer.bound is None
        assert not answer.certified


def test_scarce_splitters_count_among_wide_groups():
    groups = [group(0, range(8), 5.0), group(1, range(8, 16), 4.0)]
    found, settled = independent(options(groups, Feasibility([1] * 16, {4: 3})), [], lambda: True)
    assert (found, settled) == ([0], True)
