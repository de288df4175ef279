"""The fiber check in the core: allocated and released elements, device faults and crashes."""

from dataclasses import replace

import pytest

from blast_controller.core.inventory.holders import PROBER
from blast_controller.core.model.commands import SetCircuits
from blast_controller.core.model.events import ElementQuarantined, ProbeReceived
from blast_controller.core.model.fabric import CrossConnect, StaticTree
from blast_controller.core.model.settings import CoreSettings
from tests.support.controller.core import make_fabric, multicast
from tests.support.controller.core_light import FiberWorld, ready_fibers, sentences


@pytest.fixture
def world():
    """Return a world of six racks with splitters 1:4 and 1:3."""
    return ready_fibers(make_fabric(6, (4, 3)))


def test_correct_fabric_passes_without_waiting_or_residue(world):
    report = world.verified()
    assert (report.faults, report.skipped, report.probed) == ((), (), 8)
    assert world.now == 0
    assert world.probes
    world.assert_nothing_left()


def test_fiber_check_reports_swapped_and_dead_fibers(world):
    world.wiring.swap_inputs(2, 5)
    world.wiring.at_input[8] = None
    report = world.verified()
    assert sentences(report) == {
        "port:r2/50": "its transmit fiber is swapped with the transmit fiber of port:r5/50",
        "port:r5/50": "its transmit fiber is swapped with the transmit fiber of port:r2/50",
        "output:s1/8": "the output is dead: no light arrives at input 8 of ocs1",
    }
    assert report.skipped == ()
    world.assert_nothing_left()


def test_fiber_check_covers_each_switch():
    world = ready_fibers(make_fabric(4, (3, 3), switches=2))
    world.wirings["ocs2"].at_output[1] = None
    assert sentences(world.verified()) == {
        "port:r1/51": "its receive fiber is dead: no light arrives from output 1 of ocs2"
    }
    world.assert_nothing_left()


def test_fiber_check_skips_elements_in_use(world):
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


def test_fiber_check_lists_unusable_elements_with_the_reason(world):
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


def test_fiber_check_skips_splitters_without_a_free_port():
    world = ready_fibers(make_fabric(2, (3,)))
    world.granted(multicast("a", "r1h1", ["r2h1"]))
    assert "splitter:s1: no free port for the probe" in world.verified().skipped


def test_fiber_check_skips_static_trees():
    tree = StaticTree("t1", "r1", 60, None, {"r2": 60}, frozenset())
    world = ready_fibers(replace(make_fabric(2), static_trees={tree.name: tree}))
    report = world.verified()
    assert report.skipped == ("static:t1: its fibers are fixed and pass no optical switch",)


def test_fiber_check_skips_splitters_without_a_working_port():
    world = ready_fibers(make_fabric(2, (3,)))
    world.wiring.at_output = dict.fromkeys(world.wiring.at_output)
    report = world.verified()
    assert set(sentences(report)) == {"port:r1/50", "port:r2/50"} and report.probed == 2
    assert report.skipped == ("splitter:s1: no port with a working fiber for the probe",)
    world.assert_nothing_left()


def test_fiber_check_releases_finished_elements_early():
    world = ready_fibers(make_fabric(12, (3,)))
    dead = world.wiring.splitters[0].outputs[0]
    world.wiring.at_input[dead] = None
    topic = world.ask()
    part = world.submit(multicast("a", "r11h1", ["r12h1"])).parts[0]
    world.settle()
    assert topic not in world.announced
    assert part.grant is not None
    assert set(sentences(world.report(topic))) == {f"output:s1/{dead}"}


def test_lost_probe_is_sent_again(world):
    topic = world.ask()
    world.steps_until(15)
    world.losing = 5
    assert world.report(topic).faults == ()
    assert 0 < world.now < CoreSettings().probe_wait


@pytest.mark.parametrize("probes", [1, 3, 9, 15, 22])
def test_fiber_check_waits_for_slow_probes(world, probes):
    """Also check rounds after several others whose timers still run."""
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


def test_forged_and_outdated_probes_are_ignored(world):
    world.wiring.at_input[1] = None
    topic = world.ask()
    world.steps_until(2)
    for probe in list(world.probes):
        world.post(ProbeReceived(1, 50, b"forged" + probe.payload))
    old = world.probes[0]
    while world.probes[-1].payload == old.payload or len(world.probes) < 30:
        world.steps_until(1)
    for _ in range(3):
        world.post(ProbeReceived(3, 50, old.payload))
        world.post(ProbeReceived(99, 1, world.probes[-1].payload))
    assert set(sentences(world.report(topic))) == {"port:r1/50"}


def test_probe_payloads_are_unpredictable(world):
    world.verified()
    first = {probe.payload for probe in world.probes}
    assert len(first) == len(world.probes)
    assert all(len(payload) == 16 for payload in first)
    other = ready_fibers(world.fabric)
    other.report(other.ask(nonce=b"another nonce"))
    assert not first & {probe.payload for probe in other.probes}


def test_fiber_check_waits_for_devices_until_its_timeout():
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
def test_fiber_check_skips_the_port_of_a_disconnected_tor(world, probes):
    topic = world.ask()
    world.steps_until(probes)
    world.lose(6)
    report = world.report(topic)
    assert report.faults == ()
    assert report.skipped == ("port:r6/50: tor:0000000000000006 is disconnected",)
    world.assert_nothing_left()


def test_repeated_tor_disconnections_end_the_survey_of_a_switch(world):
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


def test_disconnected_switch_is_cleared_when_it_reconnects(world):
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


def test_fiber_check_skips_ports_that_the_switch_refuses(world):
    """A foreign circuit uses ports that were free before."""
    foreign = CrossConnect("ocs1", 3, 4)
    world.switches["ocs1"].circuits[3] = 4
    world.switches["ocs1"].foreign.add(foreign)
    report = world.verified()
    assert report.faults == ()
    assert any(line.startswith("port:r3/50: denied: busy") for line in report.skipped)
    world.assert_nothing_left(but={foreign})


def test_failed_removal_of_probe_circuits_is_retried(world):
    topic = world.ask()
    while not (world.commands and isinstance(world.commands[-1], SetCircuits) and not connects(world.commands[-1])):
        if world.inbox:
            world.deliver(1)
        else:
            assert world.work_once()
    world.work("ocs1", denied=[0])
    report = world.report(topic)
    assert report.faults == ()
    assert world.core.view.holders, "elements that a circuit may still use are not free"
    world.tick()
    while world.core.view.holders:
        world.tick()
        world.settle()
    world.assert_nothing_left()


def connects(command: SetCircuits) -> bool:
    return any(change.connect for change in command.changes)


@pytest.mark.parametrize("faulty", [False, True])
def test_crash_at_any_point_leaves_no_probe_circuits(faulty):
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
