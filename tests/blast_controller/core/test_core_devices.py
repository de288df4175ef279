"""Device events during a request: refusals, disconnections, lost state and foreign circuits."""

from __future__ import annotations

import pytest

from blast_controller.core.inventory.holders import PROBER
from blast_controller.core.model.commands import Publish, SetForwarding
from blast_controller.core.model.errors import ImpossibleTransitionError, RejectedError
from blast_controller.core.model.events import DecisionTimed, ElementQuarantined, VerifyRequested
from blast_controller.core.model.fabric import CrossConnect, reached_ports
from blast_controller.core.model.part_states import PartEvent, PartState
from blast_controller.core.model.part_states import after as part_after
from blast_controller.core.model.settings import CoreSettings
from blast_controller.core.rollout.reservation_states import ReservationEvent, ReservationState
from blast_controller.core.rollout.reservation_states import after as reservation_after
from tests.support.controller.core import World, by_sides, key_of, make_fabric, multicast, ready_world

GROUP = ["r2h1", "r3h1"]


@pytest.fixture
def world():
    return ready_world(make_fabric(4, [4, 4]))


def test_core_undoes_a_refused_step_and_retries(world):
    world.submit(multicast("a", "r1h1", GROUP))
    world.work("ocs1", denied={0})
    world.deliver()
    for name in (1, 2, 3):
        world.work(name)
    world.deliver()
    assert world.part().state is PartState.PENDING
    assert world.reason().startswith("Waiting for a free optical port of r1, r2, r3. The last attempt failed: denied")
    world.settle()
    assert world.kinds("a") == ["granted"]
    assert world.part().reservation == 2
    assert world.part().failures == 0, "only failures in a row count"


def test_request_fails_after_three_refusals_in_a_row(world):
    world.submit(multicast("a", "r1h1", GROUP))
    for _ in range(3):
        assert not world.part().state.final
        for denied in ({0}, ()):  # lighting, then undoing
            world.work("ocs1", denied=denied)
            for tor in (1, 2, 3):
                world.work(tor)
            world.deliver()
    assert world.part().state is PartState.FAILED
    assert world.kinds("a") == ["ended"]
    assert "denied" in world.reason()
    assert world.core.view.holders == {}
    assert not world.switches["ocs1"].held


def test_pending_request_names_the_disconnected_device():
    world = World(make_fabric(3, [4]))
    world.submit(multicast("a", "r1h1", GROUP))
    assert world.reason() == "Waiting: the ToR of r1 is disconnected (not connected yet)."
    for datapath in (1, 2, 3):
        world.come_back(datapath)
    world.deliver()
    assert world.reason() == "Waiting: the optical switch ocs1 is disconnected (not connected yet)."
    world.come_back("ocs1")
    world.settle()
    assert world.part().state is PartState.ACTIVE


def test_refused_repair_revokes_the_grant_and_grants_again(world):
    world.granted(multicast("a", "r1h1", GROUP))
    world.reconnect("ocs1", forgets=lambda circuit: True)
    world.deliver()
    world.work("ocs1", denied={0})
    world.settle()
    assert world.kinds("a") == ["granted", "revoked", "granted"]
    assert "light lost: denied" in world.core.request(key_of("a")).events[1].reason
    assert world.served() == set(GROUP)


@pytest.mark.parametrize(("forgetful", "others"), [("ocs1", (1, 2, 3)), (2, ("ocs1", 1, 3))])
def test_device_that_loses_confirmed_state_is_configured_before_the_grant(world, forgetful, others):
    world.submit(multicast("a", "r1h1", GROUP))
    world.work(forgetful)
    world.deliver()
    world.reconnect(forgetful, forgets=lambda entry: True)
    world.deliver()
    for name in others:
        world.work(name)
    world.deliver()
    assert world.kinds("a") == []
    world.settle()
    assert world.kinds("a") == ["granted"]
    assert world.served() == set(GROUP)


def test_tor_that_reconnects_during_a_change_receives_its_rules_again(world):
    world.granted(multicast("a", "r1h1", GROUP))
    world.extend("a", add_receivers=("r4h1",))
    world.work(4)
    world.reconnect(4, forgets=lambda rule: True)
    world.settle()
    assert world.kinds("a") == ["granted", "changed"]
    assert world.served() == {*GROUP, "r4h1"}


def test_unanswered_removal_of_circuits_revokes_nothing(world):
    """The switch disconnects the removed circuit, but its answer is lost."""
    world.granted(multicast("a", "r1h1", GROUP))
    world.extend("a", remove_receivers=("r3h1",))
    world.work("ocs1", cut_after=1)
    world.deliver()
    world.come_back("ocs1")
    world.settle()
    assert world.kinds("a") == ["granted", "changed"]
    assert world.served() == {"r2h1"}


