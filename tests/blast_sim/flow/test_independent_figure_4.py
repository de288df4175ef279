"""Figure 4 of the Blast paper on 6 racks of 4 servers, from section VI-A alone, in exact fractions.

In the paper a rack's uplink carries a tenth of what its servers do (10:1), or all of it (non-blocking), and every
server talks to 6 or 80 of 120 racks; here the networks are the same, and there are 2 or 4 of 6 racks. Readings of what
the paper leaves open are those of docs/how-to/sweeps.md.
"""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, permutations

import numpy as np
import pytest

from blast_sim.experiments.cell import Effort, FlowCell
from blast_sim.experiments.groups import multicasts
from blast_sim.experiments.run import build_network, build_world, run_cell
from blast_sim.flow.phases import Graph, Phase
from blast_sim.methods.hdfs import hdfs
from blast_sim.methods.method import Multicast, World
from blast_sim.scenarios.schema import MulticastsSection, Scenario
from tests.support.simulators.exact_fluid import Links, Stage, ends

RACKS, SERVERS, GROUPS = 6, 4, 2
ALL = RACKS * SERVERS
SERVER, LIGHT, FILE = Fraction(10), Fraction(10), Fraction(24, 10)
"""Gbit/s, and 300 MB (decimal) in Gbit."""
UPLINKS = {"10:1": Fraction(4), "non-blocking": Fraction(40)}
LOADS = {"none": 0, "light": 1, "heavy": 2}
RECONFIGURATION = Fraction(25, 1000)
SCENARIO = Scenario.model_validate(
    {
        "title": "Figure 4, small",
        "network": {
            "racks": RACKS,
            "servers_per_rack": SERVERS,
            "uplink_gbps": {name: float(rate) for name, rate in UPLINKS.items()},
        },
        "background": {"racks_per_direction": LOADS},
        "light": {"splitters": GROUPS, "fan_out": 4},
        "multicasts": {"groups": GROUPS, "racks_per_group": 3, "megabytes": 300.0},
        "run": [{"methods": ["naive"], "networks": ["10:1"], "backgrounds": ["none"]}],
    }
)


def _capacities(network: str) -> list[Fraction]:
    """Return servers up, servers down, racks up, racks down, transmitters of racks, receivers of racks."""
    return [SERVER] * (2 * ALL) + [UPLINKS[network]] * (2 * RACKS) + [LIGHT] * (2 * RACKS)


def _path(source: int, target: int) -> Links:
    """Return the links of a unicast flow; the core switch has no limit."""
    mine, its = source // SERVERS, target // SERVERS
    between = () if mine == its else (2 * ALL + mine, 2 * ALL + RACKS + its)
    return (source, *between, ALL + target)


