"""The interface of every driver: one session to one optical switch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

from optical_switch.errors import RefusedError
from optical_switch.model import Alarm, Circuit, CircuitReading, LossReading, PortDescription, PowerReading

LightReport = Literal["none", "powers", "states"]
"""Means by which a device reports optical power: none, power meters, or the state `connected`."""

LightCheckTime = Literal["off", "before_grant", "under_traffic"]
"""When to check for light: never, before a grant (the switch measures power at any time), or only while data flows."""

Notice = Alarm | CircuitReading | PowerReading | LossReading
"""Unsolicited reports of a device."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Properties of a device; known when its session is open.

    Parameters
    ----------
    batch_size : int | None
        Largest number of circuits in one transaction. None: no limit that the driver does not meet itself.
    one_transaction : bool
        True if deletes and adds go in one transaction. False: deletes first, then adds.
    atomic : bool
        True if a refused transaction leaves everything as it was. False: the circuits must be read after a refusal.
    confirms : bool
        True if an accepted change is in effect. False: the circuits are read until they show it.
    light : LightReport
        How the device shows light.
    measures_loss : bool
        True if it measures the insertion loss of its circuits.
    attenuates : bool
        True if it has variable attenuators: the session is an `AttenuatingSession`.
    """

    batch_size: int | None = None
    one_transaction: bool = True
    atomic: bool = True
    confirms: bool = True
    light: LightReport = "none"
    measures_loss: bool = False
    attenuates: bool = False


@dataclass(frozen=True, slots=True)
class BatchResult:
    """The outcome of a batch of circuits.

    A circuit in `refused` was named by the device and is not as asked. Without `error`, all others are as asked. With
    it the device refused the batch: the others are unchanged if the device is atomic, else unknown.

    Parameters
    ----------
    refused : Mapping[Circuit, RefusedError]
        Circuits that the device named, with its reason.
    error : RefusedError | None
        Why the others were not done. None: they were.
    """

    refused: Mapping[Circuit, RefusedError] = field(default_factory=dict)
    error: RefusedError | None = None


class SwitchSession(Protocol):
    """A session to one switch. Used by one task; the listener is called on its event loop.

    Every method but `close` and `subscribe` raises UnreachableError if the session ends or the device does not answer
    in time, and ProtocolError if what the device sends cannot be read; then the session is of no more use.
    """

    @property
    def capabilities(self) -> Capabilities:
        """Properties of the device; only after `open`."""

    async def open(self) -> None:
        """Connect and log in.

        Raises
        ------
        UnreachableError
            If no session can be opened.
        RefusedError
            If the device refuses the login.
        DeviceBusyError
            If the device takes no session now; SessionLimitError if others have all of its sessions.
        ProtocolError
            If it speaks another protocol, or an unknown version of its model.
        """

    async def close(self) -> None:
        """End the session; circuits stay."""

    async def wait_closed(self) -> str:
        """Wait until the session has ended, and return the reason."""

    async def apply(self, deletes: Sequence[Circuit], adds: Sequence[Circuit]) -> BatchResult:
        """Remove circuits, then set others.

        Parameters
        ----------
        deletes : Sequence[Circuit]
            Circuits to remove. A missing one is refused, or ignored if the device does so.
        adds : Sequence[Circuit]
            Circuits to set, in this order where the device has an order.

        Returns
        -------
        BatchResult
            What was refused.

        Raises
        ------
        SwitchUsageError
            If a circuit has a port that the device cannot have; nothing is sent.
        DeviceBusyError
            If another writer holds the device; nothing was done.
        """

    async def read_circuits(self) -> Sequence[CircuitReading]:
        """Return all circuits on the switch, also those of other clients."""

    async def read_ports(self) -> Sequence[PortDescription]:
        """Return all ports that the device names."""

    async def read_powers(self) -> Sequence[PowerReading]:
        """Return the power at every port that the device measures."""

    async def read_losses(self) -> Sequence[LossReading]:
        """Return the loss of every circuit that the device measures."""

    def subscribe(self, listener: Callable[[Notice], None]) -> None:
        """Set the function that receives what the device reports on its own; before `open`.

        Parameters
        ----------
        listener : Callable[[Notice], None]
            Function that is called on the session's event loop. It must not raise.
        """


@runtime_checkable
class AttenuatingSession(SwitchSession, Protocol):
    """A session to a switch that can have variable attenuators; `Capabilities.attenuates` is true if it has them."""

    async def set_attenuation(self, levels: Mapping[int, float | None]) -> None:
        """Limit the power that leaves outputs.

        Parameters
        ----------
        levels : Mapping[int, float | None]
            Largest power in dBm by output. None: no attenuation.

        Raises
        ------
        SwitchUsageError
            If an output does not exist, or a level is not finite; nothing is sent.
        RefusedError
            If the device refuses; unless it is atomic, some attenuators may be set.
        DeviceBusyError
            If another writer holds the device; nothing was done.
        """
