"""Random faults of two controllers and their etcd under load: no acknowledged word is lost, no device is wrong after.

All that clients hear is checked for linearizability, and that who looks on never goes back in time.
`BLAST_FAULT_ROUNDS` says how many rounds (by default each fault comes once), `BLAST_FAULT_SEED` which.
"""

from __future__ import annotations

import math
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from operator import ge

import pytest

from blast_api.ttypes import Grant, MulticastRequest, ReconcileReport, RequestStatus
from blast_client import Client, ControllerUnreachable, Ended, NotLeader, NotYet, PartState, Rejected, UnknownRequest
from mininet_topos.plan import LabPlan
from tests.support.etcd_cluster import EtcdCluster
from tests.support.linearizability import Operation
from tests.support.succession.history import Asked, Call, Finished, Looked, Reading, RefusedToFinish, verdict
from tests.support.succession.history import Heard as HeardEvent
from tests.support.waiting import eventually

if "BLAST_RUN_EVERY_TEST" not in os.environ:
    pytest.importorskip("mininet")

from mininet_topos.lab import Lab
from tests.support.controllers_room import Room

ROUNDS = int(os.environ.get("BLAST_FAULT_ROUNDS", "0"))
SEED = int(os.environ.get("BLAST_FAULT_SEED", "1"))
pytestmark = [pytest.mark.lab, pytest.mark.test_all, pytest.mark.timeout(600 + 120 * ROUNDS)]
PATIENCE = 180.0
AGAIN = 0.02
LEASE = 3
"""Seconds: on a machine with much else to do one of a second runs out by itself."""
GROUPS = [("r1h1", ["r2h1", "r3h1"]), ("r4h1", ["r5h1", "r6h1"])]


class Heard:
    """What clients ask and hear, by key; the newest keys last."""

    def __init__(self) -> None:
        self.of: dict[str, list[Operation[Call]]] = {}

    def note(self, key: str, call: Call, begin: float, end: float | None = None) -> None:
        self.of.setdefault(key, []).append(Operation(call, begin, time.monotonic() if end is None else end))

    def check(self, what: str) -> None:
        """Whether all of it can be."""
        for key, operations in self.of.items():
            found = verdict(operations)
            assert found.is_linearizable, f"{what}: {key}: {found}"


def reading_of(status: RequestStatus) -> Reading:
    grants = [part.grant for part in status.parts if part.grant is not None and part.state == PartState.ACTIVE]
    told = tuple((grant.reservation, grant.groupAddress) for grant in grants)
    return Reading(status.latestSequence, status.state.final, status.state == PartState.DONE, told)


class Reader:
    """Looks at what jobs have asked for, now at this controller and now at that."""

    def __init__(self, room: Room, heard: Heard) -> None:
        self._room, self._heard = room, heard
        self._ending = threading.Event()
        self.faults, self.late = list[str](), 0
        self._thread = threading.Thread(target=self._run, name="reader")
        self._thread.start()

    def end(self) -> None:
        self._ending.set()
        self._thread.join(2 * PATIENCE)
        assert not self._thread.is_alive(), "a reader hangs"

    def _run(self) -> None:
        seen: dict[str, Reading] = {}
        try:
            with Client(self._room.thrift, timeout=5.0) as client:
                while not self._ending.wait(0.05):
                    for key in list(self._heard.of)[-3:]:
                        self._look(client, key, seen)
                    client.close()
                    client._controllers.move(client.address, None)
        except Exception as error:  # noqa: BLE001 - told by the test
            self.faults.append(repr(error))

    def _look(self, client: Client, key: str, seen: dict[str, Reading]) -> None:
        begin = time.monotonic()
        try:
            status = client.status(key)
        except (ControllerUnreachable, NotLeader):
            return
        except UnknownRequest:
            self._heard.note(key, Looked(None), begin)
            return
        self.late += status.staleMs is not None
        reading = reading_of(status)
        self._heard.note(key, Looked(reading), begin - (status.staleMs or 0) / 1000)
        before = seen.get(key, reading)
        if reading.told < before.told or (before.is_over and not reading.is_over):
            self.faults.append(f"saw {before} of {key} and then {reading}")
        seen[key] = reading


