"""A session by NETCONF, as `optical_switch.session.SwitchSession` describes it."""

from __future__ import annotations

import asyncio
import logging
import math
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol
from xml.etree.ElementTree import Element

from optical_switch.drivers import SwitchTarget
from optical_switch.errors import (
    DeviceBusyError,
    OpticalSwitchError,
    ProtocolError,
    RefusedError,
    SwitchUsageError,
    UnreachableError,
)
from optical_switch.model import Circuit, CircuitReading, LossReading, PortDescription, PowerReading
from optical_switch.netconf import polatis, polatis_ports
from optical_switch.netconf.features import EditFeatures, edit_features, has
from optical_switch.netconf.link import NetconfLink
from optical_switch.netconf.messages import RpcError, RpcReply
from optical_switch.netconf.operations import (
    Datastore,
    close_session,
    create_subscription,
    get,
    get_config,
)
from optical_switch.netconf.transaction import Precondition, Transaction, TransactionEnd
from optical_switch.netconf.transitions import TransactionOutcome
from optical_switch.session import BatchResult, Capabilities, Notice

log = logging.getLogger(__name__)

CLOSED = "closed by us"


class NetconfTransport(Protocol):
    """A transport that opens a channel to the NETCONF server of a switch; `optical_switch.ssh` has one."""

    async def connect(self, link: asyncio.Protocol, host: str, port: int) -> None:
        """Open a channel and connect it to a protocol. Raises UnreachableError."""


