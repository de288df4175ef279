"""A new process takes over what an earlier one has left on disk and on devices: each state and phase, and who waits."""

from __future__ import annotations

from dataclasses import replace

import pytest

from blast_controller.core.model.commands import SetCircuits, SetForwarding
from blast_controller.core.model.errors import KeyReused, Rejected
from blast_controller.core.model.events import (
    ElementQuarantined,
    ElementReleased,
    ExtensionAsked,
    FinishAsked,
    RequestSubmitted,
    Tick,
    WithdrawAsked,
)
from blast_controller.core.model.part_states import PartState
from blast_controller.core.model.requests import Extension
from blast_controller.core.model.settings import CoreSettings
from tests.support.core import World, key_of, make_fabric, multicast, ready_world

GROUP = ["r2h1", "r3h1"]


@pytest.fixture
def world():
    return ready_world(make_fabric(5, [4, 4]))


def part_of(world, key="a"):
    return world.core.request(key_of(key)).parts[0]


def served(world, key="a", sender="r1h1"):
    return world.receivers_of(world.fabric.hosts[sender], part_of(world, key).grant.group_address)


def later(world, seconds):
    world.now += seconds
    world.handle(Tick())
    world.settle()


def come_up(world):
    """A new process, to which every device connects; what it tells devices is in `world.commands`."""
    world.restart()
    world.commands.clear()
    world.connect_all()
    world.settle()


def told_devices(world):
    return [c for c in world.commands if isinstance(c, SetCircuits | SetForwarding)]


# ------------------------------------------------------------------------------------------------ each state


@pytest.mark.parametrize("done", [(), ("ocs1",), (1, 2, 3), ("ocs1", 1), ("ocs1", 1, 2, 3)], ids=str)
def test_what_was_being_lit_is_undone_and_waits_again(world, done):
    world.submit(multicast("a", "r1h1", GROUP))
    for name in done:
        world.work(name)
    world.restart()
    assert part_of(world).state is PartState.PENDING
    assert world.core.view.holders, "nothing is free before the devices have confirmed that it is undone"
    world.connect_all()
    world.settle()
    assert world.kinds("a") == ["granted"]
    assert part_of(world).reservation == 2
    assert served(world) == set(GROUP)
    assert world.switches["ocs1"].held == set(next(iter(world.core.reservations)).layout.circuits)


def test_lit_trees_are_not_touched(world):
    world.granted(multicast("a", "r1h1", GROUP))
    world.granted(multicast("b", "r4h1", ["r5h1", "r4h2"]))
    before = {name: world.device(name).held for name in world.devices}
    moments = []
    world.after_operation = lambda: moments.append(world)
    come_up(world)
    assert told_devices(world) == []
    assert not moments
    assert {name: world.device(name).held for name in world.devices} == before
    assert served(world) == set(GROUP)


def test_what_a_lit_tree_has_lost_meanwhile_is_given_back(world):
    world.granted(multicast("a", "r1h1", GROUP))
    world.restart()
    world.come_back("ocs1", forgets=lambda circuit: circuit == 1)
    world.come_back(2, forgets=lambda rule: True)
    world.connect_all()
    world.settle()
    assert served(world) == set(GROUP)
    assert world.kinds("a") == ["granted"]


def test_releasing_goes_on(world):
    world.granted(multicast("a", "r1h1", GROUP))
    world.handle(FinishAsked(key_of("a"), 0))
    world.work(2)
    come_up(world)
    assert world.core.view.holders == {}
    assert not world.switches["ocs1"].held
    assert not any(tor.rules for tor in world.tors.values())
    assert part_of(world).state is PartState.DONE


@pytest.mark.parametrize("worked", range(4))
def test_adding_is_undone_and_the_client_is_told(world, worked):
    world.granted(multicast("a", "r1h1", GROUP))
    world.after_operation = lambda: set(GROUP) <= served(world) or pytest.fail("a receiver who stays was cut off")
    world.handle(ExtensionAsked(key_of("a"), Extension(add_receivers=("r4h1", "r2h2"), remove_receivers=("r3h1",))))
    for name in [name for name in world.devices if world.device(name).queue][:worked]:
        world.work(name)
    come_up(world)
    assert served(world) == set(GROUP)
    assert world.kinds("a") == ["granted", "changed"]
    event = world.core.request(key_of("a")).events[-1]
    assert event.reason == "the controller restarted during the change"
    assert event.grant.receivers == tuple(GROUP)
    assert "port:r4/50" not in world.core.view.holders
    assert {c.output for c in world.switches["ocs1"].held if c.output <= 5} == {2, 3}


