"""The configuration file: one schema, checked, frozen. Unknown keys are refused with the nearest known one named."""

from __future__ import annotations

import difflib
import tomllib
import types
import typing
from collections import Counter
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from algorithms.policies import POLICIES
from blast_controller.core.fabric import Fabric, Host, OpticalPort, Rack, Splitter
from blast_controller.core.settings import CoreSettings
from blast_controller.openflow.rules import RuleSettings
from tl1_driver.dialects import DIALECTS


class ConfigError(Exception):
    """The operator's fault: the file cannot be read, breaks the schema or contradicts itself. One sentence."""


def _address(text: str) -> str:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise ValueError('must be "ADDRESS:PORT"')
    return text


def _one_of(known: Iterable[str]) -> AfterValidator:
    names = sorted(known)

    def check(text: str) -> str:
        if text not in names:
            raise ValueError(f"must be one of {', '.join(names)}")
        return text

    return AfterValidator(check)


def _datapath(text: str) -> str:
    if len(text) != 16 or not all(c in "0123456789abcdefABCDEF" for c in text) or int(text, 16) == 0:
        raise ValueError("must be 16 hexadecimal digits, not all zero")
    return text


Name = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9._-]+$")]
Address = Annotated[str, AfterValidator(_address)]
PortNumber = Annotated[int, Field(ge=1, le=0xFFFFFF00)]
Number = Annotated[int, Field(ge=1)]
Milliseconds = Annotated[float, Field(gt=0)]


class Section(BaseModel):
    """A table of the file."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ControllerSection(Section):
    """Where the controller listens, and how long it remembers and waits."""

    thrift: Address = "127.0.0.1:9090"
    openflow: Address = "127.0.0.1:6653"
    workers: Annotated[int, Field(ge=1, le=64)] = 4
    remember_ended_ms: Milliseconds = 3_600_000
    client_grace_ms: Milliseconds = 2_000
    lease_factor: Annotated[float, Field(ge=1)] = 2.0
    lease_minimum_ms: Milliseconds = 10_000


class PolicySection(Section):
    """Who gets light first."""

    name: Annotated[str, _one_of(POLICIES)] = "paper"


class OpenFlowSection(Section):
    """Where Blast's rules live on the ToRs."""

    group_network: IPv4Network = IPv4Network("239.77.0.0/16")
    group_port: Annotated[int, Field(ge=1, le=65535)] = 5001
    table: Annotated[int, Field(ge=0, le=254)] = 0
    priority: Annotated[int, Field(ge=2, le=65535)] = 40_000
    guard_priority: Annotated[int, Field(ge=1, le=65534)] = 30_000
    dscp: Annotated[int, Field(ge=0, le=63)] | Literal[False] = 46
    queue: Annotated[int, Field(ge=0)] | None = None
    step_timeout_ms: Milliseconds = 2_000
    echo_interval_ms: Milliseconds = 3_000
    echo_misses: Annotated[int, Field(ge=1)] = 5


class FabricSection(Section):
    """Properties of the whole optical fabric."""

    light_rate_gbps: Annotated[float, Field(gt=0)] = 10.0
    max_splitters_per_tree: Annotated[int, Field(ge=0)] | None = None
    loop_leaf: bool = False


class OpticalSwitchSection(Section):
    """One optical circuit switch."""

    name: Name
    address: Address
    dialect: Annotated[str, _one_of(DIALECTS)] = "glimmerglass"
    inputs: Number
    outputs: Number
    user: str = ""
    password_file: Path | None = None
    step_timeout_ms: Milliseconds = 2_000


class OpticalPortSection(Section):
    """One optical port of a ToR: its transmit fibre enters `input`, its receive fibre leaves `output`."""

    port: PortNumber
    optical_switch: Name
    input: Number
    output: Number


class HostSection(Section):
    """One server."""

    name: Name
    port: PortNumber
    ip: IPv4Address


class RackSection(Section):
    """One rack: a set of ports of a datapath."""

    name: Name
    datapath: Annotated[str, AfterValidator(_datapath)]
    optical_ports: tuple[OpticalPortSection, ...] = ()
    hosts: tuple[HostSection, ...] = ()


class SplitterSection(Section):
    """One splitter, fed by switch output `input`; its legs enter the switch at `outputs`."""

    name: Name
    optical_switch: Name
    input: Number
    outputs: Annotated[tuple[Number, ...], Field(min_length=2)]


class Config(Section):
    """The whole file."""

    controller: ControllerSection = ControllerSection()
    policy: PolicySection = PolicySection()
    openflow: OpenFlowSection = OpenFlowSection()
    fabric: FabricSection = FabricSection()
    optical_switch: tuple[OpticalSwitchSection, ...] = ()
    rack: Annotated[tuple[RackSection, ...], Field(min_length=1)]
    splitter: tuple[SplitterSection, ...] = ()

    # ------------------------------------------------------------------------------ what the parts need

    def build_fabric(self) -> Fabric:
        """The core's view of the fabric."""
        racks = {
            r.name: Rack(
                r.name,
                int(r.datapath, 16),
                tuple(OpticalPort(r.name, p.port, p.optical_switch, p.input, p.output) for p in r.optical_ports),
            )
            for r in self.rack
        }
        hosts = {h.name: Host(h.name, r.name, h.port, str(h.ip)) for r in self.rack for h in r.hosts}
        splitters = {s.name: Splitter(s.name, s.optical_switch, s.input, s.outputs) for s in self.splitter}
        switches = tuple(s.name for s in self.optical_switch)
        return Fabric(racks, hosts, splitters, switches, self.fabric.light_rate_gbps * 1e9)

    def core_settings(self) -> CoreSettings:
        """The core's settings."""
        return CoreSettings(
            group_network=self.openflow.group_network,
            group_port=self.openflow.group_port,
            policy=self.policy.name,
            most_splitters=self.fabric.max_splitters_per_tree,
            loop_leaf=self.fabric.loop_leaf,
            lease_factor=self.controller.lease_factor,
            lease_minimum=self.controller.lease_minimum_ms / 1000,
            orphan_grace=self.controller.client_grace_ms / 1000,
            remember_ended=self.controller.remember_ended_ms / 1000,
        )

    def rule_settings(self, epoch: int) -> RuleSettings:
        """Where rules go, for this run of the controller."""
        flow = self.openflow
        dscp = None if flow.dscp is False else flow.dscp
        return RuleSettings(flow.table, flow.priority, flow.guard_priority, dscp, flow.queue, epoch)

    def optical_ports(self) -> dict[int, tuple[int, ...]]:
        """The optical ports of each datapath."""
        found: dict[int, tuple[int, ...]] = {}
        for rack in self.rack:
            datapath = int(rack.datapath, 16)
            found[datapath] = found.get(datapath, ()) + tuple(port.port for port in rack.optical_ports)
        return found


