"""What devices can do to a request: refuse, go away, come back with less, or hold what others made."""

from __future__ import annotations

import pytest

from blast_controller.core.inventory.holders import PROBER
from blast_controller.core.model.commands import Publish, SetForwarding
from blast_controller.core.model.errors import ImpossibleTransitionError, RejectedError
from blast_controller.core.model.events import DecisionTimed, ElementQuarantined, VerifyAsked
from blast_controller.core.model.fabric import CrossConnect, reached_ports
from blast_controller.core.model.part_states import PartEvent, PartState
from blast_controller.core.model.part_states import after as part_after
from blast_controller.core.model.settings import CoreSettings
from blast_controller.core.rollout.reservation_states import ReservationEvent, ReservationState
from blast_controller.core.rollout.reservation_states import after as reservation_after
from tests.support.core import World, by_sides, key_of, make_fabric, multicast, ready_world

GROUP = ["r2h1", "r3h1"]


@pytest.fixture
def world():
    return ready_world(make_fabric(4, [4, 4]))


def test_a_refusal_is_undone_and_tried_again(world):
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


def test_three_refusals_in_a_row_are_the_end(world):
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


def test_before_devices_are_there_a_request_waits_with_a_sentence():
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


def test_a_switch_that_refuses_the_lost_circuits_revokes_and_decides_again(world):
    world.granted(multicast("a", "r1h1", GROUP))
    world.reconnect("ocs1", forgets=lambda circuit: True)
    world.deliver()
    world.work("ocs1", denied={0})
    world.settle()
    assert world.kinds("a") == ["granted", "revoked", "granted"]
    assert "light lost: denied" in world.core.request(key_of("a")).events[1].reason
    assert world.served() == set(GROUP)


@pytest.mark.parametrize(("forgetful", "others"), [("ocs1", (1, 2, 3)), (2, ("ocs1", 1, 3))])
def test_a_device_that_confirms_and_forgets_is_configured_again_before_the_grant(world, forgetful, others):
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


def test_a_tor_that_comes_back_in_the_middle_of_a_change_gets_its_share_again(world):
    world.granted(multicast("a", "r1h1", GROUP))
    world.extend("a", add_receivers=("r4h1",))
    world.work(4)
    world.reconnect(4, forgets=lambda rule: True)
    world.settle()
    assert world.kinds("a") == ["granted", "changed"]
    assert world.served() == {*GROUP, "r4h1"}


def test_circuits_that_are_on_their_way_out_are_not_missed(world):
    """The switch did what the change took away, and its answer was lost: no reason to revoke."""
    world.granted(multicast("a", "r1h1", GROUP))
    world.extend("a", remove_receivers=("r3h1",))
    world.work("ocs1", cut_after=1)
    world.deliver()
    world.come_back("ocs1")
    world.settle()
    assert world.kinds("a") == ["granted", "changed"]
    assert world.served() == {"r2h1"}


def test_foreign_circuits_block_what_they_touch():
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
    assert foreign <= world.switches["ocs1"].held, "and are never touched"


def test_the_papers_testbed_four_racks_on_one_datapath():
    world = ready_world(make_fabric(4, [4, 4], shared=4))
    world.granted(multicast("a", "r1h1", ["r1h2", "r2h1", "r3h2", "r4h1"]))
    assert world.served() == {"r1h2", "r2h1", "r3h2", "r4h1"}
    (command,) = [c for c in world.commands if isinstance(c, SetForwarding)]
    assert {f.in_port for f in command.changes[0].add} == {1, 150, 250, 350}


def test_a_loop_leaf_lights_the_senders_own_receiver():
    world = ready_world(make_fabric(4, [4]), CoreSettings(loop_leaf=True))
    world.granted(multicast("a", "r1h1", GROUP))
    root = world.fabric.racks["r1"].optical_ports[0]
    assert world.reached(root) == {("r1", 50), ("r2", 50), ("r3", 50)}
    assert world.served() == set(GROUP)


def test_a_loop_of_two_racks_is_a_two_way_circuit():
    world = ready_world(make_fabric(2, [4]), CoreSettings(loop_leaf=True))
    world.granted(multicast("a", "r1h1", ["r2h1"]))
    assert world.switches["ocs1"].held == {CrossConnect("ocs1", 1, 2), CrossConnect("ocs1", 2, 1)}
    assert "splitter:s1" not in world.core.view.holders


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


def test_what_is_not_in_a_table_cannot_happen():
    with pytest.raises(
        ImpossibleTransitionError, match="a part in state done has no transition for the event 'picked'"
    ):
        part_after(PartState.DONE, PartEvent.PICKED)
    with pytest.raises(ImpossibleTransitionError, match="a reservation in state gone"):
        reservation_after(ReservationState.GONE, ReservationEvent.CONFIRMED)
    for state in PartState:
        leaves = [event for event in PartEvent if _possible(state, event)]
        assert bool(leaves) != state.final


def _possible(state, event):
    try:
        part_after(state, event)
    except ImpossibleTransitionError:
        return False
    return True


def test_compute_time_goes_into_the_grant(world):
    world.submit(multicast("a", "r1h1", GROUP))
    world.handle(DecisionTimed(0.003))
    world.run(DecisionTimed(9.0))
    assert world.part().grant.timings.compute == 0.003
    assert [type(c) for c in world.commands[-1:]] == [Publish]


@pytest.fixture
def directional():
    return ready_world(by_sides(make_fabric(4, [4, 4])))


def test_a_rack_sends_to_one_group_and_receives_from_another(directional):
    directional.granted(multicast("a", "r1h1", GROUP))
    directional.granted(multicast("b", "r2h1", ["r1h1", "r4h1"]))
    assert directional.served("a") == set(GROUP) and directional.served("b") == {"r1h1", "r4h1"}
    held = set(directional.core.view.holders)
    assert {"port:r1/50/tx", "port:r2/50/rx", "port:r2/50/tx", "port:r1/50/rx"} <= held
    directional.serve(multicast("c", "r4h1", ["r3h1"]))
    assert directional.reason("c") == "Waiting for a free optical port of r3."


def test_one_side_can_be_quarantined(directional):
    directional.handle(ElementQuarantined("port:r1/50/tx", "its laser is dying"))
    directional.granted(multicast("a", "r2h1", ["r1h1", "r3h1"]))
    directional.granted(multicast("b", "r4h1", ["r2h1"]))


def test_only_ports_with_both_fibers_free_are_probed(directional):
    directional.granted(multicast("a", "r1h1", ["r2h1"]))
    directional.handle(VerifyAsked(bytes(32)))
    probed = {element for element, holder in directional.core.view.holders.items() if holder == PROBER}
    sides = {f"port:{rack}/50/{side}" for rack in ("r3", "r4") for side in ("tx", "rx")}
    assert probed == sides | {"splitter:s1", "splitter:s2"}


def test_both_sides_are_one_port_again():
    fabric = make_fabric(4, [4, 4])
    assert by_sides(fabric).whole_ports_on("ocs1") == fabric.ports_on("ocs1")
    assert by_sides(fabric).directional and not fabric.directional
