"""A new controller process takes over the journal and devices: each state and phase, and pending requests."""

from __future__ import annotations

from dataclasses import replace

import pytest

from blast_controller.core.model.errors import FabricError, KeyReusedError
from blast_controller.core.model.events import FinishRequested, RequestSubmitted
from blast_controller.core.model.fabric import OpticalPort, Rack, StaticTree
from blast_controller.core.model.part_states import PartState
from blast_controller.store.memory import MemoryStore
from tests.support.controller.core import World, key_of, make_fabric, multicast, ready_world
from tests.support.controller.core_checks import audited

GROUP = ["r2h1", "r3h1"]


@pytest.fixture
def world():
    return ready_world(make_fabric(5, [4, 4]))


def come_up(world):
    """Start a new process and connect every device; `world.commands` has the commands that it sends."""
    world.restart()
    world.commands.clear()
    world.connect_all()
    world.settle()


@pytest.mark.parametrize("worked", range(4))
def test_restart_undoes_an_addition_and_notifies_the_client(world, worked):
    world.granted(multicast("a", "r1h1", GROUP))
    world.after_operation = lambda: set(GROUP) <= world.served() or pytest.fail("a staying receiver was cut off")
    world.extend("a", add_receivers=("r4h1", "r2h2"), remove_receivers=("r3h1",))
    for name in [name for name in world.devices if world.device(name).queue][:worked]:
        world.work(name)
    come_up(world)
    assert world.served() == set(GROUP)
    assert world.kinds("a") == ["granted", "changed"]
    event = world.core.request(key_of("a")).events[-1]
    assert event.reason == "the controller restarted during the change"
    assert event.grant.receivers == tuple(GROUP)
    assert "port:r4/50" not in world.core.view.holders
    assert {c.output for c in world.switches["ocs1"].held if c.output <= 5} == {2, 3}


def test_restart_does_not_reuse_numbers_and_addresses_at_once(world):
    """A late packet or a rule with an old cookie must not meet a new group."""
    world.granted(multicast("a", "r1h1", GROUP))
    first = world.part()
    world.granted(multicast("b", "r4h1", ["r5h1"]))
    second = world.part("b")
    numbers = {first.reservation, second.reservation}
    addresses = {first.grant.group_address, second.grant.group_address}
    for key in "ab":
        world.handle(FinishRequested(key_of(key), 0))
    world.settle()
    come_up(world)
    third = world.granted(multicast("c", "r1h1", GROUP))
    assert third.reservation not in numbers
    assert third.grant.group_address not in addresses


def test_restart_gives_every_lease_its_full_length():
    world = ready_world(make_fabric(3, [4]))
    world.now = 1000.0
    part = world.granted(multicast("a", "r1h1", GROUP, size=10**11))
    lease = part.grant.lease
    assert lease == 160.0
    world.now += lease - 1.0
    world.crash()
    world.start(now=5.0)
    world.connect_all()
    world.advance(lease - 0.5)
    assert world.part().state is PartState.ACTIVE
    world.advance(0.5)
    assert world.part().state is PartState.EXPIRED


def test_restart_starts_the_pending_timeout_again():
    world = World(make_fabric(3, [4]))
    world.now = 100.0
    world.submit(multicast("a", "r1h1", GROUP, pending_timeout=5.0))
    world.now = 104.0
    world.crash()
    world.start(now=0.0)
    world.advance(4.9)
    assert world.part().state is PartState.PENDING
    world.advance(0.1)
    assert world.part().state is PartState.EXPIRED


@pytest.mark.parametrize("asked_again", [False, True])
def test_attached_client_has_a_grace_to_reconnect_after_a_restart(asked_again):
    world = World(make_fabric(3, [4]))
    request = multicast("a", "r1h1", GROUP)
    world.handle(RequestSubmitted(request, attached=True))
    world.submit(multicast("b", "r1h1", GROUP))
    world.restart()
    grace = world.core.settings.orphan_grace
    world.now += grace / 2
    if asked_again:
        world.handle(RequestSubmitted(request, attached=True))
    world.advance(grace)
    assert world.part().state is (PartState.PENDING if asked_again else PartState.WITHDRAWN)
    assert world.part("b").state is PartState.PENDING, "no client was attached to it"


def test_restart_remembers_ended_requests_for_their_full_time(world):
    request = multicast("a", "r1h1", GROUP)
    world.granted(request)
    world.finish("a")
    events = world.core.request(key_of("a")).events
    world.now = 3599.0
    come_up(world)
    assert world.core.request(key_of("a")).events == events
    world.handle(RequestSubmitted(request))
    assert world.part().state is PartState.DONE
    with pytest.raises(KeyReusedError):
        world.handle(RequestSubmitted(replace(request, bytes=7)))
    world.advance(3599.0)
    assert key_of("a") in world.core.requests
    world.advance(1.0)
    assert key_of("a") not in world.core.requests
    come_up(world)
    assert key_of("a") not in world.core.requests, "the journal does not contain it either"


