"""Confidence intervals compared with tables and with simulation."""

from __future__ import annotations

import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blast_sim.base.confidence import half_width, student_quantile


def test_student_quantiles_decrease_to_the_normal_quantile():
    quantiles = [student_quantile(degrees) for degrees in range(1, 200)]
    assert quantiles == sorted(quantiles, reverse=True)
    assert student_quantile(10**6) == pytest.approx(1.959964, abs=1e-5)
    # Tables: 40, 60 and 120 degrees of freedom.
    assert [round(student_quantile(degrees), 3) for degrees in (40, 60, 120)] == [2.021, 2.000, 1.980]


def test_student_quantile_rejects_zero_degrees_of_freedom():
    with pytest.raises(ValueError, match="at least one"):
        student_quantile(0)


def test_interval_contains_the_mean_at_its_confidence_level():
    dice = random.Random(1)
    samples = [[dice.gauss(3.0, 2.0) for _ in range(4)] for _ in range(4000)]
    held = sum(abs(statistics.mean(sample) - 3.0) <= half_width(sample) for sample in samples)
    assert 0.94 <= held / len(samples) <= 0.96


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=40), st.floats(-1e3, 1e3))
def test_width_is_independent_of_an_offset(values, offset):
    moved = half_width([value + offset for value in values])
    assert moved == pytest.approx(half_width(values), rel=1e-6, abs=1e-6)


def test_width_of_one_or_equal_values_is_zero():
    assert half_width([5.0]) == 0.0
    assert half_width([5.0, 5.0, 5.0]) == 0.0
