"""`torch.distributed.broadcast` with gloo, over the packet network; the group is joined before the clock starts."""

from __future__ import annotations

import subprocess

from transport_bed.bed import PACKETS, SENDER
from transport_bed.run import Run

from weights_bed.ways.way import PROGRAMS, Push, Way, await_word, push_by_order

_PORT = 29500


class Gloo(Way):
    """All weights as one tensor, in one call."""

    name = "gloo"
    title = "gloo's broadcast, one tensor"
    layers = False

    @property
    def missing(self) -> str:
        """PyTorch, in the interpreter that is named."""
        python = str(self.setting.torch_python)
        words = [python, "-c", "import torch.distributed as d; assert d.is_gloo_available()"]
        try:
            if subprocess.run(words, capture_output=True, check=False).returncode == 0:
                return ""
        except OSError:
            pass
        return f"{python} has no PyTorch with gloo: apt-get install -y --no-install-recommends python3-torch"

    def prepare(self, run: Run) -> None:
        """A process of the group on every host."""
        hosts = run.bed.plan.hosts
        meeting = f"tcp://{run.bed.packet_address(SENDER)}:{_PORT}"
        words = [self.setting.torch_python, PROGRAMS / "gloo_rank.py", run.source, meeting, str(len(hosts))]
        way = "layers" if self.layers else "whole"
        environment = {"GLOO_SOCKET_IFNAME": PACKETS, "OMP_NUM_THREADS": "1"}
        ranks = [run.start(host, "rank", [*words, str(host), way], environment) for host in hosts]
        for program in ranks:
            await_word(program, "ready", run.deadline)
        self._sender, *self._receivers = ranks

    def push(self, run: Run, what: str) -> Push:
        """All of them call."""
        return push_by_order(self._sender, self._receivers, what, run.deadline)


class GlooByLayers(Gloo):
    """A call for each layer: while one goes on down the tree, the next can come."""

    name = "gloo-layers"
    title = "gloo's broadcast, layer by layer"
    layers = True
