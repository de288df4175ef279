"""Sites with agents, and transfers from any of them to all others.

The clock is the sender's own, without the start of Python. Copies are compared byte for byte after it has stopped.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from transport_bed import contents
from transport_bed.failures import RunFailed

from balanced_bed.planning import Planned
from mininet_topos.agents import BLAST, PORT, Agents
from mininet_topos.sites.agents import FOLDER, agents_on
from mininet_topos.sites.plan import SitesPlan
from mininet_topos.sites.sites import Sites

_START_SECONDS = 30.0
_MAX_SLOWDOWN = 4.0
"""A transfer that takes this many times the planned time has failed."""
_CORES = os.cpu_count() or 1
_TICKS = os.sysconf("SC_CLK_TCK")


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


def by(carrier: str) -> Way:
    """Use a transport without a plan."""
    return lambda _folder: ["--via", carrier]


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


class Bed:
    """Sites with agents, up during a `with` block. Raises HostError, ProcessFault."""

    def __init__(self, plan: SitesPlan) -> None:
        self._plan = plan
        self._undo = ExitStack()
        self._count = 0

    def __enter__(self) -> Bed:
        with ExitStack() as stack:
            self.folder = stack.enter_context(contents.workshop())
            self.sites = stack.enter_context(Sites(self._plan))
            self.agents: Agents = stack.enter_context(agents_on(self.sites))
            self._undo = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._undo.close()

    def send(self, root: str, way: Way, size: int, expected: float, strike: Strike | None = None) -> Sent:
        """Send a new file from `root` to all others, at `expected` bits per second by plan.

        `strike` is called when the sender runs. Raises RunFailed, CannotRun.
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
    """A transfer that runs."""

    def __init__(self, bed: Bed, root: str, words: Sequence[str], source: Path) -> None:
        self.bed, self.root, self.source = bed, root, source
        self.size = source.stat().st_size
        self._words = words
        self._errors = bed.folder / "sender.log"
        self._last: dict[str, Any] = {}
        self._lines: queue.SimpleQueue[tuple[float, dict[str, Any]] | None] = queue.SimpleQueue()
        self._seen: list[Seen] = []
        self._began = 0.0

    def carried_out(self, strike: Strike | None, deadline: float) -> Sent:
        """Start the sender, and wait for its end. Raises RunFailed."""
        busy = machine_cpu()
        with self._errors.open("wb") as errors:
            sender = self.bed.sites.popen(self.root, self._words, stdout=subprocess.PIPE, stderr=errors, text=True)
        reader = threading.Thread(target=self._read, args=(sender,), daemon=True)
        reader.start()
        self._began = time.monotonic()
        try:
            if strike is not None:
                strike(self)
            while self._next(deadline):
                pass
            sender.wait()
        finally:
            sender.kill()
            sender.wait()
            reader.join()
        share = cores_share(busy, time.monotonic() - self._began)
        if "transfers" not in self._last:
            raise RunFailed(f"the sender printed only {self._last_words()}")
        return self._result(self._last["transfers"][0], share)

    def await_slowest(self, count: float) -> float:
        """Return the seconds until the slowest receiver has this number of bytes. Raises RunFailed."""
        while not self._seen or self._seen[-1].slowest < count:
            if not self._next(time.monotonic() + _START_SECONDS):
                raise RunFailed(f"the transfer was over before it was struck: {self._last_words()}")
        return self._seen[-1].seconds

    def _last_words(self) -> str:
        return self._errors.read_text(errors="replace").strip() or json.dumps(self._last)

    def _next(self, deadline: float) -> bool:
        try:
            found = self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            raise RunFailed("the transfer was not done in time") from None
        if found is None:
            return False
        moment, self._last = found
        if self._last.get("event") == "progress":
            self._seen.append(Seen(moment - self._began, self._last["slowest"]))
        return True

    def _read(self, sender: subprocess.Popen[str]) -> None:
        assert sender.stdout is not None
        with sender.stdout as lines:
            for line in lines:
                self._lines.put((time.monotonic(), json.loads(line)))
        self._lines.put(None)

    def _result(self, report: dict[str, Any], share: float) -> Sent:
        complete = tuple(each["name"] for each in report["receivers"] if each["complete"])
        failed = tuple(each["name"] for each in report["receivers"] if not each["complete"])
        copies = {host: self.bed.agents.folder(host) / self.source.name for host in complete}
        wrong = [host for host, copy in copies.items() if not contents.same(self.source, copy)]
        faults = tuple(f"{host} has another file than was sent" for host in wrong)
        return Sent(self.size, report["seconds"], share, complete, failed, tuple(self._seen), faults)


def machine_cpu() -> float:
    """Return the busy seconds of all processors, with packets that no process pays for."""
    user, nice, system, _idle, _waiting, *interrupts = map(int, Path("/proc/stat").read_text().split()[1:9])
    return (user + nice + system + sum(interrupts[:2])) / _TICKS


def cores_share(before: float, seconds: float) -> float:
    """Return the share of all cores that was busy since `machine_cpu` returned `before`."""
    return (machine_cpu() - before) / seconds / _CORES
