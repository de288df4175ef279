"""Random faults of two controllers and their etcd under load: no acknowledged word is lost, no device is wrong after.

`BLAST_FAULT_ROUNDS` says how many rounds (6 by default: each fault once), `BLAST_FAULT_SEED` which.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from operator import ge

import pytest

from blast_api.ttypes import Grant, MulticastRequest
from blast_client import Client, ControllerUnreachable, Ended, NotLeader, NotYet, PartState, Rejected
from mininet_topos.plan import LabPlan
from tests.support.etcd_server import EtcdServer
from tests.support.waiting import eventually

if "BLAST_RUN_EVERY_TEST" not in os.environ:
    pytest.importorskip("mininet")

from mininet_topos.lab import Lab
from tests.support.controllers_room import Room

pytestmark = [pytest.mark.lab, pytest.mark.long]

ROUNDS = int(os.environ.get("BLAST_FAULT_ROUNDS", "6"))
SEED = int(os.environ.get("BLAST_FAULT_SEED", "1"))
PATIENCE = 60.0
GROUPS = [("r1h1", ["r2h1", "r3h1"]), ("r4h1", ["r5h1", "r6h1"])]


class Job:
    """Asks for light, checks what it is told, and gives it back, again and again, whoever leads."""

    def __init__(self, room: Room, number: int) -> None:
        self._room, self._number = room, number
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
        try:
            return client.request(request, timeout=PATIENCE)
        except Ended as end:
            # Its light was lost, or its lease, in a fault that took longer.
            assert end.state in (PartState.FAILED, PartState.EXPIRED, PartState.DONE), end
            return None

    def _finish(self, client: Client, key: str) -> None:
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            try:
                client.finish(key)
            except Ended:
                return
            except (ControllerUnreachable, NotLeader, NotYet):
                # Whether it was done is not known: ask again, and be told that it has ended if it was.
                continue
            return
        raise AssertionError(f"{key} could not be finished")

    @staticmethod
    def _is_over(client: Client, key: str) -> bool:
        status = client.status(key)
        if status.staleMs is not None:
            # One that stands by may not have heard of it: ask the next.
            client.close()
            client._controllers.move(client.address, None)
            return False
        return bool(status.state.final)


@contextmanager
def jobs(room: Room) -> Iterator[list[Job]]:
    found = [Job(room, number) for number in range(len(GROUPS))]
    try:
        yield found
    finally:
        for job in found:
            job.end()


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
    room.etcd.kill()
    return room.etcd.start


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


FAULTS = (kill, pause, stand_down, etcd_gone, cut_off, lose_answers)


def test_nothing_is_lost_and_nothing_is_wrong_after_any_fault(tmp_path):
    draw = random.Random(SEED)
    with (
        EtcdServer(tmp_path / "etcd").running() as etcd,
        Lab(LabPlan(racks=6, hosts_per_rack=1, splitters={4: 2}), controller=None) as lab,
    ):
        room = Room(tmp_path, lab, etcd)
        try:
            room.start()
            for number in range(ROUNDS):
                if not (left := number % len(FAULTS)):
                    # Each comes once before any comes again.
                    faults = draw.sample(FAULTS, len(FAULTS))
                fault = faults[left]
                one_round(room, fault, draw, f"round {number}, {fault.__name__}")
        finally:
            room.close()


def one_round(room: Room, fault: Callable, draw: random.Random, what: str) -> None:
    eventually(lambda: has_one_leader(room), f"one leader before {what}", PATIENCE)
    with jobs(room) as load:
        eventually(lambda: all(job.granted for job in load), f"work before {what}", PATIENCE)
        heal = fault(room, draw)
        time.sleep(draw.uniform(0.1, 3.0))  # nobody helps it for so long: what happens meanwhile is what is tried
        heal()
        eventually(lambda: has_one_leader(room), f"one leader after {what}", PATIENCE)
        more = [job.granted + 1 for job in load]
        eventually(lambda: all(map(ge, (job.granted for job in load), more)), f"work after {what}", PATIENCE)
    assert [job.faults for job in load] == [[] for _ in load], what
    room.wait_for_devices()
    with Client(room.leader.thrift, timeout=PATIENCE) as client:
        eventually(lambda: not client.fabric().lightTrees, f"the last light to go after {what}", PATIENCE)
        report = client.reconcile(dry_run=True)
    # The packet network has rules of its own on every ToR.
    strange = [found for found in report.foreign if " rules on " not in found]
    assert (report.commands, strange, report.notCompared) == ([], [], []), what
    assert room.circuits() == set(), what


def has_one_leader(room: Room) -> bool:
    leading = 0
    for controller in room.controllers:
        try:
            leading += controller.leads()
        except (ControllerUnreachable, NotLeader):
            return False
    return leading == 1
