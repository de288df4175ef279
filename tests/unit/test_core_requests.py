"""How a request is admitted, served and ended, read as the protocol between an application and the controller."""

from __future__ import annotations

from ipaddress import IPv4Network

import pytest

from blast_controller.core.model.commands import Publish, SetCircuits, SetForwarding
from blast_controller.core.model.errors import KeyReused, Rejected, RequestEnded, UnknownRequest
from blast_controller.core.model.events import (
    ClientsVanished,
    ElementQuarantined,
    ElementReleased,
    FinishAsked,
    RequestSubmitted,
    Tick,
    WithdrawAsked,
)
from blast_controller.core.model.fabric import CrossConnect
from blast_controller.core.model.part_states import PartState
from blast_controller.core.model.settings import CoreSettings
from tests.support.core import key_of, make_fabric, multicast, ready_world

HOSTS = [f"r{n}h1" for n in range(2, 9)]


@pytest.fixture
def world():
    """Eight racks, two splitters 1:4, everything connected."""
    return ready_world(make_fabric(8, [4, 4]))


def later(world, seconds):
    world.now += seconds
    world.handle(Tick())


# ----------------------------------------------------------------------------------------------- being served


def test_a_group_within_one_rack_needs_no_light(world):
    part = world.granted(multicast("a", "r1h1", ["r1h2"]))
    assert [type(c) for c in world.commands if not isinstance(c, Publish)] == [SetForwarding]
    assert world.core.view.holders == {}
    assert world.receivers_of(world.fabric.hosts["r1h1"], part.grant.group_address) == {"r1h2"}


def test_two_racks_need_a_cross_connect_and_no_splitter(world):
    part = world.granted(multicast("a", "r1h1", ["r2h1", "r2h2"]))
    (command,) = [c for c in world.commands if isinstance(c, SetCircuits)]
    assert command.changes[0].connect == (CrossConnect("ocs1", 1, 2),)
    assert set(world.core.view.holders) == {"port:r1/50", "port:r2/50"}
    assert world.receivers_of(world.fabric.hosts["r1h1"], part.grant.group_address) == {"r2h1", "r2h2"}


