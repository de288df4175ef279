"""Static trees: splitters fixed between ToRs and hosts, granted through rules alone, one group at a time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from blast_controller.core.light.static_tree import covers, light_of
from blast_controller.core.model.commands import Forward, SetCircuits, SetForwarding
from blast_controller.core.model.errors import RejectedError
from blast_controller.core.model.events import ElementQuarantined, ElementReleased, PortChanged, TimePassed
from blast_controller.core.model.fabric import StaticTree
from blast_controller.core.model.part_states import PartState
from tests.support.controller.core import make_fabric, multicast, ready_world, rejected

AT_TOR = StaticTree("t1", "r1", 60, None, {"r2": 60, "r3": 61}, frozenset({"r4h2"}))
"""From the ToR of r1 to the ToRs of r2 and r3, and straight to the host r4h2."""
AT_HOST = StaticTree("t2", None, 0, "r1h2", {"r2": 62, "r1": 63}, frozenset({"r3h2"}))
"""From the host r1h2, with its own transmitter, to two ToRs (one its own) and a host."""
GROUP = ["r2h1", "r2h2", "r3h1"]


def fabric_with(*trees, splitters=(), ports=0):
    return replace(make_fabric(5, splitters, ports=ports), static_trees={tree.name: tree for tree in trees})


def world_with(*trees, splitters=(), ports=0):
    return ready_world(fabric_with(*trees, splitters=splitters, ports=ports))


def rules(world):
    """Return the forwards of each ToR that has rules, by datapath."""
    return {tor.datapath: {forward for _, forward in tor.held} for tor in world.tors.values() if tor.rules}


def test_static_tree_granted_on_tor_connect_leaves_switch_ports_free():
    """The ToR's port on the switch becomes usable at the same time, and no device has to confirm the tree."""
    world = world_with(AT_HOST, ports=1)
    world.lose(3)
    world.settle()
    world.serve(multicast("a", "r1h2", ["r3h2"]))
    assert world.part().state is PartState.PENDING
    world.come_back(3)
    world.settle()
    assert world.part().state is PartState.ACTIVE and set(world.core.view.holders) == {"static:t2"}
    world.serve(multicast("b", "r3h1", ["r1h1"]))
    assert world.part("b").state is PartState.ACTIVE


@pytest.mark.parametrize(
    ("tree", "sender", "receivers", "covered"),
    [
        (AT_TOR, "r1h1", ["r2h1", "r3h2"], True),
        (AT_TOR, "r1h2", ["r2h1"], True),
        (AT_TOR, "r1h1", ["r1h2", "r2h1"], True),
        (AT_TOR, "r1h1", ["r4h2"], True),
        (AT_TOR, "r1h1", ["r4h1"], False),
        (AT_TOR, "r1h1", ["r2h1", "r5h1"], False),
        (AT_TOR, "r2h1", ["r3h1"], False),
        (AT_TOR, "r2h1", ["r1h1"], False),
        (AT_HOST, "r1h2", ["r2h1", "r3h2"], True),
        (AT_HOST, "r1h2", ["r1h1", "r2h1"], True),
        (AT_HOST, "r1h1", ["r2h1"], False),
        (AT_HOST, "r1h2", ["r3h1"], False),
    ],
)
def test_static_tree_covers_hosts_reachable_from_its_root(tree, sender, receivers, covered):
    hosts = make_fabric(5).hosts
    assert covers(tree, hosts[sender], [hosts[name] for name in receivers]) == covered


def test_root_host_without_a_leaf_at_its_rack_misses_its_neighbors():
    """The signal of a root host bypasses its own ToR."""
    hosts = make_fabric(5).hosts
    tree = replace(AT_HOST, leaf_ports={"r2": 62})
    assert not covers(tree, hosts["r1h2"], [hosts["r1h1"]])


def test_static_tree_uses_only_leaves_with_members():
    hosts = make_fabric(5).hosts
    light = light_of(AT_TOR, hosts["r1h1"], [hosts["r1h2"], hosts["r3h1"], hosts["r4h2"]])
    assert [(leaf.port.rack, leaf.port.port) for leaf in light.leaves] == [("r3", 61)]
    assert (light.root.rack, light.root.port) == ("r1", 60)
    assert (light.circuits, light.elements, light.free_outputs) == ((), {"static:t1"}, ())


def test_static_tree_is_granted_by_rules_alone():
    world = world_with(AT_TOR)
    part = world.granted(multicast("a", "r1h1", ["r1h2", *GROUP]))
    group = part.grant.group_address
    assert rules(world) == {
        1: {Forward(1, "10.0.1.1", group, (2, 60))},
        2: {Forward(60, "10.0.1.1", group, (1, 2))},
        3: {Forward(61, "10.0.1.1", group, (1,))},
    }
    assert not [c for c in world.commands if isinstance(c, SetCircuits)]
    assert world.core.view.holders == {"static:t1": 1}
    world.finish("a")
    assert rules(world) == {}
    assert world.core.view.holders == {}


