"""The tools that push weights: Blast, gloo and Ray, each with programs on all hosts; and one timed push.

`programs/` has the programs of the hosts, each run by the interpreter that has its library.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import zlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from benchmarks.transfers.bed.bed import PACKETS, SENDER, Bed
from benchmarks.transfers.bed.failures import RunFailedError
from benchmarks.transfers.bed.measured import IDLE, ProcessorTimes
from benchmarks.transfers.bed.program import Program
from benchmarks.transfers.bed.run import Run, opened
from benchmarks.transfers.bed.tools.blast import BlastOptical, secret_file
from benchmarks.transfers.bed.tools.tool import derive
from blast_transport.wire.transports import OPTICAL, PIPELINE

Command = list[str | Path]
PROGRAMS = Path(__file__).resolve().parent / "programs"
SMALL, WEIGHTS = "small", "weights"
"""A first megabyte, which opens connections and warms caches; then all weights."""
_START_SECONDS = 180.0


@dataclass(frozen=True)
class Setting:
    """The controller's address on the sender's host, and the interpreters with PyTorch and with Ray."""

    thrift: str
    torch_python: Path
    ray_python: Path


@dataclass(frozen=True)
class Push:
    """The time of the sender's call, the time when each receiver had read everything, and the checksums."""

    began: float
    held: Sequence[float]
    digests: Sequence[int]
    notes: Mapping[str, Any]


@dataclass(frozen=True)
class Pushed:
    """Seconds, bytes that left the sender ÷ size, and the idle share of the machine; or a `failure`."""

    seconds: float
    uplink_copies: float
    idle_share: float
    failure: str = ""


class Way(ABC):
    """A way to push weights."""

    name: ClassVar[str]
    title: ClassVar[str]

    def __init__(self, setting: Setting) -> None:
        self.setting = setting

    @property
    def missing(self) -> str:
        """The missing software, and the command that installs it."""
        return ""

    @abstractmethod
    def prepare(self, run: Run) -> None:
        """Start the programs and wait until they are ready. Raises RunFailedError."""

    @abstractmethod
    def push(self, run: Run, model: str) -> Push:
        """Push `SMALL` or `WEIGHTS`, and wait until every receiver has read every byte. Raises RunFailedError."""


def pushed(way: Way, bed: Bed, source: Path, limit_seconds: float) -> Pushed:
    """Start the programs, push the first megabyte and then, timed, all weights."""
    with opened(bed, source) as run:
        run.deadline = time.monotonic() + _START_SECONDS
        try:
            way.prepare(run)
            way.push(run, SMALL)
            sent, times = bed.sent_bytes(SENDER), ProcessorTimes()
            run.begin(limit_seconds)
            push = way.push(run, WEIGHTS)
        except RunFailedError as error:
            return Pushed(limit_seconds, 0.0, 0.0, str(error))
        share, copies = times.share(IDLE), (bed.sent_bytes(SENDER) - sent) / run.size
        wrong = set(push.digests) != {zlib.crc32(source.read_bytes())} or len(push.digests) != len(run.receivers)
        failure = f"the receivers' checksums {push.digests} differ from the sender's" if wrong else ""
        return Pushed(max(push.held) - push.began, copies, share, failure)


class _Ordered(Way):
    """A tool with a program on every host that pushes or receives when it reads a line."""

    _sender: Program
    _receivers: Sequence[Program]

    def push(self, run: Run, model: str) -> Push:
        """Start the receivers first."""
        for program in (*self._receivers, self._sender):
            program.write_line(model)
        _, sent = self._sender.await_message("sent", run.deadline)
        held = [program.await_message("held", run.deadline)[1] for program in self._receivers]
        return Push(sent["began"], [one["at"] for one in held], [one["digest"] for one in held], sent.get("notes", {}))

    def _await_ready(self, run: Run) -> None:
        for program in (self._sender, *self._receivers):
            program.await_event("ready", run.deadline)


class ByLight(_Ordered):
    """`blast_client.broadcast` and `receive`, with agents that do not sync; the time includes the request."""

    name = "light"
    title = "Blast, optical, with its request"
    transport = OPTICAL

    def prepare(self, run: Run) -> None:
        """Start agents, and a program on the host of each."""
        agents = BlastOptical()
        agents.prepare(run)
        push, hold = PROGRAMS / "blast_push.py", PROGRAMS / "blast_hold.py"
        words: Command = [sys.executable, push, run.source, agents.addresses(run), secret_file(run)]
        controller = self.setting.thrift if self.transport == OPTICAL else "none"
        self._sender = run.start_sender("push", [*words, run.bed.optical_address(SENDER), controller])
        self._receivers = [
            run.start(host, "hold", [sys.executable, hold, run.directory(host)]) for host in run.receivers
        ]
        self._await_ready(run)

    def push(self, run: Run, model: str) -> Push:
        """Push, and check that only the intended transport was used."""
        done = super().push(run, model)
        used, reason = done.notes["transports"], done.notes["no_optical_path"]
        if used != [self.transport]:
            raise RunFailedError(f"it used {used}, not {self.transport}: {reason}")
        return done


