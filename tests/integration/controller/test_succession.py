"""Two controllers on real switches and a real etcd: a leader, and a standby that takes over after any fault."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

import pytest

from blast_api.ttypes import Grant, MulticastRequest
from blast_client import (
    BlastError,
    Client,
    ControllerUnreachableError,
    Ended,
    NotLeader,
    Rejected,
    TimedOut,
    UnknownRequest,
)
from tests.support.waiting import eventually

if "BLAST_RUN_EVERY_TEST" not in os.environ:
    pytest.importorskip("mininet")

from mininet_topos.kernel.controller_namespace import ControllerNamespace, Side
from mininet_topos.kernel.errors import HostError
from mininet_topos.kernel.process import LabProcess
from mininet_topos.lab.lab import Lab, _entering, blast_controller
from mininet_topos.topology.plan import LabPlan
from tests.support.controller.fabric_truth import assert_converged, held_circuits, rule_ages

pytestmark = [pytest.mark.lab, pytest.mark.etcd, pytest.mark.timeout(900)]


T = TypeVar("T")
TIMEOUT = 180.0
GROUPS = (("r1h1", ("r2h1", "r3h1")), ("r4h1", ("r5h1", "r6h1")))


class Controller:
    """The controller of this number, from 1, as a process."""

    def __init__(self, lab: Lab, number: int, address: str) -> None:
        self._lab, self.number, self.address = lab, number, address
        self.is_paused = False

    @property
    def network(self) -> ControllerNamespace:
        return self._lab.controller_namespace(self.number)

    @property
    def process(self) -> LabProcess | None:
        return self._lab._controller if self.number == 1 else self._standby._process

    def kill(self) -> None:
        if self.number == 1:
            self._lab.kill_controller()
        elif self._standby._process is not None:
            self._standby._process.kill()
            self._standby._process = None
        self.is_paused = False

    def start(self) -> None:
        if self.number == 1:
            self._lab.start_controller()
        else:
            self._standby.start(_entering(self.network, blast_controller), self._lab.id, self._lab.directory)

    def pause(self) -> None:
        os.kill(self.process.pid, signal.SIGSTOP)
        self.is_paused = True

    def go_on(self) -> None:
        os.kill(self.process.pid, signal.SIGCONT)
        self.is_paused = False

    def is_behind(self) -> bool | None:
        """Return whether it is a standby, which answers from copied state; None if it does not answer."""
        with suppress(BlastError), Client(self.address, timeout=5.0) as client:
            return client.fabric().staleMs is not None
        return None

    def is_leader(self) -> bool:
        return self.is_behind() is False

    def is_standby(self) -> bool:
        return self.is_behind() is True

    @property
    def _standby(self):
        return self._lab._standbys[self.number - 2]


class Room:
    """A lab and its controllers."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        addresses = lab.controllers.split(",")
        self.controllers = [Controller(lab, number, address) for number, address in enumerate(addresses, 1)]

    @property
    def leader(self) -> Controller:
        """Wait for exactly one leader."""
        return eventually(self._only_leader, "exactly one leader", TIMEOUT)

    def roles(self) -> tuple[Controller, Controller]:
        """Return the leader and the other one."""
        leader = self.leader
        return leader, next(controller for controller in self.controllers if controller is not leader)

    def _only_leader(self) -> Controller | None:
        running = [one for one in self.controllers if one.process is not None and not one.is_paused]
        states = {one: one.is_behind() for one in running}
        leading = [one for one, is_behind in states.items() if is_behind is False]
        return leading[0] if len(leading) == 1 and None not in states.values() else None

    def ask_leader(self, ask: Callable[[Client], T]) -> T:
        """Ask the leader, again if leadership changes in between, as on a busy machine."""

        def answer() -> list[T]:
            with suppress(NotLeader), Client(self.leader.address, timeout=TIMEOUT) as client:
                return [ask(client)]
            return []

        return eventually(answer, "an answer of the leader", TIMEOUT)[0]

    def grant(self, key: str) -> Grant:
        sender, receivers = GROUPS[0]
        request = MulticastRequest(key, sender, list(receivers), 10**8)
        return self.ask_leader(lambda client: client.request(request, timeout=TIMEOUT))

    def wait_for_devices(self) -> None:
        eventually(lambda: self.ask_leader(_all_connected), "all devices at the leader", TIMEOUT)

    def restore(self) -> None:
        """Let both controllers run and serve, without requests."""
        for controller in self.controllers:
            if controller.process is None:
                controller.start()
            elif controller.is_paused:
                controller.go_on()
        self.wait_for_devices()
        eventually(lambda: self.ask_leader(_is_dark), "the last light tree to go", TIMEOUT)


def _is_dark(client: Client) -> bool:
    """Withdraw all requests; return whether no light trees are left."""
    for request in client.list_requests():
        if not request.state.final:
            client.withdraw(request.key)
    return not client.fabric().lightTrees


def _all_connected(client: Client) -> bool:
    fabric = client.fabric()
    return all(device.connected for device in (*fabric.racks, *fabric.opticalSwitches))


@pytest.fixture(scope="module")
def shared_room() -> Iterator[Room]:
    with Lab(LabPlan(racks=6, hosts_per_rack=1, splitters={4: 2}), controllers=2, min_lease_ms=600_000) as lab:
        yield Room(lab)


@pytest.fixture
def room(shared_room: Room) -> Iterator[Room]:
    """Yield the shared lab, with both controllers and all fibers dark before and after each test."""
    shared_room.wait_for_devices()
    yield shared_room
    shared_room.restore()


