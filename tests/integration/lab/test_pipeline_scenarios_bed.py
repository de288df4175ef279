"""The Kascade paper's scenarios on a bed: tools of one command are measured alike, and sites have latency."""

from __future__ import annotations

import os
import re
import shutil
import subprocess

import pytest

pytestmark = [
    pytest.mark.lab,
    pytest.mark.skipif(os.geteuid() != 0 or shutil.which("cc") is None, reason="needs root and a C compiler"),
]

SIZE = 2_000_000


def test_every_installed_tool_delivers_file_in_given_host_order():
    from benchmarks.transfers.bed.comparison import compiled
    from benchmarks.transfers.bed.measured import measured
    from benchmarks.transfers.bed.scenarios import COMMANDS, one_network
    from benchmarks.transfers.bed.script import bed_and_file
    from benchmarks.transfers.bed.shape import Shape

    tools = [tool for kind in COMMANDS.values() if not (tool := kind()).missing]
    assert {"pipeline", "naive"} <= {tool.name for tool in tools}
    with bed_and_file(one_network(Shape(100.0))(2), SIZE) as (bed, source):
        programs = compiled(tools, source.parent)
        for tool in tools:
            tool.order = [2, 1]
            outcome = measured(tool, bed, source, programs, 60.0, source.parent)
            assert (outcome.failure, outcome.late) == ("", False), tool.name
            assert 0 < outcome.start_seconds < outcome.seconds
        assert sorted(entry.name for entry in source.parent.iterdir()) == ["programs", "source"]


def test_tool_that_exceeds_time_limit_is_late():
    from benchmarks.transfers.bed.comparison import compiled
    from benchmarks.transfers.bed.measured import measured
    from benchmarks.transfers.bed.scenarios import COMMANDS, one_network
    from benchmarks.transfers.bed.script import bed_and_file
    from benchmarks.transfers.bed.shape import Shape

    tool = COMMANDS["naive"]()
    with bed_and_file(one_network(Shape(4.0))(1), SIZE) as (bed, source):
        outcome = measured(tool, bed, source, compiled([tool], source.parent), 1.0, source.parent)
        assert outcome.late and outcome.failure == "h1 had no file in time"


def test_hosts_of_other_sites_have_higher_latency():
    from benchmarks.transfers.bed.bed import Bed
    from benchmarks.transfers.bed.scenarios import SCENARIOS

    sites = SCENARIOS["sites"]

    def milliseconds(bed: Bed, one: int, other: int) -> float:
        command = bed.on(one, ["ping", "-c", "3", "-i", "0.1", "-q", bed.packet_address(other)])
        output = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout
        found = re.search(r"= ([0-9.]+)/", output)
        assert found is not None
        return float(found[1])

    with Bed(sites.plan(3)) as bed, sites.distances(bed):
        assert milliseconds(bed, 0, 1) < 16
        for one, other in ((0, 2), (2, 0), (1, 3), (2, 3)):
            assert milliseconds(bed, one, other) >= 16
