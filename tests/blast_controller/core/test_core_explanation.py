"""Explanations of requests: blockers, the predicted start, and the smallest change that starts them."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv4Network

import pytest

from blast_controller.core.model.events import (
    ElementQuarantined,
    FinishRequested,
    RequestSubmitted,
    VerifyRequested,
    WithdrawRequested,
)
from blast_controller.core.model.fabric import StaticTree
from blast_controller.core.model.part_states import PartState
from blast_controller.core.model.requests import MulticastRequest
from blast_controller.core.model.settings import CoreSettings, TenantLimits
from tests.support.controller.core import TENANT, key_of, make_fabric, multicast, ready_world
from tests.support.controller.core_checks import image

SERVICE = 10**9
"""Bytes that take 0.8 s at the line rate; the lease is then the minimum, 10 s."""


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
    """Return a world where r1 sends to r2 and r3, and "late" (r4 to r3 and r5) waits for r3's only port."""
    world = ready_world(make_fabric(6, [4, 4]))
    assert ask(world, "early", "r1h1", ["r2h1", "r3h1"]) is PartState.ACTIVE
    world.now = 4.0
    assert ask(world, "late", "r4h1", ["r3h1", "r3h2", "r5h1"]) is PartState.PENDING
    return world


def test_explanation_names_held_port_start_and_removable_rack(busy):
    explanation = explained(busy, "late")
    assert explanation.key == "late"
    assert explanation.sentence == (
        "The request late waits for a free optical port of r3. The earliest start is in 6.0 s, if no lease is extended."
    )
    assert explanation.blockers == ("port:r3/50 is held by default/early (reservation 1), whose lease ends in 6.0 s",)
    assert explanation.start == pytest.approx(6.0)
    assert explanation.leave_out == ("r3h1", "r3h2")
    assert explanation.smallest_change == "Remove the rack r3: `blast extend default/late --remove r3h1,r3h2`."


def test_explanation_for_its_tenant_omits_the_tenant_name(busy):
    assert "`blast extend late --remove" in explained(busy, "late", viewer=TENANT).smallest_change


def test_explanation_counts_the_future_lease_of_a_holder_in_setup():
    world = ready_world(make_fabric(3, [4]))
    world.submit(multicast("early", "r1h1", ["r2h1"]))
    world.submit(multicast("late", "r1h1", ["r3h1"]))
    explanation = explained(world, "late")
    assert explanation.blockers == ("port:r1/50 is being set up for default/early (reservation 1)",)
    assert explanation.start == pytest.approx(10.0)


def test_explanation_predicts_no_start_for_a_quarantined_port(busy):
    busy.handle(ElementQuarantined("port:r5/50", "dirty"))
    explanation = explained(busy, "late")
    assert explanation.start is None and explanation.sentence.endswith("The earliest start cannot be predicted.")
    assert "port:r5/50 is not usable: dirty" in explanation.blockers
    assert explanation.leave_out == ()  # without r3 and r5 no receiver is left


def test_explanation_merges_racks_of_one_holder_into_one_blocker():
    world = ready_world(make_fabric(30, [32, 32]))
    receivers = [f"r{n}h1" for n in range(2, 31)]
    ask(world, "early", "r1h1", receivers)
    ask(world, "late", "r2h1", ["r1h1", *receivers[1:]])
    (blocker,) = explained(world, "late").blockers
    assert blocker.startswith("port:r2/50, port:r1/50, port:r3/50") and "and 10 more are held by" in blocker


# -------------------------------------------------------------------------------------------------- splitters


def test_explanation_names_held_splitters():
    world = ready_world(make_fabric(8, [4]))
    ask(world, "early", "r1h1", ["r2h1", "r3h1"])
    ask(world, "late", "r4h1", ["r5h1", "r6h1", "r6h2"])
    explanation = explained(world, "late")
    assert explanation.sentence.startswith(
        "The request late waits for free splitters that make 2 leaves on ocs1. The earliest"
    )
    assert explanation.blockers == (
        "splitter:s1 (1:4) is held by default/early (reservation 1), whose lease ends in 10 s",
    )
    assert explanation.start == pytest.approx(10.0)
    assert explanation.leave_out == ("r5h1",), "the rack with the fewest receivers"
    assert explanation.smallest_change == (
        "Remove the rack r5: `blast extend default/late --remove r5h1`; or free one more 1:4 splitter."
    )
    assert leave_out(world, "late", explanation.leave_out) is PartState.ACTIVE


def test_explanation_asks_for_the_smallest_sufficient_splitter():
    world = ready_world(make_fabric(20, [2, 8, 16]))
    for number, (sender, receivers) in enumerate([("r1", ["r2", "r3"]), ("r4", ["r5", "r6"]), ("r7", ["r8", "r9"])]):
        ask(world, f"k{number}", f"{sender}h1", [f"{rack}h1" for rack in receivers])
    ask(world, "late", "r10h1", [f"r{n}h1" for n in range(11, 17)])
    assert "free one more 1:8 splitter" in explained(world, "late").smallest_change