def _light(sender: int, receivers: Sequence[int]) -> Links:
    """Return the links of an optical multicast: the sender's server and port, each other rack's port, each receiver."""
    base, mine = 2 * ALL + 2 * RACKS, sender // SERVERS
    others = {receiver // SERVERS for receiver in receivers} - {mine}
    leaves = (base + RACKS + rack for rack in sorted(others))
    return (sender, base + mine, *leaves, *(ALL + receiver for receiver in receivers))


def _background(load: str, number: int) -> list[Links]:
    """Return one round's flows: one way, those within a rack left out."""
    each_way = LOADS[load]
    shifts = {(number + sign * step) % RACKS for step in range(1, each_way + 1) for sign in (1, -1)} - {0}
    return [_path(server, (server + shift * SERVERS) % ALL) for server in range(ALL) for shift in sorted(shifts)]


def _naive(sender: int, receivers: Sequence[int]) -> list[Stage]:
    return [Stage([(_path(sender, receiver), FILE) for receiver in receivers])]


def _swarm(members: Sequence[int]) -> list[tuple[Links, Fraction]]:
    """Return SplitStream's flows: as many stripes as receivers, each of which passes its own stripe to the others."""
    first, *others = members
    stripe = FILE / len(others)
    pairs = [(first, other) for other in others]
    pairs += [(one, other) for one in others for other in others if one != other]
    return [(_path(source, target), stripe) for source, target in pairs]


def _overlay(sender: int, receivers: Sequence[int]) -> list[Stage]:
    """Return a swarm of the sender and a leader of each other rack and, when it has ended, one in each rack."""
    racks: dict[int, list[int]] = {}
    for server in (sender, *receivers):
        racks.setdefault(server // SERVERS, []).append(server)
    between = _swarm([members[0] for members in racks.values()])
    return [Stage(between), Stage([flow for members in racks.values() for flow in _swarm(members)])]


def _blast(sender: int, receivers: Sequence[int]) -> list[Stage]:
    return [Stage([(_light(sender, receivers), FILE)], delay=RECONFIGURATION)]


METHODS = {"naive": _naive, "overlay": _overlay, "blast": _blast}


def _cell(method: str, network: str, load: str) -> FlowCell:
    return FlowCell(SCENARIO, method, network, load, "paper" if method == "blast" else "", effort=Effort(compute="0"))


def _groups(network: str) -> list[Multicast]:
    section = SCENARIO.multicasts
    assert section is not None
    drawn = multicasts(section, build_network(SCENARIO, network), 0)
    assert [begin for begin, _ in drawn] == [0.0] * GROUPS
    return [multicast for _, multicast in drawn]


@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize("network", UPLINKS)
@pytest.mark.parametrize("method", METHODS)
def test_cell_equals_exact_model(method: str, network: str, load: str) -> None:
    jobs = [METHODS[method](group.sender, group.receivers) for group in _groups(network)]
    expected = ends(_capacities(network), jobs, lambda number: _background(load, number))
    (row,) = run_cell(_cell(method, network, load))
    assert row["seconds"] == pytest.approx(float(sum(expected) / len(expected)), rel=1e-9)
    assert row["longest_seconds"] == pytest.approx(float(max(expected)), rel=1e-9)


@pytest.mark.parametrize("method", ["naive", "overlay"])
def test_arrivals_over_time_equal_exact_model(method: str) -> None:
    """Poisson arrivals of groups that may have servers in common, beside light traffic."""
    section = MulticastsSection(groups=5, disjoint=False, arrivals_per_second=2.0, megabytes=300.0)
    scenario = SCENARIO.model_copy(update={"multicasts": section})
    drawn = multicasts(section, build_network(scenario, "10:1"), 0)
    jobs = []
    for begin, group in drawn:
        first, *rest = METHODS[method](group.sender, group.receivers)
        jobs.append([replace(first, delay=Fraction(begin)), *rest])
    expected = ends(_capacities("10:1"), jobs, lambda number: _background("light", number))
    seconds = [end - Fraction(begin) for end, (begin, _) in zip(expected, drawn, strict=True)]
    (row,) = run_cell(FlowCell(scenario, method, "10:1", "light", effort=Effort(compute="0")))
    assert row["seconds"] == pytest.approx(float(sum(seconds) / len(seconds)), rel=1e-9)
    assert row["longest_seconds"] == pytest.approx(float(max(seconds)), rel=1e-9)


def _pairs(world: World, phase: Phase) -> list[tuple[int, int]]:
    """Return (source, target) of the phase's flows, found by their links."""
    everyone = [(one, other) for one in range(ALL) for other in range(ALL) if one != other]
    paths = world.network.unicast([one for one, _ in everyone], [other for _, other in everyone])
    named = {tuple(paths.links[a:b]): pair for pair, (a, b) in zip(everyone, pairwise(paths.offsets), strict=True)}
    offsets = phase.paths.offsets
    return [named[tuple(phase.paths.links[a:b])] for a, b in pairwise(offsets)]


def _closest(reader: int, replicas: Sequence[int]) -> set[int]:
    """Return the replicas from which a reader retrieves a block: those in its rack if there are any."""
    near = {holder for holder in replicas if holder // SERVERS == reader // SERVERS}
    return near or set(replicas)


def _lawful(reader: int, sources: Sequence[int], lacked: Sequence[Sequence[int]]) -> bool:
    """Return whether a reader can retrieve the blocks that it lacks, one from each source."""
    return len(sources) == len(lacked) and any(
        all(source in _closest(reader, replicas) for source, replicas in zip(order, lacked, strict=True))
        for order in permutations(sources)
    )


@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize("network", UPLINKS)
def test_hdfs_replicates_and_reads_as_paper_states(network: str, load: str) -> None:
    """The method draws the replicas; their possible places and the time follow the paper.

    Readings: one block is written after another, along a chain; every block is read at once; a holder does not read.
    """
    world, group = build_world(_cell("hdfs", network, load)), _groups(network)[0]
    *writes, read = hdfs(world, group)
    sizes = [Fraction(64 * 8, 1000)] * 4 + [Fraction(44 * 8, 1000)]
    holders = [(source, near, far) for (source, near), (_, far) in (_pairs(world, phase) for phase in writes)]
    assert all([(a, b), (b, c)] == _pairs(world, phase) for (a, b, c), phase in zip(holders, writes, strict=True))
    for source, near, far in holders:
        assert source == group.sender != near
        assert near // SERVERS == source // SERVERS != far // SERVERS
        assert {near, far} <= set(group.receivers)

    copies = np.broadcast_to(1 if read.multiplicity is None else read.multiplicity, len(read.paths.lengths))
    bits = [Fraction(round(size), 10**9) for size in np.broadcast_to(read.bits, len(copies))]
    flows = [(*pair, size) for pair, size, n in zip(_pairs(world, read), bits, copies, strict=True) for _ in range(n)]
    assert {reader for _, reader, _ in flows} <= set(group.receivers)
    for reader in group.receivers:
        for size in set(sizes):
            lacked = [those for those, its in zip(holders, sizes, strict=True) if its == size and reader not in those]
            assert _lawful(reader, [source for source, target, its in flows if (target, its) == (reader, size)], lacked)

    stages = [Stage([(_path(a, b), size), (_path(b, c), size)]) for (a, b, c), size in zip(holders, sizes, strict=True)]
    stages.append(Stage([(_path(source, target), size) for source, target, size in flows]))
    (expected,) = ends(_capacities(network), [stages], lambda number: _background(load, number))
    ended: list[float] = []
    Graph(world.simulation, [*writes, read], lambda: ended.append(world.simulation.clock.now)).start()
    world.simulation.run(lambda: bool(ended))
    assert ended == [pytest.approx(float(expected), rel=1e-9)]
