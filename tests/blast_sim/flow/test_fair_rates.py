"""Fair rates in published cases and in cases with a closed form."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from blast_sim.fair import FairShares, Paths, Solver, fair_rates
from tests.support.simulators.fair_oracles import EACH_SOLVER

# Numbers from SimGrid's src/kernel/lmm/maxmin_test.cpp; shares are proportional to 1 / penalty, and a flow that
# consumes 2 for each unit of its rate names its link twice.
SIMGRID = [
    ("penalties 1, 2", [3], [[0], [0]], {"weights": [1, 1 / 2]}, [2, 1]),
    ("consumption 1, 2", [3], [[0], [0, 0]], {}, [1, 1]),
    ("both", [20], [[0], [0, 0]], {"weights": [1, 1 / 2]}, [10, 5]),
    ("two links", [20, 60], [[0, 1, 1], [0, 0], [1]], {"weights": [1, 1 / 2, 1]}, [10, 5, 40]),
]

RING = {hops: [[(node + hop) % 11 for hop in range(hops)] for node in range(11)] for hops in (1, 4, 10)}

# Numbers from the MmfAllocatorTest of floodns (snkas/floodns).
FLOODNS = [
    ("caps", [10], [[0]] * 4, {"rate_caps": [2, 2.6, 4, 5]}, [2, 2.6, 2.7, 2.7]),
    ("caps and weights", [16], [[0]] * 4, {"rate_caps": [4, 2, 10, 4], "weights": [2.5, 4, 0.5, 1]}, [4, 2, 6, 4]),
    ("chain 5, 10", [5, 10], [[0, 1], [0], [1]], {"weights": [10, 10, 1]}, [2.5, 2.5, 7.5]),
    ("chain 10, 5", [10, 5], [[0, 1], [0]], {"weights": [9, 1]}, [5, 5]),
    ("chain 10, 10", [10, 10], [[0], [0], [0, 1], [1]], {"rate_caps": [1, 1, np.inf, np.inf]}, [1, 1, 5, 5]),
    (
        "directed links 0-1, 1-2, 1-3, 3-4, 5-3",
        [4, 10, 20, 6, 10],
        [[0, 2, 3], [0, 1], [4, 3], [4, 3]],
        {"weights": [1, 2.2, 12, 3], "rate_caps": [np.inf, 2.2, np.inf, np.inf]},
        [0.375, 2.2, 4.5, 1.125],
    ),
    ("0-1, 1-3, 0-2, 2-3 and 1-2", [10, 10, 10, 10, 1], [[0, 1], [0, 4, 3], [2, 3]], {}, [9, 1, 9]),
    *((f"ring of 11, {hops} hops", [10] * 11, paths, {}, [10 / hops] * 11) for hops, paths in RING.items()),
    *(
        (f"Y of {capacities}", capacities, [[0, 2], [1, 2]], {}, rates)
        for capacities, rates in (
            ([25, 50, 75], [25, 50]),
            ([60, 50, 100], [50, 50]),
            ([0.1, 0.8, 0.6], [0.1, 0.5]),
            ([100, 100, 10], [5, 5]),
        )
    ),
]  # fmt: skip


@pytest.fixture(params=EACH_SOLVER)
def solver(request: pytest.FixtureRequest) -> Solver:
    return request.param


@pytest.mark.parametrize(
    ("capacities", "paths", "demands", "rates"),
    [
        pytest.param(*case, id=f"{source} {name}")
        for source, cases in (("SimGrid", SIMGRID), ("floodns", FLOODNS))
        for name, *case in cases
    ],
)
def test_published_values(
    solver: Solver, capacities: list[float], paths: list[Sequence[int]], demands: dict[str, Any], rates: list[float]
) -> None:
    found = fair_rates(capacities, Paths.of(paths), solver=solver, **demands)
    np.testing.assert_allclose(found, rates, rtol=1e-12)


def test_optical_session_is_one_flow_over_all_its_receivers(solver: Solver) -> None:
    """The paper's heavy load on Blast: a session beside 1 Gbit/s of background on each server link gets the rest."""
    session = [0, *range(1, 120)]
    paths = Paths.of([session, *([server] for server in range(120))])
    found = fair_rates([10e9] * 120, paths, rate_caps=[np.inf, *[1e9] * 120], solver=solver)
    np.testing.assert_allclose(found[0], 9e9)


@pytest.mark.parametrize(
    ("capacities", "paths", "demands", "sentence"),
    [
        ([1.0], [[1]], {}, "but there are 1"),
        ([1.0], [[-1]], {}, "from -1"),
        ([-1.0], [[0]], {}, "capacities"),
        ([np.nan], [[0]], {}, "capacities"),
        ([1.0], [[0]], {"weights": 0}, "weights"),
        ([1.0], [[0]], {"multiplicity": -2}, "multiplicity"),
        ([1.0], [[0]], {"weights": np.inf}, "weights"),
        ([1.0], [[0]], {"rate_caps": np.nan}, "rate_caps"),
    ],
)
def test_impossible_problems_are_refused(
    solver: Solver, capacities: list[float], paths: list[list[int]], demands: dict[str, float], sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        fair_rates(capacities, Paths.of(paths), solver=solver, **demands)


@pytest.mark.parametrize("ids", [[1], [0, 0], [-1], [7]])
def test_remove_rejects_unknown_flows(solver: Solver, ids: list[int]) -> None:
    shares = FairShares([10.0], solver=solver)
    shares.remove(shares.add(Paths.of([[0], [0]]))[1:])
    with pytest.raises(KeyError):
        shares.remove(ids)
    assert shares.rates([0]).tolist() == [10.0]
