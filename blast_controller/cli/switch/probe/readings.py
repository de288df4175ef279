"""Everything that a session reads, and the number of ports that follows from it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from optical_switch.errors import RefusedError
from optical_switch.model import Circuit, CircuitReading, Port, PortDescription, Side
from optical_switch.printable import printable
from optical_switch.session import Capabilities, SwitchSession

T = TypeVar("T")


class PortTotals(NamedTuple):
    """Numbers of inputs and of outputs."""

    inputs: int
    outputs: int


@dataclass(frozen=True, slots=True)
class SwitchReadings:
    """The state of a switch.

    Parameters
    ----------
    capabilities : Capabilities
        What the device can do.
    ports : Sequence[PortDescription]
        Ports that the device names.
    circuits : Sequence[CircuitReading]
        All circuits.
    powers : dict[Port, float]
        Measured powers in dBm.
    losses : dict[Circuit, float]
        Measured insertion losses in dB.
    refusals : tuple[str, ...]
        Readings that the device refused.
    """

    capabilities: Capabilities
    ports: Sequence[PortDescription] = ()
    circuits: Sequence[CircuitReading] = ()
    powers: dict[Port, float] = field(default_factory=dict)
    losses: dict[Circuit, float] = field(default_factory=dict)
    refusals: tuple[str, ...] = ()

    @property
    def counts(self) -> PortTotals:
        """The largest port numbers that the device names; 0: it names none."""
        found = [*(one.port for one in self.ports), *self.powers]
        found += [port for one in self.circuits for port in _ends(one.circuit)]
        return PortTotals(_largest(found, "in"), _largest(found, "out"))


async def read_ports(session: SwitchSession) -> tuple[Sequence[PortDescription], str]:
    """Return the ports that the switch names, and its refusal to do so, if any."""
    return await _read("ports", session.read_ports)


async def read_switch(session: SwitchSession, ports: Sequence[PortDescription]) -> SwitchReadings:
    """Read the circuits and everything that is measured.

    Parameters
    ----------
    session : SwitchSession
        Open session.
    ports : Sequence[PortDescription]
        Ports, which were read before.

    Returns
    -------
    SwitchReadings
        The readings.

    Raises
    ------
    OpticalSwitchError
        If the circuits cannot be read, or the session ends.
    """
    circuits = await session.read_circuits()
    powers, no_powers = await _read("powers", session.read_powers)
    losses, no_losses = await _read("losses", session.read_losses)
    return SwitchReadings(
        session.capabilities,
        ports,
        circuits,
        {reading.port: reading.dbm for reading in powers},
        {reading.circuit: reading.db for reading in losses},
        tuple(filter(None, [no_powers, no_losses])),
    )


async def _read(name: str, read: Callable[[], Awaitable[Sequence[T]]]) -> tuple[Sequence[T], str]:
    try:
        return await read(), ""
    except RefusedError as error:
        # It is printed, and written into the configuration file as a comment.
        return (), f"the switch refuses to report {name}: {printable(str(error))}"


def _ends(circuit: Circuit) -> tuple[Port, Port]:
    return Port("in", circuit.input), Port("out", circuit.output)


def _largest(ports: Sequence[Port], side: Side) -> int:
    return max((port.number for port in ports if port.side == side), default=0)
