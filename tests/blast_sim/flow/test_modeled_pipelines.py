"""Expected times, and times from counters, of the benchmark that compares real pipelines with the simulator."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from blast_sim.methods.pipeline import BLOCK

MEGABYTE = 1_000_000


def test_modeled_chains_take_the_time_of_the_closed_form() -> None:
    from benchmarks.transfers.bed.modeled import Chain, simulated, with_slow_hop

    even = Chain(3, 50.0)
    rate = even.shapes[0].tcp_limit
    assert rate is not None
    assert simulated(even, MEGABYTE) == pytest.approx(8 * (MEGABYTE + 2 * BLOCK) / rate)
    slow = with_slow_hop(even)
    assert slow.shapes[1].rate_mbps == 12.5
    assert simulated(slow, MEGABYTE) == pytest.approx(8 * MEGABYTE * 4 / rate + 2 * 8 * BLOCK / rate)


def test_time_is_from_the_first_data_of_any_receiver_to_the_last() -> None:
    """The second receiver has data first, as in a chain that goes another way; 10 Mbit/s bring 32 KiB in 26 ms."""
    from benchmarks.transfers.bed.modeled import Arrivals

    arrivals = Arrivals(SimpleNamespace())
    arrivals._seen = [(0.0, [500, 700]), (1.0, [500, 700]), (2.0, [600, 40_000]), (3.0, [50_000, 60_000]),
                      (4.0, [90_000, 110_000]), (5.0, [101_000, 110_000])]  # fmt: skip
    assert arrivals.seconds(100_000, 10.0) == pytest.approx(3.0 + 8 * 32_768 / 10e6)
