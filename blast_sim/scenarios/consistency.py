"""Consistency checks of a scenario with valid keys: unknown names, impossible topologies."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator

from algorithms.balanced.network import InvalidNetworkError
from algorithms.splitter_tree import max_leaves
from blast_controller.configuration.schema import Location, SchemaError
from blast_sim.fabric.replication import RACKS
from blast_sim.flow.optics import OpticalResources
from blast_sim.scenarios.schema import NetworkSection, Scenario, SitesSection
from blast_sim.scenarios.sites import hosts_of

OF_RACKS = ("ip-multicast", "packet-multicast", "rack-fabric", "blast")
"""Methods that use what only racks have."""


def check(scenario: Scenario) -> None:
    """Raise SchemaError for the first contradiction in a scenario."""
    for sentence, location in _faults(scenario):
        raise SchemaError(sentence, location)


def _faults(scenario: Scenario) -> Iterator[tuple[str, Location]]:
    yield from _networks(scenario)
    yield from _workload(scenario)
    yield from _names(scenario)
    yield from _sites(scenario)
    yield from _background(scenario)
    if any("blast" in run.methods for run in scenario.run):
        yield from _light(scenario)
    yield from _rack_fabric(scenario)


def _networks(scenario: Scenario) -> Iterator[tuple[str, Location]]:
    network = scenario.network
    if not network.names:
        yield "no network is defined: add uplink_gbps of racks, or sites.", ("network",)
    for name, sites in network.sites.items():
        where = ("network", "sites", name)
        if name in network.uplink_gbps:
            yield f"{name!r} is a network of racks and one of sites: give one of them another name.", where
        if (network.racks, network.servers_per_rack) != (len(sites.names), 1):
            count = len(sites.names)
            yield f"{count} sites are {count} racks of one server: set racks and servers_per_rack so.", where
        yield from _shape(sites, where)


def _shape(sites: SitesSection, where: Location) -> Iterator[tuple[str, Location]]:
    count = len(sites.names)
    for name in sites.names:
        if sites.names.count(name) > 1:
            yield f"the site {name!r} is there twice.", (*where, "names")
    for key, numbers in (("out_mbps", sites.out_mbps), ("in_mbps", sites.in_mbps), ("paths_mbps", sites.paths_mbps)):
        if len(numbers) != count:
            yield f"{count} sites need {count} entries here, not {len(numbers)}.", (*where, key)
    for name, row in zip(sites.names, sites.paths_mbps, strict=False):
        if len(row) != count:
            yield f"{name} needs paths to {count} sites, 0 to itself, not to {len(row)}.", (*where, "paths_mbps")
    try:
        for root in range(count):
            hosts_of(sites, root)
    except InvalidNetworkError as error:
        yield f"{error}.", where


def _sites(scenario: Scenario) -> Iterator[tuple[str, Location]]:
    for place, run in enumerate(scenario.run):
        for name in run.networks:
            if name not in scenario.network.sites:
                continue
            for method in run.methods:
                if method in OF_RACKS:
                    yield f"{method} needs racks, and {name} is of sites.", ("run", place, "methods")
            for load in run.backgrounds:
                if scenario.background.racks_per_direction.get(load):
                    yield f"the background {load} is of racks, and {name} is of sites.", ("run", place, "backgrounds")


def _workload(scenario: Scenario) -> Iterator[tuple[str, Location]]:
    racks, multicasts = scenario.network.racks, scenario.multicasts
    if (multicasts is None) == (not scenario.jobs):
        yield "the workload must be either a table [multicasts] or tables [[jobs]].", ()
    if multicasts is not None:
        low, high = multicasts.rack_range
        if not low <= high <= racks:
            yield f"a group cannot have {low} to {high} of {racks} racks.", ("multicasts", "racks_per_group")
        groups, room = -(-multicasts.groups // multicasts.pods), racks // multicasts.pods
        here = "" if multicasts.pods == 1 else " in a pod"
        if high > room:
            yield f"a group of {high} racks has no room in a pod of {room}.", ("multicasts", "pods")
        if multicasts.disjoint and groups * high > room:
            sentence = f"{groups} disjoint groups of {high} racks need {groups * high} racks{here}"
            yield f"{sentence}, and there are {room}: fewer groups, or disjoint = false.", ("multicasts", "groups")
        if high * scenario.network.servers_per_rack < 2:
            yield "a group of one server has no receivers.", ("multicasts", "racks_per_group")
    for place, job in enumerate(scenario.jobs):
        servers = job.racks * scenario.network.servers_per_rack
        if job.racks > racks:
            yield f"the job {job.name} wants {job.racks} of {racks} racks.", ("jobs", place, "racks")
        if servers < 3 or job.shuffle_peers > servers - 2:
            sentence = f"a worker of {job.name} has {max(0, servers - 2)} other workers, not {job.shuffle_peers}."
            yield sentence, ("jobs", place, "shuffle_peers")


def _rack_fabric(scenario: Scenario) -> Iterator[tuple[str, Location]]:
    groups = [job.racks for job in scenario.jobs]
    if scenario.multicasts is not None:
        groups.append(scenario.multicasts.rack_range[1])
    for place, run in enumerate(scenario.run):
        if "rack-fabric" in run.methods and max(groups, default=0) > RACKS[-1]:
            yield f"rack-fabric has {RACKS[-1]} racks, and a group has {max(groups)}.", ("run", place, "methods")


def _names(scenario: Scenario) -> Iterator[tuple[str, Location]]:
    for place, run in enumerate(scenario.run):
        for key, names, known, where in (
            ("networks", run.networks, scenario.network.names, _table_of(scenario.network)),
            ("backgrounds", run.backgrounds, scenario.background.racks_per_direction, "background.racks_per_direction"),
        ):
            for name in names:
                if name not in known:
                    yield f"{where} has no {name!r}; {_nearest(name, known)}.", ("run", place, key)


def _table_of(network: NetworkSection) -> str:
    return "network.uplink_gbps" if not network.sites else "network"


def _nearest(name: str, known: Collection[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.4)
    return f"did you mean {near[0]!r}?".rstrip("?") if near else f"known are {', '.join(known)}"


def _background(scenario: Scenario) -> Iterator[tuple[str, Location]]:
    racks = scenario.network.racks
    for name, each_way in scenario.background.racks_per_direction.items():
        if 2 * each_way >= racks:
            sentence = f"{each_way} racks each way and the own one are more than the {racks} there are."
            yield sentence, ("background", "racks_per_direction", name)


def _light(scenario: Scenario) -> Iterator[tuple[str, Location]]:
    light, racks = scenario.light, scenario.network.racks
    optics = OpticalResources(light.splitters, light.fan_out, switches=light.switches)
    needed = optics.switch_ports(racks, light.ports_per_rack)
    if light.switch_ports is not None and needed > light.switch_ports:
        share = "" if light.switches == 1 else f", shared among {light.switches} optical switches,"
        sentence = f"{racks} racks and {light.splitters} splitters 1:{light.fan_out}{share} need {needed} ports"
        yield f"{sentence}, and the optical switch has {light.switch_ports}.", ("light", "switch_ports")
    leaves = max_leaves({light.fan_out: light.splitters // light.switches}, light.max_splitters_per_tree)
    widest = max([scenario.multicasts.rack_range[1]] if scenario.multicasts else [job.racks for job in scenario.jobs])
    if widest - 1 > max(1, leaves):
        sentence = f"a group of {widest} racks needs a tree of {widest - 1} leaves"
        yield f"{sentence}, and the splitters make one of {max(1, leaves)}.", ("light", "splitters")
