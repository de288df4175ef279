"""The failure scenarios of section IV-G of the Kascade paper, also scaled to other sizes and durations."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mininet_topos.kernel.errors import PlanError


def test_scenarios_of_100_nodes_match_paper():
    from benchmarks.transfers.bed.kascade_failures import SCENARIOS

    # Copied from the text: {seconds, nodes}.
    paper = [
        [(10, [29, 69])],
        [(10, [9, 29, 49, 69, 89])],
        [(10, [9, 19, 29, 39, 49, 59, 69, 79, 89, 99])],
        [(10, [29]), (20, [69])],
        [(10, [9]), (14, [29]), (18, [49]), (22, [69]), (26, [89])],
        [(10, [9]), (12, [19]), (14, [29]), (16, [39]), (18, [49]), (20, [59]), (22, [69]), (24, [79]), (26, [89]),
         (28, [99])],
    ]  # fmt: skip
    assert [scenario.moments(100, 62.5) for scenario in SCENARIOS] == paper


@given(nodes=st.integers(10, 254), seconds=st.floats(0.1, 1000))
def test_scenarios_scale_with_nodes_and_seconds(nodes: int, seconds: float):
    from benchmarks.transfers.bed.kascade_failures import SCENARIOS, time_scale

    for scenario, percent in zip(SCENARIOS, (2, 5, 10) * 2, strict=True):
        moments = scenario.moments(nodes, seconds)
        failing = [node for _, some in moments for node in some]
        assert len(set(failing)) == len(failing)
        assert all(2 <= node <= nodes for node in failing)
        assert nodes % 100 or len(failing) == nodes * percent // 100
        times = [at for at, _ in moments]
        assert all(0 < at <= 0.7001 * seconds for at in times)
        gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
        assert all(gap >= 2.0 * time_scale(seconds) * (1 - 1e-9) for gap in gaps)
        whole = scenario.moments(nodes, 1000)
        assert [at for at, _ in whole] == pytest.approx([at / time_scale(seconds) for at in times])


def test_receiver_limit_depends_on_splitter_only_with_optical_network():
    from benchmarks.transfers.bed.bed import Plan

    assert len(Plan(253, light=False).hosts) == 254
    with pytest.raises(PlanError, match="1 to 253 receivers because of the addresses"):
        Plan(254, light=False)
    with pytest.raises(PlanError, match="1 to 127 receivers because of the splitter"):
        Plan(128)
