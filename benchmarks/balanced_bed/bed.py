"""Sites with agents, and transfers from any of them to all others.

The clock is the sender's own, from its first word to the last confirmation: Python's start is not in it. Copies are
compared byte for byte after it has stopped.
"""

from __future__ import annotations

import json
import queue
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from transport_bed import contents
from transport_bed.failures import RunFailed

from balanced_bed import cpu
from balanced_bed.planning import Planned
from mininet_topos.agents import BLAST, PORT, Agents
from mininet_topos.sites.agents import FOLDER, agents_on
from mininet_topos.sites.plan import SitesPlan
from mininet_topos.sites.sites import Sites

_START_SECONDS = 30.0
_PATIENCE = 4.0
"""Times what was planned: who takes longer has failed."""


@dataclass(frozen=True)
class Seen:
    """A moment of a transfer: seconds since it began, and the bytes that the slowest receiver has."""

    seconds: float
    slowest: int


@dataclass(frozen=True)
class Sent:
    """What became of a transfer. `cpu_share` is of all cores and everybody, `cpu_seconds` sender's and agents' own."""

    bytes: int
    seconds: float
    cpu_share: float
    cpu_seconds: float
    complete: tuple[str, ...]
    failed: tuple[str, ...]
    seen: tuple[Seen, ...] = field(repr=False)
    wrong: tuple[str, ...] = ()

    @property
    def rate(self) -> float:
        """Bits of the file per second."""
        return self.bytes * 8 / self.seconds


Way = Callable[[Path], list[str]]
"""From a folder for what it has to write to the words that tell `blast send` how to go."""
Strike = Callable[["Transfer"], None]


def by(carrier: str) -> Way:
    """With this carrier, which needs no more words."""
    return lambda _folder: ["--via", carrier]


def by_trees(plan: Planned) -> Way:
    """Along these trees."""

    def words(folder: Path) -> list[str]:
        file = folder / "plan.json"
        file.write_text(json.dumps(plan.trees))
        return ["--via", "trees", "--trees", str(file)]

    return words


def by_network(network: dict[str, Any]) -> Way:
    """Along the trees that the sender plans itself, and plans anew when the network changes."""

    def words(folder: Path) -> list[str]:
        file = folder / "network.json"
        file.write_text(json.dumps(network))
        return ["--via", "trees", "--network", str(file), "--from", str(network["root"])]

    return words


class Bed:
    """Built from a plan, up while a `with` block runs. Raises HostError, ProcessFault."""

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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._undo.close()

    def send(self, root: str, way: Way, size: int, expected: float, strike: Strike | None = None) -> Sent:
        """Bring a new file of so many bytes from `root` to all others, at `expected` bits per second if all is well.

        `strike` is called when the sender runs. Raises RunFailed, CannotRun.
        """
        contents.require_room(size, len(self.sites.hosts))
        self._count += 1
        source = self.folder / f"file{self._count}"
        contents.write_random(source, size)
        try:
            transfer = Transfer(self, root, [*self._words(root, source), *way(self.folder)], source)
            limit = _START_SECONDS + _PATIENCE * size * 8 / expected
            return transfer.carried_out(strike, time.monotonic() + limit)
        finally:
            source.unlink()
            for host in self.sites.hosts:
                (self.agents.folder(host) / source.name).unlink(missing_ok=True)

    def _words(self, root: str, source: Path) -> list[str]:
        others = ",".join(f"{host}={self.sites.address(host)}:{PORT}" for host in self.sites.hosts if host != root)
        words = [BLAST, "send", str(source), "--json", "--to", others, "--folder", FOLDER]
        return [*words, "--secret-file", str(self.agents.places.secret)]


class Transfer:
    """One that is under way."""

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
        pids = list(self.bed.agents.pids.values())
        before, machine = cpu.of_processes(pids), cpu.of_machine()
        with self._errors.open("wb") as said:
            sender = self.bed.sites.popen(self.root, self._words, stdout=subprocess.PIPE, stderr=said, text=True)
        reader = threading.Thread(target=self._read, args=(sender,), daemon=True)
        reader.start()
        pids.append(sender.pid)
        self._began = time.monotonic()
        try:
            if strike is not None:
                strike(self)
            ours = self._end_of(sender, pids, deadline)
        finally:
            sender.kill()
            sender.wait()
            reader.join()
        share = (cpu.of_machine() - machine) / (time.monotonic() - self._began) / cpu.CORES
        if "transfers" not in self._last:
            raise RunFailed(f"the sender said no more than {self._said()}")
        return self._result(self._last["transfers"][0], share, ours - before)

    def await_slowest(self, count: float) -> float:
        """When the slowest receiver has so many bytes: seconds since the beginning. Raises RunFailed."""
        while not self._seen or self._seen[-1].slowest < count:
            if self._next(time.monotonic() + _START_SECONDS) is None:
                raise RunFailed(f"the transfer was over before it was struck: {self._said()}")
        return self._seen[-1].seconds

    def _end_of(self, sender: subprocess.Popen[str], pids: list[int], deadline: float) -> float:
        """Wait for it; the processor seconds at the last of its words."""
        ours = cpu.of_processes(pids)
        while self._next(deadline) is not None:
            ours = cpu.of_processes(pids)
        sender.wait()
        return ours

    def _said(self) -> str:
        return self._errors.read_text(errors="replace").strip() or json.dumps(self._last)

    def _next(self, deadline: float) -> dict[str, Any] | None:
        try:
            found = self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            raise RunFailed("the transfer was not done in time") from None
        if found is None:
            return None
        moment, said = found
        self._last = said
        if said.get("event") == "progress":
            self._seen.append(Seen(moment - self._began, said["slowest"]))
        return said

    def _read(self, sender: subprocess.Popen[str]) -> None:
        assert sender.stdout is not None
        with sender.stdout as lines:
            for line in lines:
                self._lines.put((time.monotonic(), json.loads(line)))
        self._lines.put(None)

    def _result(self, report: dict[str, Any], share: float, ours: float) -> Sent:
        complete = tuple(each["name"] for each in report["receivers"] if each["complete"])
        failed = tuple(each["name"] for each in report["receivers"] if not each["complete"])
        wrong = tuple(self._wrong(complete))
        return Sent(self.size, report["seconds"], share, ours, complete, failed, tuple(self._seen), wrong)

    def _wrong(self, complete: Sequence[str]) -> Iterator[str]:
        for host in complete:
            if not contents.same(self.source, self.bed.agents.folder(host) / self.source.name):
                yield f"{host} has another file than was sent"
