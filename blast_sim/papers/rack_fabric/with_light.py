"""Comparison of rack fabric and optical multicast: one source sends 300 MB to all servers of some racks, in three ways.

The paper on rack-fabric multicast does not cover this comparison: its fabric copies, optical multicast splits light,
and optical paths may end at the racks with the fabric copying inside each of them. In addition to the multicast, one
server of every leaf sends unicast in the same lossy class to a server of the next leaf of its rack. Packets are
simulated; optical times are those of the flow simulator's scenario `fig4`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from blast_sim.base.report import Row
from blast_sim.base.sweep import Kept, Workers
from blast_sim.controller.compute import recorded
from blast_sim.experiments.groups import MEGABYTE
from blast_sim.fabric.replication import LEAVES_PER_RACK, RACKS
from blast_sim.fabric.scenario import Model
from blast_sim.fabric.simulator import Simulator
from blast_sim.papers.rack_fabric.evaluation import results_of
from blast_sim.papers.rack_fabric.models import LINE_GBPS, MILLISECOND, flow, model
from blast_sim.scenarios.loading import find, load

FABRIC, LIGHT, BOTH = "fabric", "light", "light and fabric"
METHODS = (FABRIC, LIGHT, BOTH)
LIGHT_GBPS = (10.0, 100.0)

SERVERS_PER_LEAF = 5
SERVERS_PER_RACK = SERVERS_PER_LEAF * LEAVES_PER_RACK
ENTRY = (0, SERVERS_PER_LEAF)
"""The port at which the multicast comes in, of light or of a source, is none of the servers'."""
TREE = {"surrogates": {"first": 4, "remote": 3}}

UNICAST_GBPS = 40.0
FROM, TO = 1, 2
"""The server of every leaf that sends unicast, and the one of the next leaf that receives it."""

LASTS_MS, WARM_UP_MS = 0.4, 0.15
SAMPLE_NS = 2000
PACKET_KB = 256 / 1024
"""A unit of the buffers."""


@dataclass(frozen=True, slots=True)
class OpticalSetup:
    """Seconds from a request to light, and what is to be sent."""

    set_up_seconds: float
    bytes: float

    def seconds(self, gbps: float) -> float:
        """Return the transfer time of the data at this rate."""
        return 8.0 * self.bytes / (gbps * 1e9)


@dataclass(frozen=True, slots=True)
class JoinedRacks:
    """A fabric that joins `racks` racks, and the seed of its random numbers."""

    racks: int
    seed: int = 1

    @property
    def leaves(self) -> int:
        """All its leaves, those of a rack side by side."""
        return self.racks * LEAVES_PER_RACK


@dataclass(frozen=True, slots=True)
class FabricRun:
    """A fabric with a multicast at a rate in Gb/s (0: none), with or without unicast."""

    fabric: JoinedRacks
    multicast_gbps: float
    unicast: bool = True


@dataclass(frozen=True, slots=True)
class OpticalTrial:
    """One of the ways. `light_gbps` is None where there is no light."""

    way: str
    light_gbps: float | None
    racks: int

    @property
    def fibers(self) -> int:
        """Those in which light ends: one for every server, or one for every rack."""
        return {FABRIC: 0, LIGHT: SERVERS_PER_RACK, BOTH: 1}[self.way] * self.racks

    @property
    def fabrics(self) -> Sequence[JoinedRacks]:
        """Where light ends at racks, each has a fabric of its own; else one joins them all."""
        if self.way == BOTH:
            return [JoinedRacks(1, seed) for seed in range(1, self.racks + 1)]
        return [JoinedRacks(self.racks)]

    @property
    def copied_gbps(self) -> float:
        """The rate at which each fabric receives data to copy."""
        if self.way == FABRIC:
            return LINE_GBPS
        return self.light_gbps or 0.0 if self.way == BOTH else 0.0

    def runs(self, copied: bool, unicast: bool) -> Sequence[FabricRun]:
        """Return the simulations of a trial: with or without the multicast, with or without unicast."""
        return [FabricRun(fabric, self.copied_gbps if copied else 0.0, unicast) for fabric in self.fabrics]


