"""The part of the modules `optical-switch` and `polatis-switch` that the device has, for its numbers of ports.

Ingress ports are 1 to N, egress ports N + 1 to N + M. Every port has an entry in `port-config` and `opm-alarm-config`,
every egress port one in `voa`. The deprecated container `ports` can be read only: clients edit `port-config`.
"""

from __future__ import annotations

from collections.abc import Mapping

from optical_switch.emulator.netconf_server.data.schema import (
    Model,
    ModelContainer,
    ModelLeaf,
    ModelList,
    ModelNode,
    decimal_number,
    number_among,
    one_of,
    printable_ascii,
    whole_number,
)
from optical_switch.emulator.netconf_server.messages.names import POLATIS_SWITCH, STREAMS

MAX_PORT = 65535
"""The upper end of `portFormat`."""
MAX_UINT32 = (1 << 32) - 1
"""The upper end of `uint32`."""
LABEL = printable_ascii(128)
PORT = whole_number(1, MAX_PORT)
TEXT = str
"""Check of state that the device itself has written."""

LEVEL_MODES = frozenset({"VOA_MODE_ABSOLUTE", "VOA_MODE_RELATIVE", "VOA_MODE_CONVERGED"})
"""Modes of an attenuator that have a level."""

KEYS = {"port": "port-id", "pair": "ingress", "stream": "name"}
"""Key of each list. A reply has the key of each entry of which it has a part."""


def config_model(inputs: int, outputs: int) -> Model:
    """Return the model of the configuration."""
    ingress = number_among(range(1, inputs + 1), PORT, "ingress port")
    egress = number_among(range(inputs + 1, inputs + outputs + 1), PORT, "egress port")
    ports = number_among(range(1, inputs + outputs + 1), PORT, "port")
    all_ports = tuple(map(str, range(1, inputs + outputs + 1)))
    pair = ModelList("ingress", {"ingress": ModelLeaf(ingress), "egress": ModelLeaf(egress)})
    labels = {"port-id": ModelLeaf(ports), "label": ModelLeaf(LABEL, ""), "peer-port": ModelLeaf(LABEL, "")}
    alarms = {"port-id": ModelLeaf(ports), **_ALARM_LEAVES}
    attenuators = {"port-id": ModelLeaf(egress), **_ATTENUATOR_LEAVES}
    return Model(
        {
            "port-config": _list_of_ports(labels, all_ports),
            "opm-alarm-config": _list_of_ports(alarms, all_ports),
            "voa": _list_of_ports(attenuators, all_ports[inputs:]),
            "cross-connects": ModelContainer({"pair": pair}),
            "system-config": ModelContainer(_SYSTEM_NODES),
        }
    )


def state_model(config: Model) -> Model:
    """Return the model of everything that can be read: the configuration and the state of the device."""
    ports = config.children["port-config"]
    assert isinstance(ports, ModelContainer)
    port = ports.children["port"]
    assert isinstance(port, ModelList)
    status = ModelLeaf(TEXT)
    with_status = {"port-id": port.children["port-id"], "status": status, **port.children}
    power = {"port-id": ModelLeaf(TEXT), "power": ModelLeaf(TEXT)}
    deprecated = {name: ModelLeaf(TEXT) for name in ("port-id", "port-label", "port-state", "port-status", "peer-port")}
    monitor = ModelContainer({"power": ModelLeaf(TEXT)})
    return Model(
        {
            "product-information": ModelContainer(
                {name: ModelLeaf(TEXT) for name in ("manufacturer", "serial-number", "model-name", "software-version")}
            ),
            **config.children,
            "port-config": _list_of_ports(with_status, port.fixed),
            "opm-power": _list_of_ports(power, ()),
            "ports": _list_of_ports({**deprecated, "opm": monitor}, ()),
            "netconf": _STREAM_NODES,
        }
    )


def _list_of_ports(children: Mapping[str, ModelNode], fixed: tuple[str, ...]) -> ModelContainer:
    return ModelContainer({"port": ModelList("port-id", children, fixed)})


def _has_level(leaves: Mapping[str, str]) -> bool:
    return leaves.get("atten-mode") in LEVEL_MODES


def _is_relative(leaves: Mapping[str, str]) -> bool:
    return leaves.get("atten-mode") == "VOA_MODE_RELATIVE"


_ALARM_LEAVES = {
    "mode": ModelLeaf(one_of("POWER_ALARM_DISABLED", "POWER_ALARM_ENABLED"), "POWER_ALARM_DISABLED"),
    "signal-low-threshold": ModelLeaf(decimal_number(), "-60.0"),
    "signal-degrade-threshold": ModelLeaf(decimal_number(), "-60.0"),
    "signal-high-threshold": ModelLeaf(decimal_number(), "25.0"),
    "alarm-clear-holdoff": ModelLeaf(whole_number(0, MAX_UINT32), "0"),
}

_MODES = [f"VOA_MODE_{name}" for name in ("NONE", "RELATIVE", "ABSOLUTE", "CONVERGED", "MAXIMUM", "FIXED")]
_ATTENUATOR_LEAVES = {
    "atten-mode": ModelLeaf(one_of(*_MODES), "VOA_MODE_NONE"),
    "atten-level": ModelLeaf(decimal_number(), "0.0", exists=_has_level),
    "reference-port": ModelLeaf(whole_number(0, MAX_UINT32), "0", exists=_is_relative),
}

_SYSTEM_NODES: Mapping[str, ModelNode] = {
    "activity-log": ModelContainer(
        {
            "log-access": ModelLeaf(one_of("NONE", "SELF", "ALL"), "NONE"),
            "logging-enabled": ModelLeaf(one_of("true", "false"), "false"),
        }
    ),
    "alarm-clear-hysteresis": ModelLeaf(decimal_number("1", "5"), "1.0"),
    "startup-mode": ModelLeaf(one_of("MODE_VOLATILE", "MODE_PRESERVE"), "MODE_PRESERVE", namespace=POLATIS_SWITCH),
}

_STREAM = {name: ModelLeaf(TEXT, namespace=STREAMS) for name in ("name", "description", "replaySupport")}
_STREAM_NODES = ModelContainer(
    {"streams": ModelContainer({"stream": ModelList("name", _STREAM, namespace=STREAMS)}, namespace=STREAMS)},
    namespace=STREAMS,
)
"""RFC 5277 section 3.4."""
