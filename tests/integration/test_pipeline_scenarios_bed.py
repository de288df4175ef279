"""The Kascade paper's scenarios on a bed: whoever is one command is measured alike, and far hosts are far."""

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


def test_every_installed_tool_starts_itself_and_brings_the_file_in_any_order():
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


def test_who_is_not_done_in_time_is_late():
    from benchmarks.transfers.bed.comparison import compiled
    from benchmarks.transfers.bed.measured import measured
    from benchmarks.transfers.bed.scenarios import COMMANDS, one_network
    from benchmarks.transfers.bed.script import bed_and_file
    from benchmarks.transfers.bed.shape import Shape

    tool = COMMANDS["naive"]()
    with bed_and_file(one_network(Shape(4.0))(1), SIZE) as (bed, source):
        outcome = measured(tool, bed, source, compiled([tool], source.parent), 1.0, source.parent)
        assert outcome.late and outcome.failure == "h1 had no file in time"


def test_far_hosts_are_far_and_near_ones_near():
    from benchmarks.transfers.bed.bed import Bed
    from benchmarks.transfers.bed.scenarios import SCENARIOS

    sites = SCENARIOS["sites"]

    def milliseconds(bed: Bed, one: int, other: int) -> float:
        command = bed.on(one, ["ping", "-c", "3", "-i", "0.1", "-q", bed.packet_address(other)])
        said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout
        found = re.search(r"= ([0-9.]+)/", said)
        assert found is not None
        return float(found[1])

    with Bed(sites.plan(3)) as bed, sites.distances(bed):
        assert milliseconds(bed, 0, 1) < 16
        for one, other in ((0, 2), (2, 0), (1, 3), (2, 3)):
            assert milliseconds(bed, one, other) >= 16
