"""More jobs than optical resources, on the real daemon with emulated devices: all are served, nothing stays held.

The figures of `benchmarks/control_plane/concurrent_jobs.py` at a small size; no time decides the test.
"""

from __future__ import annotations

import pytest


@pytest.mark.parametrize("loop", ["open", "closed"])
def test_concurrent_jobs_all_progress_and_release_everything(loop):
    from benchmarks.control_plane.concurrent_jobs import Case, measure
    from benchmarks.control_plane.rig import Size

    # Two splitters carry 40 iterations of 50 ms a second at most, and the racks collide as well.
    found = measure(Case(60.0, 0.05, loop), Size(12, 2, ports_per_rack=2, keep_warm_ms=500), jobs=20, seconds=1.0)
    assert found["wait_ms"]["n"] >= 20
    assert found["jobs_starved"] == 0
    assert found["iterations_of_a_job"]["least"] >= 1
    assert set(found["left_behind"].values()) == {0}
