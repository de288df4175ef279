"""A coflow trace that stands for no real cluster: small, from a seed, for first steps and tests."""

from __future__ import annotations

import math
import random
from importlib import resources

from blast_sim.traces.coflow_file import Coflow, CoflowTrace, parse_coflows

SAMPLE = "sample"
SAMPLE_FILE = "sample_coflows.txt"
CONTENDED = "contended"
CONTENDED_FILE = "sample_contended.txt"
OURS = {SAMPLE: SAMPLE_FILE, CONTENDED: CONTENDED_FILE}
"""Traces that come with the program, by name."""


def synthetic(seed: int, racks: int, coflows: int, mean_gap_ms: float = 2000.0) -> CoflowTrace:
    """Draw a trace with random arrivals, few wide and many narrow jobs (Pareto), and sizes over orders of magnitude."""
    dice = random.Random(f"synthetic coflows/{seed}/{racks}/{coflows}")
    now = 0
    made = []
    for number in range(1, coflows + 1):
        mappers = sorted(dice.sample(range(racks), _width(dice, racks)))
        reducers = sorted(dice.sample(range(racks), _width(dice, racks)))
        median = math.exp(dice.gauss(math.log(100), 1.5))
        sizes = tuple(float(max(1, round(median * dice.uniform(0.5, 1.5)))) for _ in reducers)
        made.append(Coflow(str(number), now, tuple(mappers), tuple(reducers), sizes))
        now += round(dice.expovariate(1 / mean_gap_ms))
    return CoflowTrace(racks, tuple(made))


def sample(name: str = SAMPLE) -> CoflowTrace:
    """Return a trace that comes with the program."""
    return parse_coflows(sample_data(name), name)


def sample_data(name: str) -> bytes:
    """Return the content of a trace file that comes with the program."""
    return resources.files("blast_sim.traces").joinpath(OURS[name]).read_bytes()


def _width(dice: random.Random, racks: int) -> int:
    return min(racks, int(dice.paretovariate(0.9)))
