"""A complete soak: lab, load, slices, and the final checks."""

from __future__ import annotations

import json
import os
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from thrift.Thrift import TException

from benchmarks.control_plane import rig as control_plane_rig
from benchmarks.control_plane.child import Child
from benchmarks.transfers.soak_bed.comparison import Readings, dark, differences, read
from benchmarks.transfers.soak_bed.report import Call, Held, Reached, Window
from benchmarks.transfers.soak_bed.room import Room, left_by
from benchmarks.transfers.soak_bed.scenario import (
    APPLICATIONS,
    EVIL_TENANT,
    HONEST_TENANTS,
    OPERATOR,
    PLAN,
    SEND_SECONDS,
    SENDERS,
    SOAK,
    TRANSFERS,
    Slice,
    hosts_of,
)
from benchmarks.transfers.soak_bed.transfers import Sender
from blast_api.ttypes import Ended, MulticastRequest, PartState
from blast_client import ControllerUnreachableError
from mininet_topos.kernel.errors import LabError
from mininet_topos.kernel.names import MARK
from mininet_topos.lab.agents import PORT, Agents
from mininet_topos.lab.relay import relay
from tl1_driver.protocol.errors import Tl1Error

ALIVE = [PartState.PENDING, PartState.CONFIGURING, PartState.ACTIVE]
FEW_DESCRIPTORS = 16
"""Additional descriptors that are not a leak: our own connections, and files that a process opens once."""
_GUARD_SECONDS = 180.0
"""Guard against hanging; durations do not change the result."""
_SAMPLE_SECONDS = 5.0
_LAST_BYTES = 10**9
"""Enough for a lease that outlives the comparison."""

Progress = Callable[[Slice, float], None]
"""Called with the current slice and the seconds since the load began."""


def run(reached: Reached, progress: Progress) -> None:
    """Run the soak and fill `reached`; KeyboardInterrupt ends it early.

    Raises LabError, ChildFailedError, TimeoutError.
    """
    with (
        tempfile.TemporaryDirectory(prefix="blast-soak-", dir="/var/tmp") as folder,
        # Real hosts have separate disks: on the controller's disk, its commits would wait for all files.
        tempfile.TemporaryDirectory(prefix="blast-soak-", dir="/dev/shm") as hosts,
    ):
        # An installation has bytecode; without it each `blast send` would compile a hundred modules.
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = f"{folder}/bytecode"
        room = Room(Path(folder), Path(hosts))
        try:
            with room:
                _run_in(room, reached, progress)
        finally:
            reached.ends = room.ends
            reached.left += left_by(room.lab_id) if room.lab_id else []


def _run_in(room: Room, reached: Reached, progress: Progress) -> None:
    hosts = hosts_of(TRANSFERS)
    with room.agents(hosts) as agents, relay(room.lab, hosts):
        await_devices(room)
        before = holdings(room, agents)
        with _senders(room, agents, reached) as senders, ExitStack() as stack:
            load = Load(room, agents, reached, stack, progress)
            for part in reached.plan:
                load.play(part)
            for sender in senders:
                sender.stop()
            load.end()
        for sender in senders:
            sender.sweep()
        room.supervise()
        reached.differences += compare(room)
        reached.compared = True
        reached.left += settled(lambda: leaks(before, holdings(room, agents)))


@contextmanager
def _senders(room: Room, agents: Agents, reached: Reached) -> Iterator[list[Sender]]:
    """Send files while the block runs."""
    senders = [Sender(room, agents, number, SEND_SECONDS, reached.calls.append) for number in range(SENDERS)]
    reached.received = [sender.received for sender in senders]
    try:
        for sender in senders:
            sender.start()
        yield senders
    except BaseException:
        for sender in senders:
            sender.kill()
        raise
    finally:
        for sender in senders:
            sender.stop()
            sender.join()


