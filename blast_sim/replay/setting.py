"""The setting of a replay: the network, its optical network, and the options of requests."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from blast_controller.core.model.settings import CoreSettings
from blast_sim.controller.compute import compute_of
from blast_sim.controller.core_driver import Delays
from blast_sim.flow.network import RackNetwork
from blast_sim.flow.optics import OpticalResources
from blast_sim.methods.method import Method, World
from blast_sim.methods.optical import Blast, Control, RequestTerms
from blast_sim.scenarios.schema import LightSection


@dataclass(frozen=True, slots=True)
class Setting:
    """The network of a replay; rates in Gbit/s. `compute` as in `--compute`."""

    racks: int
    servers_per_rack: int
    server_gbps: float
    uplink_gbps: float
    light: LightSection
    compute: str

    @property
    def network(self) -> RackNetwork:
        """The network as numbered links."""
        light = self.light
        rates = (self.server_gbps * 1e9, self.uplink_gbps * 1e9, light.rate_gbps * 1e9)
        return RackNetwork(self.racks, self.servers_per_rack, *rates, light.ports_per_rack)

    def blast(self, world: World, servers: Iterable[int], policy: str, fallback: Method) -> Blast:
        """Return the controller for these servers, with this policy and this fallback method."""
        light = self.light
        settings = CoreSettings(
            policy=policy,
            max_splitters_per_tree=light.max_splitters_per_tree,
            keep_warm=light.keep_warm_ms / 1000,
            warm_reserve=light.warm_reserve,
            optimize=light.optimizer_budget_ms / 1000,
        )
        control = Control(
            OpticalResources(light.splitters, light.fan_out, light.directional),
            settings,
            Delays(light.switching_seconds, light.openflow_ms / 1000, light.rpc_ms / 1000),
            compute_of(self.compute, self.racks, 1),
        )
        return Blast(
            world, servers, control, RequestTerms(light.may_pause, light.may_split, light.pending_timeout_s), fallback
        )

    @property
    def as_dict(self) -> dict[str, object]:
        """The setting as recorded in results."""
        network = {
            "racks": self.racks,
            "servers_per_rack": self.servers_per_rack,
            "server_gbps": self.server_gbps,
            "uplink_gbps": self.uplink_gbps,
        }
        return {"network": network, "light": self.light.model_dump(mode="json"), "compute": self.compute}
