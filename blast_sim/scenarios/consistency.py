"""What a scenario may not say although every key is right: names that are nowhere, topologies that cannot be."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator

from algorithms.splitter_tree import most_leaves
from blast_controller.config_schema import Location, SchemaFault
from blast_sim.scenarios.schema import Scenario


def check(scenario: Scenario) -> None:
    """Raise SchemaFault for the first thing that cannot be."""
    for sentence, location in _faults(scenario):
        raise SchemaFault(sentence, location)


def _faults(scenario: Scenario) -> Iterator[tuple[str, Location]]:
    yield from _workload(scenario)
    yield from _names(scenario)
    yield from _background(scenario)
    if any("blast" in run.methods for run in scenario.run):
        yield from _light(scenario)


def _workload(scenario: Scenario) -> Iterator[tuple[str, Location]]:
    racks, multicasts = scenario.network.racks, scenario.multicasts
    if (multicasts is None) == (not scenario.jobs):
        yield "say what is sent: either a table [multicasts] or tables [[jobs]].", ()
    if multicasts is not None:
        least, most = multicasts.rack_range
        if not least <= most <= racks:
            yield f"a group cannot have {least} to {most} of {racks} racks.", ("multicasts", "racks_per_group")
        if multicasts.disjoint and multicasts.groups * most > racks:
            sentence = f"{multicasts.groups} disjoint groups of {most} racks need {multicasts.groups * most} racks"
            yield f"{sentence}, and there are {racks}: fewer groups, or disjoint = false.", ("multicasts", "groups")
        if most * scenario.network.servers_per_rack < 2:
            yield "a group of one server has no receivers.", ("multicasts", "racks_per_group")
    for place, job in enumerate(scenario.jobs):
        servers = job.racks * scenario.network.servers_per_rack
        if job.racks > racks:
            yield f"the job {job.name} wants {job.racks} of {racks} racks.", ("jobs", place, "racks")
        if servers < 3 or job.shuffle_peers > servers - 2:
            sentence = f"a worker of {job.name} has {max(0, servers - 2)} other workers, not {job.shuffle_peers}."
            yield sentence, ("jobs", place, "shuffle_peers")


def _names(scenario: Scenario) -> Iterator[tuple[str, Location]]:
    for place, run in enumerate(scenario.run):
        for key, names, known, where in (
            ("networks", run.networks, scenario.network.uplink_gbps, "network.uplink_gbps"),
            ("backgrounds", run.backgrounds, scenario.background.racks_each_way, "background.racks_each_way"),
        ):
            for name in names:
                if name not in known:
                    yield f"{where} has no {name!r}; {_nearest(name, known)}.", ("run", place, key)


def _nearest(name: str, known: Collection[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.4)
    return f"did you mean {near[0]!r}?".rstrip("?") if near else f"known are {', '.join(known)}"


def _background(scenario: Scenario) -> Iterator[tuple[str, Location]]:
    racks = scenario.network.racks
    for name, each_way in scenario.background.racks_each_way.items():
        if 2 * each_way >= racks:
            sentence = f"{each_way} racks each way and the own one are more than the {racks} there are."
            yield sentence, ("background", "racks_each_way", name)


def _light(scenario: Scenario) -> Iterator[tuple[str, Location]]:
    light, racks = scenario.light, scenario.network.racks
    needed = racks * light.ports_per_rack + light.splitters * (1 + light.ways)
    if light.switch_ports is not None and needed > light.switch_ports:
        sentence = f"{racks} racks and {light.splitters} splitters 1:{light.ways} need {needed} ports"
        yield f"{sentence}, and the optical switch has {light.switch_ports}.", ("light", "switch_ports")
    leaves = most_leaves({light.ways: light.splitters}, light.max_splitters_per_tree)
    widest = max([scenario.multicasts.rack_range[1]] if scenario.multicasts else [job.racks for job in scenario.jobs])
    if widest - 1 > max(1, leaves):
        sentence = f"a group of {widest} racks needs a tree of {widest - 1} leaves"
        yield f"{sentence}, and the splitters make one of {max(1, leaves)}.", ("light", "splitters")