def test_restart_keeps_the_order_of_pending_requests(world):
    """The request in setup at the crash was ahead of the pending ones; all have the same weight."""
    for key in "abc":
        world.submit(multicast(key, "r1h1", GROUP))
    assert world.part().state is PartState.CONFIGURING
    world.restart()
    assert [key for (_, key), _ in world.core.view.waiting] == ["a", "b", "c"]
    world.connect_all()
    world.settle()
    assert [key for key in "abc" if world.part(key).state is PartState.ACTIVE] == ["a"]


def without_rack_3(fabric):
    hosts = {name: host for name, host in fabric.hosts.items() if host.rack != "r3"}
    return replace(fabric, racks={n: r for n, r in fabric.racks.items() if n != "r3"}, hosts=hosts)


def other_fiber(fabric):
    rack = fabric.racks["r3"]
    port = replace(rack.optical_ports[0], input=99)
    return replace(fabric, racks={**fabric.racks, "r3": replace(rack, optical_ports=(port,))})


def other_outputs(fabric):
    return replace(fabric, splitters={n: replace(s, outputs=s.outputs[::-1]) for n, s in fabric.splitters.items()})


def without_splitters(fabric):
    return replace(fabric, splitters={})


def other_datapath(fabric):
    return replace(fabric, racks={**fabric.racks, "r3": replace(fabric.racks["r3"], datapath=77)})


@pytest.mark.parametrize("other", [without_rack_3, other_fiber, other_outputs, without_splitters, other_datapath])
@pytest.mark.parametrize("state", ["lit", "configuring", "releasing"])
def test_start_fails_if_used_hardware_is_not_configured(world, other, state):
    world.submit(multicast("a", "r1h1", GROUP))
    if state != "configuring":
        world.settle()
    if state == "releasing":
        world.handle(FinishRequested(key_of("a"), 0))
    world.fabric = other(world.fabric)
    world.crash()
    with pytest.raises(FabricError, match="the journal has"):
        world.start()


def test_unused_hardware_may_leave_the_configuration(world):
    world.granted(multicast("a", "r1h1", GROUP))
    kept = {name: splitter for name, splitter in world.fabric.splitters.items() if name == "s1"}
    port = OpticalPort("r6", 50, "ocs1", 90, 90)
    world.fabric = replace(world.fabric, splitters=kept, racks={**world.fabric.racks, "r6": Rack("r6", 6, (port,))})
    come_up(world)
    assert world.served() == set(GROUP)


def test_start_fails_if_a_host_of_a_pending_request_is_missing(world):
    world.submit(multicast("a", "r1h1", GROUP))
    world.submit(multicast("b", "r1h1", ["r3h2", "r4h1"]))
    world.withdraw("a")
    world.withdraw("b")
    hosts = {name: host for name, host in world.fabric.hosts.items() if name != "r3h2"}
    fabric = replace(world.fabric, hosts=hosts)
    world.submit(multicast("c", "r1h1", ["r2h1"]))
    world.submit(multicast("d", "r1h1", ["r3h2", "r4h1"]))
    world.crash()
    world.fabric = fabric
    with pytest.raises(FabricError, match=r"r3h2"):
        world.start()


def test_hosts_of_ended_requests_may_leave_the_configuration(world):
    world.granted(multicast("a", "r1h1", ["r3h2"]))
    world.finish("a")
    world.fabric = replace(world.fabric, hosts={n: h for n, h in world.fabric.hosts.items() if n != "r3h2"})
    come_up(world)
    assert world.part().state is PartState.DONE


@pytest.mark.parametrize(
    "other",
    [
        {},
        {"t1": StaticTree("t1", "r1", 61, None, {"r2": 60, "r3": 60}, frozenset())},
        {"t1": StaticTree("t1", "r1", 60, None, {"r2": 60, "r3": 62}, frozenset())},
    ],
    ids=["removed", "another root port", "another leaf port"],
)
def test_start_fails_if_a_static_tree_in_use_has_changed(other):
    fabric = make_fabric(3)
    tree = StaticTree("t1", "r1", 60, None, {"r2": 60, "r3": 60}, frozenset())
    world = ready_world(replace(fabric, static_trees={"t1": tree}))
    world.granted(multicast("a", "r1h1", GROUP))
    world.crash()
    world.fabric = replace(fabric, static_trees=other)
    with pytest.raises(FabricError, match="static tree t1"):
        world.start()


def test_start_without_journal_removes_rules_and_reports_circuits(world):
    world.granted(multicast("a", "r1h1", GROUP, size=10**12))
    circuits = world.switches["ocs1"].held
    world.crash()
    world.store = MemoryStore()
    world.start()
    world.connect_all()
    world.settle()
    assert not any(tor.held for tor in world.tors.values())
    assert world.switches["ocs1"].held == circuits != frozenset()
    report = audited(world, dry_run=True)
    assert report.commands == ()
    assert set(report.foreign) == {f"{c.input} to {c.output} on ocs1" for c in circuits}
