"""Extensions of requests: members, time and bytes change atomically and without packet loss."""

from __future__ import annotations

import pytest

from blast_controller.core.model.errors import RejectedError, RequestEndedError, UnknownRequestError
from blast_controller.core.model.events import (
    DeviceConnected,
    DeviceDisconnected,
    ExtendRequested,
    FinishRequested,
    TimePassed,
)
from blast_controller.core.model.part_states import PartState
from blast_controller.core.model.requests import Extension
from blast_controller.core.model.settings import CoreSettings
from tests.support.controller.core import key_of, make_fabric, multicast, ready_world, rejected


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
    """Return the circuits and rules on all devices."""
    switches = {name: switch.held for name, switch in world.switches.items()}
    return switches, {datapath: dict(tor.rules) for datapath, tor in world.tors.items()}


def keep_serving(world, staying):
    """Check after every operation of a device that `staying` are served."""
    moments = []

    def check():
        moments.append(served(world))
        assert set(staying) <= moments[-1]

    world.after_operation = check
    return moments


def test_extend_adds_member_of_lit_rack_without_cross_connects(world):
    extend(world, add_receivers=("r3h2",))
    world.settle()
    assert served(world) == {"r1h2", "r2h1", "r3h1", "r3h2", "r4h1"}
    assert not [c for c in world.commands if hasattr(c, "switch")], "no cross-connect changes"


def test_extend_adds_rack_on_a_free_splitter_output(world):
    moments = keep_serving(world, ["r1h2", "r2h1", "r3h1", "r4h1"])
    extend(world, add_receivers=("r5h1",))
    world.settle()
    assert served(world) == {"r1h2", "r2h1", "r3h1", "r4h1", "r5h1"}
    assert moments
    assert "splitter:s2" not in world.core.view.holders
    assert world.kinds("a") == ["granted", "changed"]


def test_extend_removes_members_without_interrupting_the_others(world):
    extend(world, add_receivers=("r5h1", "r6h1"))
    world.settle()
    keep_serving(world, ["r2h1"])
    extend(world, remove_receivers=("r1h2", "r3h1", "r5h1", "r6h1"))
    world.settle()
    assert served(world) == {"r2h1", "r4h1"}
    assert set(world.core.view.holders) == {"port:r1/50", "port:r2/50", "port:r4/50", "splitter:s1"}


def test_extend_replaces_all_members(world):
    extend(world, add_receivers=("r5h2",), remove_receivers=("r1h2", "r2h1", "r3h1", "r4h1"))
    world.settle()
    assert served(world) == {"r5h2"}
    assert world.part().grant.receivers == ("r5h2",)


def test_extension_without_a_free_output_changes_nothing():
    world = ready_world(make_fabric(4, [4]))
    world.granted(multicast("a", "r1h1", ["r2h1"]))
    before = state_of(world)
    with rejected("no_free_output", "no free splitter output"):
        extend(world, add_receivers=("r3h1",))

    assert state_of(world) == before
    assert served(world) == {"r2h1"}


def test_extension_without_a_free_port_changes_nothing(world):
    world.granted(multicast("b", "r5h1", ["r6h1"]))
    before = state_of(world)
    with pytest.raises(RejectedError, match="r5 has no free optical port"):
        extend(world, add_receivers=("r5h1",))
    assert state_of(world) == before


def test_extension_of_local_group_needs_free_resources():
    world = ready_world(make_fabric(3, [4]))
    world.granted(multicast("a", "r1h1", ["r1h2"]))
    world.granted(multicast("b", "r2h1", ["r3h1"]))
    with rejected("no_resources"):
        extend(world, add_receivers=("r2h1",))


def test_extension_respects_max_splitters_per_tree():
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
        ({"add_receivers": ("r9h1",)}, "unknown_host"),
        ({"remove_receivers": ("r1h2", "r2h1", "r3h1", "r4h1")}, "no_receivers"),
    ],
)
@pytest.mark.parametrize("pending", [False, True], ids=["active", "pending"])
def test_invalid_extensions_change_nothing(world, change, code, pending):
    if pending:
        world.submit(multicast("b", "r1h1", ["r1h2", "r2h1", "r3h1", "r4h1"]))
    before = state_of(world)
    with rejected(code):
        world.handle(ExtendRequested(key_of("b" if pending else "a"), Extension(**change)))

    assert state_of(world) == before


def test_extend_adds_time_without_device_commands(world):
    commands = extend(world, add_seconds=30.0)
    assert [type(c).__name__ for c in commands] == ["Publish"]
    part = world.part()
    assert (part.lease_end, part.grant.lease) == (40.0, 40.0)
    world.now = 39.9
    world.handle(TimePassed())
    assert part.state is PartState.ACTIVE
    world.now = 40.0
    world.handle(TimePassed())
    assert part.state is PartState.EXPIRED


def test_extend_with_bytes_lengthens_service_and_lease(world):
    world.now = 5.0
    extend(world, add_bytes=9 * 10**9)
    part = world.part()
    assert part.grant.estimated_service == 8.0
    assert (part.grant.lease, part.lease_end) == (16.0, 16.0)
    assert world.core.request(key_of("a")).current.bytes == 10**10


def test_extension_of_pending_request_applies_to_its_grant(world):
    world.submit(multicast("b", "r1h1", ["r5h1"]))
    request = key_of("b")
    world.handle(ExtendRequested(request, Extension(add_receivers=("r6h1",), add_seconds=7.0, add_bytes=1)))
    assert world.kinds("b") == ["changed"]
    world.finish("a")
    grant = world.core.request(request).parts[0].grant
    assert grant.receivers == ("r5h1", "r6h1")
    assert grant.lease == 17.0
    with rejected("group_too_wide"):
        world.submit(multicast("c", "r1h1", ["r8h1"]))
        world.handle(ExtendRequested(key_of("c"), Extension(add_receivers=tuple(f"r{n}h1" for n in range(2, 8)))))


def test_extension_is_rejected_during_another_change(world):
    extend(world, add_receivers=("r5h1",))
    with rejected("busy"):
        extend(world, add_seconds=1.0)

    world.settle()
    extend(world, add_seconds=1.0)
    world.submit(multicast("b", "r7h1", ["r8h1"]))
    with pytest.raises(RejectedError) as refusal:
        world.extend("b", add_seconds=1.0)
    assert refusal.value.code == "busy", "while it is being configured"


def test_ended_request_cannot_be_extended(world):
    world.handle(FinishRequested(key_of("a"), 0))
    with pytest.raises(RequestEndedError) as ended:
        extend(world, add_seconds=1.0)
    assert ended.value.state == "done"
    with pytest.raises(UnknownRequestError):
        world.extend("zzz", add_seconds=1.0)


@pytest.mark.parametrize("device", ["ocs1", 5], ids=["optical switch", "ToR"])
def test_refused_device_step_restores_the_old_state(world, device):
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


def test_extension_to_rack_with_disconnected_tor_is_rejected(world):
    world.handle(DeviceDisconnected(5, "cable pulled"))
    with rejected("device_disconnected", r"the ToR of r5 is disconnected \(cable pulled\)"):
        extend(world, add_receivers=("r5h1",))

    world.handle(DeviceConnected(5))
    extend(world, add_receivers=("r5h1",))


def test_extension_over_disconnected_optical_switch_is_rejected(world):
    world.handle(DeviceDisconnected("ocs1", "its session ended"))
    with rejected("device_disconnected", r"ocs1 is disconnected \(its session ended\)"):
        extend(world, add_receivers=("r5h1",))