class Gloo(_Ordered):
    """`torch.distributed.broadcast` with gloo over packets, all weights in one call; the group is joined before."""

    name = "gloo"
    title = "gloo's broadcast, one tensor"
    split = "whole"

    @property
    def missing(self) -> str:
        """PyTorch."""
        python = self.setting.torch_python
        if _runs(python, "import torch.distributed as d; assert d.is_gloo_available()"):
            return ""
        return f"{python} has no PyTorch with gloo: apt-get install -y --no-install-recommends python3-torch"

    def prepare(self, run: Run) -> None:
        """Start a process of the group on every host."""
        hosts = run.bed.plan.hosts
        meeting = f"tcp://{run.bed.packet_address(SENDER)}:29500"
        words: Command = [self.setting.torch_python, PROGRAMS / "gloo_rank.py", run.source, meeting, str(len(hosts))]
        environment = {"GLOO_SOCKET_IFNAME": PACKETS, "OMP_NUM_THREADS": "1"}
        ranks = [run.start(host, "rank", [*words, str(host), self.split], environment) for host in hosts]
        self._sender, *self._receivers = ranks
        self._await_ready(run)


class Ray(Way):
    """One `put`, and an actor on every host that gets it, over packets.

    Every host is a node, with processes, temporary files and an object store of its own, in namespaces that end with
    it. Nodes and actors run before the clock starts.
    """

    name = "ray"
    title = "Ray, put and get on every host"
    _apart = ("unshare", "--pid", "--mount", "--fork", "--kill-child", "--mount-proc")
    _own_files = ("sh", "-c", 'mount -t tmpfs tmpfs /tmp && exec "$@"', "sh")
    _environment: ClassVar[Mapping[str, str]] = {
        "RAY_USAGE_STATS_ENABLED": "0",
        # These namespaces have no other user, and a token file would remain in the user's home.
        "RAY_AUTH_MODE": "disabled",
        # `require_room` has checked the available memory.
        "RAY_memory_monitor_refresh_ms": "0",
        # After ten seconds Ray would send everything a second time on these links.
        "RAY_object_manager_pull_timeout_ms": "3600000",
    }

    @property
    def missing(self) -> str:
        """Ray."""
        python, folder = self.setting.ray_python, self.setting.ray_python.parents[1]
        if _runs(python, "import numpy, ray"):
            return ""
        return f"{python} has no Ray: python3 -m venv {folder} && {folder}/bin/pip install ray numpy"

    def prepare(self, run: Run) -> None:
        """Start the head, which is the sender, then the others."""
        python, address = self.setting.ray_python, run.bed.packet_address
        store = str(run.size * 3 // 2 + 200_000_000)
        apart = [*self._apart, *self._own_files]
        words: Command = [python, PROGRAMS / "ray_push.py", run.source, address(SENDER)]
        words += [str(len(run.receivers)), store]
        self._sender = run.start(SENDER, "head", [*apart, *words], self._environment)
        head = self._sender.await_message("head", run.deadline)[1]["address"]
        for receiver in run.receivers:
            node: Command = [python.parent / "ray", "start", "--block", "--address", head]
            node += ["--node-ip-address", address(receiver), "--num-cpus", "1", "--object-store-memory", store]
            node += ["--resources", json.dumps({f"h{receiver}": 1})]
            run.start(receiver, "node", [*apart, *node], self._environment)
        self._sender.await_event("ready", run.deadline)

    def push(self, run: Run, model: str) -> Push:
        """Wait for the sender, which collects the results of all actors."""
        self._sender.write_line(model)
        _, found = self._sender.await_message("held", run.deadline)
        return Push(found["began"], [at for at, _ in found["held"]], [digest for _, digest in found["held"]], {})


def _runs(python: Path, program: str) -> bool:
    try:
        return subprocess.run([python, "-c", program], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


ByPipeline = derive(ByLight, "pipeline", "Blast, pipeline", transport=PIPELINE)
# gloo's tree can overlap the layers.
GlooByLayers = derive(Gloo, "gloo-layers", "gloo's broadcast, layer by layer", split="layers")
TOOLS: dict[str, type[Way]] = {way.name: way for way in (ByLight, ByPipeline, Gloo, GlooByLayers, Ray)}
"""The tools by name, in the order of tables."""
