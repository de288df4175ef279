"""Hosts of the transports' bed that fail: nobody hears more of them than the way of failing says, and all is undone."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import pytest

from mininet_topos import cleanup
from mininet_topos.netdev import query

pytestmark = [
    pytest.mark.lab,
    pytest.mark.skipif(os.geteuid() != 0 or shutil.which("bridge") is None, reason="needs root and iproute2"),
]

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SIZE = 2_000_000
VICTIMS = {"killed": 2, "frozen": 4, "vanished": 5}
LIMIT = 60.0


@pytest.fixture(autouse=True, scope="module")
def benchmarks_on_path() -> Iterator[None]:
    sys.path.insert(0, str(BENCHMARKS))
    yield
    sys.path.remove(str(BENCHMARKS))


def every_way() -> Any:
    """One transfer in which each victim fails in its own way."""
    from transport_bed.ways import WAYS, Way

    def each(act: str) -> Any:
        def act_on_each(tool: Any, run: Any, victims: Collection[int]) -> None:
            for name, victim in VICTIMS.items():
                assert victim in victims
                getattr(WAYS[name], act)(tool, run, [victim])

        return act_on_each

    return Way("each in its own", each("strike"), each("bury"))


def test_who_survives_has_the_file_and_the_next_transfer_finds_everybody():
    from transport_bed.bed import Plan
    from transport_bed.script import bed_and_file
    from transport_bed.shape import Shape
    from transport_bed.standing import Standing
    from transport_bed.tools.blast import BlastPipeline

    with bed_and_file(Plan(6, Shape(8.0), light=False), SIZE) as (bed, source):
        lab, tool = bed.lab, BlastPipeline()
        namespaces = cleanup.marked_processes(lab)
        with Standing(tool, bed, source) as standing:
            before = {host: one.pid for host, one in tool.receivers.items()}
            struck = standing.carry(LIMIT, every_way(), [(0.7, list(VICTIMS.values()))])
            assert struck.wrong == ()
            after = {host: one.pid for host, one in tool.receivers.items()}
            assert {host for host in after if after[host] != before[host]} == set(VICTIMS.values())
            # A transfer that comes to no end says so, and what it has left does not matter to the next one either.
            lost = standing.carry(0.01)
            assert lost.report == {} and lost.wrong
            again = standing.carry(LIMIT)
            assert again.wrong == () and len(again.report["receivers"]) == 6
            assert not list((source.parent / "run").glob("*/*source*")), "copies go with their transfer"
        assert cleanup.marked_processes(lab) == namespaces
    assert lab not in cleanup.found_labs()


@pytest.mark.test_all
def test_whoever_shares_a_slow_link_gets_its_copy_in_the_end():
    """Some of the connections get next to nothing for many seconds, while the others are served."""
    from transport_bed.bed import Plan
    from transport_bed.script import bed_and_file
    from transport_bed.shape import Shape
    from transport_bed.standing import Standing
    from transport_bed.tools.blast import BlastUnicast

    # With BBR a segment may be lost again and again, and what comes after it waits for more than ten seconds.
    known = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()
    plan = Plan(6, Shape(8.0), light=False, congestion_control="bbr" if "bbr" in known else "reno")
    size = 10_000_000
    with bed_and_file(plan, size) as (bed, source), Standing(BlastUnicast(), bed, source) as standing:
        served = standing.carry(240.0)
        assert served.wrong == () and len(served.report["receivers"]) == 6


def test_no_frame_passes_to_or_from_a_host_that_is_cut_off():
    from transport_bed.bed import Bed, Plan

    with Bed(Plan(2, light=False)) as bed:
        shout = "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); " \
            "s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1); " \
            "s.sendto(bytes(1000), ('10.77.0.255', 5000))"  # fmt: skip

        def heard(host: int) -> list[int]:
            before = [bed.received_bytes(other) for other in bed.plan.hosts]
            query([sys.executable, "-c", shout], "", bed.pid(host))
            return [bed.received_bytes(other) - earlier for other, earlier in zip(bed.plan.hosts, before, strict=True)]

        assert heard(0) == [0, 1042, 1042]
        bed.cut([1])
        assert heard(0) == [0, 0, 1042]
        assert heard(1) == [0, 0, 0]
        bed.mend([1])
        assert heard(1) == [1042, 0, 1042]
