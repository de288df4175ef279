"""Sessions to a switch with each value of a setting that only reading commands show: dialect, origin, port counts."""

from __future__ import annotations

import typing
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from blast_base.settings import Section
from blast_controller.cli.switch.probe.failures import distrusts_host_key, refuses_login
from blast_controller.cli.switch.probe.readings import SwitchReadings, read_ports, read_switch
from blast_controller.cli.switch.probe.settings import SwitchTable
from blast_controller.configuration.config import AnySwitchSection, ConfigError, OpticalSwitchSection
from blast_controller.configuration.schema import SchemaError, checked
from blast_controller.configuration.switch_access import read_access
from optical_switch.errors import DeviceBusyError, OpticalSwitchError
from optical_switch.model import PortDescription
from optical_switch.printable import printable
from optical_switch.session import SwitchSession
from optical_switch.sonic_ocs.model import Origin
from tl1_driver.dialects import DIALECTS

UNCOUNTED = 65_534
"""Number of inputs that stands for an unknown one: the driver for NETCONF then reports all ports of the switch, which
numbers them up to 65535, as inputs. The other drivers do not use it."""


@dataclass(frozen=True, slots=True)
class SwitchFit:
    """A table with which a session is possible, and its readings.

    Parameters
    ----------
    table : SwitchTable
        The table, with the values that were found.
    summary : str
        How the switch is reached.
    readings : SwitchReadings
        The state of the switch.
    halved : bool
        True if it is assumed that half of its ports are inputs.
    """

    table: SwitchTable
    summary: str
    readings: SwitchReadings
    halved: bool = False


class NoFitError(Exception):
    """No value of a setting leads to a session; `reasons` are the errors by the value."""

    def __init__(self, reasons: Mapping[str, OpticalSwitchError | ConfigError]) -> None:
        super().__init__("; ".join(f"{value}: {printable(str(error))}" for value, error in reasons.items()))
        self.reasons = reasons


class _Tables(Section):
    optical_switch: AnySwitchSection


async def fitting_tables(table: SwitchTable) -> list[SwitchFit]:
    """Return all tables with which a session is possible, the first one first.

    Parameters
    ----------
    table : SwitchTable
        A table that may lack the dialect, the origin and the numbers of ports.

    Returns
    -------
    list[SwitchFit]
        At least one.

    Raises
    ------
    NoFitError
        If there is none.
    OpticalSwitchError
        If the switch refuses the login, presents an untrusted host key, or takes no session: it was not tried again.
    """
    found: list[SwitchFit] = []
    reasons: dict[str, OpticalSwitchError | ConfigError] = {}
    for variant in variants(table):
        try:
            found.append(await _attempt({**table, **variant}))
        except (OpticalSwitchError, ConfigError) as error:
            if isinstance(error, DeviceBusyError) or refuses_login(error) or distrusts_host_key(error):
                raise
            reasons[" ".join(variant.values())] = error
            continue
        if "dialect" not in variant:
            # Both origins lead to the same tables. Dialects are all tried: some differ only in changes.
            break
    if not found:
        raise NoFitError(reasons)
    return found


def variants(table: Mapping[str, object]) -> list[dict[str, str]]:
    """Return the settings to try; the empty one if nothing is left open."""
    match table.get("driver"):
        case "tl1" if "dialect" not in table:
            return [{"dialect": name} for name in DIALECTS]
        case "sonic-ocs" if "origin" not in table and table.get("access", "gnmi") == "gnmi":
            return [{"origin": origin} for origin in typing.get_args(Origin)]
    return [{}]


def read_section(table: SwitchTable) -> OpticalSwitchSection:
    """Return a table as the controller reads it. Raises ConfigError."""
    try:
        section = checked(_Tables, {"optical_switch": table}).optical_switch
    except SchemaError as error:
        raise ConfigError(str(error)) from error
    for fault in section.faults(section.target().phrase):
        raise ConfigError(fault)
    return section


async def _attempt(table: SwitchTable) -> SwitchFit:
    section = read_section({"inputs": UNCOUNTED, "outputs": UNCOUNTED, **table})
    async with _session(section) as session:
        ports, refusal = await read_ports(session)
        if "inputs" in table or not _are_numbered_through(ports):
            readings = await read_switch(session, ports)
            refusals = tuple(filter(None, [refusal, *readings.refusals]))
            return SwitchFit(table, section.summary, replace(readings, refusals=refusals))
    inputs = max(port.port.number for port in ports) // 2
    fit = await _attempt({**table, "inputs": inputs, "outputs": max(port.port.number for port in ports) - inputs})
    return replace(fit, halved=True)


def _are_numbered_through(ports: Sequence[PortDescription]) -> bool:
    """Return true if the outputs of a switch follow its inputs, so that all ports look like inputs."""
    return len(ports) > 1 and all(port.port.side == "in" for port in ports)


@asynccontextmanager
async def _session(section: OpticalSwitchSection) -> AsyncIterator[SwitchSession]:
    session = read_access(section).new_session()
    await session.open()
    try:
        yield session
    finally:
        await session.close()