def test_host_attached_to_a_splitter_needs_no_rule():
    world = world_with(AT_TOR)
    part = world.granted(multicast("a", "r1h1", ["r4h2", "r2h1"]))
    assert rules(world).keys() == {1, 2}
    assert part.grant.receivers == ("r4h2", "r2h1")


def test_group_of_attached_hosts_needs_no_device():
    world = world_with(AT_HOST)
    part = world.granted(multicast("a", "r1h2", ["r3h2"]))
    assert rules(world) == {}
    assert part.state is PartState.ACTIVE
    assert not [c for c in world.commands if isinstance(c, SetForwarding)]
    world.finish("a")
    assert world.core.view.holders == {}
    assert not list(world.core.reservations)


def test_static_tree_serves_one_group_at_a_time():
    world = world_with(AT_TOR)
    world.granted(multicast("a", "r1h1", GROUP))
    world.serve(multicast("b", "r1h2", ["r2h1"]))
    assert world.part("b").state is PartState.PENDING
    assert world.reason("b") == "Waiting for the static tree t1."
    world.finish("a")
    assert world.part("b").state is PartState.ACTIVE


def test_request_outside_every_static_tree_is_rejected():
    world = world_with(AT_TOR)
    with pytest.raises(RejectedError) as refusal:
        world.submit(multicast("a", "r1h1", ["r2h1", "r5h1"]))
    assert refusal.value.code in ("group_too_wide", "no_path")
    with pytest.raises(RejectedError):
        world.submit(multicast("a", "r2h1", ["r1h1"]))


def test_static_tree_is_preferred_to_the_switch():
    world = world_with(AT_TOR, splitters=[4], ports=1)
    world.granted(multicast("a", "r1h1", GROUP))
    assert world.core.view.holders == {"static:t1": 1}
    assert not world.switches["ocs1"].held


def test_released_static_tree_serves_a_pending_request():
    world = world_with(AT_TOR, splitters=[4], ports=1)
    world.handle(ElementQuarantined("static:t1", "cut"))
    world.granted(multicast("before", "r5h1", ["r1h1", "r2h1"]))
    world.serve(multicast("a", "r1h1", GROUP))
    assert world.part().state is PartState.PENDING
    world.run(ElementReleased("static:t1"))
    assert world.part().state is PartState.ACTIVE and world.core.view.holders["static:t1"] == 2


def test_members_can_change_within_the_static_tree():
    world = world_with(AT_TOR)
    group = world.granted(multicast("a", "r1h1", ["r2h1"], size=10**12)).grant.group_address
    world.extend("a", add_receivers=("r3h2", "r4h2", "r1h2"))
    world.settle()
    assert world.part().receivers == ("r2h1", "r3h2", "r4h2", "r1h2")
    assert rules(world) == {
        1: {Forward(1, "10.0.1.1", group, (2, 60))},
        2: {Forward(60, "10.0.1.1", group, (1,))},
        3: {Forward(61, "10.0.1.1", group, (2,))},
    }
    world.extend("a", remove_receivers=("r2h1", "r4h2", "r1h2"))
    world.settle()
    assert rules(world).keys() == {1, 3}
    assert world.core.view.holders == {"static:t1": 1}


def test_extension_beyond_the_static_tree_changes_nothing():
    world = world_with(AT_TOR, splitters=[4], ports=1)
    world.granted(multicast("a", "r1h1", GROUP))
    before = rules(world)
    with rejected("no_free_output", "The static tree t1 does not reach all of these receivers"):
        world.extend("a", add_receivers=("r5h1",))

    assert rules(world) == before
    assert world.kinds("a") == ["granted"]


def test_static_tree_survives_a_restart_unchanged():
    world = world_with(AT_TOR, AT_HOST)
    world.granted(multicast("a", "r1h1", GROUP, size=10**12))
    world.granted(multicast("b", "r1h2", ["r1h1", "r3h2"], size=10**12))
    before = rules(world)
    held = dict(world.core.view.holders)
    world.restart()
    world.commands.clear()
    world.connect_all()
    world.settle()
    assert world.commands == []
    assert rules(world) == before
    assert world.core.view.holders == held
    world.extend("a", add_receivers=("r4h2",))
    world.settle()
    assert world.part().receivers == (*GROUP, "r4h2")
    world.finish("a")
    world.finish("b")
    assert rules(world) == {}


def test_status_names_only_the_leaf_without_a_link():
    """A static tree has no other output, and a faulty element cannot be identified, so none is quarantined."""
    world = world_with(AT_TOR)
    world.granted(multicast("a", "r1h1", GROUP, size=10**12))
    world.commands.clear()
    world.handle(PortChanged(2, 60, up=False))
    world.now += 1.0
    world.handle(TimePassed())
    assert world.reason() == "no light at port:r2/60, and the fibers of the static tree t1 are fixed"
    assert world.core.view.quarantined == {}
    assert world.commands == []
    world.handle(PortChanged(2, 60, up=True))
    assert world.reason() is None
