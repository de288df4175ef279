"""What a request is said to be blocked by, when it is said to start, and what is said to free it."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv4Network

import pytest

from blast_controller.core.model.events import (
    ElementQuarantined,
    FinishAsked,
    RequestSubmitted,
    VerifyAsked,
    WithdrawAsked,
)
from blast_controller.core.model.fabric import StaticTree
from blast_controller.core.model.part_states import PartState
from blast_controller.core.model.requests import MulticastRequest
from blast_controller.core.model.settings import CoreSettings, TenantLimits
from tests.support.core import TENANT, key_of, make_fabric, multicast, ready_world
from tests.support.core_checks import image

SERVICE = 10**9
"""Bytes that take 0.8 s at the rate of light; the lease is then the shortest there is, 10 s."""


def explained(world, key, viewer=None, tenant=TENANT):
    """Return the explanation of a request for a client of the tenant `viewer` (None: an operator)."""
    return world.core.explain((tenant, key), viewer, world.now)


def state_of(world, key, tenant=TENANT):
    return world.core.request((tenant, key)).state


def ask(world, key, sender, receivers, tenant=TENANT, size=SERVICE):
    world.serve(MulticastRequest(key, tenant, sender, tuple(receivers), size))
    return state_of(world, key, tenant)


def leave_out(world, key, receivers):
    world.extend(key, remove_receivers=tuple(receivers))
    world.settle()
    return state_of(world, key)


# ------------------------------------------------------------------------------------------------------ racks


@pytest.fixture
def busy():
    """r1 sends to r2 and r3; "late" wants r4 to send to r3 and r5, and waits for r3's only port."""
    world = ready_world(make_fabric(6, [4, 4]))
    assert ask(world, "early", "r1h1", ["r2h1", "r3h1"]) is PartState.ACTIVE
    world.now = 4.0
    assert ask(world, "late", "r4h1", ["r3h1", "r3h2", "r5h1"]) is PartState.PENDING
    return world


def test_a_rack_whose_port_is_held(busy):
    told = explained(busy, "late")
    assert told.key == "late"
    assert told.sentence == (
        "The request late waits for a free optical port of r3. The earliest start is in 6.0 s, if no lease is extended."
    )
    assert told.blockers == ("port:r3/50 is held by default/early (reservation 1), whose lease ends in 6.0 s",)
    assert told.start == pytest.approx(6.0)
    assert told.leave_out == ("r3h1", "r3h2")
    assert told.smallest_change == "Remove the rack r3: `blast extend default/late --remove r3h1,r3h2`."


def test_a_tenant_names_its_request_without_the_tenant(busy):
    assert "`blast extend late --remove" in explained(busy, "late", viewer=TENANT).smallest_change


def test_a_holder_that_is_just_being_lit_counts_with_the_lease_that_it_will_get():
    world = ready_world(make_fabric(3, [4]))
    world.submit(multicast("early", "r1h1", ["r2h1"]))
    world.submit(multicast("late", "r1h1", ["r3h1"]))
    told = explained(world, "late")
    assert told.blockers == ("port:r1/50 is being set up for default/early (reservation 1)",)
    assert told.start == pytest.approx(10.0)


def test_what_a_quarantine_takes_away_has_no_end(busy):
    busy.handle(ElementQuarantined("port:r5/50", "dirty"))
    told = explained(busy, "late")
    assert told.start is None and told.sentence.endswith("The earliest start cannot be predicted.")
    assert "port:r5/50 is not usable: dirty" in told.blockers
    assert told.leave_out == ()  # without r3 and r5 there is nobody left


def test_many_racks_that_one_request_holds_are_one_blocker():
    world = ready_world(make_fabric(30, [32, 32]))
    everybody = [f"r{n}h1" for n in range(2, 31)]
    ask(world, "early", "r1h1", everybody)
    ask(world, "late", "r2h1", ["r1h1", *everybody[1:]])
    (blocker,) = explained(world, "late").blockers
    assert blocker.startswith("port:r2/50, port:r1/50, port:r3/50") and "and 10 more are held by" in blocker


