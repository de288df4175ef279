"""Shares after additions and removals equal the shares of the remaining flows; end times follow from shares."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from blast_sim.fair import FairShares, Paths, fair_rates, finish_times
from tests.support.simulators.fair_oracles import EACH_SOLVER, SOLVERS, FairProblem

LINKS = 12
paths = st.lists(st.integers(0, LINKS - 1), max_size=6)
flow = st.tuples(
    paths,
    st.sampled_from([1.0, 0.25, 3.0]),
    st.integers(1, 3),
    st.sampled_from([np.inf, np.inf, 0.5, 4.0]),
)


class ChangingFlows(RuleBasedStateMachine):
    """Every solver follows the same changes; the oracle solves the present flows from scratch."""

    @initialize(capacities=st.lists(st.sampled_from([0.0, 1.0, 5.0, 5.0, 9.5, 40.0]), min_size=LINKS, max_size=LINKS))
    def start(self, capacities):
        self.capacities = capacities
        self.shares = [FairShares(capacities, solver=solver) for solver in SOLVERS]
        self.ids = [[] for _ in SOLVERS]
        self.flows = []

    @rule(new=st.lists(flow, min_size=1, max_size=12))
    def add(self, new):
        links, weights, multiplicity, caps = zip(*new, strict=True)
        for shares, ids in zip(self.shares, self.ids, strict=True):
            added = shares.add(Paths.of(links), weights=weights, multiplicity=multiplicity, rate_caps=caps)
            assert not set(ids) & set(added)
            ids.extend(added)
        self.flows.extend(new)

    @rule(data=st.data())
    def remove(self, data):
        if not self.flows:
            return
        removed = data.draw(st.sets(st.integers(0, len(self.flows) - 1), min_size=1, max_size=6))
        for place, (shares, ids) in enumerate(zip(self.shares, self.ids, strict=True)):
            shares.remove([ids[flow] for flow in removed])
            self.ids[place] = [known for flow, known in enumerate(ids) if flow not in removed]
        self.flows = [known for flow, known in enumerate(self.flows) if flow not in removed]

    @rule(times=st.integers(1, 30))
    def churn(self, times):
        """Add flows and remove them at once; they must leave nothing behind, even if tables are rebuilt meanwhile."""
        for shares in self.shares:
            for _ in range(times):
                shares.remove(shares.add(Paths.rows(np.tile(np.arange(LINKS), (20, 1)))))

    @invariant()
    def rates_equal_those_from_scratch(self):
        if not getattr(self, "flows", []):
            return
        links, weights, multiplicity, caps = zip(*self.flows, strict=True)
        whole = FairProblem(self.capacities, links, multiplicity, weights, caps)
        expected = fair_rates(self.capacities, whole.csr, **whole.demands, solver="numpy")
        for shares, ids in zip(self.shares, self.ids, strict=True):
            assert len(shares) == len(ids)
            np.testing.assert_allclose(shares.rates(ids), expected, rtol=1e-9, atol=1e-11)


TestChangingFlows = ChangingFlows.TestCase
TestChangingFlows.settings = settings(max_examples=60, stateful_step_count=20)


@pytest.mark.parametrize("seed", range(2))
def test_end_times_agree_between_solvers_and_carry_all_bits(seed: int) -> None:
    """The bits that each flow carries at the rates between events sum to its size."""
    rng = np.random.default_rng(seed)
    flows = 60
    table = Paths.of([rng.choice(LINKS, rng.integers(1, 5), replace=False) for _ in range(flows)])
    capacities = rng.uniform(1, 10, LINKS)
    bits, starts = rng.uniform(0.5, 40, flows), np.where(rng.random(flows) < 0.4, 0.0, rng.uniform(0, 20, flows))
    bits[:3] = np.inf
    ends = [finish_times(capacities, table, bits, starts=starts, solver=solver) for solver in SOLVERS]
    np.testing.assert_allclose(ends[0], ends[-1], rtol=1e-9)
    assert np.isinf(ends[0][:3]).all()
    assert np.isfinite(ends[0][3:]).all()
    np.testing.assert_allclose(_carried(capacities, table, starts, ends[0])[3:], bits[3:], rtol=1e-9)


def _carried(capacities, table, starts, ends):
    """Return the bits that flows carry if rates are computed from scratch between any two events."""
    moments = np.unique(np.concatenate([starts, ends[np.isfinite(ends)]]))
    carried = np.zeros(len(starts))
    for now, then in pairwise(moments):
        there = np.flatnonzero((starts <= now) & (ends > now))
        if len(there):
            carried[there] += fair_rates(capacities, table.take(there)) * (then - now)
    return carried


@pytest.mark.parametrize("solver", EACH_SOLVER)
def test_finish_times_of_empty_endless_and_simultaneous_flows(solver) -> None:
    table = Paths.of([[], [0], [1], [0]])
    ends = finish_times([2.0, 0.0], table, [8.0, 0.0, 5.0, 6.0], starts=[1.0, 2.0, 0.0, 3.0], solver=solver)
    assert ends.tolist() == [1.0, 2.0, np.inf, 6.0]
    assert finish_times([3.0], Paths.rows([[0]] * 7), 3.0, solver=solver).tolist() == [7.0] * 7


@pytest.mark.parametrize(("bits", "starts"), [(-1.0, 0.0), (np.nan, 0.0), (1.0, -1.0), (1.0, np.inf)])
def test_invalid_sizes_and_starts_are_rejected(bits: float, starts: float) -> None:
    with pytest.raises(ValueError, match="bits must be"):
        finish_times([1.0], Paths.of([[0]]), bits, starts=starts)
