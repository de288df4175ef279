"""The engine against a reference that recomputes the rates of all flows after each end."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from blast_sim.fair import Paths
from blast_sim.flow.engine import Simulation
from tests.support.simulators.flows import GIGABIT, played_plainly, small_network

NETWORK = small_network(racks=3, servers=2, uplink=7.0)
SERVERS = st.integers(0, NETWORK.servers - 1)
FLOWS = st.lists(
    st.tuples(SERVERS, st.lists(SERVERS, min_size=1, max_size=4, unique=True), st.integers(1, 40)),
    min_size=1,
    max_size=12,
)


def paths_of(flows):
    """Return the links of each flow: unicast to one server, a session over the links of all to several."""
    found = []
    for sender, receivers, _ in flows:
        others = [receiver for receiver in receivers if receiver != sender]
        if not others:
            found.append([sender])
        elif len(others) == 1:
            found.append(NETWORK.unicast([sender], others).links.tolist())
        else:
            found.append(NETWORK.session(sender, others, []).links.tolist())
    return found


@settings(max_examples=60, deadline=None)
@given(FLOWS)
def test_end_times_equal_those_of_the_reference(flows) -> None:
    paths = paths_of(flows)
    bits = [size * GIGABIT / 7 for _, _, size in flows]
    simulation = Simulation(NETWORK.capacities)
    ends: dict[int, float] = {}
    simulation.start(
        Paths.of(paths), bits, lambda places: ends.update(dict.fromkeys(places.tolist(), simulation.clock.now))
    )
    simulation.run(lambda: len(ends) == len(flows))
    expected = played_plainly(NETWORK.capacities, paths, bits)
    assert all(abs(ends[n] - expected[n]) <= 1e-8 + 1e-9 * expected[n] for n in range(len(flows)))


@settings(max_examples=40, deadline=None)
@given(FLOWS, st.lists(st.floats(0.0, 3.0), min_size=12, max_size=12))
def test_runs_with_random_starts_repeat_exactly_and_lose_no_bit(flows, moments) -> None:
    def play() -> tuple[dict[int, float], float]:
        simulation = Simulation(NETWORK.capacities)
        ends: dict[int, float] = {}

        def begin(number: int, path: list[int], size: int) -> None:
            simulation.start(Paths.of([path]), size * GIGABIT, lambda _: ends.update({number: simulation.clock.now}))

        for number, (path, (_, _, size)) in enumerate(zip(paths_of(flows), flows, strict=True)):
            simulation.clock.at(moments[number], lambda n=number, p=path, s=size: begin(n, p, s))
        simulation.run(lambda: len(ends) == len(flows))
        return ends, simulation.clock.now

    first, end = play()
    assert (first, end) == play()
    for number, (sender, _, size) in enumerate(flows):
        # Neither one flow nor all flows of one sender together exceed the sender's link.
        assert first[number] >= moments[number] + size * GIGABIT / NETWORK.server_rate - 1e-8
        together = sum(s for o, _, s in flows if o == sender) * GIGABIT / NETWORK.server_rate
        assert end >= min(moments[: len(flows)]) + together - 1e-8
