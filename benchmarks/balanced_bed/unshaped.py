"""A transfer over plain TCP trees without shaping (`programs/unshaped_trees.py`)."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from transport_bed.failures import RunFailed

from balanced_bed.bed import Bed, Sent, cores_share, machine_cpu
from balanced_bed.planning import Planned

_PROGRAM = Path(__file__).parent / "programs" / "unshaped_trees.py"
_LIMIT_SECONDS = 600.0
_FAILED = "failed"

Words = queue.SimpleQueue[tuple[float, str, str]]
"""Time, host, word."""


def send_unshaped(bed: Bed, root: str, plan: Planned, size: int) -> Sent:
    """Send this number of bytes from `root` to all others, which discard them. Raises RunFailed."""
    sites, job = bed.sites, bed.folder / "job.json"
    trees = [{child: parent for parent, child in tree["edges"]} for tree in plan.trees["trees"]]
    addresses = {host: sites.address(host) for host in sites.hosts}
    job.write_text(json.dumps({"root": root, "bytes": size, "addresses": addresses, "trees": trees}))
    others = [host for host in sites.hosts if host != root]
    words: Words = queue.SimpleQueue()
    with ExitStack() as stack:
        for host in others:
            stack.enter_context(_program(bed, host, job, words))
        _await("listening", set(others), words)
        before = machine_cpu()
        stack.enter_context(_program(bed, root, job, words))
        began = _await("begun", {root}, words)
        seconds = _await("done", {root, *others}, words) - began
        return Sent(size, seconds, cores_share(before, seconds), tuple(others))


@contextmanager
def _program(bed: Bed, host: str, job: Path, words: Words) -> Iterator[None]:
    command = [sys.executable, str(_PROGRAM), host, str(job)]
    process: subprocess.Popen[Any] = bed.sites.popen(host, command, stdout=subprocess.PIPE, text=True)
    reader = threading.Thread(target=_read, args=(process, host, words), daemon=True)
    reader.start()
    try:
        yield
    finally:
        process.kill()
        process.wait()
        reader.join()


def _read(process: subprocess.Popen[Any], host: str, words: Words) -> None:
    assert process.stdout is not None
    with process.stdout as lines:
        for line in lines:
            words.put((time.monotonic(), host, line.strip()))
    if process.wait():
        words.put((time.monotonic(), host, _FAILED))


def _await(word: str, hosts: set[str], words: Words) -> float:
    """Return the time when the last of these hosts printed the word. Raises RunFailed, also when a host fails."""
    moment, missing = 0.0, set(hosts)
    while missing:
        try:
            moment, host, said = words.get(timeout=_LIMIT_SECONDS)
        except queue.Empty:
            raise RunFailed(f"unshaped trees at {', '.join(sorted(missing))} did not print {word!r}") from None
        if said == _FAILED:
            raise RunFailed(f"unshaped trees at {host} failed before all were {word!r}")
        if said == word:
            missing.discard(host)
    return moment
