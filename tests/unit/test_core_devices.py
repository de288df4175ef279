"""What devices can do to a request: refuse, go away, come back with less, or hold what others made."""

from __future__ import annotations

import pytest

from blast_controller.core.light.light_tree import build, grow
from blast_controller.core.model.commands import Publish, SetCircuits, SetForwarding
from blast_controller.core.model.errors import ImpossibleTransition, Rejected
from blast_controller.core.model.events import (
    DecisionTimed,
    ExtensionAsked,
    FinishAsked,
    StepConfirmed,
    Tick,
    WithdrawAsked,
)
from blast_controller.core.model.fabric import CrossConnect, reached_ports
from blast_controller.core.model.part_states import PartEvent, PartState
from blast_controller.core.model.part_states import after as part_after
from blast_controller.core.model.requests import Extension
from blast_controller.core.model.settings import CoreSettings
from blast_controller.core.rollout.reservation_states import ReservationEvent, ReservationState
from blast_controller.core.rollout.reservation_states import after as reservation_after
from tests.support.core import World, key_of, make_fabric, multicast, ready_world

GROUP = ["r2h1", "r3h1"]


@pytest.fixture
def world():
    return ready_world(make_fabric(4, [4, 4]))


def part_of(world, key="a"):
    return world.core.request(key_of(key)).parts[0]


def reason(world, key="a"):
    return world.core.reason(world.core.request(key_of(key)).current, part_of(world, key), world.now)


def served(world):
    return world.receivers_of(world.fabric.hosts["r1h1"], part_of(world).grant.group_address)


# ---------------------------------------------------------------------------------------------------- refusal


def test_a_refusal_is_undone_and_tried_again(world):
    world.submit(multicast("a", "r1h1", GROUP))
    world.work("ocs1", denied={0})
    world.deliver()
    for name in (1, 2, 3):
        world.work(name)
    world.deliver()
    assert part_of(world).state is PartState.PENDING
    assert reason(world).startswith("Waiting for a free optical port of r1, r2, r3. The last attempt failed: denied")
    world.settle()
    assert world.kinds("a") == ["granted"]
    assert part_of(world).reservation == 2
    assert part_of(world).failures == 0, "only failures in a row count"


def test_three_refusals_in_a_row_are_the_end(world):
    world.submit(multicast("a", "r1h1", GROUP))
    for _ in range(3):
        assert not part_of(world).state.final
        for denied in ({0}, ()):  # lighting, then undoing
            world.work("ocs1", denied=denied)
            for tor in (1, 2, 3):
                world.work(tor)
            world.deliver()
    assert part_of(world).state is PartState.FAILED
    assert world.kinds("a") == ["ended"]
    assert "denied" in reason(world)
    assert world.core.view.holders == {}
    assert not world.switches["ocs1"].held


def test_undoing_is_tried_until_the_device_does_it(world):
    world.granted(multicast("a", "r1h1", GROUP))
    world.handle(FinishAsked(key_of("a"), 0))
    world.work("ocs1", denied={0})
    world.settle()
    assert "splitter:s1" in world.core.view.holders, "nothing is free before the switch has confirmed"
    world.now += 1.0
    world.handle(Tick())
    world.settle()
    assert world.core.view.holders == {}


def test_answers_to_old_steps_are_ignored(world):
    world.submit(multicast("a", "r1h1", GROUP))
    world.handle(WithdrawAsked(key_of("a")))
    for name in world.devices:
        if world.device(name).queue:
            world.work(name)
    world.deliver()
    assert world.core.view.holders, "the confirmations of lighting are not those of releasing"
    assert world.handle(StepConfirmed("ocs1", 99, 1, 0.0)) == []
    world.settle()
    assert world.core.view.holders == {}


# ------------------------------------------------------------------------------------------------------- away


def test_before_devices_are_there_a_request_waits_with_a_sentence():
    world = World(make_fabric(3, [4]))
    world.submit(multicast("a", "r1h1", GROUP))
    assert reason(world) == "Waiting: the ToR of r1 is disconnected (not connected yet)."
    for datapath in (1, 2, 3):
        world.come_back(datapath)
    world.deliver()
    assert reason(world) == "Waiting: the optical switch ocs1 is disconnected (not connected yet)."
    world.come_back("ocs1")
    world.settle()
    assert part_of(world).state is PartState.ACTIVE


