"""Hosts of the transports' bed that fail: only failed hosts miss the file, and the next transfer reaches all."""

from __future__ import annotations

import sys
from collections.abc import Collection
from typing import Any

import pytest

from mininet_topos.kernel.netdev import query
from mininet_topos.lab import cleanup
from tests.support.waiting import eventually

pytestmark = [pytest.mark.lab]

SIZE = 2_000_000
VICTIMS = {"killed": 2, "frozen": 4, "vanished": 5}
LIMIT = 240.0


def every_mode() -> Any:
    """Return a failure in which each victim fails in its own mode."""
    from benchmarks.transfers.bed.struck import MODES, FailureMode

    def each(act: str) -> Any:
        def act_on_each(tool: Any, run: Any, victims: Collection[int]) -> None:
            for name, victim in VICTIMS.items():
                assert victim in victims
                getattr(MODES[name], act)(tool, run, [victim])

        return act_on_each

    return FailureMode("each in its own", each("strike"), each("bury"))


def test_surviving_hosts_complete_and_next_transfer_reaches_all():
    from benchmarks.transfers.bed.bed import Plan
    from benchmarks.transfers.bed.script import bed_and_file
    from benchmarks.transfers.bed.shape import Shape
    from benchmarks.transfers.bed.struck import Standing
    from benchmarks.transfers.bed.tools.blast import BlastPipeline

    with bed_and_file(Plan(6, Shape(8.0), light=False), SIZE) as (bed, source):
        lab, tool = bed.lab, BlastPipeline()
        namespaces = cleanup.marked_processes(lab)
        with Standing(tool, bed, source) as standing:
            before = {host: one.pid for host, one in tool.receivers.items()}
            struck = standing.carry(LIMIT, every_mode(), [(0.7, list(VICTIMS.values()))])
            assert struck.wrong == ()
            after = {host: one.pid for host, one in tool.receivers.items()}
            assert {host for host in after if after[host] != before[host]} == set(VICTIMS.values())
            # A transfer that does not end reports it, and its remains do not affect the next one.
            lost = standing.carry(0.01)
            assert lost.report == {} and lost.wrong
            again = standing.carry(LIMIT)
            assert again.wrong == () and len(again.report["receivers"]) == 6
        assert cleanup.marked_processes(lab) == namespaces
    assert lab not in cleanup.found_labs()


def test_cut_off_host_neither_sends_nor_receives_frames():
    from benchmarks.transfers.bed.bed import Bed, Plan

    with Bed(Plan(2, light=False)) as bed:
        shout = "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); " \
            "s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1); " \
            "s.sendto(bytes(1000), ('10.77.0.255', 5000))"  # fmt: skip
        received = [bed.received_bytes(host) for host in bed.plan.hosts]

        def reaches(sender: int, *receivers: int) -> None:
            for host in receivers:
                received[host] += 1042
            query([sys.executable, "-c", shout], "", bed.pid(sender))
            eventually(lambda: [bed.received_bytes(host) for host in bed.plan.hosts] == received, f"{receivers}")

        reaches(0, 1, 2)
        bed.cut([1])
        reaches(0, 2)
        reaches(1)
        bed.mend([1])
        reaches(1, 0, 2)
