"""Extending a request: more or fewer members, more time, more bytes; refused whole or done whole, and hitless."""

from __future__ import annotations

import pytest

from blast_controller.core.model.errors import RejectedError, RequestEndedError, UnknownRequestError
from blast_controller.core.model.events import DeviceDown, DeviceUp, ExtensionAsked, FinishAsked, Tick
from blast_controller.core.model.part_states import PartState
from blast_controller.core.model.requests import Extension
from blast_controller.core.model.settings import CoreSettings
from tests.support.core import key_of, make_fabric, multicast, ready_world, rejected


@pytest.fixture
def world():
    """Return a world with a group from r1h1 to r2, r3 and r4 over a 1:4 splitter.

    One output of the splitter is open, and a 1:2 splitter is free.
    """
    world = ready_world(make_fabric(8, [4, 2]))
    world.granted(multicast("a", "r1h1", ["r1h2", "r2h1", "r3h1", "r4h1"]))
    world.commands.clear()
    return world


def extend(world, **change):
    return world.extend("a", **change)


def served(world):
    grant = world.part().grant
    return world.receivers_of(world.fabric.hosts["r1h1"], grant.group_address)


def state_of(world):
    core = world.core
    return repr((core.requests, list(core.reservations), core.view.holders))


def contents(world):
    """All that devices hold."""
    switches = {name: switch.held for name, switch in world.switches.items()}
    return switches, {datapath: dict(tor.rules) for datapath, tor in world.tors.items()}


def keep_serving(world, staying):
    """From now on, after every single operation of a device, `staying` must be served."""
    moments = []

    def check():
        moments.append(served(world))
        assert set(staying) <= moments[-1]

    world.after_operation = check
    return moments


def test_a_member_of_a_lit_rack_costs_one_rule(world):
    extend(world, add_receivers=("r3h2",))
    world.settle()
    assert served(world) == {"r1h2", "r2h1", "r3h1", "r3h2", "r4h1"}
    assert not [c for c in world.commands if hasattr(c, "switch")], "no cross-connect changes"


def test_a_new_rack_takes_the_free_output(world):
    moments = keep_serving(world, ["r1h2", "r2h1", "r3h1", "r4h1"])
    extend(world, add_receivers=("r5h1",))
    world.settle()
    assert served(world) == {"r1h2", "r2h1", "r3h1", "r4h1", "r5h1"}
    assert moments
    assert "splitter:s2" not in world.core.view.holders
    assert world.kinds("a") == ["granted", "changed"]


def test_members_leave_without_a_gap_for_the_others(world):
    extend(world, add_receivers=("r5h1", "r6h1"))
    world.settle()
    keep_serving(world, ["r2h1"])
    extend(world, remove_receivers=("r1h2", "r3h1", "r5h1", "r6h1"))
    world.settle()
    assert served(world) == {"r2h1", "r4h1"}
    assert set(world.core.view.holders) == {"port:r1/50", "port:r2/50", "port:r4/50", "splitter:s1"}


def test_all_members_change_places(world):
    extend(world, add_receivers=("r5h2",), remove_receivers=("r1h2", "r2h1", "r3h1", "r4h1"))
    world.settle()
    assert served(world) == {"r5h2"}
    assert world.part().grant.receivers == ("r5h2",)


def test_without_an_free_output_nothing_changes():
    world = ready_world(make_fabric(4, [4]))
    world.granted(multicast("a", "r1h1", ["r2h1"]))
    before = state_of(world)
    with rejected("no_free_output", "no free splitter output"):
        extend(world, add_receivers=("r3h1",))

    assert state_of(world) == before
    assert served(world) == {"r2h1"}


def test_without_a_free_port_nothing_changes(world):
    world.granted(multicast("b", "r5h1", ["r6h1"]))
    before = state_of(world)
    with pytest.raises(RejectedError, match="r5 has no free optical port"):
        extend(world, add_receivers=("r5h1",))
    assert state_of(world) == before


def test_a_first_tree_needs_resources():
    world = ready_world(make_fabric(3, [4]))
    world.granted(multicast("a", "r1h1", ["r1h2"]))
    world.granted(multicast("b", "r2h1", ["r3h1"]))
    with rejected("no_resources"):
        extend(world, add_receivers=("r2h1",))