def test_a_switch_that_is_away_does_not_hold_up_a_group_without_light(world):
    world.lose("ocs1")
    world.deliver()
    world.granted(multicast("a", "r1h1", ["r1h2"]))


def test_the_other_switch_serves_while_one_is_away():
    world = ready_world(make_fabric(3, [4, 4], switches=2))
    world.lose("ocs1")
    world.deliver()
    world.granted(multicast("a", "r1h1", GROUP))
    assert {c.switch for c in world.commands if isinstance(c, SetCircuits)} == {"ocs2"}


def test_a_session_lost_in_the_middle_is_a_failure_and_the_rest_is_undone_later(world):
    world.submit(multicast("a", "r1h1", GROUP))
    world.work("ocs1", cut_after=2)
    world.settle()
    assert part_of(world).state is PartState.PENDING
    assert "disconnected (connection lost)" in reason(world)
    assert len(world.switches["ocs1"].held) == 2
    assert world.core.view.holders, "what the switch may hold is not free"
    world.come_back("ocs1")
    world.settle()
    assert part_of(world).state is PartState.ACTIVE
    assert served(world) == set(GROUP)


def test_light_goes_on_while_devices_are_away(world):
    world.granted(multicast("a", "r1h1", GROUP))
    for name in world.devices:
        world.lose(name)
    world.deliver()
    assert part_of(world).state is PartState.ACTIVE
    assert world.kinds("a") == ["granted"]


# ------------------------------------------------------------------------------------------------------- back


def test_a_switch_without_its_circuits_gets_them_again(world):
    world.granted(multicast("a", "r1h1", GROUP))
    world.lose("ocs1")
    world.come_back("ocs1", forgets=lambda circuit: True)
    world.settle()
    assert world.kinds("a") == ["granted"]
    assert served(world) == set(GROUP)


def test_a_switch_that_refuses_the_lost_circuits_revokes_and_decides_again(world):
    world.granted(multicast("a", "r1h1", GROUP))
    world.lose("ocs1")
    world.come_back("ocs1", forgets=lambda circuit: True)
    world.deliver()
    world.work("ocs1", denied={0})
    world.settle()
    assert world.kinds("a") == ["granted", "revoked", "granted"]
    assert "light lost: denied" in world.core.request(key_of("a")).events[1].reason
    assert served(world) == set(GROUP)


def test_a_switch_with_its_circuits_changes_nothing(world):
    world.granted(multicast("a", "r1h1", GROUP))
    world.commands.clear()
    world.lose("ocs1")
    world.come_back("ocs1")
    world.settle()
    assert world.commands == []


def test_a_confirmed_circuit_that_is_lost_before_the_grant_prevents_it(world):
    world.submit(multicast("a", "r1h1", GROUP))
    world.work("ocs1")
    world.deliver()
    world.lose("ocs1")
    world.come_back("ocs1", forgets=lambda circuit: True)
    world.deliver()
    for name in (1, 2, 3):
        world.work(name)
    world.deliver()
    assert world.kinds("a") == []
    world.settle()
    assert world.kinds("a") == ["granted"]
    assert served(world) == set(GROUP)


def test_a_tor_that_confirmed_and_forgot_gets_its_rules_again_before_the_grant(world):
    world.submit(multicast("a", "r1h1", GROUP))
    world.work(2)
    world.deliver()
    world.lose(2)
    world.come_back(2, forgets=lambda rule: True)
    world.deliver()
    for name in ("ocs1", 1, 3):
        world.work(name)
    world.deliver()
    assert world.kinds("a") == []
    world.settle()
    assert world.kinds("a") == ["granted"]
    assert served(world) == set(GROUP)


def test_a_tor_that_comes_back_gets_its_rules_again(world):
    world.granted(multicast("a", "r1h1", GROUP))
    world.lose(2)
    world.come_back(2, forgets=lambda rule: True)
    assert served(world) == {"r3h1"}
    world.settle()
    assert served(world) == set(GROUP)
    assert world.kinds("a") == ["granted"]