Results = Mapping[FabricRun, Row]
"""The simulation result of each run."""


def rows(simulator: Simulator, workers: Workers, kept: Kept) -> list[Row]:
    """Return a row per method, optical rate and number of racks.

    Raises InputError, NoResultError, RunFailedError, OSError.
    """
    selected = list(trials(RACKS))
    return rows_of(selected, simulated(runs_of(selected), simulator, workers, kept), light_of_figure_four())


def trials(racks: Sequence[int]) -> Iterator[OpticalTrial]:
    """Yield trials of all three ways to each of these numbers of racks, at each optical rate if light takes part."""
    for way in METHODS:
        for gbps, count in product((None,) if way == FABRIC else LIGHT_GBPS, racks):
            yield OpticalTrial(way, gbps, count)


def runs_of(selected: Iterable[OpticalTrial]) -> list[FabricRun]:
    """Return the simulations without duplicates, and without runs that have no traffic."""
    runs = [
        run
        for trial in selected
        for copied, unicast in ((True, True), (True, False), (False, True))
        for run in trial.runs(copied, unicast)
    ]
    return [run for run in dict.fromkeys(runs) if run.multicast_gbps or run.unicast]


def simulated(runs: Sequence[FabricRun], simulator: Simulator, workers: Workers, kept: Kept) -> Results:
    """Simulate these runs; return the result of each. Raises InputError, NoResultError, RunFailedError, OSError."""
    return dict(zip(runs, results_of(simulator, map(scenario, runs), workers, kept), strict=True))


def light_of_figure_four() -> OpticalSetup:
    """Return the set-up time and the data size of Figure 4 of the Blast paper.

    The set-up time is that of the optical switch and of a decision about one request. Raises InputError, OSError.
    """
    figure_four = load(find("fig4"))
    assert figure_four.multicasts is not None, "Figure 4 is about multicasts"
    set_up = figure_four.light.switching_seconds + recorded(figure_four.network.racks, 1)
    return OpticalSetup(set_up, figure_four.multicasts.megabytes * MEGABYTE)


# -------------------------------------------------------------------------------------------------- scenarios


def scenario(run: FabricRun) -> Model:
    """Return the simulator's input. Frames of a slow optical path arrive at its rate over a port of line rate."""
    flows = [*_multicast(run), *(_unicast(run.fabric) if run.unicast else ())]
    title = f"beside light: {run.fabric.racks} racks, {run.multicast_gbps:g} Gb/s, unicast {run.unicast}"
    settings: dict[str, object] = {"warmup_ns": round(WARM_UP_MS * MILLISECOND), "sample_ns": SAMPLE_NS}
    # A leaf's port more for the multicast, and one less for PCIe: it stays as large as the paper's.
    topology = {"leaves": run.fabric.leaves, "ethernet_ports": SERVERS_PER_LEAF + 1, "pcie_ports": 1}
    return {**model(title, run.fabric.seed, LASTS_MS, flows, **settings), "topology": topology}


def _multicast(run: FabricRun) -> Iterator[Model]:
    if run.multicast_gbps:
        servers = tuple(product(range(run.fabric.leaves), range(SERVERS_PER_LEAF)))
        yield flow("multicast", ENTRY, servers, rate_gbps=run.multicast_gbps, tree=TREE)


def _unicast(fabric: JoinedRacks) -> Iterator[Model]:
    """Yield the unicast flows: within racks, so that they are the same if each rack has its own fabric."""
    for leaf in range(fabric.leaves):
        rack, place = divmod(leaf, LEAVES_PER_RACK)
        following = rack * LEAVES_PER_RACK + (place + 1) % LEAVES_PER_RACK
        yield flow(f"unicast {leaf}", (leaf, FROM), ((following, TO),), rate_gbps=UNICAST_GBPS, process="poisson")


# ------------------------------------------------------------------------------------------------ measurement


