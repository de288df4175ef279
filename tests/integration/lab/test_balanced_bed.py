"""The bed of balanced multicasts: timed and checked transfers, killed hosts, and trees without shaping."""

from __future__ import annotations

import os
import signal

import pytest

from mininet_topos.lab import cleanup
from mininet_topos.sites import presets

pytestmark = [pytest.mark.lab]

SIZE = 1_500_000


def test_bed_times_transfer_and_compares_copies():
    from benchmarks.transfers.balanced_bed.bed import Bed, by

    with Bed(presets.homogeneous(3, 20)) as bed:
        lab = bed.sites.id
        for transport in ("pipeline", "unicast"):
            sent = bed.send("h1", by(transport), SIZE, 10e6)
            assert (set(sent.complete), sent.failed, sent.wrong) == ({"h2", "h3"}, (), ())
            assert sent.rate < 20e6 * 1.05
        assert not list(bed.folder.glob("file*"))
    assert lab not in cleanup.found_labs()


def test_bed_names_host_killed_in_mid_transfer():
    from benchmarks.transfers.balanced_bed.bed import Bed, Transfer, by

    def strike(transfer: Transfer) -> None:
        transfer.await_slowest(transfer.size / 4)
        os.kill(transfer.bed.agents.pids["h2"], signal.SIGKILL)

    with Bed(presets.homogeneous(3, 20)) as bed:
        sent = bed.send("h1", by("pipeline"), 4 * SIZE, 10e6, strike)
    assert (sent.complete, sent.failed, sent.wrong) == (("h3",), ("h2",), ())


def test_unknown_transport_fails_run_with_error_of_sender():
    from benchmarks.transfers.balanced_bed.bed import Bed, by
    from benchmarks.transfers.bed.failures import RunFailedError

    with Bed(presets.homogeneous(2, 20)) as bed, pytest.raises(RunFailedError, match="doves"):
        bed.send("h1", by("doves"), SIZE, 10e6)


def test_unshaped_trees_share_links_of_their_streams():
    from benchmarks.transfers.balanced_bed.bed import Bed
    from benchmarks.transfers.balanced_bed.planning import planned
    from benchmarks.transfers.balanced_bed.unshaped import send_unshaped

    plan = presets.figure2().scaled(0.4)
    made = planned(plan.network("root"), "fpfr")
    assert made.rate == pytest.approx(30e6)
    with Bed(plan) as bed:
        sent = send_unshaped(bed, "root", made, 4 * SIZE)
    assert set(sent.complete) == {"one", "two"}
    # Trees that yielded capacity to each other would reach 36 Mbit/s.
    assert sent.rate < 33e6
