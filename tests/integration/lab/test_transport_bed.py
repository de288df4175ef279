"""The bed that measures transports: its networks behave as configured, and it is removed completely."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mininet_topos.lab import cleanup

pytestmark = [
    pytest.mark.lab,
    pytest.mark.skipif(os.geteuid() != 0 or shutil.which("cc") is None, reason="needs root and a C compiler"),
]

BENCHMARKS = Path(__file__).parents[3] / "benchmarks" / "transfers"
SIZE = 2_000_000


def test_bed_runs_tools_checks_files_and_is_removed():
    from benchmarks.transfers.bed.bed import Plan
    from benchmarks.transfers.bed.comparison import compiled
    from benchmarks.transfers.bed.run import transfer
    from benchmarks.transfers.bed.script import bed_and_file
    from benchmarks.transfers.bed.shape import Shape
    from benchmarks.transfers.bed.tools import TOOLS

    tools = [TOOLS[name]() for name in ("floor", "naive", "optical", "pipeline")]
    shaped = Shape(100.0)
    with bed_and_file(Plan(2, shaped), SIZE) as (bed, source):
        lab, folder = bed.lab, source.parent
        programs = compiled(tools, folder)
        outcomes = {tool.name: transfer(tool, bed, source, programs, 60.0) for tool in tools}
        assert {name: outcome.failure for name, outcome in outcomes.items()} == dict.fromkeys(outcomes, "")
        # Two copies over one link of 100 Mbit/s, less what the shaper lets through at once.
        assert outcomes["naive"].seconds > (2 * SIZE - 300_000) * 8 / 100e6
        assert outcomes["optical"].notes["datagrams"] >= SIZE / 1456
        assert sorted(entry.name for entry in folder.iterdir()) == ["programs", "source"]
    assert not folder.exists()
    assert lab not in cleanup.found_labs()


def test_bed_measures_and_cleans_up_without_open_vswitch(tmp_path):
    words = ["--cells", "unshaped:1", "--tools", "floor", "--megabytes", "1", "--repeats", "1", "--json"]
    done = subprocess.run(
        [sys.executable, str(BENCHMARKS / "rates.py"), *words],
        env={**os.environ, "OVS_RUNDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert json.loads(done.stdout)["rows"][0]["seconds"]
    assert "ovs-vsctl" not in done.stderr


def test_tool_that_exceeds_time_limit_has_failed():
    from benchmarks.transfers.bed.bed import Plan
    from benchmarks.transfers.bed.comparison import compiled
    from benchmarks.transfers.bed.run import transfer
    from benchmarks.transfers.bed.script import bed_and_file
    from benchmarks.transfers.bed.shape import Shape
    from benchmarks.transfers.bed.tools import TOOLS

    tool = TOOLS["naive"]()
    with bed_and_file(Plan(1, Shape(8.0), light=False), SIZE) as (bed, source):
        outcome = transfer(tool, bed, source, compiled([tool], source.parent), 0.5)
        assert outcome.failure == "h1 had no file in time"


def test_optical_path_is_unidirectional_and_dark_if_disconnected():
    from benchmarks.transfers.bed.bed import SENDER, Bed, Plan
    from mininet_topos.kernel.netdev import query

    with Bed(Plan(2)) as bed:
        shout = "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.setsockopt(0, 32, " \
            "socket.inet_aton('{}')); s.sendto(bytes(1000), ('239.1.1.1', 5000))"  # fmt: skip

        def received(host: int) -> list[int]:
            before = [bed.received_bytes(other) for other in bed.plan.hosts]
            query([sys.executable, "-c", shout.format(bed.optical_address(host))], "", bed.pid(host))
            return [bed.received_bytes(other) - earlier for other, earlier in zip(bed.plan.hosts, before, strict=True)]

        assert received(SENDER) == [0, 1042, 1042]
        assert received(1) == [0, 0, 0]
        bed._fabric.apply([(1, bed.switch.splitter.input)], [])
        assert received(SENDER) == [0, 0, 0]
        bed.grant_light()
        assert received(SENDER) == [0, 1042, 1042]
