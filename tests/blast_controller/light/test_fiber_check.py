"""The check of the fibers inside the core: what it holds and gives back, and what devices and crashes do to it."""

from dataclasses import replace

import pytest

from blast_controller.core.inventory.holders import PROBER
from blast_controller.core.model.commands import SetCircuits
from blast_controller.core.model.events import ElementQuarantined, ProbeSeen
from blast_controller.core.model.fabric import CrossConnect, StaticTree
from blast_controller.core.model.settings import CoreSettings
from tests.support.core import make_fabric, multicast
from tests.support.core_light import FiberWorld, ready_fibers, said


@pytest.fixture
def world():
    """Six racks; splitters 1:4 and 1:3."""
    return ready_fibers(make_fabric(6, (4, 3)))


def test_a_right_fabric_is_checked_without_waiting_and_left_as_it_was(world):
    report = world.verified()
    assert (report.faults, report.skipped, report.probed) == ((), (), 8)
    assert world.now == 0
    assert world.probes
    world.assert_nothing_left()


def test_faults_are_named(world):
    world.wiring.swap_inputs(2, 5)
    world.wiring.at_input[8] = None
    report = world.verified()
    assert said(report) == {
        "port:r2/50": "its transmit fiber is swapped with the transmit fiber of port:r5/50",
        "port:r5/50": "its transmit fiber is swapped with the transmit fiber of port:r2/50",
        "output:s1/8": "the output is dead: no light arrives at input 8 of ocs1",
    }
    assert report.skipped == ()
    world.assert_nothing_left()


def test_each_switch_is_checked():
    world = ready_fibers(make_fabric(4, (3, 3), switches=2))
    world.wirings["ocs2"].at_output[1] = None
    assert said(world.verified()) == {"port:r1/51": "its receive fiber is dead: no light arrives from output 1 of ocs2"}
    world.assert_nothing_left()


def test_what_is_in_use_is_neither_lit_nor_moved_and_listed(world):
    world.granted(multicast("a", "r1h1", ["r2h1", "r3h1"]))
    before = world.switches["ocs1"].held
    held = set(world.core.view.holders)
    ours = world.core.fabric.hosts["r1h1"]
    served = world.receivers_of(ours, "239.77.0.1")

    def still_lit() -> None:
        assert before <= world.switches["ocs1"].held

    world.after_operation = still_lit
    report = world.verified()
    assert (report.faults, report.probed) == ((), 4)
    assert set(report.skipped) == {f"{element}: held by reservation 1" for element in held}
    assert {probe.datapath for probe in world.probes} == {4, 5, 6}
    assert world.receivers_of(ours, "239.77.0.1") == served == {"r2h1", "r3h1"}
    world.assert_nothing_left(but=before)


def test_what_cannot_be_used_is_listed_with_the_reason(world):
    world.handle(ElementQuarantined("output:s2/11", "dirty"))
    world.handle(ElementQuarantined("port:r6/50", "broken"))
    world.disconnect(1)
    foreign = CrossConnect("ocs1", 2, 3)
    world.switches["ocs1"].circuits[2] = 3
    world.switches["ocs1"].foreign.add(foreign)
    world.come_back("ocs1")
    world.deliver()
    report = world.verified()
    assert report.faults == ()
    occupied = "occupied by the cross-connect 2 to 3 on ocs1, which Blast did not create"
    assert set(report.skipped) == {
        "output:s2/11: dirty",
        "port:r6/50: broken",
        "port:r1/50: tor:0000000000000001 is disconnected",
        f"port:r2/50: {occupied}",
        f"port:r3/50: {occupied}",
    }
    world.assert_nothing_left(but={foreign})


def test_without_a_free_port_splitters_are_skipped():
    world = ready_fibers(make_fabric(2, (3,)))
    world.granted(multicast("a", "r1h1", ["r2h1"]))
    assert "splitter:s1: no free port for the probe" in world.verified().skipped


def test_fibers_that_are_fixed_are_not_said_to_have_been_probed():
    tree = StaticTree("t1", "r1", 60, None, {"r2": 60}, frozenset())
    world = ready_fibers(replace(make_fabric(2), static_trees={tree.name: tree}))
    report = world.verified()
    assert report.skipped == ("static:t1: its fibers are fixed and pass no optical switch",)


def test_where_no_port_passes_light_splitters_are_skipped():
    world = ready_fibers(make_fabric(2, (3,)))
    world.wiring.at_output = dict.fromkeys(world.wiring.at_output)
    report = world.verified()
    assert set(said(report)) == {"port:r1/50", "port:r2/50"} and report.probed == 2
    assert report.skipped == ("splitter:s1: no port with a working fiber for the probe",)
    world.assert_nothing_left()


def test_what_is_done_is_given_back_before_the_end():
    world = ready_fibers(make_fabric(12, (3,)))
    dead = world.wiring.splitters[0].outputs[0]
    world.wiring.at_input[dead] = None
    topic = world.ask()
    part = world.submit(multicast("a", "r11h1", ["r12h1"])).parts[0]
    world.settle()
    assert topic not in world.announced
    assert part.grant is not None
    assert set(said(world.report(topic))) == {f"output:s1/{dead}"}


def test_a_probe_that_is_lost_is_sent_again(world):
    topic = world.ask()
    world.steps_until(15)
    world.losing = 5
    assert world.report(topic).faults == ()
    assert 0 < world.now < CoreSettings().probe_wait


