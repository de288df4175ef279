"""What the world tells the core: data only, from shells (devices, RPC) or from a simulator."""

from __future__ import annotations

from dataclasses import dataclass

from blast_controller.core.fabric import CrossConnect

Device = str | int
"""An optical switch by its name, or a ToR by its datapath id."""


@dataclass(frozen=True, slots=True)
class DeviceUp:
    """The session to a device is established. `circuits` are the cross-connects found on an optical switch."""

    device: Device
    circuits: frozenset[CrossConnect] = frozenset()


@dataclass(frozen=True, slots=True)
class DeviceDown:
    """The session to a device is lost."""

    device: Device
    reason: str


@dataclass(frozen=True, slots=True)
class StepConfirmed:
    """The device did all that (reservation, step) asked; `elapsed` is seconds from command to confirmation."""

    device: Device
    reservation: int
    step: int
    elapsed: float


@dataclass(frozen=True, slots=True)
class StepFailed:
    """The device refused, did not answer in time, or is away. What it did of the step is unknown."""

    device: Device
    reservation: int
    step: int
    reason: str
