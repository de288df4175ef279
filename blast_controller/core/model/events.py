"""Events for the core: data only, from shells (devices, RPC) or a simulator."""

from __future__ import annotations

from dataclasses import dataclass

from algorithms.scheduling.contention import Chosen
from blast_controller.core.model.commands import Forward
from blast_controller.core.model.fabric import CrossConnect
from blast_controller.core.model.identifiers import DatapathId, Device, ElementId, SwitchId
from blast_controller.core.model.requests import Extension, MulticastRequest, RequestKey, TransferReport
from blast_controller.core.model.settings import CoreSettings


@dataclass(frozen=True, slots=True)
class DeviceConnected:
    """The session to a device is established.

    `circuits` are the cross-connects found on an optical switch; `rules` the forwards of ours found on a ToR, each
    with its reservation.
    """

    device: Device
    circuits: frozenset[CrossConnect] = frozenset()
    rules: frozenset[tuple[int, Forward]] = frozenset()


@dataclass(frozen=True, slots=True)
class TableObserved:
    """The rules of a ToR were read: those of Blast, and the number of foreign ones."""

    datapath: DatapathId
    rules: frozenset[tuple[int, Forward]]
    foreign: int

    @property
    def device(self) -> Device:
        """Return the ToR."""
        return self.datapath


@dataclass(frozen=True, slots=True)
class CircuitsObserved:
    """An optical switch's cross-connects were read again."""

    switch: SwitchId
    circuits: frozenset[CrossConnect]

    @property
    def device(self) -> Device:
        """Return the optical switch."""
        return self.switch


@dataclass(frozen=True, slots=True)
class PortChanged:
    """A ToR's optical port has, or has lost, its link."""

    datapath: DatapathId
    port: int
    up: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ProbeReceived:
    """A probe frame with this payload arrived by a ToR's optical port."""

    datapath: DatapathId
    port: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class DeviceDisconnected:
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
    """The device refused, timed out or is disconnected. Its progress with the step is unknown."""

    device: Device
    reservation: int
    step: int
    reason: str


@dataclass(frozen=True, slots=True)
class LightNotDetected:
    """The device completed (reservation, step), but no light arrived at these outputs in time."""

    device: Device
    reservation: int
    step: int
    outputs: frozenset[int]


@dataclass(frozen=True, slots=True)
class LightAlarmRaised:
    """An optical switch sees no light at an output that should have some."""

    switch: SwitchId
    output: int
    reason: str = ""


@dataclass(frozen=True, slots=True)
class CircuitFailed:
    """An optical switch reports that a cross-connect which it had set has failed."""

    circuit: CrossConnect
    reason: str


@dataclass(frozen=True, slots=True)
class LossMeasured:
    """An optical switch measured the insertion loss of a cross-connect, within `accuracy`; both in dB."""

    circuit: CrossConnect
    loss: float
    accuracy: float


@dataclass(frozen=True, slots=True)
class DecisionTimed:
    """The shell measured how many seconds the latest decision took."""

    elapsed: float


@dataclass(frozen=True, slots=True)
class TimePassed:
    """Time has passed; due deadlines are handled."""


@dataclass(frozen=True, slots=True)
class RequestSubmitted:
    """An application asks. The same key and content again makes no second request.

    `attached`: it waits on a connection, and the request is given up when that breaks before the grant, unless it was
    asked for without, too, before or after.
    """

    request: MulticastRequest
    attached: bool = False


@dataclass(frozen=True, slots=True)
class ExtendRequested:
    """An application wants a pending or active request changed."""

    request: RequestKey
    extension: Extension


@dataclass(frozen=True, slots=True)
class ProgressReported:
    """A sender has sent the first `reached` bytes of a part and need not send them again."""

    request: RequestKey
    part: int
    reached: int


@dataclass(frozen=True, slots=True)
class FinishRequested:
    """An application has sent all bytes of this part, optionally with a report."""

    request: RequestKey
    part: int
    report: TransferReport | None = None


@dataclass(frozen=True, slots=True)
class WithdrawRequested:
    """An application, or `by` on its behalf, withdraws the request."""

    request: RequestKey
    by: str = "the client"


@dataclass(frozen=True, slots=True)
class ClientsVanished:
    """The connections that waited for the first grants of these requests closed.

    This is one event for all that closed together. Requests that were also submitted with `submit` stay.
    """

    requests: tuple[RequestKey, ...]


@dataclass(frozen=True, slots=True)
class ElementQuarantined:
    """An operator quarantines an element; reservations that use it continue."""

    element: ElementId
    reason: str


@dataclass(frozen=True, slots=True)
class ElementReleased:
    """An operator brings a quarantined element back."""

    element: ElementId


@dataclass(frozen=True, slots=True)
class DrainRequested:
    """An operator starts or ends draining; active requests end by themselves."""

    on: bool


@dataclass(frozen=True, slots=True)
class AuditRequested:
    """An operator wants every device read and compared; unless it is a dry run, differences are repaired."""

    dry_run: bool


@dataclass(frozen=True, slots=True)
class VerifyRequested:
    """An operator starts a check of the free fibers with probe frames.

    `nonce` (16 to 64 random bytes) makes the probes unpredictable. `seconds` is the longest wait for
    disconnected devices.
    """

    nonce: bytes
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class OperatorActed:
    """An operator's successful action: `by` is the operator, `did` the action."""

    by: str
    did: str


@dataclass(frozen=True, slots=True)
class Optimized:
    """The optimizer's answer for this revision: the parts to serve first (empty: no preference)."""

    revision: int
    chosen: tuple[Chosen, ...] = ()


@dataclass(frozen=True, slots=True)
class SettingsChanged:
    """The operator has changed what concerns decisions yet to be made."""

    settings: CoreSettings


ApplicationEvent = (
    RequestSubmitted | ExtendRequested | ProgressReported | FinishRequested | WithdrawRequested | ClientsVanished
)
OperatorEvent = (
    ElementQuarantined
    | ElementReleased
    | DrainRequested
    | AuditRequested
    | VerifyRequested
    | SettingsChanged
    | OperatorActed
)
DeviceEvent = (
    DeviceConnected
    | DeviceDisconnected
    | StepConfirmed
    | StepFailed
    | LightNotDetected
    | LightAlarmRaised
    | CircuitFailed
    | LossMeasured
    | TableObserved
    | CircuitsObserved
    | PortChanged
    | ProbeReceived
)
Event = ApplicationEvent | OperatorEvent | DeviceEvent | Optimized | DecisionTimed | TimePassed