def adding_done(world):
    """The change has come as far as taking the old away."""
    world.handle(ExtensionAsked(key_of("a"), Extension(add_receivers=("r4h1",), remove_receivers=("r3h1",))))
    for name in world.devices:
        while world.device(name).queue and next(iter(world.core.reservations)).change.phase.value == "adding":
            world.work(name)
            world.deliver()


@pytest.mark.parametrize("worked", range(3))
def test_removing_goes_on(world, worked):
    world.granted(multicast("a", "r1h1", GROUP))
    adding_done(world)
    assert next(iter(world.core.reservations)).change.phase.value == "removing"
    for name in [name for name in world.devices if world.device(name).queue][:worked]:
        world.work(name)
    come_up(world)
    assert served(world) == {"r2h1", "r4h1"}
    assert world.kinds("a") == ["granted", "changed"]
    assert world.core.request(key_of("a")).events[-1].reason is None
    assert part_of(world).receivers == ("r2h1", "r4h1")
    assert "port:r3/50" not in world.core.view.holders


def test_undoing_goes_on(world):
    world.granted(multicast("a", "r1h1", GROUP))
    world.handle(ExtensionAsked(key_of("a"), Extension(add_receivers=("r4h1",))))
    world.work("ocs1", denied={0})
    world.work(4)
    world.deliver()
    assert next(iter(world.core.reservations)).change.phase.value == "undoing"
    come_up(world)
    assert served(world) == set(GROUP)
    assert "denied" in world.core.request(key_of("a")).events[-1].reason
    assert not world.tors[4].rules


def test_withdrawn_in_a_change_everything_goes(world):
    world.granted(multicast("a", "r1h1", GROUP))
    world.handle(ExtensionAsked(key_of("a"), Extension(add_receivers=("r4h1",))))
    world.work("ocs1")
    world.handle(WithdrawAsked(key_of("a")))
    come_up(world)
    assert world.core.view.holders == {}
    assert not world.switches["ocs1"].held
    assert not any(tor.rules for tor in world.tors.values())


def test_died_before_any_deed_of_a_grant_it_is_granted_once_in_the_end():
    """A commit, a command to each device, a message to the client: the process may end before any of them."""
    for deeds in range(9):
        world = ready_world(make_fabric(3, [4]))
        world.crash_after = deeds
        world.handle(RequestSubmitted(multicast("a", "r1h1", GROUP)))
        world.settle()
        if not world.running:
            world.start()
            world.connect_all()
        world.crash_after = None
        world.handle(RequestSubmitted(multicast("a", "r1h1", GROUP)))
        world.settle()
        assert world.kinds("a") == ["granted"], deeds
        assert served(world) == set(GROUP)
        assert len(list(world.core.reservations)) == 1


# ---------------------------------------------------------------------------------------------- what is kept


def test_quarantine_and_its_reason_are_kept(world):
    world.handle(ElementQuarantined("splitter:s1", "dirty"))
    world.handle(ElementQuarantined("port:r2/50", "dirty"))
    world.handle(ElementReleased("port:r2/50"))
    come_up(world)
    assert world.core.view.quarantined == {"splitter:s1": "dirty"}


def test_numbers_and_addresses_are_not_used_again_at_once(world):
    """A late packet or a rule with an old cookie must not meet a new group."""
    world.granted(multicast("a", "r1h1", GROUP))
    first = part_of(world)
    world.granted(multicast("b", "r4h1", ["r5h1"]))
    second = part_of(world, "b")
    numbers = {first.reservation, second.reservation}
    addresses = {first.grant.group_address, second.grant.group_address}
    for key in "ab":
        world.handle(FinishAsked(key_of(key), 0))
    world.settle()
    come_up(world)
    third = world.granted(multicast("c", "r1h1", GROUP))
    assert third.reservation not in numbers
    assert third.grant.group_address not in addresses


def test_addresses_go_on_behind_the_last_one_given_whatever_is_live(world):
    world.granted(multicast("a", "r1h1", GROUP))
    world.granted(multicast("b", "r4h1", ["r5h1"]))
    freed = part_of(world, "b").grant.group_address
    world.handle(FinishAsked(key_of("b"), 0))
    world.settle()
    come_up(world)
    assert world.granted(multicast("c", "r4h1", ["r5h1"])).grant.group_address not in {
        freed,
        part_of(world).grant.group_address,
    }


