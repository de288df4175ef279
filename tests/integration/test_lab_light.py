"""Light goes exactly where glass and mirrors lead it: hand-set circuits, counted at every ToR's fibres."""

import time

import pytest

from mininet_topos.errors import FabricFault, FabricRefused, RateTooHigh
from mininet_topos.netdev import query
from mininet_topos.plan import LabPlan, preset
from mininet_topos.rate_check import LightPath, check_rate
from tests.support.waiting import HANGING, eventually

pytestmark = pytest.mark.lab

GROUP = "239.77.0.1"


def test_a_circuit_goes_one_way_and_nowhere_else(make_bench):
    bench = make_bench(LabPlan(racks=4, hosts_per_rack=1, splitters={}))
    assert bench.shine(1) == {}
    bench.connect((1, 2))
    assert bench.shine(1) == {2: 50}
    assert bench.shine(2) == {}
    bench.connect((2, 1), (3, 4))
    assert bench.shine(2) == {1: 50}
    assert bench.shine(3) == {4: 50}
    bench.disconnect((1, 2))
    assert bench.shine(1) == {}
    assert bench.shine(2) == {1: 50}


def test_a_splitter_copies_to_every_connected_leg_and_never_back(make_bench):
    bench = make_bench(LabPlan(racks=6, hosts_per_rack=1, splitters={4: 1}))
    feed, legs = bench.plan.splitter_plans[0].input, bench.plan.splitter_plans[0].outputs
    bench.connect((1, feed), (legs[0], 2), (legs[1], 3), (legs[3], 5))
    assert bench.shine(1) == {2: 50, 3: 50, 5: 50}
    bench.disconnect((legs[1], 3))
    bench.connect((legs[2], 6))
    assert bench.shine(1) == {2: 50, 5: 50, 6: 50}
    for receiver in (2, 5, 6):
        assert bench.shine(receiver) == {}
    # Light sent backwards into a leg: a splitter has no way from leg to leg or to its feed.
    bench.disconnect((legs[2], 6))
    bench.connect((4, legs[2]))
    assert bench.shine(4) == {}


def test_two_splitters_in_cascade_reach_seven_racks(make_bench):
    bench = make_bench(preset("small"))
    first, second = bench.plan.splitter_plans
    leaves = dict(zip((*first.outputs[:3], *second.outputs), range(2, 9), strict=True))
    bench.connect((1, first.input), (first.outputs[3], second.input), *leaves.items())
    assert bench.shine(1) == dict.fromkeys(range(2, 9), 50)
    bench.disconnect((first.outputs[3], second.input))
    assert bench.shine(1) == dict.fromkeys((2, 3, 4), 50)
    assert bench.lab.counters.core().sent_packets == 0


def test_a_wide_splitter_takes_several_filters_and_misses_no_leg(make_bench):
    bench = make_bench(LabPlan(racks=2, hosts_per_rack=1, splitters={64: 1}))
    splitter = bench.plan.splitter_plans[0]
    bench.connect((1, splitter.input))
    for leg in (splitter.outputs[i] for i in (0, 29, 30, 59, 60, 63)):
        bench.connect((leg, 2))
        assert bench.shine(1, frames=10) == {2: 10}
        bench.disconnect((leg, 2))


def test_the_fabric_refuses_what_glass_cannot_do_and_what_would_circle(make_bench):
    bench = make_bench(LabPlan(racks=3, hosts_per_rack=1, splitters={4: 1}))
    splitter = bench.plan.splitter_plans[0]
    bench.connect((1, 2))
    for circuits in ([(1, 3)], [(3, 2)], [(3, 99)], [(splitter.outputs[0], splitter.input)]):
        with pytest.raises(FabricRefused):
            bench.connect(*circuits)
    assert bench.shine(1) == {2: 50}


def test_when_the_kernel_refuses_all_is_as_before(make_bench):
    bench = make_bench(LabPlan(racks=3, hosts_per_rack=1, splitters={2: 1}))
    bench.connect((1, 2))
    broken = bench.plan.ocs_ports
    query(["ip", "link", "delete", bench.lab.names.ocs_port(broken)], namespace_pid=bench.lab.optical_switch.pid)
    with pytest.raises(FabricFault):
        bench.fabric.apply([(1, 2)], [(1, 3), (2, broken)])
    assert bench.fabric.circuits == {1: 2}
    assert bench.shine(1) == {2: 50}


def test_the_planned_rate_arrives_whole_over_a_cascade(make_bench):
    bench = make_bench(preset("small", light_rate_mbps=20))
    path = light_the_tree(bench)
    check, light, _ = carried_whole(bench, path)
    assert set(check.received) == set(path.receivers)
    assert bench.lab.counters.core().sent_packets == 0
    assert light.sent_packets == check.sent


def test_more_than_the_light_rate_is_refused_with_a_factor(make_bench):
    bench = make_bench(preset("small", light_rate_mbps=20))
    path = light_the_tree(bench)
    with pytest.raises(RateTooHigh, match="1:") as refusal:
        check_rate(bench.lab.open_socket, path, 60, seconds=0.5)
    assert refusal.value.loss > 0.3
    assert refusal.value.factor >= 500


def test_light_has_priority_over_a_flood_on_the_receivers_link(make_bench):
    bench = make_bench(preset("small", light_rate_mbps=20))
    path = light_the_tree(bench)
    flood = bench.lab.host("r3h2").popen(["iperf", "-u", "-c", "10.0.2.1", "-b", "95M", "-l", "8900", "-t", "90"])
    time.sleep(0.5)  # the flood finds its rate
    try:
        check, _, carried = carried_whole(bench, path)
    finally:
        flood.kill()
        flood.communicate()
    # The flood was there: its share of the link was used as well.
    assert carried.sent_bytes > 1.01 * check.sent * 8942


def carried_whole(bench, path):
    """A check of the planned rate that lost nothing, and what the sender's fibre and the first host's link carried.

    A second in which the machine has better things to do says nothing about light, so that there are several.
    """

    def attempt():
        light, link = bench.lab.counters.optical(1), bench.lab.counters.access(2, 1)
        try:
            check = check_rate(bench.lab.open_socket, path, 0.95 * bench.plan.light_rate_mbps)
        except RateTooHigh:
            return None
        return check, bench.lab.counters.optical(1) - light, bench.lab.counters.access(2, 1) - link

    return eventually(attempt, "a second of the planned rate without loss", within=2 * HANGING)


def light_the_tree(bench):
    """r1h1 to the first host of all other racks, over both splitters."""
    first, second = bench.plan.splitter_plans
    leaves = dict(zip((*first.outputs[:3], *second.outputs), range(2, 9), strict=True))
    bench.connect((1, first.input), (first.outputs[3], second.input), *leaves.items())
    optical = bench.plan.rack_plans[0].optical_ports[0].port
    group = f"ip,nw_src=10.0.1.1,nw_dst={GROUP}"
    bench.steer(1, f"in_port=1,{group}", f"output:{optical}")
    for rack in range(2, 9):
        bench.steer(rack, f"in_port={optical},{group}", "set_field:46->ip_dscp,output:1")
    return LightPath(("r1h1", "10.0.1.1"), {f"r{r}h1": f"10.0.{r}.1" for r in range(2, 9)}, GROUP, 5001)