class Load:
    """Honest and hostile clients, which end with `stack`. Raises ChildFailedError, ProcessError."""

    def __init__(self, room: Room, agents: Agents, reached: Reached, stack: ExitStack, progress: Progress) -> None:
        self._room, self._agents, self._reached, self._stack, self._progress = room, agents, reached, stack, progress
        self._where = ["--controller", room.lab.thrift, "--papers", str(room.papers.folder)]
        many = ["--applications", str(reached.roster.applications), "--observers", str(reached.roster.observers)]
        self._honest = self._child("honest", *many)
        self._begun = self._next_sample = time.monotonic()

    def play(self, part: Slice) -> None:
        """Run a slice. The aftermath of an attack belongs to its slice."""
        begin = time.monotonic()
        if part.phase == SOAK and self._reached.roster.attacks:
            hostile = self._child("hostile", *self._targets())
            hostile.next(_GUARD_SECONDS)
            hostile.order("on")
            self._pass(part)
            hostile.order("off")
            hostile.end(_GUARD_SECONDS)
            for name, tally in next(reversed(hostile.rest()), {}).items():
                self._reached.hostile[name] = self._reached.hostile.get(name, Counter()) + Counter(tally)
            deadline = time.monotonic() + _GUARD_SECONDS
            while not _is_calm(self._room) and time.monotonic() < deadline:
                self._pass(Slice(part.phase, _SAMPLE_SECONDS))
        else:
            self._pass(part)
        self._reached.windows.append(Window(part.phase, begin, time.monotonic()))

    def end(self) -> None:
        """Let the honest clients finish."""
        self._honest.end(_GUARD_SECONDS)
        self._reached.calls += [Call(**line) for line in self._honest.rest()]

    def _pass(self, part: Slice) -> None:
        end = time.monotonic() + part.seconds
        while (now := time.monotonic()) < end:
            self._room.supervise()
            self._reached.calls += [Call(**line) for line in self._honest.waiting()]
            if now >= self._next_sample:
                self._next_sample = now + _SAMPLE_SECONDS
                self._sample(now)
            self._progress(part, now - self._begun)
            time.sleep(0.25)

    def _sample(self, now: float) -> None:
        lab, agents = self._room.lab, self._agents
        sizes = {"journal on disk": size_of(self._room.journal)}
        sizes["logs"] = size_of(lab.directory / "controller.log", *map(agents.log, agents.hosts))
        sizes["agents RSS, all"] = sum(held.rss for pid in agents.pids.values() if (held := held_by(pid)))
        if (controller := held_by(lab.controller_pid)) is not None:
            sizes["controller RSS"] = controller.rss
        self._reached.samples.append((now - self._begun, sizes))

    def _targets(self) -> list[str]:
        lab, addresses = self._room.lab, self._agents.addresses
        hosts = [[host, lab.host(host).pid, addresses[host]] for host in self._agents.hosts]
        words = ["--openflow", lab.openflow, "--agent-port", str(PORT), "--hosts", json.dumps(hosts)]
        return [*words, "--attacks", *self._reached.roster.attacks]

    def _child(self, name: str, *arguments: str) -> Child:
        # With the mark of the lab, `blast lab down` ends these processes, too.
        command = ["env", f"{MARK}={self._room.lab.id}", sys.executable, "-m", f"benchmarks.transfers.soak_bed.{name}"]
        child = Child(name, [*command, *self._where, *arguments], self._room.folder / f"{name}.log")
        self._stack.callback(child.kill)
        return child


def _is_calm(room: Room) -> bool:
    """Return whether the hostile tenant has only its lasting requests, as a baseline requires."""
    try:
        with room.client(OPERATOR) as operator:
            tenants = [request.tenant for request in operator.list_requests(ALIVE)]
    except (TException, ControllerUnreachableError):
        return False
    return tenants.count(EVIL_TENANT) <= PLAN.optical_ports_per_rack + 1


def await_devices(room: Room) -> None:
    """Wait until all devices are connected. Raises TimeoutError."""
    control_plane_rig.await_devices(room.client(OPERATOR), _GUARD_SECONDS)


