"""Admission, service and end of requests: the protocol between an application and the controller."""

from __future__ import annotations

import re
from ipaddress import IPv4Network

import pytest

from blast_controller.core.light.layout import Step
from blast_controller.core.model.commands import Forward, Publish, SetCircuits, SetForwarding
from blast_controller.core.model.errors import RejectedError, RequestEndedError, UnknownRequestError
from blast_controller.core.model.events import (
    ClientsVanished,
    ElementQuarantined,
    ElementReleased,
    FinishRequested,
    RequestSubmitted,
    StepConfirmed,
    TimePassed,
    WithdrawRequested,
)
from blast_controller.core.model.fabric import CrossConnect
from blast_controller.core.model.part_states import PartState
from blast_controller.core.model.settings import CoreSettings
from blast_controller.core.rollout.outbox import Outbox
from tests.support.controller.core import key_of, make_fabric, multicast, ready_world, rejected

HOSTS = [f"r{n}h1" for n in range(2, 9)]


@pytest.fixture
def world():
    """Return a world of eight racks and two splitters 1:4, with all devices connected."""
    return ready_world(make_fabric(8, [4, 4]))


def later(world, seconds):
    world.now += seconds
    world.handle(TimePassed())


# ----------------------------------------------------------------------------------------------- service


@pytest.mark.parametrize("racks", range(3, 9))
def test_tree_uses_the_papers_number_of_splitters(world, racks):
    members = HOSTS[: racks - 1]
    part = world.granted(multicast("a", "r1h1", ["r1h2", *members]))
    splitters = [e for e in world.core.view.holders if e.startswith("splitter:")]
    assert len(splitters) == -(-(racks - 2) // 3)
    (command,) = [c for c in world.commands if isinstance(c, SetCircuits)]
    assert len(command.changes[0].connect) == racks - 1 + len(splitters)
    assert command.changes[0].connect[0].input == 1, "the root first"
    assert world.receivers_of(world.fabric.hosts["r1h1"], part.grant.group_address) == {"r1h2", *members}


def test_grant_contains_address_rate_lease_and_timings(world):
    part = world.granted(multicast("a", "r1h1", HOSTS, size=10**10, max_rate=1e9))
    grant = part.grant
    assert (grant.part, grant.receivers, grant.first_byte, grant.unserved) == (0, tuple(HOSTS), 0, ())
    assert (grant.group_address, grant.group_port) == ("239.77.0.1", 5001)
    assert (grant.rate, grant.estimated_service, grant.lease) == (1e9, 80.0, 160.0)
    assert (grant.timings.openflow, grant.timings.optical) == (0.01, 0.01)
    assert part.state is PartState.ACTIVE


def test_small_transfer_has_the_minimum_lease(world):
    assert world.granted(multicast("a", "r1h1", HOSTS, size=1)).grant.lease == 10.0


def test_grant_limits_the_rate_to_the_line_rate(world):
    assert world.granted(multicast("a", "r1h1", HOSTS, max_rate=1e12)).grant.rate == 10e9


# -------------------------------------------------------------------------------------------- rejection


@pytest.mark.parametrize(
    ("submitted", "code", "sentence"),
    [
        (multicast("a", "r9h1", HOSTS), "unknown_host", "no host 'r9h1'"),
        (multicast("a", "r1h1", ["r2h1", "r2h9"]), "unknown_host", "no host 'r2h9'"),
        (multicast("a", "r1h1", ["r2h1", "r1h1"]), "sender_among_receivers", "r1h1 is among the receivers"),
        (multicast("a", "r1h1", []), "no_receivers", "at least one receiver"),
        (multicast("a", "r1h1", ["r2h1", "r3h1", "r2h1"]), "duplicate_receivers", "r2h1 is listed twice"),
        (multicast("a", "r1h1", HOSTS, size=0), "bad_bytes", "positive number of bytes, not 0"),
        (multicast("a", "r1h1", HOSTS, size=-5), "bad_bytes", "not -5"),
        (multicast("a", "r1h1", HOSTS, size=(1 << 62) + 1), "bad_bytes", "at most 4611686018427387904"),
        (multicast("", "r1h1", HOSTS), "bad_key", "1 to 64"),
        (multicast("k" * 65, "r1h1", HOSTS), "bad_key", "1 to 64"),
        (multicast("a\nb", "r1h1", HOSTS), "bad_key", "printable"),
        (multicast("a", "r1h1", HOSTS, max_rate=0.0), "bad_rate", "not 0 bit/s"),
        (multicast("a", "r1h1", HOSTS, max_rate=float("nan")), "bad_rate", "not nan"),
        (multicast("a", "r1h1", HOSTS, pending_timeout=-1.0), "bad_time", "not be negative"),
    ],
)
def test_invalid_request_is_rejected_with_its_reason(world, submitted, code, sentence):
    with rejected(code, re.escape(sentence)):
        world.submit(submitted)
    assert world.core.requests == {}
    assert world.commands == []


def test_rejection_of_wide_group_states_the_largest_width():
    world = ready_world(make_fabric(9, [4, 2]))
    with pytest.raises(RejectedError, match="spans 9 racks; the splitters of this fabric reach at most 6") as rejection:
        world.submit(multicast("a", "r1h1", [f"r{n}h1" for n in range(2, 10)]))
    assert (rejection.value.code, rejection.value.largest) == ("group_too_wide", 6)
    world.granted(multicast("b", "r1h1", [f"r{n}h1" for n in range(2, 7)]))


@pytest.mark.parametrize(
    ("max_splitters", "loop_leaf", "largest"), [(1, False, 5), (0, False, 2), (1, True, 4), (2, True, 7)]
)
def test_largest_width_respects_splitter_limit_and_loop_leaf(max_splitters, loop_leaf, largest):
    world = ready_world(make_fabric(9, [4, 4]), CoreSettings(max_splitters_per_tree=max_splitters, loop_leaf=loop_leaf))
    with pytest.raises(RejectedError) as rejection:
        world.submit(multicast("wide", "r1h1", [f"r{n}h1" for n in range(2, 10)]))
    assert rejection.value.largest == largest
    world.granted(multicast("fits", "r1h1", [f"r{n}h1" for n in range(2, largest + 1)]))


def test_largest_width_counts_the_splitters_of_one_switch():
    world = ready_world(make_fabric(9, [4, 4], switches=2))
    with pytest.raises(RejectedError) as rejection:
        world.submit(multicast("wide", "r1h1", [f"r{n}h1" for n in range(2, 8)]))
    assert rejection.value.largest == 5


def test_core_rejects_requests_beyond_max_requests():
    world = ready_world(make_fabric(2), CoreSettings(max_requests=1))
    world.submit(multicast("a", "r1h1", ["r2h1"]))
    with rejected("too_many_requests"):
        world.submit(multicast("b", "r1h1", ["r2h1"]))

    world.submit(multicast("a", "r1h1", ["r2h1"]))


# --------------------------------------------------------------------------------------------------- the key


def test_ended_request_is_forgotten_after_an_hour(world):
    world.granted(multicast("a", "r1h1", HOSTS))
    world.finish("a")
    later(world, 3599.9)
    assert key_of("a") in world.core.requests
    later(world, 0.1)
    with pytest.raises(UnknownRequestError):
        world.core.request(key_of("a"))
    world.granted(multicast("a", "r2h1", ["r3h1"]))


# ------------------------------------------------------------------------------------------------ contention


@pytest.mark.parametrize(
    ("policy", "order"), [("paper", ["large", "middle", "small"]), ("srpt-lease", ["small", "middle", "large"])]
)
def test_pending_requests_are_served_in_the_order_of_the_policy(policy, order):
    world = ready_world(make_fabric(12, [4]), CoreSettings(policy=policy))

    def group(key, first, size):
        return multicast(key, f"r{first}h1", [f"r{first + 1}h1", f"r{first + 2}h1"], size)

    world.granted(group("running", 1, 10**9))
    for key, first, size in (("small", 4, 10**9), ("large", 7, 10**11), ("middle", 10, 10**10)):
        part = world.submit(group(key, first, size)).parts[0]
        assert (
            world.core.reason(world.core.request(key_of(key)).current, part, world.now) == "Waiting for free splitters."
        )
    for running, following in zip(["running", *order], order, strict=False):
        world.finish(running)
        active = [r.current.key for r in world.core.requests.values() if r.state is PartState.ACTIVE]
        assert active == [following]


def test_pending_group_does_not_block_one_that_fits(world):
    world.granted(multicast("a", "r1h1", ["r2h1"]))
    part = world.submit(multicast("waits", "r1h2", ["r3h1"])).parts[0]
    assert (
        world.core.reason(world.core.request(key_of("waits")).current, part, world.now)
        == "Waiting for a free optical port of r1."
    )
    world.granted(multicast("fits", "r4h1", ["r5h1"]))


def test_resources_become_free_when_devices_confirm(world):
    world.granted(multicast("a", "r1h1", HOSTS))
    world.handle(FinishRequested(key_of("a"), 0))
    world.submit(multicast("b", "r1h1", HOSTS))
    assert world.state("b") is PartState.PENDING
    world.settle()
    assert world.state("b") is PartState.ACTIVE


def test_group_addresses_are_reused_in_rotation():
    world = ready_world(make_fabric(2), CoreSettings(group_network=IPv4Network("239.1.1.0/29")))
    seen = []
    for number in range(8):
        seen.append(world.granted(multicast(f"k{number}", "r1h1", ["r1h2"])).grant.group_address)
        world.finish(f"k{number}")
    assert seen == [f"239.1.1.{n}" for n in (1, 2, 3, 4, 5, 6, 1, 2)]


def test_request_waits_for_a_free_group_address():
    world = ready_world(make_fabric(2), CoreSettings(group_network=IPv4Network("239.1.1.0/30")))
    for key in "ab":
        world.granted(multicast(key, "r1h1", ["r1h2"]))
    assert world.submit(multicast("c", "r1h1", ["r1h2"])).state is PartState.PENDING
    world.finish("a")
    assert world.state("c") is PartState.ACTIVE


# ---------------------------------------------------------------------------------------------------- ending


def test_finish_is_idempotent(world):
    world.granted(multicast("a", "r1h1", HOSTS))
    world.handle(FinishRequested(key_of("a"), 0))
    assert world.handle(FinishRequested(key_of("a"), 0)) == []
    assert world.kinds("a") == ["granted", "ended"]
    world.settle()
    assert world.core.view.holders == {}


def test_finish_requires_an_active_part(world):
    world.submit(multicast("a", "r1h1", HOSTS))
    with rejected("not_active", "configuring: only an active part can be finished"):
        world.handle(FinishRequested(key_of("a"), 0))

    with pytest.raises(RejectedError, match="no part 1"):
        world.handle(FinishRequested(key_of("a"), 1))
    with pytest.raises(UnknownRequestError):
        world.handle(FinishRequested(key_of("b"), 0))


def test_withdraw_ends_a_pending_request(world):
    world.granted(multicast("a", "r1h1", HOSTS))
    world.submit(multicast("b", "r1h1", HOSTS))
    commands = world.handle(WithdrawRequested(key_of("b")))
    assert [type(c) for c in commands] == [Publish]
    assert world.state("b") is PartState.WITHDRAWN


@pytest.mark.parametrize("settled", [False, True], ids=["configuring", "active"])
def test_withdraw_releases_all_resources(world, settled):
    world.submit(multicast("a", "r1h1", HOSTS))
    if settled:
        world.settle()
    world.handle(WithdrawRequested(key_of("a")))
    assert world.handle(WithdrawRequested(key_of("a"))) == [], "withdrawing twice is withdrawing once"
    world.settle()
    assert world.kinds("a") == (["granted", "ended"] if settled else ["ended"])
    assert world.core.view.holders == {}
    assert not world.switches["ocs1"].held
    assert not any(tor.rules for tor in world.tors.values())


def test_ended_request_cannot_be_withdrawn_or_finished(world):
    world.granted(multicast("a", "r1h1", HOSTS))
    world.handle(FinishRequested(key_of("a"), 0))
    with pytest.raises(RequestEndedError) as ended:
        world.handle(WithdrawRequested(key_of("a")))
    assert ended.value.state == "done"
    world.submit(multicast("b", "r1h1", HOSTS))
    world.handle(WithdrawRequested(key_of("b")))
    with pytest.raises(RequestEndedError, match="Withdrawn by the client"):
        world.handle(FinishRequested(key_of("b"), 0))


def test_lease_expires_and_releases_its_resources(world):
    world.granted(multicast("a", "r1h1", HOSTS))
    later(world, 9.9)
    assert world.state("a") is PartState.ACTIVE
    later(world, 0.1)
    world.settle()
    assert world.state("a") is PartState.EXPIRED
    assert "extend a lease before it ends" in str(world.part().reason)
    assert world.core.view.holders == {}


def test_pending_request_expires_at_its_pending_timeout(world):
    world.granted(multicast("a", "r1h1", HOSTS))
    world.submit(multicast("b", "r1h1", HOSTS, pending_timeout=3.0))
    assert world.core.next_timer() == 3.0
    later(world, 3.0)
    assert world.state("b") is PartState.EXPIRED
    assert world.kinds("b") == ["ended"]


def test_pending_timeout_does_not_end_a_granted_request(world):
    world.granted(multicast("a", "r1h1", HOSTS, pending_timeout=3.0))
    later(world, 3.0)
    assert world.state("a") is PartState.ACTIVE


# ------------------------------------------------------------------------------------------ vanished clients


def attach(world, key):
    """Submit a request whose client waits for the grant on a connection."""
    world.handle(RequestSubmitted(multicast(key, "r1h1", HOSTS), attached=True))


def test_each_client_disconnection_starts_a_full_grace(world):
    world.granted(multicast("a", "r1h1", HOSTS))
    attach(world, "b")
    world.handle(ClientsVanished((key_of("b"),)))
    later(world, 1.0)
    attach(world, "b")
    later(world, 0.5)
    world.handle(ClientsVanished((key_of("b"),)))
    later(world, 1.0)
    assert world.state("b") is PartState.PENDING, "the first grace no longer applies"
    later(world, 1.0)
    assert world.state("b") is PartState.WITHDRAWN


def test_granted_request_outlives_its_client(world):
    world.granted(multicast("a", "r1h1", HOSTS))
    world.handle(ClientsVanished((key_of("a"),)))
    later(world, 5.0)
    assert world.state("a") is PartState.ACTIVE
    world.handle(ClientsVanished((key_of("never submitted"),)))


# ------------------------------------------------------------------------------------------------ quarantine


@pytest.mark.parametrize("reason", ["dirty", ""])
def test_quarantined_element_serves_its_request_but_no_new_one(world, reason):
    world.granted(multicast("a", "r1h1", ["r2h1"]))
    world.handle(ElementQuarantined("port:r2/50", reason))
    assert world.state("a") is PartState.ACTIVE
    world.submit(multicast("b", "r2h1", ["r2h2"]))
    world.finish("a")
    assert world.core.view.unusable("port:r2/50")
    with pytest.raises(RejectedError, match="No optical switch has usable ports"):
        world.submit(multicast("c", "r1h1", ["r2h1"]))
    world.handle(ElementReleased("port:r2/50"))
    world.granted(multicast("c", "r1h1", ["r2h1"]))


def test_quarantine_of_unknown_element_is_rejected(world):
    with pytest.raises(RejectedError, match="no element 'port:r1/7'"):
        world.handle(ElementQuarantined("port:r1/7", "x"))
    with pytest.raises(RejectedError, match="not quarantined"):
        world.handle(ElementReleased("splitter:s1"))


# ---------------------------------------------------------------------------------------------------- batches of events


CIRCUIT = CrossConnect("ocs1", 1, 2)
OTHER = CrossConnect("ocs1", 3, 4)
FORWARD = Forward(1, "10.0.0.1", "239.77.0.1", (9,))


def test_decision_sends_one_command_to_the_optical_switch():
    world = ready_world(make_fabric(racks=6, splitters=(4, 4)))
    core = world.core
    core.take(RequestSubmitted(multicast("a", "r1h1", ["r2h1", "r3h1"])), world.now)
    core.take(RequestSubmitted(multicast("b", "r4h1", ["r5h1", "r6h1"])), world.now)
    assert core.pending_count == 2, "the core decides at the conclusion only"
    (circuits,) = [c for c in core.conclude(world.now) if isinstance(c, SetCircuits)]
    assert [c.reservation for c in circuits.changes] == [1, 2]
    assert core.conclude(world.now) == [], "once"


def test_resources_of_two_releases_are_allocated_in_one_decision():
    """The wide group needs the resources of both; two decisions would serve the narrow group first."""
    world = ready_world(make_fabric(racks=6, splitters=(4, 4)), CoreSettings(policy="paper"))
    for key, sender, receivers in (("a", "r1h1", ["r2h1", "r3h1"]), ("b", "r4h1", ["r5h1", "r6h1"])):
        world.granted(multicast(key, sender, receivers))
    world.submit(multicast("narrow", "r1h1", ["r2h1", "r3h1"], size=1))
    world.submit(multicast("wide", "r1h1", ["r2h1", "r4h1", "r5h1"], size=10**9))
    core = world.core
    asked = [c for key in "ab" for c in core.handle(FinishRequested(key_of(key), 0), world.now)]
    answers = []
    for command in asked:
        if isinstance(command, SetCircuits | SetForwarding):
            device = command.switch if isinstance(command, SetCircuits) else command.datapath
            answers += [StepConfirmed(device, c.reservation, c.step, 0.0) for c in command.changes]
    for answer in answers:
        core.take(answer, world.now)
    core.conclude(world.now)
    states = {key: core.request(key_of(key)).parts[0].state for key in ("narrow", "wide")}
    assert states == {"wide": PartState.CONFIGURING, "narrow": PartState.PENDING}


def test_rejected_event_does_not_affect_the_rest_of_its_batch():
    world = ready_world(make_fabric(racks=3, splitters=(4,)))
    core = world.core
    core.take(RequestSubmitted(multicast("a", "r1h1", ["r2h1", "r3h1"])), world.now)
    with pytest.raises(RejectedError):
        core.take(RequestSubmitted(multicast("b", "r1h1", [])), world.now)
    commands = core.conclude(world.now)
    assert [len(c.changes) for c in commands if isinstance(c, SetCircuits)] == [1]
    assert not any(isinstance(c, Publish) for c in commands)


@pytest.mark.parametrize("key", ["b", "d"])
def test_requests_forgotten_in_their_batch_do_not_block_the_queue(key):
    world = ready_world(make_fabric(3, [4]), CoreSettings(max_ended=1))
    world.granted(multicast("a", "r1h1", ["r2h1", "r3h1"]))
    for waiting in "bc":
        world.handle(RequestSubmitted(multicast(waiting, "r1h1", ["r2h1", "r3h1"])))
    for waiting in "bc":
        world.core.take(WithdrawRequested(key_of(waiting)), world.now)
    # The key of a forgotten request may be reused at once.
    world.core.take(RequestSubmitted(multicast(key, "r1h1", ["r2h1", "r3h1"], size=10)), world.now)
    world.core.conclude(world.now)
    assert key_of("b") not in world.core.requests or key == "b"
    world.finish("a")
    assert world.state(key) is PartState.ACTIVE


def test_outbox_keeps_the_step_order_of_a_reservation():
    outbox = Outbox()
    outbox.step(1, 1, Step((), (CIRCUIT,), {}, {7: (FORWARD,)}))
    outbox.step(2, 1, Step((), (OTHER,), {}, {}))
    outbox.step(1, 2, Step((CIRCUIT,), (), {7: (FORWARD,)}, {}))
    commands = outbox.drain()
    circuits = [c for c in commands if isinstance(c, SetCircuits)]
    assert [[(c.reservation, c.step) for c in command.changes] for command in circuits] == [[(1, 1), (2, 1)], [(1, 2)]]
    forwarding = [c for c in commands if isinstance(c, SetForwarding)]
    assert [[(c.reservation, c.step) for c in command.changes] for command in forwarding] == [[(1, 1)], [(1, 2)]]
