"""Delays and rates of the rack fabric against arithmetic from sections 2 and 3 of its paper alone.

A port's line has 100 Gb/s; a packet of up to 256 bytes takes 8 cycles of 454 MHz at the crossbar; a request is granted
after 100 ns in the same leaf and 1100 ns in another one; a link has 40 m, each of which takes 5 ns.
"""

from collections.abc import Iterable, Sequence
from math import sqrt
from statistics import mean, stdev

import pytest

from blast_sim.base.report import Row
from blast_sim.fabric.simulator import Simulator, program

pytestmark = pytest.mark.rust

LINE = 100.0
"""Bits per ns."""
CYCLE = 1000 / 454
PACKET = 8 * CYCLE
HEADER = 4 * CYCLE
"""The header of a first copy is 3 cycles behind its payload (Figure 2(b)) and takes one."""
SIZES = (512, 1522, 9022)
SEEDS = range(6)


@pytest.fixture(scope="module")
def simulator() -> Simulator:
    return Simulator(program())


def _packets(frame_bytes: int) -> int:
    return -(-frame_bytes // 256)


def _line_ns(frame_bytes: int) -> float:
    return frame_bytes * 8 / LINE


def _flow(source: Sequence[int], to: Iterable[Sequence[int]], frame_bytes: int, gbps: float, **more: object) -> Row:
    return {"source": source, "to": list(to), "frame_bytes": frame_bytes, "rate_gbps": gbps, **more}


def _destinations(simulator: Simulator, model: Row) -> list[Row]:
    return [one for flow in simulator.run(model)["flows"] for one in flow["destinations"]]


def _idle_delay(simulator: Simulator, frame_bytes: int, to: Sequence[int], spines: int) -> float:
    """Return the mean delay in ns of frames that meet no other."""
    topology = {"leaves": 2, "spines": spines}
    flow = _flow((0, 0), [to], frame_bytes, 1.0)
    (one,) = _destinations(simulator, {"duration_ns": 400_000, "topology": topology, "flows": [flow]})
    return float(one["mean_delay_ns"])


@pytest.mark.parametrize("frame_bytes", [64, 256, *SIZES])
def test_idle_local_delay_is_line_grant_and_crossbar(simulator: Simulator, frame_bytes: int) -> None:
    """A frame is stored at the ingress and, in whole or from its first packet on, at the egress (section 2.1)."""
    stored = 2 * _line_ns(frame_bytes) + 100
    delay = _idle_delay(simulator, frame_bytes, (0, 1), spines=0)
    assert stored + PACKET * min(frame_bytes, 256) / 256 <= delay
    assert delay <= stored + _packets(frame_bytes) * PACKET + HEADER


@pytest.mark.parametrize("frame_bytes", SIZES)
def test_idle_remote_delay_adds_grant_links_and_spine(simulator: Simulator, frame_bytes: int) -> None:
    """The grant takes 1000 ns more, and a packet two links of 40 m and, at 25 Gb/s, the lines to and from its spine."""
    remote = _idle_delay(simulator, frame_bytes, (1, 0), spines=32) - _idle_delay(simulator, frame_bytes, (0, 1), 32)
    min_delay = 1000 + 2 * 40 * 5 + 2 * 256 * 8 / 25
    assert min_delay <= remote <= min_delay + 200  # The paper does not state the delay in a spine and two leaves.


@pytest.mark.parametrize("frame_bytes", SIZES)
def test_without_cache_copies_share_payload_line(simulator: Simulator, frame_bytes: int) -> None:
    """Each copy takes the line to the crossbar for all its packets (Figure 2(c)), up to the 99 Gb/s of the source."""
    line = frame_bytes * 8 / (_packets(frame_bytes) * PACKET)
    for fanout in range(1, 9):
        model = {
            "duration_ns": 400_000,
            "warmup_ns": 150_000,
            "topology": {"leaves": 9, "spines": 0},
            "cache": {"packets": 0},
            "flows": [_flow((0, 0), [(1 + leaf, 0) for leaf in range(fanout)], frame_bytes, 99.0)],
        }
        rates = [one["gbps"] for one in _destinations(simulator, model)]
        assert mean(rates) == pytest.approx(min(99.0, line / fanout), rel=0.01)


@pytest.mark.parametrize("frame_bytes", [512, 1522])
@pytest.mark.parametrize("load", [0.5, 0.8])
def test_output_port_is_m_d_1_queue(simulator: Simulator, frame_bytes: int, load: float) -> None:
    """Poisson arrivals for one output wait load / (2 rate (1 - load)) on average: within 4 standard errors of 6 seeds.

    The crossbar is faster than the output's line, so that the two in a row delay as the line alone. The wait of a
    frame for others of its own source is subtracted by the same formula.
    """
    service, leaves = _line_ns(frame_bytes), 12
    sources = [(leaf, port) for leaf in range(1, leaves) for port in range(5)]
    own = load / len(sources)
    flows = [_flow(source, [(0, 0)], frame_bytes, own * LINE, process="poisson") for source in sources]
    idle = _idle_delay(simulator, frame_bytes, (1, 0), spines=0)
    waits = []
    for seed in SEEDS:
        model = {"seed": seed, "duration_ns": 1_000_000, "warmup_ns": 50_000, "flows": flows}
        found = _destinations(simulator, {**model, "topology": {"leaves": leaves, "spines": 0}})
        copies = sum(one["copies"] for one in found)
        waits.append(sum(one["copies"] * one["mean_delay_ns"] for one in found) / copies - idle)
    expected = sum(rho * service / (2 * (1 - rho)) for rho in (load, own))
    assert mean(waits) == pytest.approx(expected, abs=4 * stdev(waits) / sqrt(len(waits)))