def test_explanation_counts_the_loop_leaf_as_an_output():
    world = ready_world(make_fabric(8, [2, 3]), CoreSettings(loop_leaf=True))
    ask(world, "early", "r1h1", ["r2h1", "r3h1"])
    ask(world, "late", "r4h1", ["r5h1", "r6h1"])
    explanation = explained(world, "late")
    assert "free splitters that make 3 leaves on ocs1" in explanation.sentence and explanation.start == pytest.approx(
        10.0
    )
    assert "free one more 1:2 splitter" in explanation.smallest_change, "together with the one that is free"


def test_explanation_counts_warm_splitters_as_free():
    world = ready_world(make_fabric(8, [4]), CoreSettings(keep_warm=60.0))
    ask(world, "early", "r1h1", ["r2h1", "r3h1"])
    ask(world, "late", "r1h1", ["r5h1", "r6h1"])
    assert explained(world, "late").blockers
    world.core.take(FinishRequested(key_of("early"), 0), world.now)
    explanation = explained(world, "late")
    assert explanation.blockers == () and explanation.start == 0.0 and explanation.smallest_change is None
    assert "waits for the next scheduling pass: all required resources are free" in explanation.sentence
    world.conclude()
    world.settle()
    assert state_of(world, "late") is PartState.ACTIVE


# ---------------------------------------------------------------------------------------------------- tenants


def limited(**limits):
    return CoreSettings(tenants={"physics": TenantLimits(**limits)})


def test_explanation_names_the_splitter_limit_of_the_tenant():
    world = ready_world(make_fabric(9, [4, 4]), limited(max_splitters=1))
    ask(world, "early", "r1h1", ["r2h1", "r3h1"], "physics")
    ask(world, "late", "r4h1", ["r5h1", "r6h1"], "physics")
    explanation = explained(world, "late", "physics", "physics")
    assert "because the tenant physics may hold 1 splitter at a time" in explanation.sentence
    assert explanation.blockers == ("splitter:s1 is held by early (reservation 1), whose lease ends in 10 s",)
    assert explanation.start == pytest.approx(10.0) and explanation.leave_out == ("r6h1",)
    assert "one more splitter" not in explanation.smallest_change
    world.advance_to(10.0)
    assert state_of(world, "late", "physics") is PartState.ACTIVE


def test_explanation_names_the_exhausted_quota_of_lit_time():
    world = ready_world(make_fabric(4, [4]), limited(max_light_seconds=5.0))
    ask(world, "early", "r1h1", ["r2h1"], "physics", size=10**11)
    world.now = 6.0
    ask(world, "late", "r3h1", ["r3h2", "r4h1"], "physics")
    explanation = explained(world, "late", "physics", "physics")
    assert explanation.blockers == ("the tenant physics has used its quota of lit time for this hour",)
    assert explanation.start is None and explanation.leave_out == ("r4h1",)


def test_explanation_hides_names_of_other_tenants():
    world = ready_world(make_fabric(9, [4]))
    ask(world, "secret", "r1h1", ["r2h1", "r3h1"], "physics")
    ask(world, "mine", "r4h1", ["r2h1", "r6h1"], "biology")
    explanation = explained(world, "mine", "biology", "biology")
    assert all("is held by another tenant, whose lease ends in 10 s" in blocker for blocker in explanation.blockers)
    assert len(explanation.blockers) == 2 and "secret" not in repr(explanation) and "physics" not in repr(explanation)
    assert "physics/secret (reservation 1)" in repr(explained(world, "mine", None, "biology"))


def test_explanation_counts_only_visible_pending_parts():
    world = ready_world(make_fabric(4, [4]))
    ask(world, "early", "r1h1", ["r2h1", "r3h1"])
    for tenant, key in (("physics", "a"), ("physics", "b"), ("biology", "c")):
        ask(world, key, "r1h1", ["r2h1"], tenant)
    assert "1 other waiting part is considered" in explained(world, "a", "physics", "physics").sentence
    assert "other waiting" not in explained(world, "c", "biology", "biology").sentence
    assert "2 other waiting parts are considered" in explained(world, "c", None, "biology").sentence


# ---------------------------------------------------------------------------------------------------- devices


def test_explanation_names_the_disconnected_tor():
    world = ready_world(make_fabric(4, [4]))
    world.disconnect(3)
    ask(world, "a", "r1h1", ["r2h1", "r3h1"])
    explanation = explained(world, "a")
    assert explanation.sentence.startswith("The request a waits for the ToR of r3.")
    assert explanation.blockers == ("the ToR of r3 is disconnected (connection lost)",)
    assert explanation.start is None and explanation.leave_out == ("r3h1",)
    assert leave_out(world, "a", ["r3h1"]) is PartState.ACTIVE


def test_explanation_predicts_no_start_while_the_holders_tor_is_away():
    world = ready_world(make_fabric(4, [4]))
    ask(world, "early", "r1h1", ["r2h1"])
    world.disconnect(2)
    ask(world, "late", "r1h1", ["r3h1"])
    explanation = explained(world, "late")
    assert explanation.start is None
    assert explanation.blockers == (
        f"port:r1/50 is held by default/early (reservation 1), whose lease ends in 10 s, after tor:{2:016x} reconnects",
    )
    world.advance_to(10.0)
    assert state_of(world, "late") is PartState.PENDING
    assert "is being released by default/early" in explained(world, "late").blockers[0]
    assert "the tor" not in explained(world, "late").sentence.lower()