def test_standby_answers_reads_and_names_leader_for_the_rest(room):
    grant = room.grant("live")
    leader, other = room.roles()
    with Client(other.address) as standby:
        eventually(lambda: shows_grant(standby, "live"), "the standby to show the grant")
        status = standby.status("live")
        assert status.parts[0].grant == grant and status.staleMs is not None and status.staleMs < 1000 * TIMEOUT
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
            standby.step_down,
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
    eventually(other.is_leader, "the other to lead", TIMEOUT)
    room.wait_for_devices()
    assert held_circuits(room.lab) == circuits
    after = rule_ages(room.lab)
    assert after.keys() == ages.keys() and all(after[rule] >= age for rule, age in ages.items()), "rewritten"
    assert room.grant(key) == grant
    if fault == signal.SIGSTOP:
        room.ask_leader(lambda client: client.withdraw(key))
        assert room.grant("later").reservation != grant.reservation
        held, written = held_circuits(room.lab), rule_ages(room.lab).keys()
        leader.go_on()
        room.roles()
        assert held_circuits(room.lab) == held and rule_ages(room.lab).keys() == written


def test_leader_steps_down_on_request_and_can_lead_again(room):
    room.grant("handed over")
    circuits, rules = held_circuits(room.lab), rule_ages(room.lab).keys()
    for _ in range(2):
        leader, other = room.roles()
        room.ask_leader(lambda client: eventually(lambda: accepts_step_down(client), "a standby", TIMEOUT))
        eventually(other.is_leader, "the other to lead", TIMEOUT)
        eventually(leader.is_standby, "the first to be a standby", TIMEOUT)
        room.wait_for_devices()
        assert held_circuits(room.lab) == circuits and rule_ages(room.lab).keys() == rules


def test_leader_without_standby_rejects_step_down(room):
    leader, other = room.roles()
    other.kill()
    eventually(lambda: is_refused(leader), "the other's presence to end", TIMEOUT)
    eventually(leader.is_leader, "it to lead, again if it has stepped down in between", TIMEOUT)


def is_refused(leader: Controller) -> bool:
    """Return whether it rejects to step down; while the other still counts as present, it steps down."""
    try:
        with Client(leader.address) as client:
            client.step_down()
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
        self._thread.join(2 * TIMEOUT)
        assert not self._thread.is_alive(), "a client hangs"

    def _run(self) -> None:
        try:
            with Client(self._room.lab.controllers, timeout=TIMEOUT) as client:
                while not self.ending.is_set():
                    self._once(client)
        except Exception as error:  # noqa: BLE001 - the test shows it
            self.faults.append(repr(error))

    def _once(self, client: Client) -> None:
        sender, receivers = GROUPS[self._number]
        request = MulticastRequest(f"job{self._number}-{time.monotonic_ns()}", sender, list(receivers), 10**8)
        # A request may end by itself: a long fault loses its tree.
        with suppress(Ended):
            first = client.request(request, timeout=TIMEOUT)
            self.granted += 1
            again = client.request(request, timeout=TIMEOUT)
            if again != first:
                self.faults.append(f"{request.key} was granted twice: {first} and {again}")
            eventually(lambda: self._finish(client, request.key), "an answer to the finish", TIMEOUT)
            eventually(lambda: self._is_over(client, request.key), "an acknowledged end to stay", TIMEOUT)

    @staticmethod
    def _finish(client: Client, key: str) -> bool:
        try:
            client.finish(key)
        except (ControllerUnreachableError, NotLeader, TimedOut):
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


def step_down(room: Room) -> Heal:
    room.ask_leader(lambda client: eventually(lambda: accepts_step_down(client), "a standby", TIMEOUT))
    return lambda: None


def accepts_step_down(client: Client) -> bool:
    try:
        client.step_down()
    except Rejected:
        return False
    return True


def cut_off_from_etcd(room: Room) -> Heal:
    network = room.leader.network
    network.cut([Side.ETCD])
    return lambda: network.mend([Side.ETCD])


def cable_pulled(room: Room) -> Heal:
    """Cut the leader off from etcd, devices and clients."""
    network = room.leader.network
    network.cut(Side)
    return lambda: network.mend(Side)


def etcd_stopped(room: Room) -> Heal:
    etcd = room.lab._etcd._process
    etcd.send_signal(signal.SIGSTOP)
    return lambda: etcd.send_signal(signal.SIGCONT)


@pytest.mark.parametrize("fault", [kill, pause, step_down, cut_off_from_etcd, cable_pulled, etcd_stopped])
def test_no_answer_is_lost_and_devices_converge_after_fault(room, fault):
    """Processes, links and devices are real; `tests/support/succession` simulates many more faults."""
    with load(room) as jobs:
        eventually(lambda: all(job.granted for job in jobs), "grants before the fault", TIMEOUT)
        heal = fault(room)
        time.sleep(random.uniform(0.1, 6.0))  # the fault lasts less than a lease, or more
        heal()
        more = [job.granted + 1 for job in jobs]
        eventually(lambda: all(j.granted >= n for j, n in zip(jobs, more, strict=True)), "grants after it", TIMEOUT)
    room.restore()
    eventually(lambda: room.ask_leader(lambda client: compares(room.lab, client)), "a successful comparison", TIMEOUT)
    assert held_circuits(room.lab) == set()


def compares(lab: Lab, client: Client) -> bool:
    """Check that devices hold what they should; a controller that has just come to lead may be busy reading them."""
    try:
        assert_converged(lab, client)
    except Rejected as error:
        assert error.code == "busy", error
        return False
    return True
