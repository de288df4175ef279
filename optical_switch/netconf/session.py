"""A client session of NETCONF without a socket or clock: requests, received bytes and time in, bytes and events out.

    GREETING    both sides send a hello; no request is possible
    ESTABLISHED requests are answered in their order, notifications may arrive at any time
    OVER        broken; nothing more is read or sent

`EXPECTED` lists the messages that each phase takes; any other one breaks the session. So does a request without an
answer in time: later replies would be useless, because the outcome of the request is unknown, and only the end of a
session makes the device release what it has begun.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, auto
from xml.etree.ElementTree import Element

from optical_switch.errors import OpticalSwitchError, ProtocolError, SwitchUsageError, UnreachableError
from optical_switch.netconf.framing import NetconfDecoder, in_one_chunk, with_end
from optical_switch.netconf.messages import (
    BASE_1_0,
    BASE_1_1,
    Message,
    NetconfNotification,
    RpcReply,
    ServerHello,
    hello,
    read_message,
    rpc,
)
from optical_switch.unsolicited import FLOOD, UnsolicitedBudget

MAX_PENDING = 32
"""Requests without an answer: a driver has a few of them on their way, and the device must keep as many replies."""
NOTIFICATION_PRICE = 1024
"""Bytes that a notification counts in addition to its size, for the work that it causes."""

_OPERATION = re.compile(r"<([a-z-]+)")


@dataclass(frozen=True, slots=True)
class Greeted:
    """The hello of the device: requests are possible."""

    hello: ServerHello


@dataclass(frozen=True, slots=True)
class Replied:
    """The reply to a request."""

    reply: RpcReply


@dataclass(frozen=True, slots=True)
class Notified:
    """An event that the device reports on its own."""

    event: Element


@dataclass(frozen=True, slots=True)
class SessionBroken:
    """The end of the session by a fault; the caller must end the connection."""

    error: OpticalSwitchError


SessionEvent = Greeted | Replied | Notified | SessionBroken


class NetconfPhase(Enum):
    """The phase of a session."""

    GREETING = auto()
    ESTABLISHED = auto()
    OVER = auto()


EXPECTED: dict[NetconfPhase, tuple[type[Message], ...]] = {
    NetconfPhase.GREETING: (ServerHello,),
    NetconfPhase.ESTABLISHED: (RpcReply, NetconfNotification),
    NetconfPhase.OVER: (),
}


@dataclass(frozen=True, slots=True)
class _PendingRequest:
    operation: str
    deadline: float


class NetconfSession:
    """A session, from the first byte of its channel.

    Parameters
    ----------
    timeout : float
        Time limit in seconds for the hello and for each reply.
    now : float
        Current time, on any monotonic clock.
    """

    def __init__(self, timeout: float, now: float) -> None:
        self._timeout = timeout
        self._phase = NetconfPhase.GREETING
        self._decoder = NetconfDecoder()
        self._frame = with_end
        self._greeting_deadline = now + timeout
        self._last_id = 0
        self._pending: dict[str, _PendingRequest] = {}
        """Requests by their identifiers, the oldest first."""
        self._budget = UnsolicitedBudget()
        self._to_send = bytearray(with_end(hello()))

    def request(self, operation: str, now: float) -> str:
        """Send a request.

        Parameters
        ----------
        operation : str
            Operation as XML text.
        now : float
            Current time.

        Returns
        -------
        str
            Identifier that the reply has.

        Raises
        ------
        SwitchUsageError
            If there is no session, or too many requests have no answer yet.
        """
        if self._phase is not NetconfPhase.ESTABLISHED:
            raise SwitchUsageError("the session is not established")
        if len(self._pending) >= MAX_PENDING:
            raise SwitchUsageError(f"{MAX_PENDING} requests have no answer yet: wait for one")
        self._last_id += 1
        message_id = str(self._last_id)
        named = _OPERATION.match(operation)
        self._pending[message_id] = _PendingRequest(named[1] if named else "request", now + self._timeout)
        self._to_send += self._frame(rpc(message_id, operation))
        return message_id

    def data_to_send(self) -> bytes:
        """Return the bytes to send now, once."""
        data = bytes(self._to_send)
        self._to_send.clear()
        return data

    def receive(self, data: bytes, now: float) -> list[SessionEvent]:
        """Process received bytes.

        Parameters
        ----------
        data : bytes
            Received bytes.
        now : float
            Current time.

        Returns
        -------
        list[SessionEvent]
            What has happened, in order; nothing follows `SessionBroken`.
        """
        events: list[SessionEvent] = []
        if self._phase is NetconfPhase.OVER:
            return events
        self._decoder.feed(data)
        try:
            while (message := self._decoder.next_message()) is not None:
                events.append(self._process(message, now))
        except OpticalSwitchError as error:
            events += self._break(error)
        return events

    def next_timer(self) -> float | None:
        """Return the time at which `handle_timer` must be called. None: never."""
        if self._phase is NetconfPhase.GREETING:
            return self._greeting_deadline
        oldest = next(iter(self._pending.values()), None)
        return None if oldest is None else oldest.deadline

    def handle_timer(self, now: float) -> list[SessionEvent]:
        """Process the passage of time; events are those of `receive`."""
        due = self.next_timer()
        if self._phase is NetconfPhase.OVER or due is None or now < due:
            return []
        awaited = "hello" if self._phase is NetconfPhase.GREETING else next(iter(self._pending.values())).operation
        return self._break(UnreachableError(f"the switch does not answer {awaited} within {self._timeout:g} s"))

    def _process(self, data: bytes, now: float) -> SessionEvent:
        message = read_message(data)
        if not isinstance(message, EXPECTED[self._phase]):
            raise ProtocolError(f"the switch sends {type(message).__name__} when the session is {self._phase.name}")
        match message:
            case ServerHello():
                return self._greet(message)
            case RpcReply():
                return self._settle(message)
            case NetconfNotification():
                return self._notify(message, len(data), now)

    def _greet(self, message: ServerHello) -> Greeted:
        if BASE_1_1 in message.capabilities:
            self._decoder.use_chunks()
            self._frame = in_one_chunk
        elif BASE_1_0 not in message.capabilities:
            raise ProtocolError("the switch announces neither base:1.0 nor base:1.1 of NETCONF")
        self._phase = NetconfPhase.ESTABLISHED
        return Greeted(message)

    def _settle(self, reply: RpcReply) -> Replied:
        if self._pending.pop(reply.message_id, None) is None:
            errors = "".join(f" ({error})" for error in reply.errors[:1])
            raise ProtocolError(f"the switch replies to no request of this session{errors}")
        return Replied(reply)

    def _notify(self, notification: NetconfNotification, size: int, now: float) -> Notified:
        self._budget.spend(size + NOTIFICATION_PRICE, now)
        if self._budget.overdrawn:
            raise UnreachableError(FLOOD)
        return Notified(notification.event)

    def _break(self, error: OpticalSwitchError) -> list[SessionEvent]:
        self._phase = NetconfPhase.OVER
        self._pending.clear()
        self._to_send.clear()
        return [SessionBroken(error)]
