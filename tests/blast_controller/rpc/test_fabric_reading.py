"""The answer of `fabric` is correct after every change, and rebuilt only where something has changed."""

from __future__ import annotations

from blast_controller.core.model.events import DeviceDisconnected, ElementQuarantined, FinishRequested
from blast_controller.rpc.fabric_reading import FabricReading
from tests.support.controller.core import key_of, make_fabric, multicast, ready_world


def test_fabric_answer_is_rebuilt_only_where_it_changed() -> None:
    world = ready_world(make_fabric(8, [4, 4]))
    world.granted(multicast("first", "r5h1", ["r6h1", "r7h1"]))
    reading = FabricReading()
    before = reading.read(world.core.snapshot, None)
    world.granted(multicast("k", "r1h1", ["r2h1", "r3h1"]))
    after = reading.read(world.core.snapshot, None)
    assert after == FabricReading().read(world.core.snapshot, None)
    rebuilt = [rack.name for rack, old in zip(after.racks, before.racks, strict=True) if rack is not old]
    assert rebuilt == ["r1", "r2", "r3"]
    assert [s.name for s, old in zip(after.splitters, before.splitters, strict=True) if s is not old] == ["s2"]
    assert after.lightTrees[0] is before.lightTrees[0]
    # An answer that was returned stays unchanged.
    assert before.racks[0].opticalPorts[0].reservation is None
    assert len(before.lightTrees) == 1


def test_fabric_answer_shows_disconnected_and_quarantined_elements() -> None:
    world = ready_world(make_fabric(4, [4]))
    reading = FabricReading()
    reading.read(world.core.snapshot, None)
    world.handle(DeviceDisconnected(2, "gone"))
    world.handle(ElementQuarantined("splitter:s1", "dirty"))
    found = reading.read(world.core.snapshot, None)
    assert [rack.connected for rack in found.racks] == [True, False, True, True]
    assert found.splitters[0].unusable == "dirty"


def test_fabric_answer_depends_on_tenant_and_core() -> None:
    world = ready_world(make_fabric(4, [4]))
    reading = FabricReading()
    world.granted(multicast("k", "r1h1", ["r2h1", "r3h1"]))
    assert len(reading.read(world.core.snapshot, None).lightTrees) == 1
    assert reading.read(world.core.snapshot, "another tenant").lightTrees == []
    world.handle(FinishRequested(key_of("k"), 0))
    world.settle()
    other = ready_world(make_fabric(2, [4]))
    assert len(reading.read(other.core.snapshot, None).racks) == 2
    assert reading.read(world.core.snapshot, None).lightTrees == []
