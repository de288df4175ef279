"""The multicast methods of a scenario, by name. A new one needs a module in `blast_sim/methods` and a line here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial

from blast_controller.core.model.settings import CoreSettings
from blast_sim.controller.compute import compute_of
from blast_sim.controller.core_driver import Delays
from blast_sim.experiments.cell import FlowCell
from blast_sim.flow.optics import OpticalResources
from blast_sim.flow.phases import Phase
from blast_sim.methods.hdfs import HdfsReading, hdfs
from blast_sim.methods.ip_multicast import ip_multicast, packet_multicast
from blast_sim.methods.method import Method, Multicast, Phased, World
from blast_sim.methods.naive import naive
from blast_sim.methods.optical import Blast, Control, RequestTerms
from blast_sim.methods.overlay import overlay
from blast_sim.methods.pipeline import pipeline
from blast_sim.methods.rack_fabric import rack_fabric
from blast_sim.methods.torrent import Torrent
from blast_sim.methods.trees import trees
from blast_sim.plugins.loading import method_named
from blast_sim.scenarios.schema import Scenario

PhasesOf = Callable[[World, Multicast], list[Phase]]

PHASED: Mapping[str, Callable[[Scenario], PhasesOf]] = {
    "naive": lambda scenario: naive,
    "hdfs": lambda scenario: partial(hdfs, reading=HdfsReading(**scenario.hdfs.model_dump())),
    "overlay": lambda scenario: partial(overlay, stages=scenario.overlay.stages),
    "pipeline": lambda scenario: pipeline,
    "trees": lambda scenario: trees,
    "ip-multicast": lambda scenario: partial(ip_multicast, set_up=scenario.packet_multicast.set_up_ms / 1000),
    "packet-multicast": lambda scenario: partial(packet_multicast, set_up=scenario.packet_multicast.set_up_ms / 1000),
    "rack-fabric": lambda scenario: partial(rack_fabric, lossless=scenario.rack_fabric.lossless),
}
"""Methods that are functions from a multicast to its phases."""


def new_method(cell: FlowCell, world: World, servers: Iterable[int], together: int) -> Method:
    """Return the method of this cell; up to `together` multicasts begin at the same time."""
    if cell.method == "blast":
        return _blast(cell, world, servers, together)
    return _packet_method(cell.method, cell.scenario, world)


def _packet_method(name: str, scenario: Scenario, world: World) -> Method:
    """Return a method that needs no optical network."""
    if name == "torrent":
        return Torrent(world)
    return Phased(world, PHASED[name](scenario)) if name in PHASED else method_named(name, world)


def _blast(cell: FlowCell, world: World, servers: Iterable[int], together: int) -> Blast:
    light = cell.scenario.light
    settings = CoreSettings(
        policy=cell.policy,
        max_splitters_per_tree=light.max_splitters_per_tree,
        keep_warm=light.keep_warm_ms / 1000,
        warm_reserve=light.warm_reserve,
        optimize=light.optimizer_budget_ms / 1000,
    )
    control = Control(
        OpticalResources(light.splitters, light.fan_out, light.directional, light.switches),
        settings,
        Delays(light.switching_seconds, light.openflow_ms / 1000, light.rpc_ms / 1000),
        compute_of(cell.effort.compute, world.network.racks, together),
    )
    terms = RequestTerms(light.may_pause, light.may_split, light.pending_timeout_s)
    return Blast(world, servers, control, terms, _packet_method(light.fallback, cell.scenario, world))
