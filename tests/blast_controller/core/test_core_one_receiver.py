"""Requests with receivers in one rack only compete with multicasts as plain edges, which need no splitter.

Blast, section III-C.3: "We feed the mixture of unicast and multicast traffic to our control algorithm."
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blast_controller.core.model.events import RequestSubmitted
from blast_controller.core.model.settings import CoreSettings
from blast_sim.allocation import workloads
from tests.support.controller.core import make_fabric, multicast, ready_world
from tests.support.simulators.matching import papers_text

FAN_OUT = 4


def decided(edges, racks, ports, splitters, hosts):
    """Submit all `edges` (racks, sender's first; bytes) at once; return the world and the granted layouts by number.

    All hosts of a receiving rack are receivers, so that the weight is the bytes times their number.
    """
    fabric = make_fabric(racks, [FAN_OUT] * splitters, ports=ports, hosts=hosts)
    world = ready_world(fabric, CoreSettings(policy="paper", max_pending_per_tenant=len(edges)))
    for number, (members, size) in enumerate(edges):
        sender, *others = (f"r{rack + 1}" for rack in members)
        receivers = [f"{rack}h{host}" for rack in others for host in range(1, hosts + 1)]
        world.core.take(RequestSubmitted(multicast(str(number), f"{sender}h1", receivers, size)), world.now)
    world.conclude()
    return world, {int(one.request[1]): one.layout for one in world.core.reservations}


def expected(edges, racks, ports, splitters, hosts):
    """Return the groups that the paper's greedy grants from the same edges, by sets and counting alone."""
    groups = [
        (number, set(members), len(members), size * hosts * (len(members) - 1))
        for number, (members, size) in enumerate(edges)
    ]
    return papers_text(groups, [ports] * racks, splitters, FAN_OUT, None)


def check(edges, racks, ports=1, splitters=1, hosts=1):
    """Check that the expected groups are lit, with the oracle's count of splitters; a pair of racks needs none."""
    world, lit = decided(edges, racks, ports, splitters, hosts)
    oracle = expected(edges, racks, ports, splitters, hosts)
    assert sorted(lit) == sorted(oracle)
    for number, layout in lit.items():
        needed = -(-(len(edges[number][0]) - 2) // (FAN_OUT - 1))
        assert len(layout.tree.splitters) == needed
        # The root's fiber, and one for each splitter and each leaf.
        assert len(layout.circuits) == needed + len(layout.tree.leaves)
    return world, lit


@st.composite
def mixtures(draw):
    """(edges, racks, ports, splitters, hosts): pairs of racks and wider groups, with sizes that are often equal."""
    racks = draw(st.integers(2, 9))
    sizes = st.integers(1, 4).map(lambda units: units * 10**9)
    width = st.one_of(st.just(2), st.integers(2, racks))
    edges = draw(
        st.lists(
            width.flatmap(lambda n: st.tuples(st.permutations(range(racks)).map(lambda p: tuple(p[:n])), sizes)),
            min_size=1,
            max_size=14,
        )
    )
    return edges, racks, draw(st.integers(1, 2)), draw(st.integers(0, 3)), draw(st.integers(1, 2))


@given(mixtures())
def test_core_grants_pairs_and_groups_as_the_papers_greedy(mixture):
    edges, racks, ports, splitters, hosts = mixture
    possible = [edge for edge in edges if -(-(len(edge[0]) - 2) // (FAN_OUT - 1)) <= splitters]
    check(possible, racks, ports, splitters, hosts)


@pytest.mark.test_all
def test_core_decides_unicasts_and_multicasts_of_a_thousand_racks():
    """The mixture of section III-C.3: whole decision, devices included."""
    made = workloads.instance("P-rackrecv+uni", 0, 1000, 100)
    edges = [(edge.racks, round(edge.weight * 1e6 / (len(edge.racks) - 1))) for edge in made.edges]
    assert sum(len(members) == 2 for members, _ in edges) == 4000
    world, lit = check(edges, made.racks, splitters=made.pool[FAN_OUT])
    pairs = sum(len(edges[number][0]) == 2 for number in lit)
    assert pairs > 100 and len(lit) - pairs > 20
    world.settle()
    assert all(world.core.request(("default", str(number))).parts[0].grant is not None for number in lit)
    assert len(world.switches["ocs1"].circuits) == sum(len(layout.circuits) for layout in lit.values())
