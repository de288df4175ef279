"""Computation time of decisions on the virtual clock: measured now, recorded earlier, or fixed."""

from __future__ import annotations

import math
import tomllib
from importlib import resources

import numpy as np

from blast_sim.base.wrong_input import InputError
from blast_sim.controller.core_driver import Compute

MEASURED, RECORDED = "measured", "recorded"


def compute_of(text: str, racks: int, requests: int) -> Compute:
    """Parse `--compute`: `measured`, `recorded` (by concurrent requests and racks), or milliseconds.

    Only `measured` differs between runs. Raises InputError.
    """
    if text == MEASURED:
        return lambda measured: measured
    seconds = recorded(racks, requests) if text == RECORDED else _milliseconds(text) / 1000
    return lambda measured: seconds


def recorded(racks: int, requests: int) -> float:
    """Return the recorded seconds of one decision, interpolated by racks and in proportion to the requests."""
    table = tomllib.loads(resources.files("blast_sim.controller").joinpath("recorded_compute.toml").read_text("utf-8"))
    points = sorted((row["racks"], row["requests"], row["milliseconds"]) for row in table["decision"])
    base = np.interp(racks, [row[0] for row in points], [row[2] / row[1] for row in points])
    return float(base) * requests / 1000


def _milliseconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise InputError(f"--compute {text!r} is neither measured, nor recorded, nor a number of milliseconds")
    return value