class Job:
    """Asks for light, checks what it is told, and gives it back, again and again, whoever leads."""

    def __init__(self, room: Room, number: int, heard: Heard) -> None:
        self._room, self._number, self._heard = room, number, heard
        self._ending = threading.Event()
        self.granted, self.faults = 0, list[str]()
        self._thread = threading.Thread(target=self._run, name=f"job {number}")
        self._thread.start()

    def end(self) -> None:
        self._ending.set()
        self._thread.join(2 * PATIENCE)
        assert not self._thread.is_alive(), "a job hangs"

    def _run(self) -> None:
        try:
            with Client(self._room.thrift, timeout=PATIENCE) as client:
                count = 0
                while not self._ending.is_set():
                    count += 1
                    self._once(client, f"job{self._number}-{time.monotonic_ns()}-{count}")
        except Exception as error:  # noqa: BLE001 - told by the test
            self.faults.append(repr(error))

    def _once(self, client: Client, key: str) -> None:
        sender, receivers = GROUPS[self._number]
        request = MulticastRequest(key, sender, receivers, 10**8)
        first = self._request(client, request)
        if first is None:
            return
        self.granted += 1
        again = self._request(client, request)
        if again is not None and (again.reservation, again.groupAddress) != (first.reservation, first.groupAddress):
            self.faults.append(f"{key} was granted twice: {first} and {again}")
        self._finish(client, key)
        eventually(lambda: self._is_over(client, key), "an acknowledged end to stay", PATIENCE)

    def _request(self, client: Client, request: MulticastRequest) -> Grant | None:
        begin = time.monotonic()
        try:
            grant = client.request(request, timeout=PATIENCE)
            self._heard.note(request.key, Asked(None), begin)
            self._heard.note(request.key, HeardEvent(1), begin)
            return grant
        except Ended as end:
            self._heard.note(request.key, Asked(None), begin)
            # Its light was lost, or its lease, in a fault that took longer.
            assert end.state in (PartState.FAILED, PartState.EXPIRED, PartState.DONE), end
            return None

    def _finish(self, client: Client, key: str) -> None:
        end, is_unknown = time.monotonic() + PATIENCE, False
        while time.monotonic() < end:
            begin = time.monotonic()
            try:
                status = client.finish(key)
                self._heard.note(key, Finished(reading_of(status)), begin)
            except Ended:
                self._heard.note(key, RefusedToFinish(), begin)
                return
            except NotLeader:
                continue
            except (ControllerUnreachable, NotYet):
                # Whether it was done is not known: ask again, and be told that it has ended if it was.
                if not is_unknown:
                    # It happens once at most, and may from now on: of those that follow there is no more to say.
                    self._heard.note(key, Finished(None), begin, math.inf)
                is_unknown = True
                self._ending.wait(AGAIN)
                continue
            return
        raise AssertionError(f"{key} could not be finished")

    def _is_over(self, client: Client, key: str) -> bool:
        begin = time.monotonic()
        status = client.status(key)
        self._heard.note(key, Looked(reading_of(status)), begin - (status.staleMs or 0) / 1000)
        if status.staleMs is not None:
            # One that stands by may not have heard of it: ask the next.
            client.close()
            client._controllers.move(client.address, None)
            return False
        return bool(status.state.final)


@contextmanager
def jobs(room: Room, heard: Heard) -> Iterator[tuple[list[Job], Reader]]:
    found, reader = [Job(room, number, heard) for number in range(len(GROUPS))], Reader(room, heard)
    try:
        yield found, reader
    finally:
        for one in (*found, reader):
            one.end()


def kill(room: Room, draw: random.Random) -> Callable[[], None]:
    victim = draw.choice(room.controllers)
    victim.stop()
    return victim.start


def pause(room: Room, draw: random.Random) -> Callable[[], None]:
    victim = room.leader
    victim.signal(signal.SIGSTOP)
    return lambda: victim.signal(signal.SIGCONT)


def stand_down(room: Room, draw: random.Random) -> Callable[[], None]:
    with Client(room.leader.thrift, timeout=PATIENCE) as client:
        eventually(lambda: stands_down(client), "somebody to stand by", PATIENCE)
    return lambda: None


def stands_down(client: Client) -> bool:
    try:
        client.stand_down()
    except Rejected:
        return False
    return True


def etcd_gone(room: Room, draw: random.Random) -> Callable[[], None]:
    """All of its members end."""
    members = room.etcd.members
    for member in members:
        room.etcd.kill(member)

    def start() -> None:
        for member in members:
            room.etcd.start(member)

    return start


def etcd_leader_gone(room: Room, draw: random.Random) -> Callable[[], None]:
    """The member that leads the others ends."""
    leader = room.etcd.leader()
    room.etcd.kill(leader)
    return lambda: room.etcd.start(leader)


def etcd_leader_stopped(room: Room, draw: random.Random) -> Callable[[], None]:
    """It hangs: its connections stay."""
    leader = room.etcd.leader()
    room.etcd.pause(leader)
    return lambda: room.etcd.go_on(leader)


