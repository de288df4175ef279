"""Two controllers on real switches and a real etcd: one leads, the other follows, and takes over whatever happens."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from functools import partial

import pytest

from blast_api.ttypes import MulticastRequest
from blast_client import BlastError, Client, NotLeader, Rejected, UnknownRequest
from mininet_topos.controller_namespace import Side
from mininet_topos.errors import HostError
from mininet_topos.plan import LabPlan
from tests.support.etcd_server import EtcdServer
from tests.support.waiting import eventually

if "BLAST_RUN_EVERY_TEST" not in os.environ:
    pytest.importorskip("mininet")

from mininet_topos.lab import Lab
from tests.support.controllers_room import PATIENCE, Controller, Room

pytestmark = pytest.mark.lab


@pytest.fixture(scope="module")
def etcd(tmp_path_factory) -> Iterator[EtcdServer]:
    with EtcdServer(tmp_path_factory.mktemp("etcd")).running() as server:
        yield server


@pytest.fixture
def room(tmp_path, etcd) -> Iterator[Room]:
    with Lab(LabPlan(racks=4, hosts_per_rack=1, splitters={4: 1}), controller=None) as lab:
        room = Room(tmp_path, lab, etcd)
        try:
            room.start()
            yield room
        finally:
            room.close()


def test_a_standby_tells_who_leads_and_what_it_has_seen(room):
    grant = room.grant("live")
    leader, other = room.leader, room.other
    with Client(other.thrift) as standby:
        eventually(lambda: seen(standby, "live"), "the standby to see the grant")
        status = standby.status("live")
        assert status.parts[0].grant == grant and status.staleMs is not None and status.staleMs < 5000
        assert next(standby.list_requests()).key == "live"
        fabric = standby.fabric()
        assert [tree.reservation for tree in fabric.lightTrees] == [grant.reservation]
        assert any(leader.thrift in warning for warning in fabric.warnings)
        for ask in (
            lambda: standby.submit(MulticastRequest("x", "r1h1", ["r2h1"], 10**8)),
            lambda: standby.withdraw("live"),
            lambda: standby.status("never heard of"),
            standby.elements,
            lambda: standby.drain(True),
            standby.stand_down,
        ):
            with pytest.raises(NotLeader) as refused:
                ask()
            assert refused.value.address == leader.thrift
        assert standby.journal(0, 10)


def seen(client: Client, key: str) -> bool:
    try:
        return client.status(key).parts[0].grant is not None
    except (NotLeader, UnknownRequest):
        return False


@pytest.mark.parametrize("fault", [signal.SIGKILL, signal.SIGSTOP])
def test_a_leader_that_is_gone_or_stopped_is_succeeded(room, fault):
    grant = room.grant("live")
    circuits, rules = room.circuits(), room.rules()
    leader, other = room.leader, room.other
    leader.signal(fault)
    eventually(other.leads, "the other to lead")
    room.wait_for_devices()
    assert room.circuits() == circuits
    after = room.rules()
    assert after.keys() == rules.keys() and all(after[rule] >= rules[rule] for rule in rules), "written anew"
    with room.client() as client:
        assert client.request(MulticastRequest("live", "r1h1", ["r2h1", "r3h1"], 10**8), timeout=PATIENCE) == grant
        client.withdraw("live")
    eventually(lambda: not room.circuits(), "the release by the new leader")
    if fault == signal.SIGSTOP:
        assert room.grant("later").key == "later"
        held, written = room.circuits(), room.rules().keys()
        leader.signal(signal.SIGCONT)
        eventually(lambda: leader.told("stands_by"), "the old leader to notice")
        eventually(partial(is_up, leader), "the old leader to stand by")
        assert room.circuits() == held and room.rules().keys() == written
        assert room.leader is other


def test_a_leader_that_is_asked_stands_down_and_may_lead_again(room):
    room.grant("live")
    circuits, rules = room.circuits(), room.rules()
    for _ in range(2):
        leader, other = room.leader, room.other
        with Client(leader.thrift) as client:
            eventually(lambda: not refused(client.stand_down), "somebody to stand by")
        eventually(other.leads, "the other to lead")
        eventually(partial(is_up, leader), "the first to stand by")
        room.wait_for_devices()
        assert room.circuits() == circuits and room.rules().keys() == rules.keys()


def refused(ask) -> bool:
    try:
        ask()
    except Rejected as error:
        assert error.code == "no_standby"
        return True
    return False


def is_up(controller: Controller) -> bool:
    try:
        return not controller.leads()
    except Exception:  # noqa: BLE001 - it has just begun anew
        return False


def test_who_is_alone_is_not_let_go(room):
    leader, other = room.leader, room.other
    other.stop()
    eventually(partial(is_needed, leader), "the other's presence to end")
    assert leader.leads()


def is_needed(leader: Controller) -> bool:
    """Where it takes the other to be there still, it stands down, and leads again when nobody else does."""
    try:
        with Client(leader.thrift) as client:
            return refused(client.stand_down)
    except BlastError:
        return False


def test_a_lab_of_three_controllers():
    with Lab(LabPlan(racks=3, hosts_per_rack=1, splitters={4: 1}), controllers=3) as lab:
        addresses = lab.controllers.split(",")
        assert len(set(addresses)) == 3 and lab.describe()["thrift"] == lab.controllers
        with Client(lab.controllers, timeout=PATIENCE) as client:
            asked = MulticastRequest("a", "r1h1", ["r2h1", "r3h1"], 10**8)
            grant = client.request(asked, timeout=PATIENCE)
            lab.kill_controller()
            assert client.request(asked, timeout=PATIENCE) == grant
            assert str(client.address) in addresses[1:]


def leads(address: str) -> bool:
    """Whether the controller there says that what it tells is so now."""
    with suppress(BlastError), Client(address, timeout=5) as client:
        return client.fabric().staleMs is None
    return False


def stands_by(address: str) -> bool:
    """Whether the controller there tells what it has seen of another's decisions."""
    with suppress(BlastError), Client(address, timeout=5) as client:
        return client.fabric().staleMs is not None
    return False


def test_controllers_of_a_lab_are_cut_off_one_by_one():
    """Cut off from etcd the leader leads no more, and its clients go on with another; mended, it stands by."""
    with Lab(LabPlan(racks=3, hosts_per_rack=1, splitters={4: 1}), controllers=2) as lab:
        first, second = lab.controllers.split(",")
        with Client(lab.controllers, timeout=PATIENCE) as client:
            asked = MulticastRequest("a", "r1h1", ["r2h1", "r3h1"], 10**8)
            grant = client.request(asked, timeout=PATIENCE)
            assert str(client.address) == first
            lab.controller_namespace(1).cut([Side.ETCD])
            eventually(lambda: leads(second), "the other to lead")
            assert client.request(asked, timeout=PATIENCE) == grant
            assert str(client.address) == second
            lab.controller_namespace(1).mend([Side.ETCD])
            eventually(lambda: stands_by(first), "the old leader to stand by")
            lab.controller_namespace(2).cut(list(Side))
            eventually(lambda: leads(first), "the first to lead again")
            assert client.request(asked, timeout=PATIENCE) == grant
            assert str(client.address) == first
        with pytest.raises(HostError, match="--controllers 3"):
            lab.controller_namespace(3)
