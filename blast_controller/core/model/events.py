"""What the world tells the core: data only, from shells (devices, RPC) or from a simulator."""

from __future__ import annotations

from dataclasses import dataclass

from algorithms.scheduling.contention import Chosen
from blast_controller.core.model.commands import Forward
from blast_controller.core.model.fabric import CrossConnect
from blast_controller.core.model.identifiers import DatapathId, Device, ElementId, SwitchId
from blast_controller.core.model.requests import Extension, MulticastRequest, RequestKey, TransferReport
from blast_controller.core.model.settings import CoreSettings


@dataclass(frozen=True, slots=True)
class DeviceUp:
    """The session to a device is established.

    `circuits` are the cross-connects found on an optical switch; `rules` the forwards of ours found on a ToR, each
    with its reservation.
    """

    device: Device
    circuits: frozenset[CrossConnect] = frozenset()
    rules: frozenset[tuple[int, Forward]] = frozenset()


@dataclass(frozen=True, slots=True)
class TableObserved:
    """A ToR's rules were read again: ours, and how many are somebody else's."""

    datapath: DatapathId
    rules: frozenset[tuple[int, Forward]]
    foreign: int

    @property
    def device(self) -> Device:
        """The ToR."""
        return self.datapath


@dataclass(frozen=True, slots=True)
class CircuitsObserved:
    """An optical switch's cross-connects were read again."""

    switch: SwitchId
    circuits: frozenset[CrossConnect]

    @property
    def device(self) -> Device:
        """The optical switch."""
        return self.switch


@dataclass(frozen=True, slots=True)
class PortChanged:
    """A ToR's optical port has, or has lost, its link."""

    datapath: DatapathId
    port: int
    up: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ProbeSeen:
    """A probe frame with this payload arrived by a ToR's optical port."""

    datapath: DatapathId
    port: int
    payload: bytes


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
class StepDark:
    """The device did all that (reservation, step) asked, but no light came out at these outputs in time."""

    device: Device
    reservation: int
    step: int
    outputs: frozenset[int]


@dataclass(frozen=True, slots=True)
class LightAlarm:
    """An optical switch sees no light at an output that should have some."""

    switch: SwitchId
    output: int
    reason: str = ""


@dataclass(frozen=True, slots=True)
class DecisionTimed:
    """The shell measured how many seconds the latest decision took."""

    elapsed: float


@dataclass(frozen=True, slots=True)
class Tick:
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
class ExtensionAsked:
    """An application wants a pending or active request changed."""

    request: RequestKey
    extension: Extension


@dataclass(frozen=True, slots=True)
class ProgressReported:
    """A sender says that the first `reached` bytes of a part have been sent and need not be sent again."""

    request: RequestKey
    part: int
    reached: int


@dataclass(frozen=True, slots=True)
class FinishAsked:
    """An application has sent all bytes of this part, and may say how that went."""

    request: RequestKey
    part: int
    report: TransferReport | None = None


@dataclass(frozen=True, slots=True)
class WithdrawAsked:
    """An application gives the request up, or somebody else does so for it: `by` stands in the reason."""

    request: RequestKey
    by: str = "the client"


@dataclass(frozen=True, slots=True)
class ClientsVanished:
    """The connections that waited for these requests' first grants are gone: one event for all that came together.

    What somebody has asked for by `submit`, too, stays.
    """

    requests: tuple[RequestKey, ...]


@dataclass(frozen=True, slots=True)
class ElementQuarantined:
    """An operator takes an element out of use; what it serves now goes on."""

    element: ElementId
    reason: str


@dataclass(frozen=True, slots=True)
class ElementReleased:
    """An operator brings a quarantined element back."""

    element: ElementId


@dataclass(frozen=True, slots=True)
class DrainAsked:
    """An operator wants nothing new admitted (or admitted again); what is active ends by itself."""

    on: bool


@dataclass(frozen=True, slots=True)
class AuditAsked:
    """An operator wants every device read and compared; unless it is a dry run, differences are repaired."""

    dry_run: bool


@dataclass(frozen=True, slots=True)
class VerifyAsked:
    """An operator wants the free fibers checked with probe frames.

    `nonce` is what makes the probes unguessable: 16 to 64 random bytes. Devices that are away are waited for, for at
    most `patience` seconds.
    """

    nonce: bytes
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class OperatorActed:
    """An operator has done something that was not refused; `by` says who that is, `did` what it was."""

    by: str
    did: str


@dataclass(frozen=True, slots=True)
class Optimized:
    """The optimizer's answer to the question of this revision: whom to serve first (nobody: as without)."""

    revision: int
    chosen: tuple[Chosen, ...] = ()


@dataclass(frozen=True, slots=True)
class SettingsChanged:
    """The operator has changed what concerns decisions yet to be made."""

    settings: CoreSettings


ApplicationEvent = RequestSubmitted | ExtensionAsked | ProgressReported | FinishAsked | WithdrawAsked | ClientsVanished
OperatorEvent = (
    ElementQuarantined | ElementReleased | DrainAsked | AuditAsked | VerifyAsked | SettingsChanged | OperatorActed
)
DeviceEvent = (
    DeviceUp
    | DeviceDown
    | StepConfirmed
    | StepFailed
    | StepDark
    | LightAlarm
    | TableObserved
    | CircuitsObserved
    | PortChanged
    | ProbeSeen
)
Event = ApplicationEvent | OperatorEvent | DeviceEvent | Optimized | DecisionTimed | Tick
