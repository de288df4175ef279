"""What the world tells the core: data only, from shells (devices, RPC) or from a simulator."""

from __future__ import annotations

from dataclasses import dataclass

from blast_controller.core.fabric import CrossConnect
from blast_controller.core.requests import Extension, MulticastRequest, RequestKey

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


@dataclass(frozen=True, slots=True)
class DecisionTimed:
    """The shell measured how many seconds the latest decision took."""

    elapsed: float


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed; due deadlines are handled."""


@dataclass(frozen=True, slots=True)
class RequestSubmitted:
    """An application asks. The same key and content again changes nothing."""

    request: MulticastRequest


@dataclass(frozen=True, slots=True)
class ExtensionAsked:
    """An application wants a pending or active request changed."""

    request: RequestKey
    extension: Extension


@dataclass(frozen=True, slots=True)
class FinishAsked:
    """An application has sent all bytes of this part."""

    request: RequestKey
    part: int


@dataclass(frozen=True, slots=True)
class WithdrawAsked:
    """An application gives the request up."""

    request: RequestKey


@dataclass(frozen=True, slots=True)
class ClientVanished:
    """The connection that waited for this request's first grant is gone."""

    request: RequestKey


@dataclass(frozen=True, slots=True)
class ElementQuarantined:
    """An operator takes an element out of use; what it serves now goes on."""

    element: str
    reason: str


@dataclass(frozen=True, slots=True)
class ElementReleased:
    """An operator brings a quarantined element back."""

    element: str


ApplicationEvent = RequestSubmitted | ExtensionAsked | FinishAsked | WithdrawAsked | ClientVanished
OperatorEvent = ElementQuarantined | ElementReleased
DeviceEvent = DeviceUp | DeviceDown | StepConfirmed | StepFailed
Event = ApplicationEvent | OperatorEvent | DeviceEvent | DecisionTimed | Tick
