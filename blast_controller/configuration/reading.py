"""Reading of configuration files: every fault is one message with the remedy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from blast_controller.configuration.access import access_fault
from blast_controller.configuration.config import (
    Config,
    ConfigError,
    static_ends,
)
from blast_controller.configuration.contradictions import contradiction
from blast_controller.configuration.etcd import etcd_fault
from blast_controller.configuration.openflow import openflow_fault
from blast_controller.configuration.optics import (
    IncompleteOpticsError,
)
from blast_controller.configuration.schema import SchemaError, checked, read_toml
from optical_switch.drivers import drivers


def load(path: Path) -> Config:
    """Read and check a configuration file. Raises ConfigError."""
    return parse_file(path, read(path))


def read(path: Path) -> str:
    """Return the text of a configuration file. Raises ConfigError."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 text (byte {error.start}).") from error


def parse_file(path: Path, text: str) -> Config:
    """Check the text that was read from `path`. Raises ConfigError, which names the file."""
    try:
        return parse(text)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error


def parse(text: str) -> Config:
    """Check the text of a configuration file. Raises ConfigError."""
    try:
        config = checked(Config, read_toml(text))
    except SchemaError as fault:
        raise ConfigError(str(fault)) from fault
    _check_consistency(config)
    return config


# -------------------------------------------------------------------------------------------- consistency


def _check_consistency(config: Config) -> None:
    _unique("optical switch", (s.name for s in config.optical_switch))
    _unique("tenant", (t.name for t in config.tenant))
    _unique("rack", (r.name for r in config.rack))
    _unique("splitter", (s.name for s in config.splitter))
    _unique("host", (h.name for r in config.rack for h in r.hosts))
    _unique("host address", (str(h.ip) for r in config.rack for h in r.hosts))
    _unique("port", _tor_ports(config))
    _unique("static tree", (t.name for t in config.static_tree))
    _checkstatic_ends(config)
    _check_switch_ports(config)
    listens = config.controller
    fault = openflow_fault(listens.openflow, listens.allow_insecure_openflow, config.openflow)
    fault = fault or access_fault(_for_clients(config), config.access, config.tenant)
    fault = fault or (etcd_fault(config.journal.etcd) if config.journal.etcd is not None else None)
    fault = fault or contradiction(config)
    if fault is not None:
        raise ConfigError(fault)
    _check_certificate_names(config)
    for switch in config.optical_switch:
        phrase = switch.target().phrase
        for fault in switch.faults(phrase):
            raise ConfigError(fault)
        if switch.light_checked != "off" and not switch.measures_power:
            raise ConfigError(
                f"{phrase} has light_check, but a switch with driver {switch.driver} has no power meters: "
                "remove light_check."
            )
        if switch.attenuator_range_db is not None and not switch.attenuates:
            able = ", ".join(sorted(name for name, driver in drivers().items() if driver.keys.attenuates))
            raise ConfigError(
                f"{phrase} has attenuator_range_db, but the driver {switch.driver} sets no attenuators: remove "
                f"attenuator_range_db, or use a driver that sets them ({able})."
            )
    _check_optics(config)


def _for_clients(config: Config) -> dict[str, str]:
    """Return the addresses that serve clients."""
    found = {"controller.thrift": config.controller.thrift}
    return found if config.controller.http is None else {**found, "controller.http": config.controller.http}


def _check_certificate_names(config: Config) -> None:
    known = {rack.datapath.lower() for rack in config.rack}
    for datapath in config.openflow.certificate_names:
        if datapath.lower() not in known:
            raise ConfigError(
                f"openflow.certificate_names names the datapath {datapath!r}, which no rack has: "
                "correct the datapath or remove it."
            )


def _check_optics(config: Config) -> None:
    try:
        config.build_fabric()
    except IncompleteOpticsError as error:
        raise ConfigError(str(error)) from error


def _tor_ports(config: Config) -> Iterable[str]:
    for rack in config.rack:
        ports = [*(h.port for h in rack.hosts), *(p.port for p in rack.optical_ports)]
        ports += [end.port for end in static_ends(config) if end.rack == rack.name and end.port is not None]
        yield from (f"{port} of datapath {rack.datapath.lower()}" for port in ports)


def _checkstatic_ends(config: Config) -> None:
    racks, hosts = {r.name for r in config.rack}, {h.name for r in config.rack for h in r.hosts}
    for tree in config.static_tree:
        for end in (tree.root, *tree.leaves):
            known = end.rack in racks if end.rack is not None else end.host in hosts
            if not known:
                raise ConfigError(
                    f"the static tree {tree.name} ends at {end.rack or end.host}, which is not "
                    "configured: add it or correct the name."
                )
        _unique(f"leaf of the static tree {tree.name}", (str(end.rack or end.host) for end in tree.leaves))


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
        inputs += [(splitter.optical_switch, output, f"splitter {splitter.name}") for output in splitter.outputs]
    for side, uses in (("input", inputs), ("output", outputs)):
        users: dict[tuple[str, int], str] = {}
        for switch, number, user in uses:
            if switch not in sizes:
                raise ConfigError(
                    f"{user} names the optical switch {switch!r}, which is not configured: add an "
                    "[[optical_switch]] or correct the name."
                )
            if number > getattr(sizes[switch], f"{side}s"):
                raise ConfigError(
                    f"{user} uses {side} {number} of {switch}, which has only {getattr(sizes[switch], side + 's')}."
                )
            if (switch, number) in users:
                raise ConfigError(f"{side} {number} of {switch} is used twice: by {users[switch, number]} and {user}.")
            users[switch, number] = user


def _unique(kind: str, names: Iterable[str]) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ConfigError(f"the {kind} {twice[0]} is used twice.")
