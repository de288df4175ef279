"""The engine: exact end times, rounds of background traffic, steps and stopped transfers."""

from __future__ import annotations

import numpy as np
import pytest

from blast_sim.base.virtual_clock import VirtualClock
from blast_sim.fair import Paths
from blast_sim.flow.engine import Simulation, StalledError, Stepping
from blast_sim.flow.phases import Graph, Phase, in_sequence
from tests.support.simulators.flows import GIGABIT, small_network, world


class Ends:
    """The end times of flows."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation
        self.at: dict[str, list[tuple[float, list[int]]]] = {}

    def of(self, name: str):
        self.at[name] = []
        return lambda places: self.at[name].append((self.simulation.clock.now, places.tolist()))

    @property
    def count(self) -> int:
        return sum(len(places) for ends in self.at.values() for _, places in ends)


def link(capacity: float = 10.0, **how) -> tuple[Simulation, Ends]:
    simulation = Simulation([capacity], **how)
    return simulation, Ends(simulation)


def flows(count: int) -> Paths:
    return Paths.of([[0]] * count)


def test_flow_gets_the_rate_of_another_when_that_ends() -> None:
    simulation, ends = link()
    simulation.start(flows(2), [10.0, 25.0], ends.of("both"))
    simulation.run(lambda: ends.count == 2)
    # 5 each until 2 s, then 15 left at 10.
    assert ends.at["both"] == [(2.0, [0]), (3.5, [1])]
    assert simulation.solves == 2


def test_rates_of_hypothetical_flows_change_nothing() -> None:
    simulation, ends = link(12.0)
    simulation.start(flows(2), [12.0, 24.0], ends.of("both"))
    found: list[list[float]] = []
    for moment in (1.0, 2.5):
        simulation.clock.at(moment, lambda: found.append(simulation.rates_beside(flows(2)).tolist()))
    simulation.run(lambda: ends.count == 2)
    # Beside two flows, and beside one from 2 s on.
    assert found == [[3.0, 3.0], [4.0, 4.0]]
    assert ends.at["both"] == [(2.0, [0]), (3.0, [1])]


def test_flows_that_end_together_are_reported_in_one_call() -> None:
    simulation, ends = link(12.0)
    simulation.start(flows(2), 10.0, ends.of("a"), multiplicity=[1, 4])
    simulation.start(flows(1), 10.0, ends.of("b"))
    simulation.run(lambda: ends.count == 3)
    assert ends.at == {"a": [(5.0, [0, 1])], "b": [(5.0, [0])]}


def test_stop_returns_the_remaining_bits_of_a_transfer() -> None:
    simulation, ends = link()
    going = simulation.start(flows(1), 30.0, ends.of("going"))
    simulation.start(flows(1), 30.0, ends.of("staying"))
    left: list[float] = []
    simulation.clock.at(2.0, lambda: left.append(simulation.bits_left(going)))
    simulation.clock.at(2.0, lambda: left.append(simulation.stop(going)))
    simulation.run(lambda: ends.count == 1)
    assert left == [20.0, 20.0]
    assert ends.at == {"going": [], "staying": [(4.0, [0])]}


@pytest.mark.parametrize(
    ("paths", "bits"), [(Paths.none(), 1.0), (Paths.of([[]]), 1.0), (flows(1), 0.0), (flows(2), [1.0, -1.0])]
)
def test_transfer_without_bits_or_links_is_rejected(paths: Paths, bits: float) -> None:
    with pytest.raises(ValueError, match="bits and links"):
        link()[0].start(paths, bits, lambda _: None)


def test_simulation_without_events_raises_stalled_error() -> None:
    simulation, ends = link(0.0)
    with pytest.raises(StalledError, match="nothing happens"):
        simulation.run(lambda: False)
    simulation.start(flows(1), 1.0, ends.of("a flow without any rate"))
    with pytest.raises(StalledError):
        simulation.run(lambda: ends.count == 1)


# ------------------------------------------------------------------------------------------------ background


def test_background_round_has_the_flows_of_the_paper() -> None:
    network = small_network(racks=7, servers=2)
    rounds = world(network, 2).simulation._background
    for number in range(9):
        paths = Paths.concatenate([rounds.paths(shift) for shift in rounds.shifts(number)])
        found = sorted(tuple(paths.links[first : first + 4].tolist()) for first in paths.offsets[:-1])
        pairs = [
            (rack * 2 + place, (rack + number + side) % 7 * 2 + place)
            for rack in range(7)
            for place in range(2)
            for side in (-2, -1, 1, 2)
            if (number + side) % 7
        ]
        expected = network.unicast([one for one, _ in pairs], [other for _, other in pairs])
        assert found == sorted(tuple(expected.links[4 * n : 4 * n + 4].tolist()) for n in range(len(pairs)))


def test_rates_change_with_the_background_round() -> None:
    """With 2 each way on 7 racks a server has 4 flows of background in round 0, and 3 in round 1."""
    network = small_network(racks=7, servers=1, uplink=1000)
    where = world(network, 2)
    ends = Ends(where.simulation)
    where.simulation.start(network.unicast([0], [1]), 4.25 * GIGABIT, ends.of("flow"))
    where.simulation.run(lambda: ends.count == 1)
    # A fifth of 10 Gbit/s in round 0, a quarter in rounds 1 and 2.
    assert ends.at["flow"][0][0] == pytest.approx(1 + 2.25 / 2.5)


def test_background_rounds_without_flows_are_not_solved() -> None:
    where = world(small_network(), 2)
    passed: list[float] = []
    where.simulation.clock.at(1000.0, lambda: passed.append(where.simulation.clock.now))
    where.simulation.run(lambda: bool(passed))
    assert passed == [1000.0] and where.simulation.solves == 0


# ---------------------------------------------------------------------------------------------------- steps


def test_stepping_stays_within_its_bound_with_fewer_solves() -> None:
    rng = np.random.default_rng(3)
    network = small_network(racks=8, servers=5)
    sources, targets = rng.integers(0, network.servers, (2, 400))
    pairs = sources != targets
    bits = rng.uniform(1e8, 3e9, int(pairs.sum()))

    def last_end(stepping: Stepping) -> tuple[float, int]:
        where = world(network, 2, stepping=stepping)
        ends = Ends(where.simulation)
        where.simulation.start(network.unicast(sources[pairs], targets[pairs]), bits, ends.of("all"))
        where.simulation.run(lambda: ends.count == len(bits))
        return ends.at["all"][-1][0], where.simulation.solves

    exact, solves = last_end(Stepping(0.0, 0.0))
    stepped, fewer = last_end(Stepping())
    assert stepped == pytest.approx(exact, rel=5e-3)
    assert fewer < solves


# --------------------------------------------------------------------------------------------------- phases


@pytest.mark.parametrize(
    ("phases", "over"),
    [
        ([], 0.0),
        # Phase 0 to 1 s, phase 3 to 1.5 s, the pause to 4 s, then half a second, then two flows at 5 each.
        (
            [
                Phase(flows(1), 10.0),
                Phase(delay=4.0),
                Phase(flows(2), 10.0, after=(0, 1), delay=0.5),
                Phase(flows(1), 5.0, after=(0,)),
            ],
            6.5,
        ),
        (in_sequence(Phase(flows(1), 10.0), Phase(flows(2), [5.0, 10.0]), Phase(delay=1.0)), 3.5),
    ],
)
def test_graph_runs_phases_after_their_dependencies(phases: list[Phase], over: float) -> None:
    simulation, _ = link()
    ends: list[float] = []
    Graph(simulation, phases, lambda: ends.append(simulation.clock.now)).start()
    simulation.run(lambda: bool(ends))
    assert ends == [over]


# ---------------------------------------------------------------------------------------------------- clock


def test_late_appointments_run_after_all_others_of_a_moment() -> None:
    clock = VirtualClock()
    calls: list[str] = []
    clock.at(1.0, lambda: calls.append("late"), late=True)
    clock.at(1.0, lambda: (calls.append("first"), clock.at(1.0, lambda: calls.append("of the first"))))
    clock.at(1.0, lambda: calls.append("second"))
    clock.advance(1.0)
    assert calls == ["first", "second", "of the first", "late"]


def test_appointment_in_the_past_is_due_now() -> None:
    clock = VirtualClock()
    clock.now = 5.0
    clock.at(1.0, lambda: None)
    assert clock.next == 5.0