def test_the_limit_of_splitters_holds_for_extensions():
    world = ready_world(make_fabric(6, [2, 2, 2]), CoreSettings(max_splitters_per_tree=1))
    world.granted(multicast("a", "r1h1", ["r2h1", "r3h1"]))
    with rejected("no_free_output"):
        extend(world, add_receivers=("r4h1",))


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({}, "bad_extension"),
        ({"add_seconds": -1.0}, "bad_extension"),
        ({"add_seconds": float("inf")}, "bad_extension"),
        ({"add_bytes": -1}, "bad_extension"),
        ({"add_bytes": 1 << 62}, "bad_bytes"),
        ({"remove_receivers": ("r5h1",)}, "not_a_receiver"),
        ({"add_receivers": ("r2h1",)}, "duplicate_receivers"),
        ({"add_receivers": ("r1h1",)}, "sender_among_receivers"),
        ({"add_receivers": ("nobody",)}, "unknown_host"),
        ({"remove_receivers": ("r1h2", "r2h1", "r3h1", "r4h1")}, "no_receivers"),
    ],
)
@pytest.mark.parametrize("pending", [False, True], ids=["active", "pending"])
def test_senseless_extensions_change_nothing(world, change, code, pending):
    if pending:
        world.submit(multicast("b", "r1h1", ["r1h2", "r2h1", "r3h1", "r4h1"]))
    before = state_of(world)
    with rejected(code):
        world.handle(ExtensionAsked(key_of("b" if pending else "a"), Extension(**change)))

    assert state_of(world) == before


def test_more_time_needs_no_device(world):
    commands = extend(world, add_seconds=30.0)
    assert [type(c).__name__ for c in commands] == ["Publish"]
    part = world.part()
    assert (part.lease_end, part.grant.lease) == (40.0, 40.0)
    world.now = 39.9
    world.handle(Tick())
    assert part.state is PartState.ACTIVE
    world.now = 40.0
    world.handle(Tick())
    assert part.state is PartState.EXPIRED


def test_more_bytes_lengthen_service_and_lease(world):
    world.now = 5.0
    extend(world, add_bytes=9 * 10**9)
    part = world.part()
    assert part.grant.estimated_service == 8.0
    assert (part.grant.lease, part.lease_end) == (16.0, 16.0)
    assert world.core.request(key_of("a")).current.bytes == 10**10


def test_extending_what_waits_changes_what_it_waits_for(world):
    world.submit(multicast("b", "r1h1", ["r5h1"]))
    request = key_of("b")
    world.handle(ExtensionAsked(request, Extension(add_receivers=("r6h1",), add_seconds=7.0, add_bytes=1)))
    assert world.kinds("b") == ["changed"]
    world.finish("a")
    grant = world.core.request(request).parts[0].grant
    assert grant.receivers == ("r5h1", "r6h1")
    assert grant.lease == 17.0
    with rejected("group_too_wide"):
        world.submit(multicast("c", "r1h1", ["r8h1"]))
        world.handle(ExtensionAsked(key_of("c"), Extension(add_receivers=tuple(f"r{n}h1" for n in range(2, 8)))))


def test_one_change_at_a_time(world):
    extend(world, add_receivers=("r5h1",))
    with rejected("busy"):
        extend(world, add_seconds=1.0)

    world.settle()
    extend(world, add_seconds=1.0)
    world.submit(multicast("b", "r7h1", ["r8h1"]))
    with pytest.raises(RejectedError) as refusal:
        world.extend("b", add_seconds=1.0)
    assert refusal.value.code == "busy", "while it is being configured"


def test_what_is_over_cannot_be_extended(world):
    world.handle(FinishAsked(key_of("a"), 0))
    with pytest.raises(RequestEndedError) as ended:
        extend(world, add_seconds=1.0)
    assert ended.value.state == "done"
    with pytest.raises(UnknownRequestError):
        world.extend("zzz", add_seconds=1.0)


@pytest.mark.parametrize("device", ["ocs1", 5], ids=["optical switch", "ToR"])
def test_a_refused_device_step_leaves_the_old_state(world, device):
    keep_serving(world, ["r1h2", "r2h1", "r3h1", "r4h1"])
    held, on_devices = dict(world.core.view.holders), contents(world)
    extend(world, add_receivers=("r5h1",), remove_receivers=("r1h2", "r3h1"))
    world.work(device, denied={0})
    world.settle()
    assert contents(world) == on_devices
    assert served(world) == {"r1h2", "r2h1", "r3h1", "r4h1"}
    event = world.core.request(key_of("a")).events[-1]
    assert (event.kind.value, event.grant.receivers) == ("changed", ("r1h2", "r2h1", "r3h1", "r4h1"))
    assert "denied" in event.reason
    assert world.core.view.holders == held
    extend(world, add_receivers=("r5h1",))
    world.settle()
    assert "r5h1" in served(world)


def test_a_rack_whose_tor_is_away_cannot_join(world):
    world.handle(DeviceDown(5, "cable pulled"))
    with rejected("device_disconnected", r"the ToR of r5 is disconnected \(cable pulled\)"):
        extend(world, add_receivers=("r5h1",))

    world.handle(DeviceUp(5))
    extend(world, add_receivers=("r5h1",))


def test_a_rack_that_needs_an_optical_switch_that_is_away_says_so(world):
    world.handle(DeviceDown("ocs1", "its session ended"))
    with rejected("device_disconnected", r"ocs1 is disconnected \(its session ended\)"):
        extend(world, add_receivers=("r5h1",))
