"""The model of Polatis switches at each port: labels, power meters, attenuators and alarms."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import NamedTuple
from xml.etree.ElementTree import Element

from optical_switch.errors import ProtocolError
from optical_switch.model import Alarm, Port, PortDescription, PowerReading
from optical_switch.netconf.markup import child, children, element, local_name, text, value
from optical_switch.netconf.polatis import OPTICAL_SWITCH, POLATIS_SWITCH, PortNumbering
from optical_switch.printable import printable

STREAM = "Polatis"
"""Stream of the notifications (module `polatis-switch`, leaf `mask-notification`)."""

_DECIMAL = re.compile(r"[+-]?[0-9]{1,17}(?:\.[0-9]{1,18})?")
"""A decimal64 of YANG (RFC 6020, section 9.3)."""


class AttenuationMode(StrEnum):
    """Modes of an attenuator (`atten-mode`)."""

    NONE = "VOA_MODE_NONE"
    """It does not attenuate."""
    RELATIVE = "VOA_MODE_RELATIVE"
    """It limits the power to the level above that of the reference port, in dB."""
    ABSOLUTE = "VOA_MODE_ABSOLUTE"
    """It limits the power to the level, in dBm."""
    CONVERGED = "VOA_MODE_CONVERGED"
    """It limits the power to the level, in dBm, and then stays as it is."""
    MAXIMUM = "VOA_MODE_MAXIMUM"
    """It attenuates as much as it can."""
    FIXED = "VOA_MODE_FIXED"
    """It stays as it is."""


class Attenuation(NamedTuple):
    """The setting of an attenuator; the level counts in the modes that have one."""

    port: Port
    mode: AttenuationMode
    level: float = 0.0


_LEVELED = {AttenuationMode.RELATIVE, AttenuationMode.ABSOLUTE, AttenuationMode.CONVERGED}
"""Modes in which an attenuator has a level."""


class _AlarmKind(NamedTuple):
    condition: str
    severity: str
    cleared: bool


_POWER_ALARMS = {
    "port-power-alarm": _AlarmKind("port-power-alarm", "alarm", cleared=False),
    "port-power-clear": _AlarmKind("port-power-alarm", "alarm", cleared=True),
    "port-power-warn-alarm": _AlarmKind("port-power-warn-alarm", "warn", cleared=False),
    "port-power-warn-clear": _AlarmKind("port-power-warn-alarm", "warn", cleared=True),
}
"""Notifications about power at a port; one that clears has the condition of the alarm that it ends."""


# ---------------------------------------------------------------------------------------------------------- ports


def ports_filter() -> str:
    """Return the filter that reads the labels of all ports."""
    port = element("port", element("port-id"), element("label"))
    return element("port-config", port, namespace=OPTICAL_SWITCH)


def read_ports(data: Element, numbering: PortNumbering) -> list[PortDescription]:
    """Return the ports of a reading with their labels. Raises ProtocolError."""
    found = (
        (numbering.read_port(one, "port-id"), value(one, "label", OPTICAL_SWITCH)) for one in _of(data, "port-config")
    )
    return [PortDescription(port, str(numbering.number(port)), printable(label)) for port, label in found]


def powers_filter() -> str:
    """Return the filter that reads all power meters."""
    return element("opm-power", namespace=OPTICAL_SWITCH)


def read_powers(data: Element, numbering: PortNumbering) -> list[PowerReading]:
    """Return the power at each port of a reading that has one. Raises ProtocolError."""
    measured = (one for one in _of(data, "opm-power") if value(one, "power", OPTICAL_SWITCH))
    return [PowerReading(numbering.read_port(one, "port-id"), _decimal(one, "power")) for one in measured]


# ---------------------------------------------------------------------------------------------------- attenuators


def attenuators_filter() -> str:
    """Return the filter that reads all attenuators."""
    return element("voa", namespace=OPTICAL_SWITCH)


def read_attenuators(data: Element, numbering: PortNumbering) -> list[Attenuation]:
    """Return the setting of each attenuator of a reading. Raises ProtocolError."""
    return [_attenuation(one, numbering) for one in _of(data, "voa")]


def attenuators_edit(settings: Iterable[Attenuation], numbering: PortNumbering) -> str:
    """Return the edit that sets attenuators."""
    return element("voa", *(_voa_port(one, numbering) for one in settings), namespace=OPTICAL_SWITCH)


def limits(levels: Mapping[int, float | None]) -> list[Attenuation]:
    """Return the settings that limit the power at outputs to levels in dBm; None is no limit.

    The mode is ABSOLUTE. RELATIVE needs a power meter at the input to which the output happens to be connected, and has
    no meaning at an output without a circuit; the sensitivity and overload limits of receivers are absolute as well.
    """
    return [
        Attenuation(Port("out", output), AttenuationMode.NONE)
        if level is None
        else Attenuation(Port("out", output), AttenuationMode.ABSOLUTE, level)
        for output, level in levels.items()
    ]


def _voa_port(setting: Attenuation, numbering: PortNumbering) -> str:
    leaves = element("port-id", text(numbering.number(setting.port))) + element("atten-mode", setting.mode.value)
    if setting.mode in _LEVELED:
        leaves += element("atten-level", f"{setting.level:.2f}")
    return element("port", leaves)


def _attenuation(found: Element, numbering: PortNumbering) -> Attenuation:
    # Both leaves have defaults, which a device may leave out (RFC 6243).
    level = _decimal(found, "atten-level") if value(found, "atten-level", OPTICAL_SWITCH) else 0.0
    return Attenuation(numbering.read_port(found, "port-id"), _mode(found), level)


def _mode(found: Element) -> AttenuationMode:
    mode = value(found, "atten-mode", OPTICAL_SWITCH)
    try:
        return AttenuationMode(mode) if mode else AttenuationMode.NONE
    except ValueError as error:
        message = f"the switch reports {printable(mode)} as atten-mode, which its model does not define"
        raise ProtocolError(message) from error


# --------------------------------------------------------------------------------------------------------- alarms


def read_alarm(event: Element, numbering: PortNumbering) -> Alarm | None:
    """Return the alarm that a notification reports, or None if it is none."""
    name = local_name(event)
    if event.tag == f"{{{OPTICAL_SWITCH}}}aps-notification":
        # Protection switching changes circuits.
        details = value(event, "notification-details", OPTICAL_SWITCH)
        return Alarm(None, "aps", printable(details) or name)
    if event.tag == f"{{{POLATIS_SWITCH}}}system-error":
        code = f"{value(event, 'error-code', POLATIS_SWITCH)}: {value(event, 'message', POLATIS_SWITCH)}"
        return Alarm(None, "system", printable(code), printable(value(event, "switch-status", POLATIS_SWITCH)))
    if event.tag == f"{{{POLATIS_SWITCH}}}{name}" and (kind := _POWER_ALARMS.get(name)) is not None:
        port = numbering.read_port(event, "port-id", POLATIS_SWITCH)
        return Alarm(port, str(numbering.number(port)), kind.condition, kind.severity, kind.cleared)
    return None


def _of(data: Element, container: str) -> Iterator[Element]:
    found = child(data, container, OPTICAL_SWITCH)
    return iter(()) if found is None else children(found, "port", OPTICAL_SWITCH)


def _decimal(parent: Element, leaf: str) -> float:
    number = value(parent, leaf, OPTICAL_SWITCH)
    if not _DECIMAL.fullmatch(number):
        raise ProtocolError(f"the switch reports {printable(number)} as {leaf}, which is no number")
    return float(number)