def test_a_new_clock_gives_every_lease_its_full_length():
    world = ready_world(make_fabric(3, [4]))
    world.now = 1000.0
    part = world.granted(multicast("a", "r1h1", GROUP, size=10**11))
    lease = part.grant.lease
    assert lease == 160.0
    world.now += lease - 1.0
    world.crash()
    world.start(now=5.0)
    world.connect_all()
    later(world, lease - 0.5)
    assert part_of(world).state is PartState.ACTIVE
    later(world, 0.5)
    assert part_of(world).state is PartState.EXPIRED


def test_added_time_is_part_of_the_lease_after_a_restart(world):
    world.granted(multicast("a", "r1h1", GROUP))
    world.handle(ExtensionAsked(key_of("a"), Extension(add_seconds=30.0)))
    come_up(world)
    assert part_of(world).lease_end == world.now + 40.0
    world.handle(ExtensionAsked(key_of("a"), Extension(add_seconds=2.0)))
    assert part_of(world).lease_end == world.now + 42.0


def test_patience_begins_anew():
    world = World(make_fabric(3, [4]))
    world.now = 100.0
    world.submit(multicast("a", "r1h1", GROUP, patience=5.0))
    world.now = 104.0
    world.crash()
    world.start(now=0.0)
    later(world, 4.9)
    assert part_of(world).state is PartState.PENDING
    later(world, 0.1)
    assert part_of(world).state is PartState.EXPIRED


@pytest.mark.parametrize("asked_again", [False, True])
def test_whoever_waited_on_a_connection_has_a_grace_to_ask_again(asked_again):
    world = World(make_fabric(3, [4]))
    wanted = multicast("a", "r1h1", GROUP)
    world.handle(RequestSubmitted(wanted, attached=True))
    world.submit(multicast("b", "r1h1", GROUP))
    world.restart()
    grace = world.core.settings.orphan_grace
    world.now += grace / 2
    if asked_again:
        world.handle(RequestSubmitted(wanted, attached=True))
    later(world, grace)
    assert part_of(world).state is (PartState.PENDING if asked_again else PartState.WITHDRAWN)
    assert part_of(world, "b").state is PartState.PENDING, "nobody waited for it on a connection"


def test_a_granted_request_outlives_the_connection_that_waited_for_it(world):
    world.handle(RequestSubmitted(multicast("a", "r1h1", GROUP), attached=True))
    world.settle()
    come_up(world)
    later(world, world.core.settings.orphan_grace)
    assert part_of(world).state is PartState.ACTIVE


def test_ended_requests_are_remembered_their_full_time_again(world):
    wanted = multicast("a", "r1h1", GROUP)
    world.granted(wanted)
    world.handle(FinishAsked(key_of("a"), 0))
    world.settle()
    events = world.core.request(key_of("a")).events
    world.now = 3599.0
    come_up(world)
    assert world.core.request(key_of("a")).events == events
    world.handle(RequestSubmitted(wanted))
    assert part_of(world).state is PartState.DONE
    with pytest.raises(KeyReused):
        world.handle(RequestSubmitted(replace(wanted, bytes=7)))
    later(world, 3599.0)
    assert key_of("a") in world.core.requests
    later(world, 1.0)
    assert key_of("a") not in world.core.requests
    come_up(world)
    assert key_of("a") not in world.core.requests, "the journal has forgotten it, too"


def test_events_are_numbered_on(world):
    world.granted(multicast("a", "r1h1", GROUP))
    come_up(world)
    world.handle(FinishAsked(key_of("a"), 0))
    assert [(e.sequence, e.kind.value) for e in world.core.request(key_of("a")).events] == [
        (1, "granted"),
        (2, "ended"),
    ]


def test_who_waits_keeps_their_place(world):
    """One that was being lit when the controller died came before those that waited; all weigh the same."""
    for key in "abc":
        world.submit(multicast(key, "r1h1", GROUP))
    assert part_of(world, "a").state is PartState.CONFIGURING
    world.restart()
    assert [key for (_, key), _ in world.core.view.waiting] == ["a", "b", "c"]
    world.connect_all()
    world.settle()
    assert [key for key in "abc" if part_of(world, key).state is PartState.ACTIVE] == ["a"]


def test_a_request_that_was_too_much_is_not_in_the_journal(world):
    with pytest.raises(Rejected):
        world.submit(multicast("a", "r1h1", ["nobody"]))
    come_up(world)
    assert not world.core.requests


def test_audits_are_made_after_a_restart_too():
    world = ready_world(make_fabric(3, [4]), CoreSettings(reconcile_every=7.0))
    come_up(world)
    assert world.core.next_timer() == world.now + 7.0
