"""Trees kept lit after a transfer: granted again without touching a device, given up when somebody needs a piece."""

from __future__ import annotations

from dataclasses import replace

import pytest

from blast_controller.core.model.commands import SetCircuits, SetForwarding
from blast_controller.core.model.events import (
    DeviceDown,
    ElementQuarantined,
    FinishAsked,
    LightAlarm,
    PortChanged,
    SettingsChanged,
    Tick,
    WithdrawAsked,
)
from blast_controller.core.model.part_states import PartState
from blast_controller.core.model.settings import CoreSettings, TenantLimits
from blast_controller.core.rollout.reservation_states import ReservationState
from tests.support.core import TENANT, key_of, make_fabric, multicast, ready_world

GROUP = ("r2h1", "r3h1")
WARM = CoreSettings(keep_warm=60.0, reconcile_every=None)


@pytest.fixture
def world():
    return ready_world(make_fabric(5, [4, 4]), WARM)


def part_of(world, key):
    return world.core.request(key_of(key)).parts[0]


def submit(world, key, sender="r1h1", receivers=GROUP):
    world.submit(multicast(key, sender, receivers))
    world.settle()
    return part_of(world, key)


def finish(world, key):
    world.handle(FinishAsked(key_of(key), 0))
    world.settle()


def iterate(world, *keys):
    for key in keys:
        submit(world, key)
        finish(world, key)


def told(world):
    return [c for c in world.commands if isinstance(c, SetCircuits | SetForwarding)]


def states(world):
    return [reservation.state for reservation in world.core.reservations]


def later(world, seconds):
    world.now += seconds
    world.handle(Tick())
    world.settle()


def circuits(world):
    return set().union(*(switch.circuits for switch in world.switches.values()))


def test_the_same_group_again_is_granted_without_a_word_to_a_device(world):
    iterate(world, "a")
    before = circuits(world)
    world.commands.clear()
    part = submit(world, "b")
    assert part.state is PartState.ACTIVE and part.grant.group_address == part_of(world, "a").grant.group_address
    assert told(world) == [] and circuits(world) == before != set()
    assert part.grant.timings.optical is None and part.grant.timings.openflow is None
    served = world.receivers_of(world.fabric.hosts["r1h1"], part.grant.group_address)
    assert served == set(GROUP)


def test_the_order_of_the_receivers_does_not_matter(world):
    iterate(world, "a")
    world.commands.clear()
    assert submit(world, "b", receivers=GROUP[::-1]).state is PartState.ACTIVE and told(world) == []


@pytest.mark.parametrize(("sender", "receivers"), [("r1h2", GROUP), ("r1h1", ("r2h1",)), ("r1h1", ("r2h2", "r3h1"))])
def test_another_group_is_not_served_by_it(world, sender, receivers):
    iterate(world, "a")
    world.commands.clear()
    part = submit(world, "b", sender, receivers)
    assert part.state is PartState.ACTIVE and told(world)
    assert world.receivers_of(world.fabric.hosts[sender], part.grant.group_address) == set(receivers)


def test_another_tenant_does_not_get_it(world):
    iterate(world, "a")
    world.commands.clear()
    world.submit(replace(multicast("b", "r1h1", GROUP), tenant="other"))
    world.settle()
    assert told(world) and world.core.request(("other", "b")).parts[0].state is PartState.ACTIVE


def test_whoever_needs_a_piece_of_it_gets_it(world):
    iterate(world, "a")
    assert states(world) == [ReservationState.IDLE]
    part = submit(world, "b", "r4h1", ("r2h1", "r5h1"))
    assert part.state is PartState.ACTIVE and states(world) == [ReservationState.LIT]


def test_what_nobody_needs_is_left_alone(world):
    world = ready_world(make_fabric(6, [4, 4]), WARM)
    iterate(world, "a")
    submit(world, "b", "r4h1", ("r5h1", "r6h1"))
    assert sorted(s.value for s in states(world)) == ["idle", "lit"]


def test_a_splitter_that_is_idle_is_the_last_to_be_taken_and_is_to_be_had(world):
    world = ready_world(make_fabric(9, [4, 4]), WARM)
    iterate(world, "a")
    submit(world, "b", "r4h1", ("r5h1", "r6h1"))
    assert sorted(s.value for s in states(world)) == ["idle", "lit"]
    assert submit(world, "c", "r7h1", ("r8h1", "r9h1")).state is PartState.ACTIVE
    assert [s.value for s in states(world)] == ["lit", "lit"]


def test_who_waits_when_the_transfer_is_done_is_served_as_before(world):
    world = ready_world(make_fabric(5, [4]), WARM)
    submit(world, "a")
    assert submit(world, "b", "r4h1", ("r2h1", "r5h1")).state is PartState.PENDING
    finish(world, "a")
    assert part_of(world, "b").state is PartState.ACTIVE


def test_it_cools_down(world):
    iterate(world, "a")
    later(world, 30.0)
    iterate(world, "b")
    later(world, 59.0)
    assert states(world) == [ReservationState.IDLE]
    later(world, 1.5)
    assert states(world) == [] and circuits(world) == set()