def test_explanation_names_the_exhausted_group_addresses():
    world = ready_world(make_fabric(4, [4]), CoreSettings(group_network=IPv4Network("239.1.0.0/30")))
    ask(world, "a", "r1h1", ["r1h2"])
    ask(world, "b", "r2h1", ["r2h2"])
    ask(world, "c", "r3h1", ["r4h1"])
    explanation = explained(world, "c")
    assert explanation.blockers == ("every group address of 239.1.0.0/30 is in use",) and explanation.leave_out == ()


def test_explanation_names_the_static_tree_in_use():
    tree = StaticTree("bus", "r1", 60, None, {"r2": 60, "r3": 60}, frozenset())
    world = ready_world(replace(make_fabric(3), static_trees={"bus": tree}))
    ask(world, "early", "r1h1", ["r2h1", "r3h1"])
    assert ask(world, "late", "r1h1", ["r2h1", "r3h1"]) is PartState.PENDING
    explanation = explained(world, "late")
    assert explanation.blockers[0].startswith("the static tree bus is held by default/early")
    assert explanation.start == pytest.approx(10.0)
    world.advance_to(10.0)
    assert state_of(world, "late") is PartState.ACTIVE


# ------------------------------------------------------------------------------------------------ other states


def test_explanation_states_active_done_and_withdrawn_requests(busy):
    assert explained(busy, "early").sentence == "The request early is active, its lease ends in 6.0 s."
    busy.handle(FinishRequested(key_of("early"), 0))
    assert explained(busy, "early").sentence == "The request early is done (The sender has finished)."
    explanation = explained(busy, "late")
    assert "is being released by default/early" in explanation.blockers[0] and explanation.start == pytest.approx(0.0)
    assert explanation.sentence.endswith("The earliest start is now, if no lease is extended.")
    busy.settle()
    busy.handle(WithdrawRequested(key_of("late")))
    explanation = explained(busy, "late")
    assert explanation.sentence == "The request late is withdrawn (Withdrawn by the client)."
    assert (explanation.blockers, explanation.start, explanation.smallest_change) == ((), None, None)


def test_explanation_states_that_a_request_is_being_set_up():
    world = ready_world(make_fabric(4, [4]))
    world.handle(RequestSubmitted(multicast("a", "r1h1", ["r2h1"])))
    assert explained(world, "a").sentence == "The request a is being set up."


def test_explanation_states_an_earlier_pending_timeout(busy):
    busy.submit(multicast("brief", "r1h2", ["r6h1"], pending_timeout=2.0))
    assert explained(busy, "brief").sentence.endswith("Its pending timeout expires earlier, in 2.0 s.")
    busy.submit(multicast("long", "r1h2", ["r6h1"], pending_timeout=20.0))
    assert "pending_timeout" not in explained(busy, "long").sentence


def test_explanation_covers_each_part_of_a_request(busy):
    request = busy.core.request(key_of("late"))
    (part,) = request.parts
    request.parts.append(replace(part, index=1, receivers=("r6h1",)))
    part.receivers = ("r3h1",)
    explanation = explained(busy, "late")
    assert (
        "part 0: waits for a free optical port of r3; part 1: waits for the next scheduling pass"
        in explanation.sentence
    )
    assert explanation.blockers[0].startswith("part 0: port:r3/50 is held by") and explanation.start == 0.0
    assert explanation.leave_out == () and explanation.smallest_change is None, "such a request cannot be changed"


def test_explanation_excludes_resources_reserved_for_overdue_requests():
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


def test_explanation_quotes_keys_for_the_shell():
    world = ready_world(make_fabric(4, [4]))
    ask(world, "early", "r1h1", ["r2h1"])
    ask(world, "it's late", "r3h1", ["r2h1", "r4h1"])
    assert "blast extend 'it'\"'\"'s late' --remove r2h1" in explained(world, "it's late", TENANT).smallest_change


def test_explaining_leaves_the_core_unchanged(busy):
    before = image(busy.core)
    explained(busy, "late")
    assert image(busy.core) == before and busy.core.conclude(busy.now) == []


def test_explanation_names_the_disconnected_switch():
    world = ready_world(make_fabric(4, [4]))
    world.disconnect("ocs1")
    ask(world, "a", "r1h1", ["r1h2", "r2h1"])
    explanation = explained(world, "a")
    assert explanation.blockers == ("the optical switch ocs1 is disconnected (connection lost)",)
    assert explanation.start is None and explanation.leave_out == ("r2h1",)


def test_explanation_names_elements_that_are_being_probed():
    world = ready_world(make_fabric(3, [4]))
    world.handle(VerifyRequested(bytes(32)))
    world.submit(multicast("a", "r1h1", ["r2h1"]))
    explanation = explained(world, "a")
    assert any("being probed" in blocker for blocker in explanation.blockers) and explanation.start is None
