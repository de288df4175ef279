"""Commands of the core: data only. Shells execute them and answer with events (`events.py`).

Every change to a device has its reservation and step; the shell answers each (reservation, step) exactly once, with a
confirmation or a failure, whatever happens to the device.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from algorithms.scheduling.contention import Contention
from blast_controller.core.model.fabric import CrossConnect
from blast_controller.core.model.identifiers import DatapathId, Device, SwitchId
from blast_controller.core.model.records import Record
from blast_controller.core.model.requests import RequestEvent, RequestKey


@dataclass(frozen=True, slots=True, order=True)
class Forward:
    """A forwarding a ToR must do for a group.

    IPv4 packets that arrive on OpenFlow port `in_port` from address `source` to the group address `group` leave by
    exactly the ports `outputs`.
    """

    in_port: int
    source: str
    group: str
    outputs: tuple[int, ...]

    @property
    def key(self) -> tuple[int, str, str]:
        """Return the match of the rule: adding a forward replaces the one with the same key."""
        return (self.in_port, self.source, self.group)


@dataclass(frozen=True, slots=True)
class CircuitChange:
    """One reservation's share of a change to an optical switch; `connect` lists roots before leaves.

    `leaves` are the outputs at which light must arrive afterwards, where the switch can measure it. The switch rejects
    the share as a whole if a circuit that a reservation in `after` gives up in the same command could not be
    disconnected: light of one reservation would reach the leaves of the other.
    """

    reservation: int
    step: int
    disconnect: tuple[CrossConnect, ...] = ()
    connect: tuple[CrossConnect, ...] = ()
    leaves: tuple[int, ...] = ()
    after: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class ForwardingChange:
    """One reservation's share of a change to a ToR's rules. `add` replaces rules with the same key."""

    reservation: int
    step: int
    remove: tuple[Forward, ...] = ()
    add: tuple[Forward, ...] = ()


@dataclass(frozen=True, slots=True)
class SetCircuits:
    """Everything one decision changes on one optical switch: at most one delete and one connect command."""

    switch: SwitchId
    changes: tuple[CircuitChange, ...]


@dataclass(frozen=True, slots=True)
class SetForwarding:
    """Everything one decision changes on one ToR: rules, then one barrier."""

    datapath: DatapathId
    changes: tuple[ForwardingChange, ...]


@dataclass(frozen=True, slots=True)
class Publish:
    """Notify clients that wait for this request; `last`: no further events follow."""

    request: RequestKey
    event: RequestEvent
    last: bool = False


@dataclass(frozen=True, slots=True)
class ReadDevice:
    """Read what a device holds, and answer by CircuitsObserved or TableObserved; a dry run writes nothing at all."""

    device: Device
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class SendProbe:
    """Send a probe frame with this payload from a ToR's port; ProbeReceived reports its arrival at any port."""

    datapath: DatapathId
    port: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class Announce:
    """Notify clients that wait for this topic (an audit's number, a fiber check's name)."""

    topic: Hashable
    content: object


@dataclass(frozen=True, slots=True)
class Optimize:
    """Compute, within `seconds`, which of the contending parts to serve first.

    Each revision is answered once by Optimized, with an empty answer if none was found.
    """

    revision: int
    contention: Contention
    seconds: float


Command = Record | SetCircuits | SetForwarding | ReadDevice | SendProbe | Publish | Announce | Optimize