# -------------------------------------------------------------------------------------------------- splitters


def test_splitters_that_are_all_held():
    world = ready_world(make_fabric(8, [4]))
    ask(world, "early", "r1h1", ["r2h1", "r3h1"])
    ask(world, "late", "r4h1", ["r5h1", "r6h1", "r6h2"])
    told = explained(world, "late")
    assert told.sentence.startswith(
        "The request late waits for free splitters that make 2 leaves on ocs1. The earliest"
    )
    assert told.blockers == ("splitter:s1 (1:4) is held by default/early (reservation 1), whose lease ends in 10 s",)
    assert told.start == pytest.approx(10.0)
    assert told.leave_out == ("r5h1",), "the rack with the fewest receivers"
    assert told.smallest_change == (
        "Remove the rack r5: `blast extend default/late --remove r5h1`; or free one more 1:4 splitter."
    )
    assert leave_out(world, "late", told.leave_out) is PartState.ACTIVE


def test_the_splitter_that_would_do_is_the_smallest_that_does():
    world = ready_world(make_fabric(20, [2, 8, 16]))
    for number, (sender, receivers) in enumerate([("r1", ["r2", "r3"]), ("r4", ["r5", "r6"]), ("r7", ["r8", "r9"])]):
        ask(world, f"k{number}", f"{sender}h1", [f"{rack}h1" for rack in receivers])
    ask(world, "late", "r10h1", [f"r{n}h1" for n in range(11, 17)])
    assert "free one more 1:8 splitter" in explained(world, "late").smallest_change


def test_a_loop_leaf_takes_a_output():
    world = ready_world(make_fabric(8, [2, 3]), CoreSettings(loop_leaf=True))
    ask(world, "early", "r1h1", ["r2h1", "r3h1"])
    ask(world, "late", "r4h1", ["r5h1", "r6h1"])
    told = explained(world, "late")
    assert "free splitters that make 3 leaves on ocs1" in told.sentence and told.start == pytest.approx(10.0)
    assert "free one more 1:2 splitter" in told.smallest_change, "together with the one that is free"


def test_a_splitter_that_is_kept_warm_counts_as_free():
    world = ready_world(make_fabric(8, [4]), CoreSettings(keep_warm=60.0))
    ask(world, "early", "r1h1", ["r2h1", "r3h1"])
    ask(world, "late", "r1h1", ["r5h1", "r6h1"])
    assert explained(world, "late").blockers
    world.core.take(FinishAsked(key_of("early"), 0), world.now)
    told = explained(world, "late")
    assert told.blockers == () and told.start == 0.0 and told.smallest_change is None
    assert "waits for the next scheduling pass: all required resources are free" in told.sentence
    world.conclude()
    world.settle()
    assert state_of(world, "late") is PartState.ACTIVE


# ---------------------------------------------------------------------------------------------------- tenants


def limited(**limits):
    return CoreSettings(tenants={"physics": TenantLimits(**limits)})


def test_a_tenant_that_holds_as_many_splitters_as_it_may():
    world = ready_world(make_fabric(9, [4, 4]), limited(max_splitters=1))
    ask(world, "early", "r1h1", ["r2h1", "r3h1"], "physics")
    ask(world, "late", "r4h1", ["r5h1", "r6h1"], "physics")
    told = explained(world, "late", "physics", "physics")
    assert "because the tenant physics may hold 1 splitter at a time" in told.sentence
    assert told.blockers == ("splitter:s1 is held by early (reservation 1), whose lease ends in 10 s",)
    assert told.start == pytest.approx(10.0) and told.leave_out == ("r6h1",)
    assert "one more splitter" not in told.smallest_change
    world.advance_to(10.0)
    assert state_of(world, "late", "physics") is PartState.ACTIVE


def test_a_tenant_that_has_used_up_its_light():
    world = ready_world(make_fabric(4, [4]), limited(max_light_seconds=5.0))
    ask(world, "early", "r1h1", ["r2h1"], "physics", size=10**11)
    world.now = 6.0
    ask(world, "late", "r3h1", ["r3h2", "r4h1"], "physics")
    told = explained(world, "late", "physics", "physics")
    assert told.blockers == ("the tenant physics has used its quota of lit time for this hour",)
    assert told.start is None and told.leave_out == ("r4h1",)


