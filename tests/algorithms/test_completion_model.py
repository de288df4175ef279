"""The benchmark's model of completion times: reproducible workloads, and requests that all complete."""

from __future__ import annotations

import statistics
from types import ModuleType

import pytest

from algorithms.scheduling import DEFAULT, POLICIES
from blast_sim.papers.blast.measuring import completion_model


@pytest.fixture
def model() -> ModuleType:
    return completion_model


@pytest.mark.parametrize(
    ("kind", "load", "paper", "directional"),
    [("S3-LN", 0.55, 4.98, 1.09), ("ML", 0.3, 24.2, 1.55), ("FB", 0.3, 5.4, 0.7)],
)
def test_mean_completion_times_match_prototypes(
    model: ModuleType, kind: str, load: float, paper: float, directional: float
) -> None:
    arrivals = model.workload(kind, 1500, load, 0)
    of_paper = model.play(POLICIES["paper"], arrivals, model.SPLITTERS[kind], directional=False)
    assert statistics.mean(of_paper.completion.values()) == pytest.approx(paper, rel=0.02)
    outcome = model.play(POLICIES[DEFAULT], arrivals, model.SPLITTERS[kind], directional=True)
    assert len(outcome.completion) == 1500
    assert statistics.mean(outcome.completion.values()) == pytest.approx(directional, rel=0.1)
    for request, arrival in enumerate(arrivals):
        assert outcome.completion[request] >= arrival.seconds + model.SET_UP - 1e-9
    assert max(outcome.parts.values()) <= 4


def test_workload_is_reproducible_from_seed(model: ModuleType) -> None:
    assert model.workload("FB", 50, 0.3, 7) == model.workload("FB", 50, 0.3, 7)
    assert model.workload("FB", 50, 0.3, 7) != model.workload("FB", 50, 0.3, 8)


def test_default_policy_completes_more_closed_loop_iterations(model: ModuleType) -> None:
    paper = model.play_closed(POLICIES["paper"], 0, directional=False)
    default = model.play_closed(POLICIES[DEFAULT], 0, directional=True)
    assert len(default.completion) > len(paper.completion) > 9000
