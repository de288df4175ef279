"""Ports whose two fibres may serve different groups: a rack sends to one while it receives from another."""

from __future__ import annotations

import pytest

from blast_controller.core.inventory.custody import PROBER
from blast_controller.core.model.events import ElementQuarantined, VerifyAsked
from blast_controller.core.model.part_states import PartState
from blast_controller.core.model.settings import CoreSettings
from tests.support.core import by_sides, key_of, make_fabric, multicast, ready_world


@pytest.fixture
def world():
    return ready_world(by_sides(make_fabric(4, [4, 4])), CoreSettings(reconcile_every=None))


def granted(world, key, sender, receivers):
    world.submit(multicast(key, sender, receivers))
    world.settle()
    return world.core.request(key_of(key)).parts[0]


def reached(world, key, sender):
    grant = world.core.request(key_of(key)).parts[0].grant
    return world.receivers_of(world.fabric.hosts[sender], grant.group_address)


def test_a_rack_sends_to_one_group_and_receives_from_another(world):
    assert granted(world, "a", "r1h1", ["r2h1", "r3h1"]).state is PartState.ACTIVE
    assert granted(world, "b", "r2h1", ["r1h1", "r4h1"]).state is PartState.ACTIVE
    assert reached(world, "a", "r1h1") == {"r2h1", "r3h1"} and reached(world, "b", "r2h1") == {"r1h1", "r4h1"}
    held = set(world.core.view.holders)
    assert {"port:r1/50/tx", "port:r2/50/rx", "port:r2/50/tx", "port:r1/50/rx"} <= held


def test_two_senders_do_not_share_a_receiver(world):
    granted(world, "a", "r1h1", ["r2h1", "r3h1"])
    assert granted(world, "b", "r4h1", ["r3h1"]).state is PartState.PENDING
    (request,) = [r for r in world.core.requests.values() if r.current.key == "b"]
    assert world.core.reason(request.current, request.parts[0], world.now) == "Waiting for a free optical port of r3."


def test_one_side_can_be_quarantined(world):
    world.handle(ElementQuarantined("port:r1/50/tx", "its laser is dying"))
    assert granted(world, "a", "r2h1", ["r1h1", "r3h1"]).state is PartState.ACTIVE
    assert granted(world, "b", "r4h1", ["r2h1"]).state is PartState.ACTIVE


def test_it_survives_a_restart(world):
    granted(world, "a", "r1h1", ["r2h1", "r3h1"])
    granted(world, "b", "r2h1", ["r1h1", "r4h1"])
    world.restart()
    world.connect_all()
    world.settle()
    assert reached(world, "a", "r1h1") == {"r2h1", "r3h1"} and reached(world, "b", "r2h1") == {"r1h1", "r4h1"}


def test_only_ports_with_both_fibres_free_are_probed(world):
    granted(world, "a", "r1h1", ["r2h1"])
    world.handle(VerifyAsked(bytes(32)))
    probed = {element for element, holder in world.core.view.holders.items() if holder == PROBER}
    sides = {f"port:{rack}/50/{side}" for rack in ("r3", "r4") for side in ("tx", "rx")}
    assert probed == sides | {"splitter:s1", "splitter:s2"}
    world.settle()
    assert granted(world, "b", "r3h1", ["r4h1"]).state in (PartState.PENDING, PartState.ACTIVE)


def test_both_sides_are_one_port_again():
    fabric = make_fabric(4, [4, 4])
    assert by_sides(fabric).whole_ports_on("ocs1") == fabric.ports_on("ocs1")
    assert by_sides(fabric).directional and not fabric.directional
