"""A restart with another configuration: light and requests that it has no hardware for stop the start."""

from __future__ import annotations

from dataclasses import replace

import pytest

from blast_controller.core.model.errors import FabricError
from blast_controller.core.model.events import FinishAsked, WithdrawAsked
from blast_controller.core.model.fabric import OpticalPort, Rack, StaticTree
from blast_controller.core.model.part_states import PartState
from tests.support.core import key_of, make_fabric, multicast, ready_world

GROUP = ["r2h1", "r3h1"]


@pytest.fixture
def world():
    return ready_world(make_fabric(5, [4, 4]))


def part_of(world, key="a"):
    return world.core.request(key_of(key)).parts[0]


def served(world, key="a", sender="r1h1"):
    return world.receivers_of(world.fabric.hosts[sender], part_of(world, key).grant.group_address)


def come_up(world):
    """A new process, to which every device connects; what it tells devices is in `world.commands`."""
    world.restart()
    world.commands.clear()
    world.connect_all()
    world.settle()


def without_rack_3(fabric):
    hosts = {name: host for name, host in fabric.hosts.items() if host.rack != "r3"}
    return replace(fabric, racks={n: r for n, r in fabric.racks.items() if n != "r3"}, hosts=hosts)


def other_fibre(fabric):
    rack = fabric.racks["r3"]
    port = replace(rack.optical_ports[0], input=99)
    return replace(fabric, racks={**fabric.racks, "r3": replace(rack, optical_ports=(port,))})


def other_legs(fabric):
    return replace(fabric, splitters={n: replace(s, outputs=s.outputs[::-1]) for n, s in fabric.splitters.items()})


def without_splitters(fabric):
    return replace(fabric, splitters={})


def other_datapath(fabric):
    return replace(fabric, racks={**fabric.racks, "r3": replace(fabric.racks["r3"], datapath=77)})


@pytest.mark.parametrize("other", [without_rack_3, other_fibre, other_legs, without_splitters, other_datapath])
@pytest.mark.parametrize("state", ["lit", "configuring", "releasing"])
def test_light_on_hardware_that_the_configuration_has_not_stops_the_start(world, other, state):
    world.submit(multicast("a", "r1h1", GROUP))
    if state != "configuring":
        world.settle()
    if state == "releasing":
        world.handle(FinishAsked(key_of("a"), 0))
    world.fabric = other(world.fabric)
    world.crash()
    with pytest.raises(FabricError, match="the journal holds"):
        world.start()


def test_hardware_that_nobody_holds_may_go(world):
    world.granted(multicast("a", "r1h1", GROUP))
    gone = {name: splitter for name, splitter in world.fabric.splitters.items() if name == "s1"}
    port = OpticalPort("r6", 50, "ocs1", 90, 90)
    world.fabric = replace(world.fabric, splitters=gone, racks={**world.fabric.racks, "r6": Rack("r6", 6, (port,))})
    come_up(world)
    assert served(world) == set(GROUP)


def test_a_host_that_somebody_waits_for_must_be_in_the_configuration(world):
    world.submit(multicast("a", "r1h1", GROUP))
    world.submit(multicast("b", "r1h1", ["r3h2", "r4h1"]))
    world.handle(WithdrawAsked(key_of("a")))
    world.settle()
    world.handle(WithdrawAsked(key_of("b")))
    world.settle()
    hosts = {name: host for name, host in world.fabric.hosts.items() if name != "r3h2"}
    fabric = replace(world.fabric, hosts=hosts)
    world.submit(multicast("c", "r1h1", ["r2h1"]))
    world.submit(multicast("d", "r1h1", ["r3h2", "r4h1"]))
    world.crash()
    world.fabric = fabric
    with pytest.raises(FabricError, match=r"r3h2"):
        world.start()


def test_hosts_of_requests_that_are_over_may_go(world):
    world.granted(multicast("a", "r1h1", ["r3h2"]))
    world.handle(FinishAsked(key_of("a"), 0))
    world.settle()
    world.fabric = replace(world.fabric, hosts={n: h for n, h in world.fabric.hosts.items() if n != "r3h2"})
    come_up(world)
    assert part_of(world).state is PartState.DONE


@pytest.mark.parametrize(
    "other",
    [
        {},
        {"t1": StaticTree("t1", "r1", 61, None, {"r2": 60, "r3": 60}, frozenset())},
        {"t1": StaticTree("t1", "r1", 60, None, {"r2": 60, "r3": 62}, frozenset())},
    ],
    ids=["gone", "another root port", "another leaf port"],
)
def test_a_static_tree_in_use_must_stay_as_it_is(other):
    fabric = make_fabric(3)
    tree = StaticTree("t1", "r1", 60, None, {"r2": 60, "r3": 60}, frozenset())
    world = ready_world(replace(fabric, static_trees={"t1": tree}))
    world.granted(multicast("a", "r1h1", GROUP))
    world.crash()
    world.fabric = replace(fabric, static_trees=other)
    with pytest.raises(FabricError, match="static tree t1"):
        world.start()
