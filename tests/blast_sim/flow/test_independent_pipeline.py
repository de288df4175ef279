"""A pipeline hop by hop, from section III of the Kascade paper: a node passes a chunk on when it has the whole of it.

A chunk is over hop h one chunk's time after it is over hop h - 1 and the chunk before it is over hop h; chunks are the
blocks of our transport (docs/reference/wire-protocol.md). Where nothing changes with time, a hop has the fair rate of
its own flow.
"""

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

import pytest

from blast_sim.experiments.cell import Effort, FlowCell
from blast_sim.experiments.run import run_cell
from blast_sim.scenarios.schema import Scenario
from tests.support.simulators.exact_fluid import Flow, Links, fair_rates

RACKS, SERVERS = 6, 4
ALL = RACKS * SERVERS
CHUNK = 44 * 1456
"""Bytes: a block at the Ethernet MTU."""
GBIT = Fraction(8, 10**9)
"""A byte."""
UPLINKS = {"10:1": Fraction(4), "non-blocking": Fraction(40)}
LOADS = {"none": 0, "light": 1, "heavy": 2}
TOLERANCE = 0.05


def _arrival(size: int, rates: Sequence[Fraction]) -> Fraction:
    """Return the time at which the last chunk of a transfer has passed the last hop."""
    chunks = [min(CHUNK, size - first) * GBIT for first in range(0, size, CHUNK)]
    over = [Fraction(0)] * len(chunks)
    for rate in rates:
        before = Fraction(0)
        for place, chunk in enumerate(chunks):
            before = over[place] = max(over[place], before) + chunk / rate
    return over[-1]


def _path(source: int, target: int) -> Links:
    mine, its = source // SERVERS, target // SERVERS
    between = () if mine == its else (2 * ALL + mine, 2 * ALL + RACKS + its)
    return (source, *between, ALL + target)


def _hop_rates(network: str, load: str) -> list[Fraction]:
    """Return the rate of each hop through racks 0 to 2 beside the background, whose round never ends."""
    capacities = [Fraction(10)] * (2 * ALL) + [UPLINKS[network]] * (2 * RACKS)
    shifts = [sign * step for step in range(1, LOADS[load] + 1) for sign in (1, -1)]
    background = [Flow(_path(one, (one + shift * SERVERS) % ALL)) for one in range(ALL) for shift in shifts]
    hops = [Flow(_path(one, other)) for one, other in pairwise(range(3 * SERVERS))]
    return [fair_rates(capacities, [hop, *background])[0] for hop in hops]


def _simulated(megabytes: int, network: str, load: str) -> float:
    scenario = Scenario.model_validate(
        {
            "title": "one pipeline",
            "network": {"racks": RACKS, "servers_per_rack": SERVERS, "uplink_gbps": {network: float(UPLINKS[network])}},
            "background": {"round_seconds": 1e6, "racks_per_direction": LOADS},
            "multicasts": {"groups": 1, "racks_per_group": 3, "megabytes": float(megabytes)},
            "run": [{"methods": ["pipeline"], "networks": [network], "backgrounds": [load]}],
        }
    )
    (row,) = run_cell(FlowCell(scenario, "pipeline", network, load, effort=Effort(compute="0")))
    return float(row["seconds"])


@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize("network", UPLINKS)
@pytest.mark.parametrize("megabytes", [1, 5, 300])
def test_pipeline_equals_recurrence(megabytes: int, network: str, load: str) -> None:
    expected = float(_arrival(megabytes * 10**6, _hop_rates(network, load)))
    assert _simulated(megabytes, network, load) == pytest.approx(expected, rel=TOLERANCE)
