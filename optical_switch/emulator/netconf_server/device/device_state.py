"""State that a device reports beside its configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from optical_switch.emulator.light import DARK_DBM
from optical_switch.emulator.netconf_server.data.schema import Tree, decimal_text, entries_of, subtree
from optical_switch.emulator.netconf_server.device.events import STREAM_NAMES
from optical_switch.model import Port


@dataclass(frozen=True, slots=True)
class PortNumbers:
    """The numbers of the device: ingress ports first, then egress ports."""

    inputs: int
    outputs: int

    @property
    def all_ports(self) -> list[Port]:
        """All ports, by number."""
        sides: Sequence[Port] = [Port("in", number) for number in range(1, self.inputs + 1)]
        return [*sides, *(Port("out", number) for number in range(1, self.outputs + 1))]

    def number(self, port: Port) -> int:
        """Return the number of a port on the device."""
        return port.number if port.side == "in" else self.inputs + port.number

    def port(self, number: int) -> Port:
        """Return the port with a number on the device."""
        return Port("in", number) if number <= self.inputs else Port("out", number - self.inputs)


@dataclass(frozen=True, slots=True)
class DeviceReadings:
    """Readings of the hardware: power at each lit port, ports that have failed, and ports that are disabled."""

    powers: Mapping[Port, float]
    failed: frozenset[Port]
    disabled: frozenset[Port]

    def status(self, port: Port) -> str:
        """Return the status of a port as `port-config` shows it."""
        if port in self.failed:
            return "FAILED"
        return "DISABLED" if port in self.disabled else "ENABLED"

    def power(self, port: Port) -> str:
        """Return the power at a port in dBm, as text."""
        return decimal_text(self.powers.get(port, DARK_DBM))


PRODUCT = {
    "manufacturer": "Polatis",
    "serial-number": "0000000001",
    "model-name": "Emulated optical switch",
    "software-version": "6.7.1.4",
}
"""Leaves of `product-information`."""


def add_state(tree: Tree, numbers: PortNumbers, readings: DeviceReadings) -> None:
    """Add the state of the device to its configuration."""
    labels = entries_of(tree, "port-config", "port")
    configured = subtree(subtree(tree, "port-config"), "port")
    powers = subtree(subtree(tree, "opm-power"), "port")
    deprecated = subtree(subtree(tree, "ports"), "port")
    for port in numbers.all_ports:
        key = str(numbers.number(port))
        status, power = readings.status(port), readings.power(port)
        subtree(configured, key)["status"] = status
        powers[key] = {"port-id": key, "power": power}
        deprecated[key] = {
            "port-id": key,
            "port-label": labels[key].get("label", ""),
            "port-state": "PC_DISABLED" if port in readings.disabled else "PC_ENABLED",
            "port-status": f"PO_{status}",
            "peer-port": labels[key].get("peer-port", ""),
            "opm": {"power": power},
        }
    tree["product-information"] = dict(PRODUCT)
    streams = subtree(subtree(subtree(tree, "netconf"), "streams"), "stream")
    for name, description in STREAM_NAMES.items():
        streams[name] = {"name": name, "description": description, "replaySupport": "false"}
