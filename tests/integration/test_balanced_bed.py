"""The bed of balanced multicasts: transfers are carried out, checked and struck; what nobody shapes is not shaped."""

from __future__ import annotations

import os
import signal

import pytest

from mininet_topos.lab import cleanup
from mininet_topos.sites import presets

pytestmark = [pytest.mark.lab]

SIZE = 1_500_000


def test_a_transfer_is_timed_by_its_sender_and_its_copies_are_compared():
    from benchmarks.transfers.balanced_bed.bed import Bed, by

    with Bed(presets.homogeneous(3, 20)) as bed:
        lab = bed.sites.id
        for transport in ("pipeline", "unicast"):
            sent = bed.send("h1", by(transport), SIZE, 10e6)
            assert (set(sent.complete), sent.failed, sent.wrong) == ({"h2", "h3"}, (), ())
            assert sent.rate < 20e6 * 1.05
        assert not list(bed.folder.glob("file*"))
    assert lab not in cleanup.found_labs()


def test_a_host_is_killed_on_the_way_and_named():
    from benchmarks.transfers.balanced_bed.bed import Bed, Transfer, by

    def strike(transfer: Transfer) -> None:
        transfer.await_slowest(transfer.size / 4)
        os.kill(transfer.bed.agents.pids["h2"], signal.SIGKILL)

    with Bed(presets.homogeneous(3, 20)) as bed:
        sent = bed.send("h1", by("pipeline"), 4 * SIZE, 10e6, strike)
    assert (sent.complete, sent.failed, sent.wrong) == (("h3",), ("h2",), ())


def test_a_transport_that_there_is_not_is_a_failed_run_with_the_sender_s_words():
    from benchmarks.transfers.balanced_bed.bed import Bed, by
    from benchmarks.transfers.bed.failures import RunFailedError

    with Bed(presets.homogeneous(2, 20)) as bed, pytest.raises(RunFailedError, match="doves"):
        bed.send("h1", by("doves"), SIZE, 10e6)


def test_unshaped_trees_share_what_their_streams_pass():
    from benchmarks.transfers.balanced_bed.bed import Bed
    from benchmarks.transfers.balanced_bed.planning import planned
    from benchmarks.transfers.balanced_bed.unshaped import send_unshaped

    plan = presets.figure2().scaled(0.4)
    made = planned(plan.network("root"), "fpfr")
    assert made.rate == pytest.approx(30e6)
    with Bed(plan) as bed:
        sent = send_unshaped(bed, "root", made, 4 * SIZE)
    assert set(sent.complete) == {"one", "two"}
    # What trees that give way to each other would have is 36.
    assert sent.rate < 33e6