def test_a_tor_that_refuses_its_rules_again_is_a_loss_of_light(world):
    world.granted(multicast("a", "r1h1", GROUP))
    world.lose(2)
    world.come_back(2, forgets=lambda rule: True)
    world.deliver()
    with pytest.raises(Rejected, match="being set up or changed"):
        world.handle(ExtensionAsked(key_of("a"), Extension(add_seconds=1.0)))
    world.work(2, denied={0})
    world.settle()
    assert world.kinds("a") == ["granted", "revoked", "granted"]
    assert served(world) == set(GROUP)


def test_a_tor_that_comes_back_in_the_middle_of_a_change_gets_its_share_again(world):
    world.granted(multicast("a", "r1h1", GROUP))
    world.handle(ExtensionAsked(key_of("a"), Extension(add_receivers=("r4h1",))))
    world.work(4)
    world.lose(4)
    world.come_back(4, forgets=lambda rule: True)
    world.settle()
    assert world.kinds("a") == ["granted", "changed"]
    assert served(world) == {*GROUP, "r4h1"}


def test_a_tor_that_comes_back_while_members_are_taken_away_is_tried_until_it_is_done(world):
    world.granted(multicast("a", "r1h1", GROUP))
    world.handle(ExtensionAsked(key_of("a"), Extension(remove_receivers=("r3h1",))))
    world.lose(2)
    world.come_back(2, forgets=lambda rule: True)
    world.deliver()
    world.work(2, denied={0})
    world.settle()
    assert world.kinds("a") == ["granted"]
    world.now += 1.0
    world.handle(Tick())
    world.settle()
    assert world.kinds("a") == ["granted", "changed"]
    assert served(world) == {"r2h1"}


def test_circuits_that_are_on_their_way_out_are_not_missed(world):
    """The switch did what the change took away, and its answer was lost: no reason to revoke."""
    world.granted(multicast("a", "r1h1", GROUP))
    world.handle(ExtensionAsked(key_of("a"), Extension(remove_receivers=("r3h1",))))
    world.work("ocs1", cut_after=1)
    world.deliver()
    world.come_back("ocs1")
    world.settle()
    assert world.kinds("a") == ["granted", "changed"]
    assert served(world) == {"r2h1"}


def test_light_lost_in_the_middle_of_a_change_is_lit_again(world):
    world.granted(multicast("a", "r1h1", GROUP))
    world.handle(ExtensionAsked(key_of("a"), Extension(add_receivers=("r4h1",))))
    world.lose("ocs1")
    world.come_back("ocs1", forgets=lambda circuit: True)
    world.settle()
    assert world.kinds("a") == ["granted", "changed"]
    assert served(world) == {*GROUP, "r4h1"}


# ---------------------------------------------------------------------------------------------------- foreign


def test_foreign_circuits_block_what_they_touch():
    world = World(make_fabric(4, [4, 4]))
    ours, leg = world.fabric.splitters["s1"], world.fabric.splitters["s2"].outputs[1]
    foreign = {CrossConnect("ocs1", 4, ours.input), CrossConnect("ocs1", leg, 77)}
    world.switches["ocs1"].circuits = {c.input: c.output for c in foreign}
    world.switches["ocs1"].foreign = foreign
    world.connect_all()
    for element in ("port:r4/50", "splitter:s1", "splitter:s2"):
        assert "which Blast did not make" in world.core.view.unusable(element)
    with pytest.raises(Rejected) as refusal:
        world.submit(multicast("a", "r1h1", GROUP))
    assert (refusal.value.code, refusal.value.largest) == ("group_too_wide", 2)
    with pytest.raises(Rejected, match=f"r4: occupied by the cross-connect 4 to {ours.input} on ocs1"):
        world.submit(multicast("a", "r1h1", ["r4h1"]))
    world.granted(multicast("b", "r1h1", ["r2h1"]))
    assert foreign <= world.switches["ocs1"].held, "and are never touched"


def test_foreign_circuits_that_are_gone_block_no_longer():
    world = World(make_fabric(3, [4]))
    world.switches["ocs1"].circuits = {3: 99}
    world.switches["ocs1"].foreign = {CrossConnect("ocs1", 3, 99)}
    world.connect_all()
    with pytest.raises(Rejected):
        world.submit(multicast("a", "r1h1", GROUP))
    world.lose("ocs1")
    world.switches["ocs1"].circuits.clear()
    world.switches["ocs1"].foreign.clear()
    world.come_back("ocs1")
    world.deliver()
    world.granted(multicast("a", "r1h1", GROUP))