class NetconfSwitchSession:
    """A session by NETCONF to a switch with the model of Polatis.

    Parameters
    ----------
    target : SwitchTarget
        The switch.
    transport : NetconfTransport
        Transport to it.
    numbering : polatis.PortNumbering
        Numbers of its ports.
    """

    def __init__(self, target: SwitchTarget, transport: NetconfTransport, numbering: polatis.PortNumbering) -> None:
        self._target = target
        self._transport = transport
        self._numbering = numbering
        self._listener: Callable[[Notice], None] | None = None
        self._link: NetconfLink | None = None
        self._features = EditFeatures(candidate=False, rollback_on_error=False)
        self._without_lock: set[Datastore] = set()
        self._attenuates = False
        self._change: asyncio.Task[TransactionEnd | OpticalSwitchError] | None = None

    @property
    def capabilities(self) -> Capabilities:
        """Return the properties of the switch."""
        return Capabilities(
            atomic=self._features.atomic,
            light="powers",
            attenuates=self._attenuates,
        )

    def subscribe(self, listener: Callable[[Notice], None]) -> None:
        """Have `listener` called with every alarm of the switch."""
        self._listener = listener

    async def open(self) -> None:
        """Connect, log in and read what the switch can do."""
        if self._link is not None and not self._link.lost.done():
            return
        host, port = self._target.host, self._target.port
        link = NetconfLink(self._target.timeout, self._report)
        await self._transport.connect(link, host, port)
        try:
            await self._introduce(link)
        except UnreachableError as error:
            link.fail(error)
            raise UnreachableError(f"optical switch at {host}:{port} opens no NETCONF session: {error}") from error
        except BaseException:
            link.fail(UnreachableError("the session was not opened"))
            raise
        self._link = link

    async def close(self) -> None:
        """End the session; the switch releases its locks, and a change without an answer is done as a whole or not."""
        link = self._link
        if link is None or link.lost.done():
            return
        try:
            link.request(close_session())
            link.leave(CLOSED)
            await asyncio.wait([link.lost], timeout=self._target.timeout)
        except OpticalSwitchError as error:
            log.debug("optical switch %s: %s", self._target.name, error)
        finally:
            link.fail(UnreachableError(CLOSED))

    async def wait_closed(self) -> str:
        """Wait until the session has ended, and return the reason."""
        return await asyncio.shield(self._opened().lost)

    async def apply(self, deletes: Sequence[Circuit], adds: Sequence[Circuit]) -> BatchResult:
        """Remove circuits and set others in one transaction.

        A circuit that is missing counts as removed. If the input of a circuit to be removed is connected to another
        output, that circuit is refused and nothing is done.
        """
        self._check_ports(deletes, adds)
        if not deletes and not adds:
            return BatchResult()
        moved: dict[Circuit, int] = {}

        def holds(data: Element) -> bool:
            moved.update(polatis.other_outputs(deletes, polatis.read_circuits(data, self._numbering)))
            return not moved

        inputs = [circuit.input for circuit in deletes]
        condition = Precondition(polatis.circuits_filter(inputs), holds) if deletes else None
        ended = await self._settle(polatis.circuits_edit(deletes, adds, self._numbering), condition)
        if moved:
            return polatis.withheld_batch(moved)
        if ended.outcome is TransactionOutcome.REFUSED:
            return polatis.refused_batch(ended.errors, (*deletes, *adds), self._numbering)
        return BatchResult()

    async def set_attenuation(self, levels: Mapping[int, float | None]) -> None:
        """Limit the power at outputs by attenuators."""
        for output, level in levels.items():
            if not 1 <= output <= self._target.outputs or (level is not None and not math.isfinite(level)):
                raise SwitchUsageError(f"{self._target.phrase} cannot have {level} dBm at output {output}")
        if not levels:
            return
        edit = polatis_ports.attenuators_edit(polatis_ports.limits(levels), self._numbering)
        ended = await self._settle(edit, None)
        if ended.outcome is TransactionOutcome.REFUSED:
            raise self._refusal(ended.errors)

    async def read_circuits(self) -> Sequence[CircuitReading]:
        """Return all circuits on the switch; the status of their ports decides on their state."""
        # Two requests, because the state of a device and its configuration may be read by different operations only.
        circuits, status = await self._read(get_config(polatis.circuits_filter()), get(polatis.status_filter()))
        of_ports = polatis.read_status(status, self._numbering)
        found = polatis.read_circuits(circuits, self._numbering)
        return [polatis.circuit_reading(circuit, of_ports, self._numbering) for circuit in found]

    async def read_ports(self) -> Sequence[PortDescription]:
        """Return all ports with the labels that operators gave them."""
        [ports] = await self._read(get(polatis_ports.ports_filter()))
        return polatis_ports.read_ports(ports, self._numbering)

    async def read_powers(self) -> Sequence[PowerReading]:
        """Return the power at every port with a meter."""
        [powers] = await self._read(get(polatis_ports.powers_filter()))
        return polatis_ports.read_powers(powers, self._numbering)

    async def read_losses(self) -> Sequence[LossReading]:
        """Return nothing: the model has no losses."""
        return []

    # ---------------------------------------------------------------------------------------------------- opening

    async def _introduce(self, link: NetconfLink) -> None:
        """Learn the features of the switch, subscribe to notifications, and find out about attenuators."""
        announced = (await link.greeted).capabilities
        polatis.check_model(announced)
        self._features, self._without_lock = edit_features(announced), set()
        attenuators = link.request(get_config(polatis_ports.attenuators_filter()))
        if self._listener is not None and self._has_notifications(announced):
            reply = await link.request(create_subscription(polatis_ports.STREAM))
            for error in reply.errors:
                log.warning("optical switch %s reports no alarms: %s", self._target.name, error)
        data = (await attenuators).data
        self._attenuates = data is not None and bool(polatis_ports.read_attenuators(data, self._numbering))

    def _has_notifications(self, announced: Collection[str]) -> bool:
        if not has(announced, "notification:1.0"):
            return False
        # Without it a session with a subscription takes no further requests (RFC 5277, section 6).
        if has(announced, "interleave:1.0"):
            return True
        log.warning("optical switch %s reports no alarms: it does not announce interleave:1.0", self._target.name)
        return False

    def _report(self, event: Element) -> None:
        alarm = polatis_ports.read_alarm(event, self._numbering)
        if alarm is not None and self._listener is not None:
            self._listener(alarm)

    # --------------------------------------------------------------------------------------------- reading, changing

    def _opened(self) -> NetconfLink:
        if self._link is None:
            raise SwitchUsageError(f"the session to {self._target.phrase} is not open")
        return self._link

    async def _read(self, *operations: str) -> list[Element]:
        link = self._opened()
        replies = await asyncio.gather(*link.send(operations))
        return [self._data(reply) for reply in replies]

    def _data(self, reply: RpcReply) -> Element:
        if reply.errors:
            raise self._refusal(reply.errors)
        if reply.data is None:
            error = ProtocolError("the switch replies to a reading without data (RFC 6241, section 7.1)")
            self._opened().fail(error)
            raise error
        return reply.data

    def _refusal(self, errors: Sequence[RpcError]) -> RefusedError:
        return polatis.refusal(errors[0], self._numbering)

    async def _settle(self, edit: str, condition: Precondition | None) -> TransactionEnd:
        """Change the configuration. A caller that is cancelled does not stop the change, which releases its locks."""
        while self._change is not None and not self._change.done():
            await asyncio.wait([self._change])
        transaction = Transaction(self._features, edit, condition, tuple(self._without_lock))
        self._change = asyncio.create_task(self._carry_out(self._opened(), transaction))
        ended = await asyncio.shield(self._change)
        if isinstance(ended, OpticalSwitchError):
            raise ended
        if ended.outcome is TransactionOutcome.BUSY:
            raise DeviceBusyError(f"{self._target.phrase} is locked by {_holder(ended.errors)}: end that session")
        return ended

    async def _carry_out(self, link: NetconfLink, transaction: Transaction) -> TransactionEnd | OpticalSwitchError:
        """Carry out a transaction; errors are returned, because a caller that is cancelled does not take them."""
        try:
            unanswered = deque(link.send(transaction.start()))
            while not isinstance(step := transaction.advance(await unanswered.popleft()), TransactionEnd):
                unanswered += link.send(step)
            self._note_locks(transaction.without_lock)
            for reply in link.send(step.cleanup):
                reply.add_done_callback(lambda reply: _check_cleanup(link, reply))
        except OpticalSwitchError as error:
            link.fail(error)
            return error
        return step

    def _note_locks(self, without_lock: set[Datastore]) -> None:
        """Note what the switch cannot lock; warn once if it can lock nothing that a change concerns."""
        if without_lock != self._without_lock and without_lock.issuperset(self._features.locks):
            log.warning(
                "optical switch %s has no locks, so it accepts changes of another client during a change: end all "
                "other clients that change circuits",
                self._target.name,
            )
        self._without_lock = without_lock

    def _check_ports(self, deletes: Sequence[Circuit], adds: Sequence[Circuit]) -> None:
        for circuit in (*deletes, *adds):
            if not (1 <= circuit.input <= self._target.inputs and 1 <= circuit.output <= self._target.outputs):
                raise SwitchUsageError(
                    f"{self._target.phrase} has no circuit {circuit.input} to {circuit.output}: it has inputs 1 to "
                    f"{self._target.inputs} and outputs 1 to {self._target.outputs}"
                )
        if len({circuit.input for circuit in adds}) < len(adds):
            raise SwitchUsageError(f"{self._target.phrase} cannot connect one input to two outputs")


def _holder(errors: Sequence[RpcError]) -> str:
    """Return who holds a lock, as the end of a sentence."""
    match errors[0].session_id:
        case None:
            return f"another client ({errors[0]})"
        case 0:
            return "a client of another protocol"
        case number:
            return f"session {number}"


def _check_cleanup(link: NetconfLink, reply: asyncio.Future[RpcReply]) -> None:
    """End a session whose locks or discarded changes are not known: then the switch releases them."""
    if not reply.cancelled() and reply.exception() is None and (errors := reply.result().errors):
        link.fail(UnreachableError(f"the switch refused to end a change: {errors[0]}"))