def test_nothing_is_kept_of_what_was_withdrawn_or_when_it_is_switched_off(world):
    submit(world, "a")
    world.handle(WithdrawAsked(key_of("a")))
    world.settle()
    assert states(world) == []
    world.handle(SettingsChanged(replace(WARM, keep_warm=0.0)))
    iterate(world, "b")
    assert states(world) == []


def test_what_has_gone_dark_is_not_granted_again(world):
    iterate(world, "a")
    (kept,) = world.core.reservations
    world.handle(LightAlarm("ocs1", kept.layout.tree.leaves[0].port.output, "LOS"))
    world.settle()
    assert states(world) == []
    iterate(world, "b")
    (kept,) = world.core.reservations
    leaf = kept.layout.tree.leaves[0].port
    world.handle(PortChanged(world.core.fabric.datapath_of(leaf.rack), leaf.port, False, "no light"))
    later(world, 2.0)
    assert states(world) == []


def test_a_quarantined_piece_is_not_granted_again(world):
    iterate(world, "a")
    (kept,) = world.core.reservations
    splitter = next(element for element in kept.elements if element.startswith("splitter:"))
    world.handle(ElementQuarantined(splitter, "broken"))
    world.settle()
    assert states(world) == []


@pytest.mark.parametrize("device", ["ocs1", 2])
def test_it_is_not_granted_while_a_device_of_it_is_away(world, device):
    iterate(world, "a")
    world.handle(DeviceDown(device, "gone"))
    assert submit(world, "b").state is PartState.PENDING


def test_it_is_found_again_after_a_restart(world):
    iterate(world, "a")
    world.restart()
    world.connect_all()
    world.settle()
    world.commands.clear()
    assert submit(world, "b").state is PartState.ACTIVE and told(world) == []


def test_it_counts_against_no_limit_of_its_tenant(world):
    limited = replace(WARM, tenants={TENANT: TenantLimits(max_splitters=1)})
    world = ready_world(make_fabric(6, [4, 4]), limited)
    iterate(world, "a")
    assert submit(world, "b", "r4h1", ("r5h1", "r6h1")).state is PartState.ACTIVE
    world.commands.clear()
    assert submit(world, "c").state is PartState.PENDING and told(world) == []


def test_a_piece_changes_hands_in_one_round(world):
    iterate(world, "a")
    world.commands.clear()
    world.submit(multicast("b", "r4h1", ("r2h1", "r5h1")))
    (command,) = [c for c in world.commands if isinstance(c, SetCircuits)]
    assert [bool(change.disconnect) for change in command.changes] == [True, False]
    world.settle()
    assert part_of(world, "b").state is PartState.ACTIVE


def test_what_cannot_be_undone_comes_back_to_who_has_handed_it_over(world):
    iterate(world, "a")
    (kept,) = world.core.reservations
    held = set(kept.elements)
    world.submit(multicast("b", "r4h1", ("r3h1", "r5h1")))
    world.work("ocs1", denied={0})
    world.settle()
    assert part_of(world, "b").state is PartState.PENDING
    assert {e for e, holder in world.core.view.holders.items() if holder == kept.id} == held
    later(world, 2.0)
    assert part_of(world, "b").state is PartState.ACTIVE and states(world) == [ReservationState.LIT]


@pytest.mark.parametrize("work_done", [0, 1, 2, 4])
def test_a_crash_while_a_piece_changes_hands_leaves_nothing_behind(world, work_done):
    iterate(world, "a")
    world.submit(multicast("b", "r4h1", ("r2h1", "r5h1")))
    for name in list(world.devices)[:work_done]:
        if world.device(name).queue:
            world.work(name)
    world.restart()
    world.connect_all()
    world.settle()
    assert part_of(world, "b").state is PartState.ACTIVE and states(world) == [ReservationState.LIT]
    (lit,) = world.core.reservations
    assert circuits(world) == {c.input for c in lit.layout.circuits}


def test_who_has_handed_pieces_over_leaves_the_circuits_on_them_alone(world):
    """The new tree hangs its leaves on the same legs; the old one still waits for a ToR when the switch comes back."""
    iterate(world, "a")
    world.submit(multicast("b", "r4h1", GROUP))
    for name in [name for name in world.devices if name != 1]:
        while world.device(name).queue:
            world.work(name)
    world.deliver()
    assert part_of(world, "b").state is PartState.ACTIVE
    before = circuits(world)
    world.lose("ocs1")
    world.deliver()
    world.connect_all()
    world.settle()
    assert circuits(world) == before
    assert world.receivers_of(world.fabric.hosts["r4h1"], part_of(world, "b").grant.group_address) == set(GROUP)


def test_it_is_not_granted_while_a_leaf_has_no_link(world):
    iterate(world, "a")
    (kept,) = world.core.reservations
    leaf = kept.layout.tree.leaves[0].port
    world.handle(PortChanged(world.core.fabric.datapath_of(leaf.rack), leaf.port, False, "no light"))
    world.commands.clear()
    submit(world, "b")
    assert told(world), "a new tree is made, whose grant waits for the link"
    assert part_of(world, "b").state is PartState.CONFIGURING