@pytest.mark.parametrize("probes", [1, 3, 9, 15, 22])
def test_probes_that_take_almost_as_long_as_they_may_are_waited_for(world, probes):
    """Also after several rounds whose timers still run."""
    wait = CoreSettings().probe_wait
    topic = world.ask()
    world.steps_until(probes)
    world.on_their_way = []
    world.settle()
    while world.now < 0.7 * wait:
        world.tick()
        world.settle()
    assert world.on_their_way
    world.let_arrive()
    assert world.report(topic).faults == ()
    assert world.now < wait


def test_probes_of_earlier_rounds_and_forged_ones_tell_nothing(world):
    world.wiring.at_input[1] = None
    topic = world.ask()
    world.steps_until(2)
    for probe in list(world.probes):
        world.post(ProbeSeen(1, 50, b"forged" + probe.payload))
    old = world.probes[0]
    while world.probes[-1].payload == old.payload or len(world.probes) < 30:
        world.steps_until(1)
    for _ in range(3):
        world.post(ProbeSeen(3, 50, old.payload))
        world.post(ProbeSeen(99, 1, world.probes[-1].payload))
    assert set(said(world.report(topic))) == {"port:r1/50"}


def test_nobody_can_guess_a_probe(world):
    world.verified()
    first = {probe.payload for probe in world.probes}
    assert len(first) == len(world.probes)
    assert all(len(payload) == 16 for payload in first)
    other = ready_fibers(world.fabric)
    other.report(other.ask(nonce=b"another nonce"))
    assert not first & {probe.payload for probe in other.probes}


def test_devices_are_waited_for_as_long_as_said():
    world = FiberWorld(make_fabric(3))
    topic = world.ask(seconds=30.0)
    world.come_back("ocs1")
    for tor in (1, 2):
        world.come_back(tor)
    world.settle()
    assert world.probes == []
    world.come_back(3)
    assert world.report(topic).skipped == ()
    assert world.now == 0
    world = FiberWorld(make_fabric(3))
    topic = world.ask(seconds=30.0)
    for device in ("ocs1", 1, 2):
        world.come_back(device)
    assert world.report(topic).skipped == ("port:r3/50: tor:0000000000000003 is disconnected",)
    assert world.now == 30.0


@pytest.mark.parametrize("probes", range(1, 20, 3))
def test_a_tor_that_goes_away_is_no_dead_fiber(world, probes):
    topic = world.ask()
    world.steps_until(probes)
    world.lose(6)
    report = world.report(topic)
    assert report.faults == ()
    assert report.skipped == ("port:r6/50: tor:0000000000000006 is disconnected",)
    world.assert_nothing_left()


def test_tors_that_come_and_go_end_the_survey_of_a_switch(world):
    topic = world.ask()
    for tor in (4, 5, 6):
        world.steps_until(3)
        world.disconnect(tor)
        world.come_back(tor)
        world.deliver()
    report = world.report(topic)
    assert report.faults == ()
    assert "port:r1/50: ToRs disconnected during the probe" in report.skipped
    world.assert_nothing_left()


def test_a_switch_that_goes_away_is_cleared_when_it_returns(world):
    topic = world.ask()
    world.steps_until(2)
    left = world.switches["ocs1"].held
    assert left
    world.lose("ocs1")
    report = world.report(topic)
    assert report.faults == ()
    assert "port:r1/50: ocs1 disconnected: connection lost" in report.skipped
    assert world.core.view.holders.get("port:r1/50") == PROBER, "its circuits are still there"
    world.come_back("ocs1")
    world.settle()
    assert world.core.view.occupied["ocs1"] == {}
    world.assert_nothing_left()


def test_a_switch_that_refuses_is_skipped(world):
    """Somebody has connected what was free a moment ago."""
    foreign = CrossConnect("ocs1", 3, 4)
    world.switches["ocs1"].circuits[3] = 4
    world.switches["ocs1"].foreign.add(foreign)
    report = world.verified()
    assert report.faults == ()
    assert any(line.startswith("port:r3/50: denied: busy") for line in report.skipped)
    world.assert_nothing_left(but={foreign})


def test_a_switch_that_will_not_be_cleared_is_asked_again(world):
    topic = world.ask()
    while not (world.commands and isinstance(world.commands[-1], SetCircuits) and not connects(world.commands[-1])):
        if world.inbox:
            world.deliver(1)
        else:
            assert world.work_once()
    world.work("ocs1", denied=[0])
    report = world.report(topic)
    assert report.faults == ()
    assert world.core.view.holders, "what a circuit may still touch is not free"
    world.tick()
    while world.core.view.holders:
        world.tick()
        world.settle()
    world.assert_nothing_left()


def connects(command: SetCircuits) -> bool:
    return any(change.connect for change in command.changes)


@pytest.mark.parametrize("faulty", [False, True])
def test_a_crash_at_any_moment_leaves_nothing_behind(faulty):
    fabric = make_fabric(4, (3,))
    for deeds in range(200):
        world = ready_fibers(fabric)
        world.handle(ElementQuarantined("port:r4/50", "broken"))
        if faulty:
            world.wiring.swap_inputs(1, 2)
        world.crash_after = deeds
        topic = world.ask()
        while world.running and topic not in world.announced:
            world.settle()
            if world.running and topic not in world.announced:
                world.tick()
        if world.running:
            break
        world.start(now=0.0)
        assert 0 in world.core.view.holders.values() or not world.switches["ocs1"].held
        world.connect_all()
        world.settle()
        assert world.core.view.occupied["ocs1"] == {}, "our own circuits are taken for foreign ones"
        world.assert_nothing_left()
    else:
        raise AssertionError("the check never came to its end")
    assert deeds > 20
