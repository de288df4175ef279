"""A transfer over plain TCP trees without shaping (`programs/unshaped_trees.py`)."""

from __future__ import annotations

import json
import sys
import time
from contextlib import ExitStack
from pathlib import Path

from benchmarks.transfers.balanced_bed.bed import Bed, Sent
from benchmarks.transfers.balanced_bed.planning import Planned
from benchmarks.transfers.bed.measured import BUSY, ProcessorTimes
from benchmarks.transfers.bed.program import Program

_PROGRAM = Path(__file__).parent / "programs" / "unshaped_trees.py"
_LIMIT_SECONDS = 600.0


def send_unshaped(bed: Bed, root: str, plan: Planned, size: int) -> Sent:
    """Send this number of bytes from `root` to all others, which discard them. Raises RunFailedError."""
    sites, job, deadline = bed.sites, bed.folder / "job.json", time.monotonic() + _LIMIT_SECONDS
    trees = [{child: parent for parent, child in tree["edges"]} for tree in plan.trees["trees"]]
    addresses = {host: sites.address(host) for host in sites.hosts}
    job.write_text(json.dumps({"root": root, "bytes": size, "addresses": addresses, "trees": trees}))
    others = [host for host in sites.hosts if host != root]
    with ExitStack() as stack:

        def start(host: str) -> Program:
            command = sites.on(host, [sys.executable, str(_PROGRAM), host, str(job)])
            log = bed.folder / f"unshaped-{host}.log"
            program = Program(f"unshaped trees at {host}", command, log, sites.environment)
            stack.callback(program.end)
            return program

        receivers = [start(host) for host in others]
        for receiver in receivers:
            receiver.await_line("listening", deadline)
        times, sender = ProcessorTimes(), start(root)
        began = sender.await_line("begun", deadline)
        seconds = max(program.await_line("done", deadline) for program in (sender, *receivers)) - began
        return Sent(size, seconds, times.share(BUSY), tuple(others))