def test_what_other_tenants_hold_is_told_without_a_name():
    world = ready_world(make_fabric(9, [4]))
    ask(world, "secret", "r1h1", ["r2h1", "r3h1"], "physics")
    ask(world, "mine", "r4h1", ["r2h1", "r6h1"], "biology")
    told = explained(world, "mine", "biology", "biology")
    assert all("is held by another tenant, whose lease ends in 10 s" in blocker for blocker in told.blockers)
    assert len(told.blockers) == 2 and "secret" not in repr(told) and "physics" not in repr(told)
    assert "physics/secret (reservation 1)" in repr(explained(world, "mine", None, "biology"))


def test_others_that_wait_are_counted_as_far_as_one_may_see_them():
    world = ready_world(make_fabric(4, [4]))
    ask(world, "early", "r1h1", ["r2h1", "r3h1"])
    for tenant, key in (("physics", "a"), ("physics", "b"), ("biology", "c")):
        ask(world, key, "r1h1", ["r2h1"], tenant)
    assert "1 other waiting part is considered" in explained(world, "a", "physics", "physics").sentence
    assert "other waiting" not in explained(world, "c", "biology", "biology").sentence
    assert "2 other waiting parts are considered" in explained(world, "c", None, "biology").sentence


# ---------------------------------------------------------------------------------------------------- devices


def test_a_tor_that_is_away():
    world = ready_world(make_fabric(4, [4]))
    world.disconnect(3)
    ask(world, "a", "r1h1", ["r2h1", "r3h1"])
    told = explained(world, "a")
    assert told.sentence.startswith("The request a waits for the ToR of r3.")
    assert told.blockers == ("the ToR of r3 is disconnected (connection lost)",)
    assert told.start is None and told.leave_out == ("r3h1",)
    assert leave_out(world, "a", ["r3h1"]) is PartState.ACTIVE


def test_a_holder_whose_tor_is_away_gives_nothing_back():
    world = ready_world(make_fabric(4, [4]))
    ask(world, "early", "r1h1", ["r2h1"])
    world.disconnect(2)
    ask(world, "late", "r1h1", ["r3h1"])
    told = explained(world, "late")
    assert told.start is None
    assert told.blockers == (
        f"port:r1/50 is held by default/early (reservation 1), whose lease ends in 10 s, after tor:{2:016x} reconnects",
    )
    world.advance_to(10.0)
    assert state_of(world, "late") is PartState.PENDING
    assert "is being released by default/early" in explained(world, "late").blockers[0]
    assert "the tor" not in explained(world, "late").sentence.lower()


def test_the_last_group_address():
    world = ready_world(make_fabric(4, [4]), CoreSettings(group_network=IPv4Network("239.1.0.0/30")))
    ask(world, "a", "r1h1", ["r1h2"])
    ask(world, "b", "r2h1", ["r2h2"])
    ask(world, "c", "r3h1", ["r4h1"])
    told = explained(world, "c")
    assert told.blockers == ("every group address of 239.1.0.0/30 is in use",) and told.leave_out == ()


def test_a_static_tree_that_is_in_use():
    tree = StaticTree("bus", "r1", 60, None, {"r2": 60, "r3": 60}, frozenset())
    world = ready_world(replace(make_fabric(3), static_trees={"bus": tree}))
    ask(world, "early", "r1h1", ["r2h1", "r3h1"])
    assert ask(world, "late", "r1h1", ["r2h1", "r3h1"]) is PartState.PENDING
    told = explained(world, "late")
    assert told.blockers[0].startswith("the static tree bus is held by default/early")
    assert told.start == pytest.approx(10.0)
    world.advance_to(10.0)
    assert state_of(world, "late") is PartState.ACTIVE


# ------------------------------------------------------------------------------------------------ other states