def rows_of(selected: Iterable[OpticalTrial], found: Results, light: OpticalSetup) -> list[Row]:
    """Return a row for each trial.

    `alone` is without other traffic: a multicast without unicast, or unicast without a multicast; an optical multicast
    alone then leaves the buffers empty. `worst` is the slowest unicast flow.
    """
    return [_row(trial, found, light) for trial in selected]


def _row(trial: OpticalTrial, found: Results, light: OpticalSetup) -> Row:
    beside = [found[run] for run in trial.runs(True, True)]
    alone = [found[run] for run in trial.runs(True, False) if run in found]
    unicast = [found[run] for run in trial.runs(False, True)]
    return {
        "way": trial.way,
        "light_gbps": trial.light_gbps,
        "racks": trial.racks,
        "servers": trial.racks * SERVERS_PER_RACK,
        "fibers": trial.fibers,
        "completion_s": _completion(trial, beside, light),
        "completion_alone_s": _completion(trial, alone, light),
        "buffer_kb": fullest_kb(beside),
        "buffer_alone_kb": fullest_kb(alone),
        "unicast_share": unicast_share(beside),
        "unicast_share_alone": unicast_share(unicast),
        "unicast_delay_us": unicast_delay_us(beside),
        "unicast_delay_alone_us": unicast_delay_us(unicast),
        "unicast_delay_worst_us": worst_unicast_delay_us(beside),
    }


def _completion(trial: OpticalTrial, results: Sequence[Row], light: OpticalSetup) -> float:
    """Return the seconds until the last server has all data; dropped copies count as if repeated at the end."""
    switching = 0.0 if trial.way == FABRIC else light.set_up_seconds
    if trial.way == LIGHT:
        assert trial.light_gbps is not None, "light has a rate"
        return switching + light.seconds(trial.light_gbps)
    slowest = trial.copied_gbps * min(slowest_share(one) for one in results)
    return switching + light.seconds(slowest) + max(frame_seconds(one) for one in results)


def slowest_share(results: Row) -> float:
    """Return the share of multicast frames that the slowest server receives."""
    multicast = results["flows"][0]
    fewest: int = min(one["copies"] for one in multicast["destinations"])
    sent: int = multicast["offered_frames"]
    # A frame in transit at the end of the measurement is not lost.
    return min(1.0, (fewest + 1) / sent)


def frame_seconds(results: Row) -> float:
    """Return the longest mean delay of a multicast frame to any server."""
    longest: float = max(one["mean_delay_ns"] for one in results["flows"][0]["destinations"])
    return longest * 1e-9


def fullest_kb(results: Sequence[Row]) -> float:
    """Return the largest content of an ingress buffer after the warm-up, of all racks, in KB.

    It is 0 without results, if nothing was copied or sent.
    """
    after = round(WARM_UP_MS * MILLISECOND / SAMPLE_NS)
    series: list[list[int]] = [one["series"]["fullest_ingress_packets"][after:] for one in results]
    return max((max(packets) for packets in series), default=0) * PACKET_KB


def unicast_share(results: Sequence[Row]) -> float:
    """Return the share of unicast frames that arrive."""
    flows = list(_unicast_flows(results))
    arrived: int = sum(one["destinations"][0]["copies"] for one in flows)
    sent: int = sum(one["offered_frames"] for one in flows)
    # Some frames that arrive at the beginning of the measurement were sent before it.
    return min(1.0, arrived / sent)


def unicast_delay_us(results: Sequence[Row]) -> float:
    """Return the mean delay of all unicast frames, in µs."""
    found = [one["destinations"][0] for one in _unicast_flows(results)]
    total: float = sum(one["copies"] * one["mean_delay_ns"] for one in found)
    arrived: int = sum(one["copies"] for one in found)
    return total / arrived / 1000


def worst_unicast_delay_us(results: Sequence[Row]) -> float:
    """Return the largest mean delay of a unicast flow, in µs."""
    slowest: float = max(one["destinations"][0]["mean_delay_ns"] for one in _unicast_flows(results))
    return slowest / 1000


def _unicast_flows(results: Sequence[Row]) -> Iterator[Row]:
    for one in results:
        yield from (flow for flow in one["flows"] if flow["name"] != "multicast")