def load(path: Path) -> Config:
    """Read and check a configuration file. Raises ConfigError."""
    try:
        return parse(path.read_text())
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 text (byte {error.start}).") from error
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error


def parse(text: str) -> Config:
    """Check the text of a configuration file. Raises ConfigError."""
    try:
        config = Config.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"not TOML: {error}.") from error
    except ValidationError as error:
        raise ConfigError(_sentence(error)) from error
    _check_consistency(config)
    return config


# ------------------------------------------------------------------------------------------- one sentence


def _sentence(error: ValidationError) -> str:
    first = error.errors()[0]
    place = _place(first["loc"])
    if first["type"] == "extra_forbidden":
        key = str(first["loc"][-1])
        near = difflib.get_close_matches(key, _known_keys(first["loc"][:-1]), n=1, cutoff=0.4)
        return f"unknown key {place}; " + (f"did you mean {near[0]}?" if near else "remove it.")
    if first["type"] == "missing":
        return f"the key {place} is missing."
    message = first["msg"].removeprefix("Value error, ")
    return f"{place}: {message[0].lower()}{message[1:]} (found {first['input']!r})."


def _place(location: tuple[int | str, ...]) -> str:
    text = ""
    for step in location:
        text += f"[{step + 1}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def _known_keys(location: tuple[int | str, ...]) -> list[str]:
    model: type[BaseModel] = Config
    for step in location:
        if isinstance(step, str) and step in model.model_fields:
            model = _model_in(model.model_fields[step].annotation) or model
    return list(model.model_fields)


def _model_in(annotation: object) -> type[BaseModel] | None:
    if (
        isinstance(annotation, type)
        and not isinstance(annotation, types.GenericAlias)
        and issubclass(annotation, BaseModel)
    ):
        return annotation
    return next((found for part in typing.get_args(annotation) if (found := _model_in(part))), None)


# -------------------------------------------------------------------------------------------- consistency


def _check_consistency(config: Config) -> None:
    _unique("optical switch", (s.name for s in config.optical_switch))
    _unique("rack", (r.name for r in config.rack))
    _unique("splitter", (s.name for s in config.splitter))
    _unique("host", (h.name for r in config.rack for h in r.hosts))
    _unique("host address", (str(h.ip) for r in config.rack for h in r.hosts))
    _unique("port of a datapath", _tor_ports(config))
    _check_switch_ports(config)
    flow = config.openflow
    if flow.guard_priority >= flow.priority:
        raise ConfigError("openflow.guard_priority must be below openflow.priority.")
    if not flow.group_network.is_multicast or flow.group_network.prefixlen > 30:
        raise ConfigError(f"openflow.group_network {flow.group_network} must be multicast with at least 2 addresses.")
    for switch in config.optical_switch:
        if switch.user and switch.password_file is None:
            raise ConfigError(f"the optical switch {switch.name} has a user but no password_file.")


def _tor_ports(config: Config) -> Iterable[str]:
    for rack in config.rack:
        ports = [*(h.port for h in rack.hosts), *(p.port for p in rack.optical_ports)]
        yield from (f"{port} of datapath {rack.datapath.lower()}" for port in ports)


def _check_switch_ports(config: Config) -> None:
    sizes = {s.name: s for s in config.optical_switch}
    inputs: list[tuple[str, int, str]] = []
    outputs: list[tuple[str, int, str]] = []
    for rack in config.rack:
        for port in rack.optical_ports:
            user = f"rack {rack.name} port {port.port}"
            inputs.append((port.optical_switch, port.input, user))
            outputs.append((port.optical_switch, port.output, user))
    for splitter in config.splitter:
        outputs.append((splitter.optical_switch, splitter.input, f"splitter {splitter.name}"))
        inputs += [(splitter.optical_switch, leg, f"splitter {splitter.name}") for leg in splitter.outputs]
    for side, uses in (("input", inputs), ("output", outputs)):
        users: dict[tuple[str, int], str] = {}
        for switch, number, user in uses:
            if switch not in sizes:
                raise ConfigError(f"{user} names the optical switch {switch!r}, which is not declared.")
            if number > getattr(sizes[switch], f"{side}s"):
                raise ConfigError(
                    f"{user} uses {side} {number} of {switch}, which has only {getattr(sizes[switch], side + 's')}."
                )
            if (switch, number) in users:
                raise ConfigError(f"{side} {number} of {switch} is used twice: by {users[switch, number]} and {user}.")
            users[switch, number] = user


def _unique(what: str, names: Iterable[str]) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ConfigError(f"the {what} {twice[0]} is used twice.")
