"""The configuration file: one schema, checked, frozen. Unknown keys are refused with the nearest known one named."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

from pydantic import AfterValidator, Discriminator, Field, Tag, create_model, model_validator

from algorithms.scheduling import DEFAULT, POLICIES
from blast_base.settings import Address, File, Ip, Milliseconds, Name, Section, endpoint_of
from blast_controller.configuration.access import AccessSection, TenantSection
from blast_controller.configuration.etcd import EtcdSection
from blast_controller.configuration.journal import DEFAULT_JOURNAL
from blast_controller.configuration.openflow import OpenFlowSection
from blast_controller.configuration.optics import (
    OpticsKeys,
    SplitterKeys,
    SwitchKeys,
    TransceiverKeys,
)
from blast_controller.core.model.fabric import Fabric, Host, OpticalPort, Rack, Splitter, StaticTree
from blast_controller.core.model.identifiers import DatapathId, SwitchId
from blast_controller.core.model.settings import CoreSettings
from blast_controller.openflow.rules import RuleSettings
from blast_controller.ops.logging import FORMATS, LEVELS
from optical_switch.drivers import DEFAULT as DEFAULT_DRIVER
from optical_switch.drivers import Driver, DriverKeys, SwitchTarget, drivers, one_of
from optical_switch.session import LightCheckTime


class ConfigError(Exception):
    """The operator's fault: the file cannot be read, breaks the schema or contradicts itself. One sentence."""


def _datapath(text: str) -> str:
    if len(text) != 16 or not all(c in "0123456789abcdefABCDEF" for c in text) or int(text, 16) == 0:
        raise ValueError("must be 16 hexadecimal digits, not all zero")
    return text


MIN_GRACE_OF_SEVERAL_MS = 10_000
"""Milliseconds for a client to come back to one of several controllers."""

PortNumber = Annotated[int, Field(ge=1, le=0xFFFFFF00)]
Number = Annotated[int, Field(ge=1)]


class ControllerSection(Section):
    """Where the controller listens, and how long it remembers and waits."""

    thrift: Address = "127.0.0.1:9090"
    openflow: Address = "127.0.0.1:6653"
    http: Address | None = None
    advertise: Address | None = None
    allow_insecure_openflow: bool = False
    workers: Annotated[int, Field(ge=1, le=64)] = 4
    ended_retention_ms: Milliseconds = 3_600_000
    max_ended: Number = 20_000
    disconnect_grace_ms: Milliseconds = 2_000
    lease_factor: Annotated[float, Field(ge=1)] = 2.0
    min_lease_ms: Milliseconds = 10_000
    max_lease_ms: Milliseconds = 86_400_000
    min_rate_gbps: Annotated[float, Field(ge=0)] | None = None
    max_pending_per_tenant: Number = 4_096
    max_waiting_calls_per_tenant: Number = 4_096
    max_calls_per_second: Annotated[float, Field(gt=0)] = 1_000
    keep_warm_ms: Annotated[int, Field(ge=0)] = 60_000
    warm_reserve: Annotated[float, Field(ge=0, le=1)] = 0.5


class JournalSection(Section):
    """The place of the journal: a file, unless `in_memory` or `etcd` is set."""

    etcd: EtcdSection | None = None
    file: File = Path(DEFAULT_JOURNAL)
    in_memory: bool = False
    retention_entries: Annotated[int, Field(ge=1)] = 100_000
    retention_days: Annotated[float, Field(gt=0)] = 30.0
    retention_mb: Annotated[float, Field(gt=0)] = 256.0
    reconcile_interval_ms: Milliseconds | None = 60_000

    @property
    def path(self) -> Path | None:
        """Return the file; None for a journal in memory or in etcd."""
        return None if self.in_memory or self.etcd is not None else self.file


class RecordingSection(Section):
    """Where what was shown is kept, to look at the past: nowhere by default."""

    file: File | None = None
    retention_mb: Annotated[float, Field(ge=16)] = 1_000.0
    retention_days: Annotated[float, Field(gt=0)] = 14.0


class PolicySection(Section):
    """The scheduling policy."""

    name: Annotated[str, AfterValidator(one_of(POLICIES))] = DEFAULT
    optimizer_budget_ms: Annotated[float, Field(ge=0, le=10_000)] = 0.0


class LogSection(Section):
    """The log on standard error."""

    level: Annotated[str, AfterValidator(one_of(LEVELS))] = "info"
    format: Annotated[str, AfterValidator(one_of(FORMATS))] = "text"


class FabricSection(TransceiverKeys):
    """Properties of the whole optical fabric, and defaults of transceivers."""

    optical_rate_gbps: Annotated[float, Field(gt=0)] = 10.0
    max_splitters_per_tree: Annotated[int, Field(ge=0)] | None = None
    loop_leaf: bool = False
    directional: bool = False
    verify_at_first_start: bool = False
    probe_timeout_ms: Milliseconds = 1_000