def slow_disk(room: Room, draw: random.Random) -> Callable[[], None]:
    """Every member is held up again and again, as by a disk that takes long for each write."""
    over = threading.Event()

    def hold_up() -> None:
        while not over.wait(0.02):
            for member in room.etcd.members:
                room.etcd.pause(member)
            over.wait(0.15)
            for member in room.etcd.members:
                room.etcd.go_on(member)

    holding = threading.Thread(target=hold_up)
    holding.start()

    def heal() -> None:
        over.set()
        holding.join()

    return heal


def cable_pulled(room: Room, draw: random.Random) -> Callable[[], None]:
    """The leader is cut off from everything: etcd, devices and clients."""
    network = room.leader.network
    assert network is not None
    network.cut()
    return network.heal


def cut_off(room: Room, draw: random.Random) -> Callable[[], None]:
    victim = room.leader
    victim.to_etcd.hold_requests()
    victim.to_etcd.hold_answers()
    return victim.to_etcd.pass_on


def lose_answers(room: Room, draw: random.Random) -> Callable[[], None]:
    """What the leader writes arrives, and it does not hear of it; then its connections are gone."""
    victim = room.leader
    victim.to_etcd.hold_answers()

    def heal() -> None:
        victim.to_etcd.cut()
        victim.to_etcd.pass_on()

    return heal


FAULTS = (
    kill,
    pause,
    stand_down,
    etcd_gone,
    etcd_leader_gone,
    etcd_leader_stopped,
    slow_disk,
    cut_off,
    lose_answers,
    cable_pulled,
)


def test_nothing_is_lost_and_nothing_is_wrong_after_any_fault(tmp_path):
    draw, folder = random.Random(SEED), tmp_path / "etcd"
    folder.mkdir()
    with (
        EtcdCluster(folder).running() as etcd,
        Lab(LabPlan(racks=6, hosts_per_rack=1, splitters={4: 2}), controller=None) as lab,
    ):
        room = Room(tmp_path, lab, etcd, has_cables=True, lease=LEASE)
        try:
            room.start()
            for number in range(ROUNDS or len(FAULTS)):
                if not (left := number % len(FAULTS)):
                    # Each comes once before any comes again.
                    faults = draw.sample(FAULTS, len(FAULTS))
                fault = faults[left]
                one_round(room, fault, draw, f"round {number}, {fault.__name__}")
                print(f"round {number}, {fault.__name__}: well", flush=True)
        finally:
            room.close()


def one_round(room: Room, fault: Callable, draw: random.Random, what: str) -> None:
    eventually(lambda: has_one_leader(room), f"one leader before {what}", PATIENCE)
    heard = Heard()
    with jobs(room, heard) as (load, reader):
        eventually(lambda: all(job.granted for job in load), f"work before {what}", PATIENCE)
        heal = fault(room, draw)
        alone = draw.uniform(0.1, 2.0 * LEASE)
        time.sleep(alone)  # nobody helps it for so long: what happens meanwhile is what is tried
        heal()
        eventually(lambda: has_one_leader(room), f"one leader after {what}", PATIENCE)
        more = [job.granted + 1 for job in load]
        eventually(lambda: all(map(ge, (job.granted for job in load), more)), f"work after {what}", PATIENCE)
    assert [one.faults for one in (*load, reader)] == [[], [], []], what
    heard.check(what)
    room.wait_for_devices()
    with Client(room.leader.thrift, timeout=PATIENCE) as client:
        eventually(lambda: not client.fabric().lightTrees, f"the last light to go after {what}", PATIENCE)
        report = compared(client)
    # The packet network has rules of its own on every ToR.
    strange = [found for found in report.foreign if " rules on " not in found]
    assert (report.commands, strange, report.notCompared) == ([], [], []), what
    assert room.circuits() == set(), what


def compared(client: Client) -> ReconcileReport:
    """What devices hold beside what they should; a controller that has just come to lead reads them now and then."""
    found: list[ReconcileReport] = []

    def is_compared() -> bool:
        try:
            found.append(client.reconcile(dry_run=True))
        except Rejected as error:
            assert error.code == "busy", error
            return False
        return True

    eventually(is_compared, "a turn to compare", PATIENCE)
    return found[-1]


def has_one_leader(room: Room) -> bool:
    leading = 0
    for controller in room.controllers:
        try:
            leading += controller.leads()
        except (ControllerUnreachable, NotLeader):
            return False
    return leading == 1