# ----------------------------------------------------------------------------------------------- shared parts


def test_the_papers_testbed_four_racks_on_one_datapath():
    world = ready_world(make_fabric(4, [4, 4], shared=4))
    world.granted(multicast("a", "r1h1", ["r1h2", "r2h1", "r3h2", "r4h1"]))
    assert served(world) == {"r1h2", "r2h1", "r3h2", "r4h1"}
    (command,) = [c for c in world.commands if isinstance(c, SetForwarding)]
    assert {f.in_port for f in command.changes[0].add} == {1, 150, 250, 350}


def test_two_ports_serve_two_groups():
    world = ready_world(make_fabric(3, [4, 4], ports=2))
    world.granted(multicast("a", "r1h1", GROUP))
    world.granted(multicast("b", "r1h2", GROUP))
    world.submit(multicast("c", "r1h2", GROUP))
    assert part_of(world, "c").state is PartState.PENDING


def test_a_loop_leaf_lights_the_senders_own_receiver():
    world = ready_world(make_fabric(4, [4]), CoreSettings(loop_leaf=True))
    world.granted(multicast("a", "r1h1", GROUP))
    root = world.fabric.racks["r1"].optical_ports[0]
    assert world.reached(root) == {("r1", 50), ("r2", 50), ("r3", 50)}
    assert served(world) == set(GROUP)


def test_a_loop_of_two_racks_is_a_two_way_circuit():
    world = ready_world(make_fabric(2, [4]), CoreSettings(loop_leaf=True))
    world.granted(multicast("a", "r1h1", ["r2h1"]))
    assert world.switches["ocs1"].held == {CrossConnect("ocs1", 1, 2), CrossConnect("ocs1", 2, 1)}
    assert "splitter:s1" not in world.core.view.holders


# ------------------------------------------------------------------------------------- small but load-bearing


def test_light_goes_one_way():
    fabric = make_fabric(3, [2])
    one, two, three = (fabric.racks[name].optical_ports[0] for name in ("r1", "r2", "r3"))
    splitter = fabric.splitters["s1"]
    circuits = [
        CrossConnect("ocs1", one.input, splitter.input),
        CrossConnect("ocs1", splitter.outputs[0], two.output),
        CrossConnect("ocs1", splitter.outputs[1], three.output),
    ]
    assert reached_ports(fabric, circuits, one) == {("r2", 50), ("r3", 50)}
    assert reached_ports(fabric, circuits, two) == set()
    for missing in circuits:
        rest = [c for c in circuits if c != missing]
        assert reached_ports(fabric, rest, one) < {("r2", 50), ("r3", 50)}, "a branch is dark"


def test_a_tree_without_an_open_leg_cannot_grow():
    fabric = make_fabric(3, [2])
    one, two, three = (fabric.racks[name].optical_ports[0] for name in ("r1", "r2", "r3"))
    tree = build(one, [two], [], loop_leaf=False)
    assert grow(tree, [three], [fabric.splitters["s1"]]) is None
    assert grow(tree, [], []) == tree


def test_what_is_not_in_a_table_cannot_happen():
    with pytest.raises(ImpossibleTransition, match="a part in state done cannot take the event 'picked'"):
        part_after(PartState.DONE, PartEvent.PICKED)
    with pytest.raises(ImpossibleTransition, match="a reservation in state gone"):
        reservation_after(ReservationState.GONE, ReservationEvent.CONFIRMED)
    for state in PartState:
        leaves = [event for event in PartEvent if _possible(state, event)]
        assert bool(leaves) != state.final


def _possible(state, event):
    try:
        part_after(state, event)
    except ImpossibleTransition:
        return False
    return True


def test_compute_time_goes_into_the_grant(world):
    world.submit(multicast("a", "r1h1", GROUP))
    world.handle(DecisionTimed(0.003))
    world.handle(DecisionTimed(9.0))
    world.settle()
    assert part_of(world).grant.timings.compute == 0.003
    assert [type(c) for c in world.commands[-1:]] == [Publish]
