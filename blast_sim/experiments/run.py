"""Runs one cell: builds its world, plays its multicasts, and returns the results."""

from __future__ import annotations

import random
import statistics
from collections.abc import Sequence
from functools import partial

from blast_sim.base.percentiles import percentile
from blast_sim.base.report import Row
from blast_sim.experiments.cell import FlowCell
from blast_sim.experiments.groups import multicasts
from blast_sim.experiments.jobs import JobRun, JobTimes, draw_jobs
from blast_sim.experiments.methods import new_method
from blast_sim.experiments.rounds import light_of, rates
from blast_sim.flow.background import Rounds
from blast_sim.flow.engine import EXACT, Simulation, Stepping
from blast_sim.flow.network import RackNetwork
from blast_sim.flow.sites import SiteNetwork
from blast_sim.methods.method import Method, Multicast, World
from blast_sim.methods.optical import Blast
from blast_sim.plugins.loading import blamed, require_plugins_here
from blast_sim.scenarios.schema import Scenario
from blast_sim.scenarios.sites import hosts_of


def run_cell(cell: FlowCell) -> list[Row]:
    """Return the results of a cell: one row, or one for each kind of jobs.

    Raises StalledError, PluginFailedError, and the errors of the method; OtherSoftwareError or PluginError on a worker
    that differs from the command.
    """
    cell.software.require_here()
    require_plugins_here(cell.plugins)
    with blamed(cell.plugins):
        world = build_world(cell)
        rows = [_send_all(cell, world)] if cell.scenario.multicasts is not None else _run_jobs(cell, world)
    chosen = {"method": cell.method, "network": cell.network, "background": cell.background, "policy": cell.policy}
    return [{**chosen, **row} for row in rows]


def build_network(scenario: Scenario, name: str) -> RackNetwork:
    """Return the network of this name in the scenario."""
    section, light = scenario.network, scenario.light
    if name in section.sites:
        return SiteNetwork.of(hosts_of(section.sites[name]))
    return RackNetwork(
        section.racks,
        section.servers_per_rack,
        section.server_gbps * 1e9,
        section.uplink_gbps[name] * 1e9,
        light.rate_gbps * 1e9,
        light.ports_per_rack,
        scenario.packet_multicast.rate_gbps * 1e9,
    )


def build_world(cell: FlowCell) -> World:
    """Build an idle network with its background traffic.

    The random generator is for the method only: methods with and without random choices meet the same traffic.
    """
    scenario = cell.scenario
    network = build_network(scenario, cell.network)
    section = scenario.background
    rounds = Rounds(network, section.racks_per_direction[cell.background], section.round_seconds)
    simulation = Simulation(network.capacities, rounds, Stepping() if cell.effort.stepped else EXACT)
    return World(network, simulation, random.Random(f"flow/method/{cell.seed}"))


# --------------------------------------------------------------------------------------------- multicasts


def _send_all(cell: FlowCell, world: World) -> Row:
    section = cell.scenario.multicasts
    assert section is not None, "the caller has looked"
    planned = multicasts(section, world.network, cell.seed)
    servers = [server for _, one in planned for server in one.servers]
    together = 1 if section.arrivals_per_second is not None else len(planned)
    method = new_method(cell, world, dict.fromkeys(servers), together)
    clock, taken = world.simulation.clock, dict[str, float]()

    def begin(at: float, one: Multicast) -> None:
        clock.at(at, lambda: method.send(one, lambda: taken.update({one.name: clock.now - at})))

    for at, one in planned:
        begin(at, one)
    world.simulation.run(lambda: len(taken) == len(planned))
    services = {one.name: one.bits / world.network.light_rate for _, one in planned}
    return _measures(method, taken, services)


def _measures(method: Method, taken: dict[str, float], services: dict[str, float]) -> Row:
    """Return completion times with the controller's computation, as section VI-A of the Blast paper counts them."""
    compute = sum(compute_by_multicast(method).values()) / len(taken)
    seconds = statistics.fmean(taken.values())
    return {
        "seconds": seconds,
        "seconds_without_computation": seconds - compute,
        "compute_seconds": compute,
        "p99_seconds": percentile(taken.values(), 99),
        "longest_seconds": max(taken.values()),
        "seconds_per_service": statistics.fmean(found / services[name] for name, found in taken.items()),
        "fell_back": method.fell_back if isinstance(method, Blast) else 0,
    }


def compute_by_multicast(method: Method) -> dict[str, float]:
    """Return the computation time of the decision that first granted each multicast; empty for packet methods."""
    return method.computes if isinstance(method, Blast) else {}


# --------------------------------------------------------------------------------------------------- jobs


def _run_jobs(cell: FlowCell, world: World) -> list[Row]:
    jobs = draw_jobs(cell.scenario.jobs, world.network, cell.seed)
    servers = dict.fromkeys(server for job in jobs for server in job.servers)
    method = new_method(cell, world, servers, 1)
    left = {job.name for job in jobs}
    runs = [
        JobRun(job, world, method, random.Random(f"flow/job/{cell.seed}/{job.name}"), partial(left.discard, job.name))
        for job in jobs
    ]
    for run in runs:
        run.next_iteration()
    world.simulation.run(lambda: not left)
    own = compute_by_multicast(method)
    mean_compute = statistics.fmean(own.values()) if own else 0.0
    first = min(run.times.completion for run in runs)
    return [
        _job_row(section.name, times, section.iterations)
        | rates([one for job in times for one in job.rounds], first, light_of(section, cell))
        | {"compute_seconds": mean_compute}
        for section in cell.scenario.jobs
        for times in [[run.times for run in runs if run.times.kind == section.name]]
    ]


def _job_row(kind: str, times: Sequence[JobTimes], iterations: int) -> Row:
    """Return the means over the jobs of one kind; `multicast_seconds` is the time of one iteration's multicast."""
    return {
        "job": kind,
        "seconds": statistics.fmean(one.completion for one in times),
        "communication_share": statistics.fmean(one.communication / one.completion for one in times),
        "multicast_share": statistics.fmean(one.multicast / one.completion for one in times),
        "multicast_seconds": statistics.fmean(one.multicast / iterations for one in times),
        "fell_back": 0,
    }
