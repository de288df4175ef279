"""Light follows exactly the configured circuits and splitters, as counted at every ToR's fibers in one lab."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from mininet_topos.kernel.errors import FabricChangeError, FabricConflictError, RateTooHighError
from mininet_topos.kernel.netdev import batch
from mininet_topos.lab.rate_check import LightPath, check_rate
from mininet_topos.topology.plan import LabPlan
from tests.integration.conftest import LightBench
from tests.support.waiting import HANGING, at_rest, eventually

pytestmark = pytest.mark.lab

GROUP = "239.77.0.1"


@pytest.fixture(scope="module")
def lab_bench() -> Iterator[LightBench]:
    from mininet_topos.lab.lab import Lab

    plan = LabPlan(racks=8, hosts_per_rack=1, splitters={4: 2, 64: 1}, light_rate_mbps=20)
    with Lab(plan, controller=None, agent=None) as lab:
        yield LightBench(lab)


@pytest.fixture
def bench(lab_bench: LightBench) -> Iterator[LightBench]:
    yield lab_bench
    at_rest(lab_bench.light)
    lab_bench.disconnect(*lab_bench.fabric.circuits.items())


def test_circuit_is_unidirectional_and_isolated(bench):
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


def test_splitter_copies_to_connected_outputs_and_never_back(bench):
    feed, outputs = bench.plan.splitter_plans[0].input, bench.plan.splitter_plans[0].outputs
    bench.connect((1, feed), (outputs[0], 2), (outputs[1], 3), (outputs[3], 5))
    assert bench.shine(1) == {2: 50, 3: 50, 5: 50}
    bench.disconnect((outputs[1], 3))
    bench.connect((outputs[2], 6))
    assert bench.shine(1) == {2: 50, 5: 50, 6: 50}
    assert bench.shine(2) == {}
    # Light sent backwards into an output: a splitter has no way from output to output or to its feed.
    bench.disconnect((outputs[2], 6))
    bench.connect((4, outputs[2]))
    assert bench.shine(4) == {}


def test_wide_splitter_reaches_every_output(bench):
    splitter = bench.plan.splitter_plans[2]
    bench.connect((1, splitter.input))
    for output in (splitter.outputs[i] for i in (0, 29, 30, 59, 60, 63)):
        bench.connect((output, 2))
        assert bench.shine(1, frames=10) == {2: 10}
        bench.disconnect((output, 2))


def test_fabric_rejects_conflicting_circuits_and_loops(bench):
    splitter = bench.plan.splitter_plans[0]
    bench.connect((1, 2))
    for circuits in ([(1, 3)], [(3, 2)], [(3, 999)], [(splitter.outputs[0], splitter.input)]):
        with pytest.raises(FabricConflictError):
            bench.connect(*circuits)
    assert bench.shine(1) == {2: 50}


def test_cascade_carries_planned_rate_without_loss(bench):
    """Seven receivers need one second without loss among several, because a stalled machine drops packets too."""
    path = light_the_tree(bench)
    core = bench.lab.counters.core().sent_packets

    def attempt():
        before = bench.lab.counters.optical(1)
        try:
            check = check_rate(bench.lab.open_socket, path, 0.95 * bench.plan.light_rate_mbps)
        except RateTooHighError:
            return None
        return check, bench.lab.counters.optical(1) - before

    check, light = eventually(attempt, "a second of the planned rate without loss", within=4 * HANGING)
    assert set(check.received) == set(path.receivers)
    assert light.sent_packets == check.sent
    assert bench.lab.counters.core().sent_packets == core
    with pytest.raises(RateTooHighError, match="1:"):
        check_rate(bench.lab.open_socket, path, 60, seconds=0.5)


def test_failed_kernel_change_leaves_circuits_unchanged(bench):
    bench.connect((1, 2))
    with missing(bench.lab, bench.plan.ocs_ports):
        with pytest.raises(FabricChangeError):
            bench.fabric.apply([(1, 2)], [(1, 3), (2, bench.plan.ocs_ports)])
        assert bench.fabric.circuits == {1: 2}
        assert bench.shine(1) == {2: 50}


@contextmanager
def missing(lab, port):
    """Rename the netdev of an optical switch port for a while, so that tc does not find it."""

    def rename(old, new):
        batch("ip", [f"link set {old} down name {new}", f"link set {new} up"], lab.optical_switch.pid)

    name = lab.names.ocs_port(port)
    rename(name, "missing")
    try:
        yield
    finally:
        rename("missing", name)


def light_the_tree(bench):
    """Connect r1h1 to the first host of each other rack over two splitters in cascade; return the path."""
    first, second = bench.plan.splitter_plans[:2]
    leaves = dict(zip((*first.outputs[:3], *second.outputs), range(2, 9), strict=True))
    bench.connect((1, first.input), (first.outputs[3], second.input), *leaves.items())
    optical = bench.plan.rack_plans[0].optical_ports[0].port
    group = f"ip,nw_src=10.0.1.1,nw_dst={GROUP}"
    bench.steer(1, f"in_port=1,{group}", f"output:{optical}")
    for rack in range(2, 9):
        bench.steer(rack, f"in_port={optical},{group}", "set_field:46->ip_dscp,output:1")
    return LightPath(("r1h1", "10.0.1.1"), {f"r{r}h1": f"10.0.{r}.1" for r in range(2, 9)}, GROUP, 5001)