def test_a_request_that_does_not_wait(busy):
    assert explained(busy, "early").sentence == "The request early is active, its lease ends in 6.0 s."
    busy.handle(FinishAsked(key_of("early"), 0))
    assert explained(busy, "early").sentence == "The request early is done (The sender has finished)."
    told = explained(busy, "late")
    assert "is being released by default/early" in told.blockers[0] and told.start == pytest.approx(0.0)
    assert told.sentence.endswith("The earliest start is now, if no lease is extended.")
    busy.settle()
    busy.handle(WithdrawAsked(key_of("late")))
    told = explained(busy, "late")
    assert told.sentence == "The request late is withdrawn (Withdrawn by the client)."
    assert (told.blockers, told.start, told.smallest_change) == ((), None, None)


def test_a_request_that_is_being_lit():
    world = ready_world(make_fabric(4, [4]))
    world.handle(RequestSubmitted(multicast("a", "r1h1", ["r2h1"])))
    assert explained(world, "a").sentence == "The request a is being set up."


def test_patience_that_is_too_short(busy):
    busy.submit(multicast("brief", "r1h2", ["r6h1"], pending_timeout=2.0))
    assert explained(busy, "brief").sentence.endswith("Its pending timeout expires earlier, in 2.0 s.")
    busy.submit(multicast("long", "r1h2", ["r6h1"], pending_timeout=20.0))
    assert "pending_timeout" not in explained(busy, "long").sentence


def test_each_part_is_told_of_where_there_are_several(busy):
    request = busy.core.request(key_of("late"))
    (part,) = request.parts
    request.parts.append(replace(part, index=1, receivers=("r6h1",)))
    part.receivers = ("r3h1",)
    told = explained(busy, "late")
    assert "part 0: waits for a free optical port of r3; part 1: waits for the next scheduling pass" in told.sentence
    assert told.blockers[0].startswith("part 0: port:r3/50 is held by") and told.start == 0.0
    assert told.leave_out == () and told.smallest_change is None, "such a request cannot be changed"


def test_what_is_reserved_for_an_overdue_request_is_not_promised():
    world = ready_world(make_fabric(8, [4, 4]))
    ask(world, "early", "r1h1", ["r2h1", "r3h1"], size=10**12)
    ask(world, "overdue", "r4h1", ["r3h1", "r5h1"])
    world.advance_to(100.0)
    assert ask(world, "next", "r6h1", ["r6h2", "r5h1", "r7h1"]) is PartState.PENDING
    found = explained(world, "next")
    assert "Free ports and splitters are reserved for default/overdue, which is overdue." in found.sentence
    assert "reserved for a request of another tenant" in explained(world, "next", "other").sentence
    assert found.leave_out == ("r5h1", "r7h1"), "without r5 alone it would still wait"
    assert leave_out(world, "next", found.leave_out) is PartState.ACTIVE


def test_a_key_is_quoted_for_the_shell():
    world = ready_world(make_fabric(4, [4]))
    ask(world, "early", "r1h1", ["r2h1"])
    ask(world, "it's late", "r3h1", ["r2h1", "r4h1"])
    assert "blast extend 'it'\"'\"'s late' --remove r2h1" in explained(world, "it's late", TENANT).smallest_change


def test_explaining_changes_nothing(busy):
    before = image(busy.core)
    explained(busy, "late")
    assert image(busy.core) == before and busy.core.conclude(busy.now) == []


def test_a_switch_that_is_away():
    world = ready_world(make_fabric(4, [4]))
    world.disconnect("ocs1")
    ask(world, "a", "r1h1", ["r1h2", "r2h1"])
    told = explained(world, "a")
    assert told.blockers == ("the optical switch ocs1 is disconnected (connection lost)",)
    assert told.start is None and told.leave_out == ("r2h1",)


def test_elements_that_are_being_probed():
    world = ready_world(make_fabric(3, [4]))
    world.handle(VerifyAsked(bytes(32)))
    world.submit(multicast("a", "r1h1", ["r2h1"]))
    told = explained(world, "a")
    assert any("being probed" in blocker for blocker in told.blockers) and told.start is None