class OpticalSwitchSection(SwitchKeys, DriverKeys):
    """One optical switch: the keys of every driver."""

    name: Name
    driver: str = DEFAULT_DRIVER
    address: Address | None = None
    inputs: Number
    outputs: Number
    step_timeout_ms: Milliseconds = 2_000
    light_check: LightCheckTime | None = None
    dark_threshold_dbm: float = -30.0
    light_timeout_ms: Milliseconds = 500

    @model_validator(mode="after")
    def _one_place(self) -> OpticalSwitchSection:
        if self.address is None and self.local_socket is None:
            raise ValueError('set address = "HOST:PORT"')
        if self.address is not None and self.local_socket is not None:
            raise ValueError("address and socket are mutually exclusive: keep only one")
        return self

    @property
    def place(self) -> str:
        """Return the address, or the Unix socket in place of it."""
        return self.address or str(self.local_socket)

    @property
    def light_checked(self) -> LightCheckTime:
        """Return the time of the light check: the configured one, else the driver's default."""
        return self.light_check or self.default_light_check

    def target(self) -> SwitchTarget:
        """Return the settings that every driver needs."""
        host, port = endpoint_of(self.address) if self.address is not None else ("", 0)
        return SwitchTarget(self.name, host, port, self.inputs, self.outputs, self.step_timeout_ms / 1000)


def _section_of(driver: Driver[DriverKeys]) -> type[OpticalSwitchSection]:
    """Return the table of a driver: the common keys and its own."""
    names = {"driver": (Literal[driver.name], driver.name)}
    model = create_model(f"{driver.name}_switch", __base__=(driver.keys, OpticalSwitchSection), **names)  # type: ignore[call-overload]
    return cast("type[OpticalSwitchSection]", model)


def _driver_name(table: object) -> str:
    if isinstance(table, OpticalSwitchSection):
        return table.driver
    return str(table.get("driver", DEFAULT_DRIVER)) if isinstance(table, dict) else DEFAULT_DRIVER


def _any_switch() -> type[OpticalSwitchSection]:
    """Return the union of the tables of all drivers, which `driver` selects."""
    members = [Annotated[_section_of(driver), Tag(name)] for name, driver in drivers().items()]
    unknown = f"driver must be one of {', '.join(sorted(drivers()))}"
    selected = Discriminator(_driver_name, custom_error_type="unknown_driver", custom_error_message=unknown)
    return cast("type[OpticalSwitchSection]", Annotated[reduce(or_, members), selected])


if TYPE_CHECKING:
    AnySwitchSection = OpticalSwitchSection
else:
    AnySwitchSection = _any_switch()


class OpticalPortSection(TransceiverKeys):
    """One optical port of a ToR: its transmit fiber enters `input`, its receive fiber leaves `output`."""

    port: PortNumber
    optical_switch: Name
    input: Number
    output: Number


_RateGbps = Annotated[float, Field(gt=0, le=1e6)]


class HostSection(Section):
    """One server."""

    name: Name
    port: PortNumber
    ip: Ip
    access_rate_gbps: _RateGbps | None = None


class RackSection(Section):
    """One rack: a set of ports of a datapath."""

    name: Name
    datapath: Annotated[str, AfterValidator(_datapath)]
    optical_ports: tuple[OpticalPortSection, ...] = ()
    hosts: tuple[HostSection, ...] = ()
    uplink_rate_gbps: _RateGbps | None = None


class SplitterSection(SplitterKeys):
    """One splitter, fed by switch output `input`; its outputs enter the switch at `outputs`."""

    name: Name
    optical_switch: Name
    input: Number
    outputs: Annotated[tuple[Number, ...], Field(min_length=2)]


class StaticEndSection(Section):
    """Where a static tree ends: a port of a rack's ToR, or a host."""

    rack: Name | None = None
    port: PortNumber | None = None
    host: Name | None = None

    @model_validator(mode="after")
    def _either(self) -> StaticEndSection:
        if (self.host is None) == (self.rack is None) or (self.rack is None) != (self.port is None):
            raise ValueError("set rack and port, or host")
        return self


class StaticTreeSection(Section):
    """Splitters fixed between ToRs or hosts, without an optical switch."""

    name: Name
    root: StaticEndSection
    leaves: Annotated[tuple[StaticEndSection, ...], Field(min_length=1)]


