"""A transfer over trees that nobody shapes (`programs/unshaped_trees.py`)."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from transport_bed.failures import RunFailed

from balanced_bed import cpu
from balanced_bed.bed import Bed, Sent
from balanced_bed.planning import Planned

_PROGRAM = Path(__file__).parent / "programs" / "unshaped_trees.py"
_LIMIT_SECONDS = 600.0


def send_unshaped(bed: Bed, root: str, plan: Planned, size: int) -> Sent:
    """Bring so many bytes from `root` to all others, who throw them away. Raises RunFailed."""
    sites = bed.sites
    job = bed.folder / "job.json"
    trees = [{child: parent for parent, child in tree["edges"]} for tree in plan.trees["trees"]]
    addresses = {host: sites.address(host) for host in sites.hosts}
    job.write_text(json.dumps({"root": root, "bytes": size, "addresses": addresses, "trees": trees}))
    others = [host for host in sites.hosts if host != root]
    with ExitStack() as stack:
        receivers = [_Program(bed, host, job, stack) for host in others]
        for program in receivers:
            program.await_word("listening")
        machine = cpu.of_machine()
        sender = _Program(bed, root, job, stack)
        began = sender.await_word("begun")
        seconds = max(program.await_word("done") for program in receivers) - began
        share = (cpu.of_machine() - machine) / seconds / cpu.CORES
        return Sent(size, seconds, share, 0.0, tuple(others), (), ())


class _Program:
    def __init__(self, bed: Bed, host: str, job: Path, stack: ExitStack) -> None:
        self._host = host
        command = [sys.executable, str(_PROGRAM), host, str(job)]
        self._process: subprocess.Popen[Any] = bed.sites.popen(host, command, stdout=subprocess.PIPE, text=True)
        self._words: queue.SimpleQueue[tuple[float, str]] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        stack.callback(self._end)

    def await_word(self, word: str) -> float:
        """When it came. Raises RunFailed."""
        while True:
            try:
                moment, said = self._words.get(timeout=_LIMIT_SECONDS)
            except queue.Empty:
                raise RunFailed(f"unshaped trees at {self._host} did not come to {word!r} in time") from None
            if said == word:
                return moment
            if not said:
                raise RunFailed(f"unshaped trees at {self._host} ended before {word!r}")

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                self._words.put((time.monotonic(), line.strip()))
        self._words.put((time.monotonic(), ""))

    def _end(self) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()