@pytest.mark.parametrize("racks", range(3, 9))
def test_more_racks_take_the_papers_number_of_splitters(world, racks):
    members = HOSTS[: racks - 1]
    part = world.granted(multicast("a", "r1h1", ["r1h2", *members]))
    splitters = [e for e in world.core.view.holders if e.startswith("splitter:")]
    assert len(splitters) == -(-(racks - 2) // 3)
    (command,) = [c for c in world.commands if isinstance(c, SetCircuits)]
    assert len(command.changes[0].connect) == racks - 1 + len(splitters)
    assert command.changes[0].connect[0].input == 1, "the root first"
    assert world.receivers_of(world.fabric.hosts["r1h1"], part.grant.group_address) == {"r1h2", *members}


def test_a_grant_says_what_the_sender_needs_to_know(world):
    part = world.granted(multicast("a", "r1h1", HOSTS, size=10**10, highest_rate=1e9))
    grant = part.grant
    assert (grant.part, grant.receivers, grant.first_byte, grant.unserved) == (0, tuple(HOSTS), 0, ())
    assert (grant.group_address, grant.group_port) == ("239.77.0.1", 5001)
    assert (grant.rate, grant.estimated_service, grant.lease) == (1e9, 80.0, 160.0)
    assert (grant.timings.openflow, grant.timings.optical) == (0.01, 0.01)
    assert part.state is PartState.ACTIVE


def test_a_small_transfer_has_the_least_lease(world):
    assert world.granted(multicast("a", "r1h1", HOSTS, size=1)).grant.lease == 10.0


def test_a_rate_above_the_light_is_the_light_rate(world):
    assert world.granted(multicast("a", "r1h1", HOSTS, highest_rate=1e12)).grant.rate == 10e9


def test_no_grant_before_every_device_has_confirmed(world):
    world.submit(multicast("a", "r1h1", HOSTS))
    for name in world.devices[:-1]:
        while world.device(name).queue:
            world.work(name)
            world.deliver()
    part = world.core.request(key_of("a")).parts[0]
    assert part.state is PartState.CONFIGURING
    assert world.kinds("a") == []
    world.settle()
    assert world.kinds("a") == ["granted"]


# -------------------------------------------------------------------------------------------- being rejected


@pytest.mark.parametrize(
    ("wanted", "code", "sentence"),
    [
        (multicast("a", "r9h1", HOSTS), "unknown_host", "no host 'r9h1'"),
        (multicast("a", "r1h1", ["r2h1", "nobody"]), "unknown_host", "no host 'nobody'"),
        (multicast("a", "r1h1", ["r2h1", "r1h1"]), "sender_among_receivers", "r1h1 is among the receivers"),
        (multicast("a", "r1h1", []), "no_receivers", "at least one receiver"),
        (multicast("a", "r1h1", ["r2h1", "r3h1", "r2h1"]), "duplicate_receivers", "r2h1 is named twice"),
        (multicast("a", "r1h1", HOSTS, size=0), "bad_bytes", "positive number of bytes, not 0"),
        (multicast("a", "r1h1", HOSTS, size=-5), "bad_bytes", "not -5"),
        (multicast("a", "r1h1", HOSTS, size=(1 << 62) + 1), "bad_bytes", "at most 4611686018427387904"),
        (multicast("", "r1h1", HOSTS), "bad_key", "1 to 64"),
        (multicast("k" * 65, "r1h1", HOSTS), "bad_key", "1 to 64"),
        (multicast("a\nb", "r1h1", HOSTS), "bad_key", "printable"),
        (multicast("a", "r1h1", HOSTS, highest_rate=0.0), "bad_rate", "not 0 bit/s"),
        (multicast("a", "r1h1", HOSTS, highest_rate=float("nan")), "bad_rate", "not nan"),
        (multicast("a", "r1h1", HOSTS, patience=-1.0), "bad_time", "not be negative"),
    ],
)
def test_wrong_input_is_rejected_with_a_sentence(world, wanted, code, sentence):
    with pytest.raises(Rejected) as rejection:
        world.submit(wanted)
    assert rejection.value.code == code
    assert sentence in rejection.value.sentence
    assert world.core.requests == {}
    assert world.commands == []


def test_a_group_too_wide_learns_the_largest_width():
    world = ready_world(make_fabric(9, [4, 2]))
    with pytest.raises(Rejected, match="spans 9 racks; the splitters of this fabric can join at most 6") as rejection:
        world.submit(multicast("a", "r1h1", [f"r{n}h1" for n in range(2, 10)]))
    assert (rejection.value.code, rejection.value.largest) == ("group_too_wide", 6)
    world.granted(multicast("b", "r1h1", [f"r{n}h1" for n in range(2, 7)]))


@pytest.mark.parametrize(("most", "loop_leaf", "largest"), [(1, False, 5), (0, False, 2), (1, True, 4), (2, True, 7)])
def test_the_largest_width_respects_the_limits_of_the_site(most, loop_leaf, largest):
    world = ready_world(make_fabric(9, [4, 4]), CoreSettings(most_splitters=most, loop_leaf=loop_leaf))
    with pytest.raises(Rejected) as rejection:
        world.submit(multicast("wide", "r1h1", [f"r{n}h1" for n in range(2, 10)]))
    assert rejection.value.largest == largest
    world.granted(multicast("fits", "r1h1", [f"r{n}h1" for n in range(2, largest + 1)]))


def test_the_largest_width_counts_one_switch_at_a_time():
    world = ready_world(make_fabric(9, [4, 4], switches=2))
    with pytest.raises(Rejected) as rejection:
        world.submit(multicast("wide", "r1h1", [f"r{n}h1" for n in range(2, 8)]))
    assert rejection.value.largest == 5


def test_no_path_names_each_rack_and_its_trouble():
    world = ready_world(make_fabric(3, [4]))
    world.handle(ElementQuarantined("port:r2/50", "dirty connector"))
    with pytest.raises(Rejected, match="r2: dirty connector") as rejection:
        world.submit(multicast("a", "r1h1", ["r2h1"]))
    assert rejection.value.code == "no_path"


def test_too_many_requests_are_refused():
    world = ready_world(make_fabric(2), CoreSettings(most_requests=1))
    world.submit(multicast("a", "r1h1", ["r2h1"]))
    with pytest.raises(Rejected) as rejection:
        world.submit(multicast("b", "r1h1", ["r2h1"]))
    assert rejection.value.code == "too_many_requests"
    world.submit(multicast("a", "r1h1", ["r2h1"]))


# --------------------------------------------------------------------------------------------------- the key


def test_the_same_request_again_changes_nothing(world):
    wanted = multicast("a", "r1h1", HOSTS)
    world.granted(wanted)
    assert world.handle(RequestSubmitted(wanted)) == []
    world.handle(FinishAsked(key_of("a"), 0))
    world.settle()
    assert world.submit(wanted).state is PartState.DONE, "an ended request is remembered"


def test_a_key_cannot_be_used_for_something_else(world):
    world.submit(multicast("a", "r1h1", HOSTS))
    with pytest.raises(KeyReused, match="'a'"):
        world.submit(multicast("a", "r1h1", HOSTS[:2]))


def test_an_ended_request_is_forgotten_in_time(world):
    world.granted(multicast("a", "r1h1", HOSTS))
    world.handle(FinishAsked(key_of("a"), 0))
    world.settle()
    later(world, 3599.9)
    assert key_of("a") in world.core.requests
    later(world, 0.1)
    with pytest.raises(UnknownRequest):
        world.core.request(key_of("a"))
    world.granted(multicast("a", "r2h1", ["r3h1"]))


# ------------------------------------------------------------------------------------------------ contention


@pytest.mark.parametrize(
    ("policy", "order"), [("paper", ["large", "middle", "small"]), ("srpt-lease", ["small", "middle", "large"])]
)
def test_who_waits_is_served_in_the_policys_order_as_resources_return(policy, order):
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
        world.handle(FinishAsked(key_of(running), 0))
        world.settle()
        active = [r.current.key for r in world.core.requests.values() if r.state is PartState.ACTIVE]
        assert active == [following]


def test_a_waiting_group_does_not_hold_up_one_that_fits(world):
    world.granted(multicast("a", "r1h1", ["r2h1"]))
    part = world.submit(multicast("waits", "r1h2", ["r3h1"])).parts[0]
    assert (
        world.core.reason(world.core.request(key_of("waits")).current, part, world.now)
        == "Waiting for a free optical port of r1."
    )
    world.granted(multicast("fits", "r4h1", ["r5h1"]))


def test_resources_are_free_only_when_devices_have_confirmed(world):
    world.granted(multicast("a", "r1h1", HOSTS))
    world.handle(FinishAsked(key_of("a"), 0))
    world.submit(multicast("b", "r1h1", HOSTS))
    assert world.core.request(key_of("b")).state is PartState.PENDING
    world.settle()
    assert world.core.request(key_of("b")).state is PartState.ACTIVE


def test_one_command_for_each_device_and_decision():
    world = ready_world(make_fabric(6, [4], shared=6))
    world.granted(multicast("a", "r1h1", ["r2h1", "r3h1"]))
    world.submit(multicast("b", "r1h1", ["r2h1"]))
    world.submit(multicast("c", "r3h1", ["r4h1"]))
    world.commands.clear()
    world.handle(FinishAsked(key_of("a"), 0))
    world.settle()
    circuits = [c for c in world.commands if isinstance(c, SetCircuits)]
    assert [len(c.changes) for c in circuits] == [1, 2], "both waiting groups in one command"


def test_group_addresses_are_not_used_again_at_once():
    world = ready_world(make_fabric(2), CoreSettings(group_network=IPv4Network("239.1.1.0/29")))
    seen = []
    for number in range(8):
        seen.append(world.granted(multicast(f"k{number}", "r1h1", ["r1h2"])).grant.group_address)
        world.handle(FinishAsked(key_of(f"k{number}"), 0))
        world.settle()
    assert seen == [f"239.1.1.{n}" for n in (1, 2, 3, 4, 5, 6, 1, 2)]


def test_without_a_free_group_address_a_group_waits():
    world = ready_world(make_fabric(2), CoreSettings(group_network=IPv4Network("239.1.1.0/30")))
    for key in "ab":
        world.granted(multicast(key, "r1h1", ["r1h2"]))
    assert world.submit(multicast("c", "r1h1", ["r1h2"])).state is PartState.PENDING
    world.handle(FinishAsked(key_of("a"), 0))
    world.settle()
    assert world.core.request(key_of("c")).state is PartState.ACTIVE


# ---------------------------------------------------------------------------------------------------- ending


def test_finish_twice_is_finish_once(world):
    world.granted(multicast("a", "r1h1", HOSTS))
    world.handle(FinishAsked(key_of("a"), 0))
    assert world.handle(FinishAsked(key_of("a"), 0)) == []
    assert world.kinds("a") == ["granted", "ended"]
    world.settle()
    assert world.core.view.holders == {}


def test_finish_needs_a_part_that_is_active(world):
    world.submit(multicast("a", "r1h1", HOSTS))
    with pytest.raises(Rejected, match="configuring: there is nothing to finish") as rejection:
        world.handle(FinishAsked(key_of("a"), 0))
    assert rejection.value.code == "not_active"
    with pytest.raises(Rejected, match="no part 1"):
        world.handle(FinishAsked(key_of("a"), 1))
    with pytest.raises(UnknownRequest):
        world.handle(FinishAsked(key_of("b"), 0))


def test_withdraw_pending(world):
    world.granted(multicast("a", "r1h1", HOSTS))
    world.submit(multicast("b", "r1h1", HOSTS))
    commands = world.handle(WithdrawAsked(key_of("b")))
    assert [type(c) for c in commands] == [Publish]
    assert world.core.request(key_of("b")).state is PartState.WITHDRAWN


@pytest.mark.parametrize("settled", [False, True], ids=["configuring", "active"])
def test_withdraw_gives_everything_back(world, settled):
    world.submit(multicast("a", "r1h1", HOSTS))
    if settled:
        world.settle()
    world.handle(WithdrawAsked(key_of("a")))
    assert world.handle(WithdrawAsked(key_of("a"))) == [], "withdrawing twice is withdrawing once"
    world.settle()
    assert world.kinds("a") == (["granted", "ended"] if settled else ["ended"])
    assert world.core.view.holders == {}
    assert not world.switches["ocs1"].held
    assert not any(tor.rules for tor in world.tors.values())


def test_what_is_over_cannot_be_withdrawn(world):
    world.granted(multicast("a", "r1h1", HOSTS))
    world.handle(FinishAsked(key_of("a"), 0))
    with pytest.raises(RequestEnded) as ended:
        world.handle(WithdrawAsked(key_of("a")))
    assert ended.value.state == "done"
    world.submit(multicast("b", "r1h1", HOSTS))
    world.handle(WithdrawAsked(key_of("b")))
    with pytest.raises(RequestEnded, match="Withdrawn by the client"):
        world.handle(FinishAsked(key_of("b"), 0))


def test_a_lease_ends_by_itself(world):
    world.granted(multicast("a", "r1h1", HOSTS))
    later(world, 9.9)
    assert world.core.request(key_of("a")).state is PartState.ACTIVE
    later(world, 0.1)
    world.settle()
    assert world.core.request(key_of("a")).state is PartState.EXPIRED
    assert "extend it in time" in str(world.core.request(key_of("a")).parts[0].reason)
    assert world.core.view.holders == {}


def test_patience_ends_the_wait(world):
    world.granted(multicast("a", "r1h1", HOSTS))
    world.submit(multicast("b", "r1h1", HOSTS, patience=3.0))
    assert world.core.next_timer() == 3.0
    later(world, 3.0)
    assert world.core.request(key_of("b")).state is PartState.EXPIRED
    assert world.kinds("b") == ["ended"]


def test_patience_does_not_end_what_is_granted(world):
    world.granted(multicast("a", "r1h1", HOSTS, patience=3.0))
    later(world, 3.0)
    assert world.core.request(key_of("a")).state is PartState.ACTIVE


# ------------------------------------------------------------------------------------------ vanished clients


def attach(world, key):
    """Ask, and wait for the grant on a connection."""
    world.handle(RequestSubmitted(multicast(key, "r1h1", HOSTS), attached=True))


def test_a_vanished_client_has_a_grace(world):
    world.granted(multicast("a", "r1h1", HOSTS))
    attach(world, "b")
    world.handle(ClientsVanished((key_of("b"),)))
    later(world, 1.9)
    assert world.core.request(key_of("b")).state is PartState.PENDING
    later(world, 0.1)
    assert world.core.request(key_of("b")).state is PartState.WITHDRAWN


def test_a_retry_with_the_same_key_saves_the_request(world):
    world.granted(multicast("a", "r1h1", HOSTS))
    attach(world, "b")
    world.handle(ClientsVanished((key_of("b"),)))
    later(world, 1.0)
    attach(world, "b")
    later(world, 5.0)
    assert world.core.request(key_of("b")).state is PartState.PENDING


def test_every_disappearance_has_its_whole_grace(world):
    world.granted(multicast("a", "r1h1", HOSTS))
    attach(world, "b")
    world.handle(ClientsVanished((key_of("b"),)))
    later(world, 1.0)
    attach(world, "b")
    later(world, 0.5)
    world.handle(ClientsVanished((key_of("b"),)))
    later(world, 1.0)
    assert world.core.request(key_of("b")).state is PartState.PENDING, "the first grace is of no concern any more"
    later(world, 1.0)
    assert world.core.request(key_of("b")).state is PartState.WITHDRAWN


def test_a_granted_request_outlives_its_client_until_the_lease_ends(world):
    world.granted(multicast("a", "r1h1", HOSTS))
    world.handle(ClientsVanished((key_of("a"),)))
    later(world, 5.0)
    assert world.core.request(key_of("a")).state is PartState.ACTIVE
    world.handle(ClientsVanished((key_of("never submitted"),)))


# ------------------------------------------------------------------------------------------------ quarantine


@pytest.mark.parametrize("reason", ["dirty", ""])
def test_a_quarantined_element_serves_on_and_is_not_taken_again(world, reason):
    world.granted(multicast("a", "r1h1", ["r2h1"]))
    world.handle(ElementQuarantined("port:r2/50", reason))
    assert world.core.request(key_of("a")).state is PartState.ACTIVE
    world.submit(multicast("b", "r2h1", ["r2h2"]))
    world.handle(FinishAsked(key_of("a"), 0))
    world.settle()
    assert world.core.view.unusable("port:r2/50")
    with pytest.raises(Rejected, match="No optical switch has usable ports"):
        world.submit(multicast("c", "r1h1", ["r2h1"]))
    world.handle(ElementReleased("port:r2/50"))
    world.granted(multicast("c", "r1h1", ["r2h1"]))


def test_a_released_element_serves_who_waits():
    world = ready_world(make_fabric(4, [4, 4]))
    world.granted(multicast("a", "r1h1", ["r2h1"]))
    world.submit(multicast("b", "r1h2", ["r3h1"]))
    world.handle(ElementQuarantined("port:r3/50", "dirty"))
    world.handle(FinishAsked(key_of("a"), 0))
    world.settle()
    assert world.core.request(key_of("b")).state is PartState.PENDING
    world.handle(ElementReleased("port:r3/50"))
    world.settle()
    assert world.core.request(key_of("b")).state is PartState.ACTIVE


def test_only_elements_of_the_fabric_can_be_quarantined(world):
    with pytest.raises(Rejected, match="no element 'port:r1/7'"):
        world.handle(ElementQuarantined("port:r1/7", "x"))
    with pytest.raises(Rejected, match="not quarantined"):
        world.handle(ElementReleased("splitter:s1"))