def held_by(pid: int | None) -> Held | None:
    """Return memory, descriptors and threads of a process; None if it does not run."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
        descriptors = sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None
    fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    if "VmRSS" not in fields:
        return None
    return Held(int(fields["VmRSS"].split()[0]) * 1024, descriptors, int(fields["Threads"]))


def size_of(*paths: Path) -> int:
    """Return the bytes of these files together, with the write-ahead log of an SQLite file."""
    found = [path.with_name(path.name + suffix) for path in paths for suffix in ("", "-wal", "-shm")]
    return sum(path.stat().st_size for path in found if path.exists())


def holdings(room: Room, agents: Agents) -> dict[str, Held | None]:
    """Return memory, descriptors and threads of the controller and each agent."""
    found = {f"agent {host}": held_by(pid) for host, pid in agents.pids.items()}
    return {"the controller": held_by(room.lab.controller_pid), **found}


def leaks(before: dict[str, Held | None], after: dict[str, Held | None]) -> list[str]:
    """Return a sentence for each process with many more descriptors or threads, and for each that does not run."""
    found = []
    for name, held in after.items():
        had = before.get(name)
        if held is None or had is None:
            found.append(f"{name} no longer runs")
            continue
        for kind in ("descriptors", "threads"):
            more = getattr(held, kind) - getattr(had, kind)
            if more > FEW_DESCRIPTORS:
                found.append(f"{name} has {more} more {kind} than before the load")
    return found


def readings(room: Room) -> Readings:
    """Read journal, flow tables and cross-connects."""
    return read(PLAN, room.bridges, room.journal, room.lab.switch_address)


def compare(room: Room) -> list[str]:
    """Return the differences with all trees dark, lit, and dark again; leave the lab dark."""
    try:
        settled(lambda: _withdrawn(room))
        found = [f"after all requests were withdrawn, {fault}" for fault in settled(lambda: dark(readings(room)))]
        with lit(room):
            found += [f"with lit trees, {fault}" for fault in settled(lambda: differences(readings(room)))]
        after = settled(lambda: [*dark(readings(room)), *differences(readings(room))])
        return found + [f"after the trees were released, {fault}" for fault in after]
    except (TException, ControllerUnreachableError) as error:
        return [f"the controller did not answer at the end: {type(error).__name__}: {error}"]
    except (LabError, Tl1Error, OSError, sqlite3.Error, ValueError, KeyError) as error:
        return [f"the devices or the journal could not be read at the end: {type(error).__name__}: {error}"]


def _withdrawn(room: Room) -> list[str]:
    """Withdraw every request that is alive; return the reason if the controller does not answer."""
    try:
        with room.client(OPERATOR) as operator:
            for request in list(operator.list_requests(ALIVE)):
                with suppress(Ended):
                    operator.withdraw(f"{request.tenant}/{request.key}")
    except (TException, ControllerUnreachableError) as error:
        return [str(error)]
    return []


@contextmanager
def lit(room: Room) -> Iterator[None]:
    """Hold grants of three groups: one through a splitter, one of two racks, one within a rack."""
    one, two, three, four, five = (hosts_of((rack,)) for rack in APPLICATIONS)
    groups = ((one[0], [two[0], three[0], three[1]]), (four[0], [five[0]]), (two[0], [two[1]]))
    with room.client(HONEST_TENANTS[1]) as client:
        keys = [f"last-{os.getpid()}-{time.monotonic_ns()}-{number}" for number in range(len(groups))]
        for key, (sender, receivers) in zip(keys, groups, strict=True):
            client.request(MulticastRequest(key, sender, receivers, _LAST_BYTES), _GUARD_SECONDS)
        yield
        for key in keys:
            client.finish(key)


def settled(faults: Callable[[], list[str]]) -> list[str]:
    """Return the faults that remain after the system had time to settle."""
    deadline = time.monotonic() + _GUARD_SECONDS
    while found := faults():
        if time.monotonic() > deadline:
            return found
        time.sleep(0.5)
    return []
