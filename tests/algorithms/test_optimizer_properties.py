"""The optimizer, its bound and the exact program against exhaustive search, on small random matchings."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from algorithms.b_matching.budget import StepBudget
from algorithms.b_matching.exact import exact
from algorithms.b_matching.feasibility import Feasibility
from algorithms.b_matching.grid import grid_of
from algorithms.b_matching.group import CompetingGroup, members
from algorithms.b_matching.optimized import total
from algorithms.b_matching.optimizer import optimize
from algorithms.b_matching.options import options
from algorithms.b_matching.oscillation import oscillated
from algorithms.b_matching.packing import OptionPacking
from algorithms.b_matching.relaxation import Relaxation, to_whole_units
from algorithms.b_matching.scores import FLOOR, by_score
from tests.support.simulators.matching import faults, heaviest, matching, seeded

SHAPES = st.fixed_dictionaries(
    {
        "groups": st.integers(0, 7),
        "sizes": st.sampled_from([(), (4,), (2,), (2, 4), (2, 3, 8)]),
        "max_pieces": st.none() | st.integers(1, 3),
        "directional": st.booleans(),
        "budget": st.integers(1, 3),
    }
)
SEEDS = st.integers(0, 10**9)


@settings(max_examples=150)
@given(SHAPES, SEEDS, st.integers(1, 400))
def test_selection_value_and_bound_of_optimizer_are_valid(shape, seed, steps):
    groups, feasibility = matching(seeded(seed), **shape)
    found = optimize(groups, feasibility, StepBudget(steps), seeded(seed))
    best = heaviest(groups, feasibility, shape["max_pieces"])
    assert faults(found.selection, feasibility, shape["max_pieces"]) == []
    assert found.value == total(found.selection) <= best
    assert found.bound is None or found.bound >= best
    assert all(found.value >= total(by_score(score, groups, feasibility)) for score in FLOOR)
    if found.certified:
        assert found.value == best
    if steps >= 200:
        assert found.value >= 0.9 * best


@settings(max_examples=60)
@given(SHAPES, SEEDS)
def test_exact_program_equals_exhaustive_search(shape, seed):
    groups, feasibility = matching(seeded(seed), **shape)
    found = exact(groups, feasibility, seconds=10)
    assert faults(found.selection, feasibility, shape["max_pieces"]) == []
    assert found.certified
    assert found.value == heaviest(groups, feasibility, shape["max_pieces"])


@settings(max_examples=60)
@given(SHAPES, SEEDS)
def test_no_selection_with_an_unprofitable_option_beats_the_bound_less_its_loss(shape, seed):
    groups, feasibility = matching(seeded(seed), **shape)
    choices = options(groups, feasibility)
    assume(len(choices) > 0)
    choices, _ = to_whole_units(choices)
    relaxed = Relaxation(choices, lambda: False).solve()
    assert relaxed is not None
    for option in range(len(choices)):
        forced = Relaxation(choices, lambda: False)
        forced.fix(option, 1)
        inside = forced.solve()
        if inside is not None:
            assert inside.bound <= relaxed.bound + min(0.0, relaxed.profits[option]) + 1


@settings(max_examples=100)
@given(SHAPES, SEEDS, st.lists(st.floats(0, 1, exclude_max=True), max_size=40))
def test_packing_never_exceeds_resources_and_counts_correctly(shape, seed, draws):
    rng = seeded(seed)
    groups, feasibility = matching(rng, **shape)
    choices = options(groups, feasibility)
    packing = OptionPacking(choices, choices.weights)
    for draw in draws if len(choices) else []:
        option = int(draw * len(choices))
        if packing.holds(option):
            packing.remove(option)
            continue
        fitted = packing.fits(option)
        removed = packing.evictions(option, math.inf, rng)
        if removed is None:
            continue
        assert len(set(removed)) == len(removed)
        assert not (fitted and removed)
        for other in removed:
            packing.remove(other)
        assert packing.fits(option)
        packing.add(option)
        selection = [(groups[choices.owners[j]], choices.pieces[j]) for j in packing.selected]
        assert faults(selection, feasibility, shape["max_pieces"]) == []
        assert packing.value == pytest.approx(total(selection))


@settings(max_examples=100)
@given(SHAPES, SEEDS, st.integers(1, 10))
def test_oscillation_result_is_feasible_and_not_below_its_start(shape, seed, steps):
    groups, feasibility = matching(seeded(seed), **shape)
    choices = options(groups, feasibility)
    assume(len(choices) > 0)
    start = [seed % len(choices)]
    found = oscillated(choices, [], start, StepBudget(steps), seeded(seed))
    selection = [(groups[choices.owners[j]], choices.pieces[j]) for j in found]
    assert faults(selection, feasibility, shape["max_pieces"]) == []
    assert choices.total(found) >= choices.total(start)


@settings(max_examples=100)
@given(SHAPES, SEEDS, st.integers(0, 12))
def test_relaxation_stopped_at_any_pivot_bounds_every_selection(shape, seed, pivots):
    groups, feasibility = matching(seeded(seed), **shape)
    choices = options(groups, feasibility)
    assume(len(choices) > 0)
    choices, grid = to_whole_units(choices)
    left = iter(range(pivots))
    known = Relaxation(choices, lambda: next(left, None) is None).solve()
    assert known is not None
    assert grid.weight(known.bound) >= heaviest(groups, feasibility, shape["max_pieces"])


@settings(max_examples=200)
@given(
    st.lists(st.fractions(min_value="0.001", max_value=10**9, max_denominator=1000), min_size=1, max_size=8), st.data()
)
def test_grid_units_bound_each_sum_and_are_exact_if_declared(weights, data):
    grid = grid_of([float(weight) for weight in weights], 2 * len(weights))
    units = grid.round_up([float(weight) for weight in weights]).tolist()
    chosen = data.draw(st.sets(st.sampled_from(range(len(weights)))))
    unit = Fraction(grid.divisor) / Fraction(grid.scale)
    above = sum(Fraction(units[place]) for place in chosen) * unit
    below = Fraction(grid.round_down(float(weights[place]) for place in chosen)) * unit
    exact_sum = sum(Fraction(str(float(weights[place]))) for place in chosen)
    assert above == below == exact_sum if grid.exact else below <= exact_sum <= above
    assert grid.exact or any(Fraction(str(float(w))).denominator > 10**9 for w in weights) or max(units) > 2**30


@settings(max_examples=200)
@given(st.lists(st.integers(0, 2**70), max_size=12))
def test_members_of_many_sets_at_once_are_those_of_each(sets):
    groups = [CompetingGroup(number, bits, 2, 1, 1.0) for number, bits in enumerate(sets)]
    assert options(groups, Feasibility([1] * 71, {})).vertices == [members(bits) for bits in sets]
