"""The flow simulator's solver against progressive filling in exact fractions, written without a look at the solver."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blast_sim.fair import Solver
from blast_sim.fair.fluid import finish_times
from blast_sim.fair.paths import Paths
from blast_sim.fair.rates import fair_rates
from tests.support.simulators import exact_fluid
from tests.support.simulators.exact_fluid import Flow, Stage
from tests.support.simulators.fair_oracles import EACH_SOLVER

CAPACITIES = st.lists(st.integers(1, 40).map(Fraction), min_size=1, max_size=6)


@st.composite
def networks(draw: st.DrawFn) -> tuple[list[Fraction], list[Flow]]:
    """Draw links and flows over them, some of which take a link twice."""
    capacities = draw(CAPACITIES)
    flow = st.builds(
        Flow,
        links=st.lists(st.integers(0, len(capacities) - 1), min_size=1, max_size=8).map(tuple),
        weight=st.integers(1, 5).map(Fraction),
        copies=st.integers(1, 4),
        cap=st.none() | st.integers(1, 30).map(lambda tenths: Fraction(tenths, 10)),
    )
    return capacities, draw(st.lists(flow, min_size=1, max_size=12))


def _paths(links: list[exact_fluid.Links]) -> Paths:
    offsets = np.cumsum([0, *(len(path) for path in links)], dtype=np.intp)
    return Paths(offsets, np.array([link for path in links for link in path], dtype=np.int32))


@pytest.mark.parametrize("solver", EACH_SOLVER)
@settings(max_examples=150, deadline=None)
@given(drawn=networks())
def test_rates_equal_progressive_filling(solver: Solver, drawn: tuple[list[Fraction], list[Flow]]) -> None:
    capacities, flows = drawn
    rates = fair_rates(
        [float(capacity) for capacity in capacities],
        _paths([flow.links for flow in flows]),
        multiplicity=[flow.copies for flow in flows],
        weights=[float(flow.weight) for flow in flows],
        rate_caps=[float("inf") if flow.cap is None else float(flow.cap) for flow in flows],
        solver=solver,
    )
    expected = [float(rate) for rate in exact_fluid.fair_rates(capacities, flows)]
    np.testing.assert_allclose(rates, expected, rtol=1e-11)


@pytest.mark.parametrize("solver", EACH_SOLVER)
@settings(max_examples=60, deadline=None)
@given(drawn=networks(), data=st.data())
def test_finish_times_equal_exact_events(
    solver: Solver, drawn: tuple[list[Fraction], list[Flow]], data: st.DataObject
) -> None:
    capacities, flows = drawn
    size = st.integers(1, 50).map(Fraction)
    sizes = [data.draw(size) for _ in flows]
    starts = [data.draw(st.integers(0, 6)) for _ in flows]
    jobs = [
        [Stage([(flow.links, bits)], delay=Fraction(start))]
        for flow, bits, start in zip(flows, sizes, starts, strict=True)
    ]
    times = finish_times(
        [float(capacity) for capacity in capacities],
        _paths([flow.links for flow in flows]),
        [float(bits) for bits in sizes],
        starts=[float(start) for start in starts],
        solver=solver,
    )
    np.testing.assert_allclose(times, [float(end) for end in exact_fluid.ends(capacities, jobs)], rtol=1e-10)