def test_foreign_circuits_block_the_ports_and_splitters_they_use():
    world = World(make_fabric(4, [4, 4]))
    ours, output = world.fabric.splitters["s1"], world.fabric.splitters["s2"].outputs[1]
    foreign = {CrossConnect("ocs1", 4, ours.input), CrossConnect("ocs1", output, 77)}
    world.switches["ocs1"].circuits = {c.input: c.output for c in foreign}
    world.switches["ocs1"].foreign = foreign
    world.connect_all()
    for element in ("port:r4/50", "splitter:s1", "splitter:s2"):
        assert "which Blast did not create" in world.core.view.unusable(element)
    with pytest.raises(RejectedError) as refusal:
        world.submit(multicast("a", "r1h1", GROUP))
    assert (refusal.value.code, refusal.value.largest) == ("group_too_wide", 2)
    with pytest.raises(RejectedError, match=f"r4: occupied by the cross-connect 4 to {ours.input} on ocs1"):
        world.submit(multicast("a", "r1h1", ["r4h1"]))
    world.granted(multicast("b", "r1h1", ["r2h1"]))
    assert foreign <= world.switches["ocs1"].held, "foreign circuits remain"


def test_papers_testbed_serves_four_racks_on_one_datapath():
    world = ready_world(make_fabric(4, [4, 4], shared=4))
    world.granted(multicast("a", "r1h1", ["r1h2", "r2h1", "r3h2", "r4h1"]))
    assert world.served() == {"r1h2", "r2h1", "r3h2", "r4h1"}
    (command,) = [c for c in world.commands if isinstance(c, SetForwarding)]
    assert {f.in_port for f in command.changes[0].add} == {1, 150, 250, 350}


def test_loop_leaf_lights_the_senders_own_receiver():
    world = ready_world(make_fabric(4, [4]), CoreSettings(loop_leaf=True))
    world.granted(multicast("a", "r1h1", GROUP))
    root = world.fabric.racks["r1"].optical_ports[0]
    assert world.reached(root) == {("r1", 50), ("r2", 50), ("r3", 50)}
    assert world.served() == set(GROUP)


def test_loop_of_two_racks_uses_circuits_in_both_directions():
    world = ready_world(make_fabric(2, [4]), CoreSettings(loop_leaf=True))
    world.granted(multicast("a", "r1h1", ["r2h1"]))
    assert world.switches["ocs1"].held == {CrossConnect("ocs1", 1, 2), CrossConnect("ocs1", 2, 1)}
    assert "splitter:s1" not in world.core.view.holders


def test_optical_paths_are_unidirectional():
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


def test_undefined_state_transitions_raise_errors():
    with pytest.raises(
        ImpossibleTransitionError, match="a part in state done has no transition for the event 'picked'"
    ):
        part_after(PartState.DONE, PartEvent.PICKED)
    with pytest.raises(ImpossibleTransitionError, match="a reservation in state released"):
        reservation_after(ReservationState.RELEASED, ReservationEvent.CONFIRMED)
    for state in PartState:
        leaves = [event for event in PartEvent if _possible(state, event)]
        assert bool(leaves) != state.final


def _possible(state, event):
    try:
        part_after(state, event)
    except ImpossibleTransitionError:
        return False
    return True


def test_grant_contains_the_compute_time(world):
    world.submit(multicast("a", "r1h1", GROUP))
    world.handle(DecisionTimed(0.003))
    world.run(DecisionTimed(9.0))
    assert world.part().grant.timings.compute == 0.003
    assert [type(c) for c in world.commands[-1:]] == [Publish]


@pytest.fixture
def directional():
    return ready_world(by_sides(make_fabric(4, [4, 4])))


def test_rack_with_directional_ports_sends_and_receives_at_once(directional):
    directional.granted(multicast("a", "r1h1", GROUP))
    directional.granted(multicast("b", "r2h1", ["r1h1", "r4h1"]))
    assert directional.served("a") == set(GROUP) and directional.served("b") == {"r1h1", "r4h1"}
    held = set(directional.core.view.holders)
    assert {"port:r1/50/tx", "port:r2/50/rx", "port:r2/50/tx", "port:r1/50/rx"} <= held
    directional.serve(multicast("c", "r4h1", ["r3h1"]))
    assert directional.reason("c") == "Waiting for a free optical port of r3."


def test_quarantine_of_transmit_side_leaves_receive_side_usable(directional):
    directional.handle(ElementQuarantined("port:r1/50/tx", "its laser is dying"))
    directional.granted(multicast("a", "r2h1", ["r1h1", "r3h1"]))
    directional.granted(multicast("b", "r4h1", ["r2h1"]))


def test_fiber_check_probes_ports_with_both_fibers_free(directional):
    directional.granted(multicast("a", "r1h1", ["r2h1"]))
    directional.handle(VerifyRequested(bytes(32)))
    probed = {element for element, holder in directional.core.view.holders.items() if holder == PROBER}
    sides = {f"port:{rack}/50/{side}" for rack in ("r3", "r4") for side in ("tx", "rx")}
    assert probed == sides | {"splitter:s1", "splitter:s2"}


def test_fabric_joins_directional_sides_into_whole_ports():
    fabric = make_fabric(4, [4, 4])
    assert by_sides(fabric).whole_ports_on("ocs1") == fabric.ports_on("ocs1")
    assert by_sides(fabric).directional and not fabric.directional
