"""Two controllers on real switches and a real etcd: one leads, the other follows and takes over after any fault."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from blast_api.ttypes import MulticastRequest
from blast_client import (
    BlastError,
    Client,
    ControllerUnreachable,
    Ended,
    NotLeader,
    NotYet,
    Rejected,
    UnknownRequest,
)
from tests.support.waiting import eventually

if "BLAST_RUN_EVERY_TEST" not in os.environ:
    pytest.importorskip("mininet")

from mininet_topos.controller_namespace import Side
from mininet_topos.errors import HostError
from mininet_topos.lab import Lab
from mininet_topos.plan import LabPlan
from tests.support.controllers_room import GROUPS, PATIENCE, Controller, Room
from tests.support.fabric_truth import assert_converged, held_circuits, rule_ages

pytestmark = [pytest.mark.lab, pytest.mark.etcd, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def shared_room() -> Iterator[Room]:
    with Lab(LabPlan(racks=6, hosts_per_rack=1, splitters={4: 2}), controllers=2, lease_minimum_ms=600_000) as lab:
        yield Room(lab)


@pytest.fixture
def room(shared_room: Room) -> Iterator[Room]:
    """The shared lab, with both controllers and without light before and after each test."""
    shared_room.wait_for_devices()
    yield shared_room
    shared_room.restore()


def test_standby_answers_reads_and_names_leader_for_the_rest(room):
    grant = room.grant("live")
    leader, other = room.roles()
    with Client(other.address) as standby:
        eventually(lambda: shows_grant(standby, "live"), "the standby to show the grant")
        status = standby.status("live")
        assert status.parts[0].grant == grant and status.staleMs is not None and status.staleMs < 1000 * PATIENCE
        assert "live" in [request.key for request in standby.list_requests()]
        fabric = standby.fabric()
        assert [tree.reservation for tree in fabric.lightTrees] == [grant.reservation]
        assert any(leader.address in warning for warning in fabric.warnings)
        for ask in (
            lambda: standby.submit(MulticastRequest("x", "r1h1", ["r2h1"], 10**8)),
            lambda: standby.withdraw("live"),
            lambda: standby.status("never submitted"),
            standby.elements,
            lambda: standby.drain(True),
            standby.stand_down,
        ):
            with pytest.raises(NotLeader) as refused:
                ask()
            assert refused.value.address == leader.address
        assert standby.journal(0, 10)


def shows_grant(client: Client, key: str) -> bool:
    try:
        return client.status(key).parts[0].grant is not None
    except (NotLeader, UnknownRequest):
        return False


@pytest.mark.parametrize("fault", [signal.SIGKILL, signal.SIGSTOP])
def test_standby_takes_over_from_killed_or_stopped_leader_without_touching_light(room, fault):
    key = f"kept-{fault.name}"
    grant = room.grant(key)
    circuits, ages = held_circuits(room.lab), rule_ages(room.lab)
    leader, other = room.roles()
    leader.kill() if fault == signal.SIGKILL else leader.pause()
    eventually(other.leads, "the other to lead", PATIENCE)
    room.wait_for_devices()
    assert held_circuits(room.lab) == circuits
    after = rule_ages(room.lab)
    assert after.keys() == ages.keys() and all(after[rule] >= age for rule, age in ages.items()), "written anew"
    assert room.grant(key) == grant
    if fault == signal.SIGSTOP:
        room.ask_leader(lambda client: client.withdraw(key))
        assert room.grant("later").reservation != grant.reservation
        held, written = held_circuits(room.lab), rule_ages(room.lab).keys()
        leader.go_on()
        room.roles()
        assert held_circuits(room.lab) == held and rule_ages(room.lab).keys() == written


def test_leader_stands_down_when_asked_and_may_lead_again(room):
    room.grant("handed over")
    circuits, rules = held_circuits(room.lab), rule_ages(room.lab).keys()
    for _ in range(2):
        leader, other = room.roles()
        room.ask_leader(lambda client: eventually(lambda: stands_down(client), "a standby", PATIENCE))
        eventually(other.leads, "the other to lead", PATIENCE)
        eventually(leader.stands_by, "the first to stand by", PATIENCE)
        room.wait_for_devices()
        assert held_circuits(room.lab) == circuits and rule_ages(room.lab).keys() == rules


def test_leader_without_standby_refuses_to_stand_down(room):
    leader, other = room.roles()
    other.kill()
    eventually(lambda: is_refused(leader), "the other's presence to end", PATIENCE)
    eventually(leader.leads, "it to lead, again if it has stood down in between", PATIENCE)


def is_refused(leader: Controller) -> bool:
    """Ask it to stand down; while the other counts as present it does, and leads again later."""
    try:
        with Client(leader.address) as client:
            client.stand_down()
    except Rejected as error:
        assert error.code == "no_standby"
        return True
    except BlastError:
        pass
    return False


def test_lab_describes_its_controllers_and_has_a_namespace_for_each(room):
    assert room.lab.describe()["thrift"] == room.lab.controllers
    with pytest.raises(HostError, match="--controllers 3"):
        room.lab.controller_namespace(3)


# ------------------------------------------------------------------------------------------------- faults under load


class Job:
    """A client that requests light and finishes, again and again, whichever controller leads.

    `faults` are contradictions: another grant for the same request, or an acknowledged end that did not stay. Whether
    all answers together are linearizable is checked where many more faults are: `tests/support/succession`.
    """

    def __init__(self, room: Room, number: int) -> None:
        self._room, self._number = room, number
        self.granted, self.faults = 0, list[str]()
        self.ending = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def end(self) -> None:
        self.ending.set()
        self._thread.join(2 * PATIENCE)
        assert not self._thread.is_alive(), "a client hangs"

    def _run(self) -> None:
        try:
            with Client(self._room.lab.controllers, timeout=PATIENCE) as client:
                while not self.ending.is_set():
                    self._once(client)
        except Exception as error:  # noqa: BLE001 - the test shows it
            self.faults.append(repr(error))

    def _once(self, client: Client) -> None:
        sender, receivers = GROUPS[self._number]
        request = MulticastRequest(f"job{self._number}-{time.monotonic_ns()}", sender, list(receivers), 10**8)
        # A request may end by itself: its light is lost in a fault that takes long.
        with suppress(Ended):
            first = client.request(request, timeout=PATIENCE)
            self.granted += 1
            again = client.request(request, timeout=PATIENCE)
            if again != first:
                self.faults.append(f"{request.key} was granted twice: {first} and {again}")
            eventually(lambda: self._finish(client, request.key), "an answer to the finish", PATIENCE)
            eventually(lambda: self._is_over(client, request.key), "an acknowledged end to stay", PATIENCE)

    @staticmethod
    def _finish(client: Client, key: str) -> bool:
        try:
            client.finish(key)
        except (ControllerUnreachable, NotLeader, NotYet):
            # It may be done all the same: to finish again is answered the same.
            return False
        return True

    @staticmethod
    def _is_over(client: Client, key: str) -> bool:
        status = client.status(key)
        if status.staleMs is not None:
            # A standby may be behind: ask the next controller.
            client.close()
            client._controllers.move(client.address, None)
            return False
        assert status.state.final, f"{key} was finished, and then it was {status.state}"
        return True


@contextmanager
def load(room: Room) -> Iterator[list[Job]]:
    jobs = [Job(room, number) for number in range(len(GROUPS))]
    try:
        yield jobs
    finally:
        for job in jobs:
            job.end()
    assert [job.faults for job in jobs] == [[]] * len(jobs)


Heal = Callable[[], None]


def kill(room: Room) -> Heal:
    victim = room.leader
    victim.kill()
    return victim.start


def pause(room: Room) -> Heal:
    victim = room.leader
    victim.pause()
    return victim.go_on


def stand_down(room: Room) -> Heal:
    room.ask_leader(lambda client: eventually(lambda: stands_down(client), "a standby", PATIENCE))
    return lambda: None


def stands_down(client: Client) -> bool:
    try:
        client.stand_down()
    except Rejected:
        return False
    return True


def cut_off_from_etcd(room: Room) -> Heal:
    network = room.leader.network
    network.cut([Side.ETCD])
    return lambda: network.mend([Side.ETCD])


def cable_pulled(room: Room) -> Heal:
    """The leader is cut off from etcd, devices and clients."""
    network = room.leader.network
    network.cut(Side)
    return lambda: network.mend(Side)


def etcd_stopped(room: Room) -> Heal:
    etcd = room.lab._etcd._process
    etcd.send_signal(signal.SIGSTOP)
    return lambda: etcd.send_signal(signal.SIGCONT)


@pytest.mark.parametrize("fault", [kill, pause, stand_down, cut_off_from_etcd, cable_pulled, etcd_stopped])
def test_no_answer_is_lost_and_devices_converge_after_fault(room, fault):
    """As `tests/support/succession` simulates with many more faults, here with real processes, links and devices."""
    with load(room) as jobs:
        eventually(lambda: all(job.granted for job in jobs), "grants before the fault", PATIENCE)
        heal = fault(room)
        time.sleep(random.uniform(0.1, 6.0))  # the fault lasts less than a lease, or more
        heal()
        more = [job.granted + 1 for job in jobs]
        eventually(lambda: all(j.granted >= n for j, n in zip(jobs, more, strict=True)), "grants after it", PATIENCE)
    room.restore()
    eventually(lambda: room.ask_leader(lambda client: compares(room.lab, client)), "a turn to compare", PATIENCE)
    assert held_circuits(room.lab) == set()


def compares(lab: Lab, client: Client) -> bool:
    """Check that devices hold what they should; a controller that has just come to lead may be busy reading them."""
    try:
        assert_converged(lab, client)
    except Rejected as error:
        assert error.code == "busy", error
        return False
    return True
