"""All percentiles use the nearest rank."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blast_sim.base.percentiles import percentile

VALUES = st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=300)
PERCENTS = st.one_of(st.integers(1, 100), st.sampled_from([0.1, 2.5, 97.5, 99.9]))


@given(VALUES, PERCENTS)
def test_percentile_is_the_smallest_value_that_covers_the_share(values: list[float], percent: float) -> None:
    found = percentile(values, percent)
    assert 100 * sum(value <= found for value in values) >= percent * len(values) * (1 - 1e-12)
    assert 100 * sum(value < found for value in values) < percent * len(values) * (1 + 1e-12)
    assert found in values


@given(VALUES, st.integers(1, 100))
def test_percentile_agrees_with_numpy(values: list[float], percent: int) -> None:
    # numpy computes its rank from a rounded product, which may be off by one where the exact product is whole.
    if percent * len(values) % 100:
        assert percentile(values, percent) == np.percentile(values, percent, method="inverted_cdf")


def test_percentiles_of_a_hundred_values_are_their_ranks() -> None:
    values = list(range(1, 101))
    assert [percentile(values, percent) for percent in (1, 50, 95, 99, 100)] == [1, 50, 95, 99, 100]
    assert percentile(range(1, 100), 99) == 99


@pytest.mark.parametrize(("values", "percent"), [([], 50), ([1.0], 0), ([1.0], 101)])
def test_invalid_input_has_no_percentile(values: list[float], percent: float) -> None:
    with pytest.raises(ValueError, match="no percentile"):
        percentile(values, percent)


def test_no_other_module_computes_percentiles() -> None:
    """Ranks by hand differ: int(0.99 n), round(0.99 n) and ceil(0.99 n) - 1 name three values of a hundred."""
    by_hand = re.compile(r"0\.9[59]0? ?\* ?len\(|\* 99 // 100|def (quantile|percentile)\(")
    root = Path(__file__).parents[3]
    files = [file for folder in ("blast_sim", "benchmarks") for file in (root / folder).rglob("*.py")]
    found = {file.name for file in files if by_hand.search(file.read_text())}
    assert found == {"percentiles.py"}