class Config(Section):
    """The whole file."""

    controller: ControllerSection = ControllerSection()
    journal: JournalSection = JournalSection()
    recording: RecordingSection = RecordingSection()
    policy: PolicySection = PolicySection()
    openflow: OpenFlowSection = OpenFlowSection()
    fabric: FabricSection = FabricSection()
    log: LogSection = LogSection()
    access: AccessSection | None = None
    tenant: tuple[TenantSection, ...] = ()
    optical_switch: tuple[AnySwitchSection, ...] = ()
    rack: Annotated[tuple[RackSection, ...], Field(min_length=1)]
    splitter: tuple[SplitterSection, ...] = ()
    static_tree: tuple[StaticTreeSection, ...] = ()

    # ------------------------------------------------------------------------------ what the parts need

    def build_fabric(self) -> Fabric:
        """Return the core's view of the fabric."""
        racks = {
            r.name: Rack(
                r.name,
                DatapathId(int(r.datapath, 16)),
                tuple(port for p in r.optical_ports for port in self._sides(r.name, p)),
                _bits_per_second(r.uplink_rate_gbps),
            )
            for r in self.rack
        }
        hosts = {
            h.name: Host(h.name, r.name, h.port, str(h.ip), _bits_per_second(h.access_rate_gbps))
            for r in self.rack
            for h in r.hosts
        }
        splitters = {s.name: Splitter(s.name, SwitchId(s.optical_switch), s.input, s.outputs) for s in self.splitter}
        switches = tuple(SwitchId(s.name) for s in self.optical_switch)
        static = {t.name: _static_tree(t) for t in self.static_tree}
        keys = self._optics_keys(splitters)
        return Fabric(racks, hosts, splitters, switches, self.fabric.optical_rate_gbps * 1e9, static, keys.build())

    def _sides(self, rack: str, section: OpticalPortSection) -> tuple[OpticalPort, ...]:
        """Return a port, or its two fibers where they may serve different groups."""
        port = OpticalPort(rack, section.port, SwitchId(section.optical_switch), section.input, section.output)
        return port.sides() if self.fabric.directional else (port,)

    def _optics_keys(self, splitters: Mapping[str, Splitter]) -> OpticsKeys:
        ports = [(port, own) for r in self.rack for own in r.optical_ports for port in self._sides(r.name, own)]
        hung = [(splitters[s.name], s) for s in self.splitter]
        return OpticsKeys(self.fabric, ports, hung, [(s.name, s) for s in self.optical_switch])

    @property
    def _client_grace(self) -> float:
        """Return milliseconds. A client of a hanging controller finds the next one only after some seconds."""
        configured = self.controller.disconnect_grace_ms
        return configured if self.journal.etcd is None else max(configured, MIN_GRACE_OF_SEVERAL_MS)

    def core_settings(self) -> CoreSettings:
        """Return the core's settings."""
        every = self.journal.reconcile_interval_ms
        return CoreSettings(
            group_network=self.openflow.group_network,
            group_port=self.openflow.group_port,
            policy=self.policy.name,
            optimize=self.policy.optimizer_budget_ms / 1000,
            max_splitters_per_tree=self.fabric.max_splitters_per_tree,
            loop_leaf=self.fabric.loop_leaf,
            probe_wait=self.fabric.probe_timeout_ms / 1000,
            lease_factor=self.controller.lease_factor,
            lease_minimum=self.controller.min_lease_ms / 1000,
            lease_maximum=self.controller.max_lease_ms / 1000,
            min_rate=None if self.controller.min_rate_gbps is None else self.controller.min_rate_gbps * 1e9,
            max_pending_per_tenant=self.controller.max_pending_per_tenant,
            keep_warm=self.controller.keep_warm_ms / 1000,
            warm_reserve=self.controller.warm_reserve,
            orphan_grace=self._client_grace / 1000,
            remember_ended=self.controller.ended_retention_ms / 1000,
            max_ended=self.controller.max_ended,
            reconcile_every=None if every is None else every / 1000,
            tenants={tenant.name: tenant.limits() for tenant in self.tenant},
        )

    def rule_settings(self, epoch: int) -> RuleSettings:
        """Return the rule settings for this run of the controller."""
        flow = self.openflow
        dscp = None if flow.dscp is False else flow.dscp
        return RuleSettings(flow.table, flow.priority, flow.guard_priority, dscp, flow.queue, epoch)

    def optical_ports(self) -> dict[DatapathId, tuple[int, ...]]:
        """Return the optical ports of each datapath."""
        found: dict[DatapathId, tuple[int, ...]] = {}
        for rack in self.rack:
            datapath = DatapathId(int(rack.datapath, 16))
            fixed = tuple(end.port for end in static_ends(self) if end.rack == rack.name and end.port is not None)
            ports = tuple(port.port for port in rack.optical_ports)
            found[datapath] = found.get(datapath, ()) + ports + fixed
        return found


def _bits_per_second(gbps: float | None) -> float | None:
    return None if gbps is None else gbps * 1e9


def static_ends(config: Config) -> list[StaticEndSection]:
    """Return both ends of every static tree."""
    return [end for tree in config.static_tree for end in (tree.root, *tree.leaves)]


def _static_tree(section: StaticTreeSection) -> StaticTree:
    leaves = {end.rack: end.port for end in section.leaves if end.rack is not None and end.port is not None}
    hosts = frozenset(end.host for end in section.leaves if end.host is not None)
    return StaticTree(section.name, section.root.rack, section.root.port or 0, section.root.host, leaves, hosts)
