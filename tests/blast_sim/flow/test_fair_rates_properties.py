"""Fair rates of both solvers against their definition and against linear programs."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from blast_sim.fair import fair_rates
from tests.support.simulators.fair_oracles import SOLVERS, FairProblem, check_bottlenecks, fair_problems, lexicographic


@given(st.one_of(fair_problems(flows=40, links=130, longest=123), fair_problems(flows=60, links=8, longest=5)))
def test_every_flow_is_at_its_cap_or_has_a_bottleneck(problem: FairProblem) -> None:
    for solver in SOLVERS:
        check_bottlenecks(problem, fair_rates(problem.capacities, problem.csr, **problem.demands, solver=solver))


@settings(max_examples=25)
@given(fair_problems(flows=8, links=6, longest=4))
def test_rates_equal_the_solution_of_the_linear_programs(problem: FairProblem) -> None:
    rates = fair_rates(problem.capacities, problem.csr, **problem.demands, solver="numpy")
    np.testing.assert_allclose(rates, lexicographic(problem), atol=1e-3)


@given(fair_problems(flows=20, links=10, longest=5))
def test_entry_with_multiplicity_equals_several_entries(problem: FairProblem) -> None:
    rates = fair_rates(problem.capacities, problem.csr, **problem.demands)
    times = np.array(problem.multiplicity)
    single = FairProblem(
        problem.capacities,
        [path for path, count in zip(problem.paths, times, strict=True) for _ in range(count)],
        [1] * int(times.sum()),
        np.repeat(problem.weights, times).tolist(),
        np.repeat(problem.caps, times).tolist(),
    )
    apart = fair_rates(single.capacities, single.csr, **single.demands)
    np.testing.assert_allclose(apart, np.repeat(rates, times), rtol=1e-9, atol=1e-12)
