"""Sites with agents, and transfers from any site to all others.

The sender measures the time itself, without the start of Python. Copies are compared byte by byte after the transfer.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.set_up import SetUp
from benchmarks.transfers.balanced_bed.planning import Planned
from benchmarks.transfers.bed import contents
from benchmarks.transfers.bed.failures import RunFailedError
from benchmarks.transfers.bed.measured import BUSY, ProcessorTimes
from benchmarks.transfers.bed.program import Program
from mininet_topos.lab.agents import BLAST, PORT, Agents
from mininet_topos.sites.agents import FOLDER, agents_on
from mininet_topos.sites.plan import SitesPlan
from mininet_topos.sites.sites import Sites

_START_SECONDS = 30.0
_MAX_SLOWDOWN = 4.0
"""A transfer that takes this many times the planned time has failed."""


@dataclass(frozen=True)
class Seen:
    """Progress: seconds since the start, and bytes of the slowest receiver."""

    seconds: float
    slowest: int


@dataclass(frozen=True)
class Sent:
    """A transfer; `cpu_share` is of all cores and processes."""

    bytes: int
    seconds: float
    cpu_share: float
    complete: tuple[str, ...]
    failed: tuple[str, ...] = ()
    seen: tuple[Seen, ...] = field(default=(), repr=False)
    wrong: tuple[str, ...] = ()

    @property
    def rate(self) -> float:
        """Bits of the file per second."""
        return self.bytes * 8 / self.seconds


Way = Callable[[Path], list[str]]
"""Returns the options of `blast send`, and writes the files that they name to a folder."""
Strike = Callable[["Transfer"], None]


def by(transport: str) -> Way:
    """Use a transport without a plan."""
    return lambda _folder: ["--via", transport]


def by_trees(plan: Planned) -> Way:
    """Use the trees of a plan."""
    return lambda folder: ["--via", "trees", "--trees", _written(folder / "plan.json", plan.trees)]


def by_network(network: dict[str, Any]) -> Way:
    """Use trees that the sender plans, and replans when the network changes."""
    words = ["--from", str(network["root"]), "--via", "trees", "--network"]
    return lambda folder: [*words, _written(folder / "network.json", network)]


def _written(path: Path, content: dict[str, Any]) -> str:
    path.write_text(json.dumps(content))
    return str(path)


class Bed(SetUp):
    """Sites with agents, up during a `with` block. Raises HostError, ProcessError."""

    def __init__(self, plan: SitesPlan) -> None:
        self._plan = plan
        self._count = 0

    def _set_up(self, undo: ExitStack) -> None:
        self.folder = undo.enter_context(contents.workshop())
        self.sites = undo.enter_context(Sites(self._plan))
        self.agents: Agents = undo.enter_context(agents_on(self.sites))

    def send(self, root: str, way: Way, size: int, expected: float, strike: Strike | None = None) -> Sent:
        """Send a new file from `root` to all others, at `expected` bits per second by plan.

        `strike` is called when the sender runs. Raises RunFailedError, PrerequisiteError.
        """
        contents.require_room(size, len(self.sites.hosts))
        self._count += 1
        source = self.folder / f"file{self._count}"
        contents.write_random(source, size)
        others = ",".join(f"{host}={self.sites.address(host)}:{PORT}" for host in self.sites.hosts if host != root)
        words = [BLAST, "send", str(source), "--json", "--to", others, "--folder", FOLDER]
        words += ["--secret-file", str(self.agents.places.secret), *way(self.folder)]
        try:
            limit = _START_SECONDS + _MAX_SLOWDOWN * size * 8 / expected
            return Transfer(self, root, words, source).carried_out(strike, time.monotonic() + limit)
        finally:
            source.unlink()
            for host in self.sites.hosts:
                (self.agents.folder(host) / source.name).unlink(missing_ok=True)


class Transfer:
    """A running transfer."""

    def __init__(self, bed: Bed, root: str, words: Sequence[str], source: Path) -> None:
        self.bed, self.source = bed, source
        self.size = source.stat().st_size
        self._times = ProcessorTimes()
        log = bed.folder / f"sender-of-{source.name}.log"
        self._sender = Program(f"the sender at {root}", bed.sites.on(root, words), log, bed.sites.environment)
        self._began = time.monotonic()
        self._seen: list[Seen] = []

    def carried_out(self, strike: Strike | None, deadline: float) -> Sent:
        """Wait for the end of the sender. Raises RunFailedError."""
        try:
            if strike is not None:
                strike(self)
            while (message := self._next(deadline))["event"] != "result":
                pass
            self._sender.await_end(deadline)
        finally:
            self._sender.end()
        return self._result(message["transfers"][0], self._times.share(BUSY))

    def await_slowest(self, count: float) -> float:
        """Return the seconds until the slowest receiver has this number of bytes. Raises RunFailedError."""
        while not self._seen or self._seen[-1].slowest < count:
            if self._next(time.monotonic() + _START_SECONDS)["event"] == "result":
                raise RunFailedError("the transfer ended before the fault: send a larger file")
        return self._seen[-1].seconds

    def _next(self, deadline: float) -> dict[str, Any]:
        moment, line = self._sender.next_line(deadline)
        message: dict[str, Any] = json.loads(line)
        if message["event"] == "progress":
            self._seen.append(Seen(moment - self._began, message["slowest"]))
        return message

    def _result(self, report: dict[str, Any], share: float) -> Sent:
        complete = tuple(each["name"] for each in report["receivers"] if each["complete"])
        failed = tuple(each["name"] for each in report["receivers"] if not each["complete"])
        copies = {host: self.bed.agents.folder(host) / self.source.name for host in complete}
        wrong = [host for host, copy in copies.items() if not contents.same(self.source, copy)]
        faults = tuple(f"the copy at {host} differs from the original" for host in wrong)
        return Sent(self.size, report["seconds"], share, complete, failed, tuple(self._seen), faults)
