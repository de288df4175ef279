"""Ray's object broadcast: one `put`, and an actor on every host that gets it; over the packet network.

Every host is a node of its own, with processes, a folder for temporary files and an object store of its own. Nodes and
actors are there before the clock starts. What they have started goes with them, however they end: it is in process
namespaces.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from transport_bed.bed import SENDER
from transport_bed.run import Run

from weights_bed.ways.way import PROGRAMS, Push, Way, await_word

_APART = ("unshare", "--pid", "--mount", "--fork", "--kill-child", "--mount-proc")
_OWN_TEMPORARY_FILES = ("sh", "-c", 'mount -t tmpfs tmpfs /tmp && exec "$@"', "sh")
_SPARE_BYTES = 200_000_000
_ENVIRONMENT = {
    # Nothing is told to anybody.
    "RAY_USAGE_STATS_ENABLED": "0",
    # Nobody else is in these namespaces; and no token is left in the user's home.
    "RAY_AUTH_MODE": "disabled",
    # How much memory the machine has left was looked at before.
    "RAY_memory_monitor_refresh_ms": "0",
    # Else whatever has not come within ten seconds is sent a second time: on these links all of it.
    "RAY_object_manager_pull_timeout_ms": "3600000",
}


class Ray(Way):
    """A node on every host."""

    name = "ray"
    title = "Ray, put and get on every host"

    @property
    def missing(self) -> str:
        """Ray, in the interpreter that is named."""
        python = self.setting.ray_python
        words = [str(python), "-c", "import numpy, ray"]
        try:
            if subprocess.run(words, capture_output=True, check=False).returncode == 0:
                return ""
        except OSError:
            pass
        folder = python.parents[1]
        return f"{python} has no Ray: python3 -m venv {folder} && {folder}/bin/pip install ray numpy"

    def prepare(self, run: Run) -> None:
        """The head, which is the sender, then the others."""
        python, address = self.setting.ray_python, run.bed.packet_address
        store = str(run.size * 3 // 2 + _SPARE_BYTES)
        words = [python, PROGRAMS / "ray_push.py", run.source, address(SENDER), str(len(run.receivers)), store]
        self._sender = run.start(SENDER, "head", [*_APART, *_OWN_TEMPORARY_FILES, *words], _ENVIRONMENT)
        head = await_word(self._sender, "head", run.deadline)["address"]
        for receiver in run.receivers:
            node = [_beside(python, "ray"), "start", "--block", "--address", head]
            node += ["--node-ip-address", address(receiver), "--num-cpus", "1", "--object-store-memory", store]
            node += ["--resources", json.dumps({f"h{receiver}": 1})]
            run.start(receiver, "node", [*_APART, *_OWN_TEMPORARY_FILES, *node], _ENVIRONMENT)
        await_word(self._sender, "ready", run.deadline)

    def push(self, run: Run, what: str) -> Push:
        """The sender hears of all."""
        self._sender.tell(what)
        said = await_word(self._sender, "held", run.deadline)
        return Push(said["began"], [at for at, _ in said["held"]], [digest for _, digest in said["held"]], {})


def _beside(python: Path, program: str) -> Path:
    return python.parent / program
