"""SimGrid 3.32 as a peer: a small C++ program, compiled when it is needed, that carries the flows of a file."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from blast_sim.fair import Paths

SOURCE = Path(__file__).with_name("peer.cpp")
ENDLESS = 1e18
"""Bits of a flow of the background: more than the others need time for."""


class PeerMissing(Exception):
    """SimGrid or a compiler is not installed. One sentence."""


@dataclass(frozen=True)
class FlowFile:
    """Flows that all start at 0 between numbered nodes; those with infinitely many bits are background."""

    capacities: NDArray[np.float64]
    paths: Paths
    bits: NDArray[np.float64]
    sources: NDArray[np.int64]
    targets: NDArray[np.int64]

    @property
    def measured(self) -> NDArray[np.bool_]:
        """The flows that end."""
        return np.isfinite(self.bits)

    def write(self, path: Path) -> None:
        """As the peer reads it."""
        nodes = int(max(self.sources.max(), self.targets.max())) + 1
        bits = np.where(self.measured, self.bits, ENDLESS)
        with path.open("w") as file:
            file.write(f"links {len(self.capacities)}\n")
            file.writelines(f"{capacity:.17g}\n" for capacity in self.capacities)
            file.write(f"flows {len(self.paths)}\nnodes {nodes}\n")
            for flow, (first, last) in enumerate(zip(self.paths.offsets[:-1], self.paths.offsets[1:], strict=True)):
                links = " ".join(map(str, self.paths.links[first:last]))
                ends = f"{self.sources[flow]} {self.targets[flow]}"
                file.write(f"{int(self.measured[flow])} {bits[flow]:.17g} {ends} {last - first} {links}\n")


@dataclass(frozen=True)
class Answer:
    """CPU seconds of the start of the flows and the run, without that of the platform, and the ends of the flows."""

    seconds: float
    ends: NDArray[np.float64]


class Peer:
    """The compiled program."""

    def __init__(self, folder: Path) -> None:
        """Compile it. Raises PeerMissing."""
        if not shutil.which("g++") or not Path("/usr/include/simgrid").exists():
            raise PeerMissing("SimGrid is missing: apt-get install g++ libsimgrid-dev, or use --without-peer")
        self._folder = folder
        self._program = folder / "peer"
        subprocess.run(["g++", "-O2", "-o", str(self._program), str(SOURCE), "-lsimgrid"], check=True)

    def run(self, flows: FlowFile) -> Answer:
        """Carry these flows."""
        path = self._folder / "flows"
        flows.write(path)
        result = subprocess.run([str(self._program), str(path)], capture_output=True, text=True, check=True)
        seconds, *ends = map(float, result.stdout.split())
        return Answer(seconds, np.array(ends))


@contextmanager
def compiled_peer() -> Iterator[Peer]:
    """The program in a folder that goes with it. Raises PeerMissing."""
    with tempfile.TemporaryDirectory() as folder:
        yield Peer(Path(folder))
