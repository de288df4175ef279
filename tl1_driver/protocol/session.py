"""A TL1 session without a socket or clock: commands and time in, bytes and events out.

Theory of operation. Every command gets a CTAG of its own and becomes an exchange, which waits in one of four phases:

    SENT           on the wire, no answer yet
    ACKNOWLEDGED   the switch works on it (IP, PF): the deadline is extended
    ACCEPTED       the switch answered OK, which may be final: a later answer counts, else silence until the deadline
                   is the confirmation
    HELD_BACK      the switch answered "repeat later" (RL): sent again after a pause that doubles each time

`TRANSITIONS` defines the action for each acknowledgment, answer or deadline in each phase. An exchange that ended
without an answer is remembered for a while, so that a late answer goes to `late` and never to another command.
Autonomous messages become `Notice` events and affect no exchange.

A switch that cannot read a command cannot read its CTAG either, and refuses it under CTAG 0. Such a refusal belongs to
the only outstanding command, if there is exactly one and no earlier one is still without its answer.
"""

from __future__ import annotations

import logging
from collections import deque
from dataclasses import dataclass, replace
from enum import Enum, auto

from optical_switch.unsolicited import UnsolicitedBudget
from tl1_driver.protocol.codec import RECEIVE_LIMIT, Tl1Decoder, encode_command
from tl1_driver.protocol.errors import (
    CommandDeniedError,
    PartialCompletionError,
    SessionLostError,
    SwitchBusyError,
    SwitchError,
    SwitchTimeoutError,
    UnconfirmedCommandError,
)
from tl1_driver.protocol.messages import (
    Acknowledgment,
    AcknowledgmentCode,
    Autonomous,
    Message,
    Response,
    Tl1Command,
    Unparsed,
)

log = logging.getLogger(__name__)

NO_CTAG = "0"
"""The CTAG of an answer to a command without one, or whose CTAG could not be read."""

REMEMBERED = 1000
"""Maximum number of remembered commands that ended without an answer, and of stray answers (without their text)."""

FLOOD = "the switch sends far more than it is asked for"
_AROUND_A_LINE = 16
"""Approximate number of bytes around a line of an answer, and around its heading, on the wire."""

PRICE = 1024
"""Bytes that an unsolicited message counts in addition to its size."""
ACKNOWLEDGMENT = 256
"""Bytes that an acknowledgment counts in addition to its size."""


@dataclass(frozen=True, slots=True)
class ExchangeDeadlines:
    """Time limits in seconds: for an answer, for an answer after an acknowledgment, and in total.

    After RL the command is sent again at most `repeats` times, first after `first_pause`.
    """

    answer: float = 2.0
    acknowledged: float = 10.0
    longest: float = 60.0
    first_pause: float = 0.25
    repeats: int = 4


@dataclass(frozen=True, slots=True)
class Wire:
    """The wire format of commands: the bytes that end one, and the size limits for sending and receiving."""

    terminator: bytes = b";"
    send_limit: int = 8192
    receive_limit: int = RECEIVE_LIMIT


@dataclass(frozen=True, slots=True)
class Answered:
    """The confirmation of a command by the switch.

    Parameters
    ----------
    ctag : str
        CTAG of the command.
    response : Response
        Answer; its code is COMPLD, or OK if the switch only acknowledged.
    """

    ctag: str
    response: Response


@dataclass(frozen=True, slots=True)
class CommandFailed:
    """The failure of a command, or its unknown outcome.

    Parameters
    ----------
    ctag : str
        CTAG of the command.
    error : SwitchError
        Reason of the failure.
    """

    ctag: str
    error: SwitchError


@dataclass(frozen=True, slots=True)
class Notice:
    """An autonomous message; `missed` is the number of messages lost before it, by the gap in the ATAG sequence."""

    message: Autonomous
    missed: int = 0


@dataclass(frozen=True, slots=True)
class Flooded:
    """The switch sends far more than was requested; the caller must end the session."""

    reason: str


Event = Answered | CommandFailed | Notice | Flooded


class ExchangePhase(Enum):
    """The phase of an exchange."""

    SENT = auto()
    ACKNOWLEDGED = auto()
    ACCEPTED = auto()
    HELD_BACK = auto()
    OVER = auto()


class Stimulus(Enum):
    """An event that affects an exchange."""

    WORKING = auto()
    ALL_RIGHT = auto()
    REPEAT_LATER = auto()
    NO_GOOD = auto()
    NO_ACKNOWLEDGMENT = auto()
    ANSWER = auto()
    DEADLINE = auto()


class SessionAction(Enum):
    """The session's reaction to a stimulus."""

    EXTEND = auto()
    WAIT_FOR_MORE = auto()
    PAUSE = auto()
    SEND_AGAIN = auto()
    DELIVER = auto()
    CONFIRM = auto()
    REFUSE = auto()
    DISCLAIM = auto()
    EXPIRE = auto()


_WAITING = {
    Stimulus.WORKING: (ExchangePhase.ACKNOWLEDGED, SessionAction.EXTEND),
    Stimulus.ALL_RIGHT: (ExchangePhase.ACCEPTED, SessionAction.WAIT_FOR_MORE),
    Stimulus.REPEAT_LATER: (ExchangePhase.HELD_BACK, SessionAction.PAUSE),
    Stimulus.NO_GOOD: (ExchangePhase.OVER, SessionAction.REFUSE),
    Stimulus.NO_ACKNOWLEDGMENT: (ExchangePhase.OVER, SessionAction.DISCLAIM),
    Stimulus.ANSWER: (ExchangePhase.OVER, SessionAction.DELIVER),
    Stimulus.DEADLINE: (ExchangePhase.OVER, SessionAction.EXPIRE),
}
TRANSITIONS: dict[ExchangePhase, dict[Stimulus, tuple[ExchangePhase, SessionAction]]] = {
    ExchangePhase.SENT: _WAITING,
    ExchangePhase.ACKNOWLEDGED: _WAITING,
    ExchangePhase.ACCEPTED: _WAITING
    | {
        Stimulus.WORKING: (ExchangePhase.ACCEPTED, SessionAction.EXTEND),
        Stimulus.DEADLINE: (ExchangePhase.OVER, SessionAction.CONFIRM),
    },
    ExchangePhase.HELD_BACK: _WAITING | {Stimulus.DEADLINE: (ExchangePhase.SENT, SessionAction.SEND_AGAIN)},
}

_STIMULUS = {
    AcknowledgmentCode.IN_PROGRESS: Stimulus.WORKING,
    AcknowledgmentCode.PRINTOUT_FOLLOWS: Stimulus.WORKING,
    AcknowledgmentCode.ALL_RIGHT: Stimulus.ALL_RIGHT,
    AcknowledgmentCode.REPEAT_LATER: Stimulus.REPEAT_LATER,
    AcknowledgmentCode.NO_GOOD: Stimulus.NO_GOOD,
    AcknowledgmentCode.NO_ACKNOWLEDGMENT: Stimulus.NO_ACKNOWLEDGMENT,
}


@dataclass(slots=True)
class _Exchange:
    ctag: str
    verb: str
    wire: bytes
    began: float
    deadline: float
    phase: ExchangePhase = ExchangePhase.SENT
    pauses: int = 0


class Tl1Session:
    """The state of one TCP session: its pending exchanges and their deadlines.

    Times are seconds on any monotonic clock. After each `send`, `receive` or `handle_timer` the caller writes
    `data_to_send()`, handles the returned events and reads `next_timer()`.

    Parameters
    ----------
    deadlines : Deadlines | None
        Time limits for answers. None: the defaults.
    wire : Wire | None
        Format and size limits of commands and answers. None: the defaults.
    """

    def __init__(self, deadlines: ExchangeDeadlines | None = None, wire: Wire | None = None) -> None:
        self._deadlines = deadlines or ExchangeDeadlines()
        self._wire = wire or Wire()
        self._decoder = Tl1Decoder(self._wire.receive_limit)
        self._exchanges: dict[str, _Exchange] = {}
        self._expired: dict[str, None] = {}
        self._outgoing = bytearray()
        self._unasked = UnsolicitedBudget()
        self._ctag = 0
        self._atag: int | None = None
        self.late: deque[Response] = deque(maxlen=REMEMBERED)
        self.unknown: deque[Response | Acknowledgment] = deque(maxlen=REMEMBERED)

    def send(self, command: Tl1Command, now: float) -> str:
        """Queue a command.

        Parameters
        ----------
        command : Command
            Command to send.
        now : float
            Present time in seconds.

        Returns
        -------
        str
            CTAG that the session assigned to the command.

        Raises
        ------
        InvalidCommandError
            If the command cannot be sent; nothing is queued.
        """
        ctag = str(self._ctag + 1)
        wire = encode_command(command, ctag, limit=self._wire.send_limit, terminator=self._wire.terminator)
        self._ctag += 1
        self._exchanges[ctag] = _Exchange(ctag, command.verb, wire, now, now + self._deadlines.answer)
        self._outgoing += wire
        return ctag

    def data_to_send(self) -> bytes:
        """Return the bytes to write now.

        Returns
        -------
        bytes
            Queued bytes; each is returned once.
        """
        data = bytes(self._outgoing)
        self._outgoing.clear()
        return data

    def receive(self, data: bytes, now: float) -> list[Event]:
        """Handle received bytes.

        Parameters
        ----------
        data : bytes
            Bytes that the switch sent.
        now : float
            Present time in seconds.

        Returns
        -------
        list[Event]
            Events that the bytes cause; none after a flood.
        """
        if self._unasked.overdrawn:
            return []
        self._unasked.spend(len(data), now)
        events = [event for message in self._decoder.feed(data) for event in self._take(message, now)]
        return [*events, Flooded(FLOOD)] if self._unasked.overdrawn else events

    def next_timer(self) -> float | None:
        """Return the time of the next deadline.

        Returns
        -------
        float | None
            Time in seconds at which `handle_timer` is due, or None if no exchange is pending.
        """
        return min((exchange.deadline for exchange in self._exchanges.values()), default=None)

    def handle_timer(self, now: float) -> list[Event]:
        """Handle the deadlines that have passed.

        Parameters
        ----------
        now : float
            Present time in seconds.

        Returns
        -------
        list[Event]
            Events of exchanges whose deadline has passed.
        """
        due = [exchange for exchange in self._exchanges.values() if exchange.deadline <= now]
        return [event for exchange in due for event in self._stimulate(exchange, Stimulus.DEADLINE, now)]

    def lose(self, reason: str) -> list[Event]:
        """Fail all pending exchanges with `SessionLostError`.

        Parameters
        ----------
        reason : str
            Text of the errors.

        Returns
        -------
        list[Event]
            A `CommandFailed` event for each pending command.
        """
        awaited, self._exchanges = list(self._exchanges), {}
        return [CommandFailed(ctag, SessionLostError(reason)) for ctag in awaited]

    def _take(self, message: Message, now: float) -> list[Event]:
        if isinstance(message, Autonomous):
            self._unasked.spend(PRICE, now)
            return [Notice(message, self._missed(message.atag))]
        if isinstance(message, Unparsed):
            self._unasked.spend(PRICE, now)
            log.info("switch sent something else than TL1 (%s): %r", message.error, message.text)
            return []
        exchange = self._exchanges.get(message.ctag) or self._refused_unread(message)
        if exchange is None:
            self._unasked.spend(PRICE, now)
            self._set_aside(message)
            return []
        if isinstance(message, Acknowledgment):
            self._unasked.spend(ACKNOWLEDGMENT, now)
            return self._stimulate(exchange, _STIMULUS[message.code], now)
        self._unasked.refund(sum(len(line) + _AROUND_A_LINE for line in message.lines) + _AROUND_A_LINE)
        return self._stimulate(exchange, Stimulus.ANSWER, now, message)

    def _set_aside(self, message: Response | Acknowledgment) -> None:
        if message.ctag not in self._expired:
            log.warning("switch answered CTAG %s (%s), which awaits nothing", message.ctag, message.code)
            self.unknown.append(replace(message, lines=()) if isinstance(message, Response) else message)
        elif isinstance(message, Response):
            log.warning("switch answered CTAG %s (%s) after its deadline", message.ctag, message.code)
            self.late.append(replace(message, lines=()))
            del self._expired[message.ctag]

    def _refused_unread(self, message: Response | Acknowledgment) -> _Exchange | None:
        if message.ctag != NO_CTAG or message.code != "DENY" or self._expired or len(self._exchanges) != 1:
            return None
        [exchange] = self._exchanges.values()
        return exchange

    def _missed(self, atag: str) -> int:
        if not (atag.isascii() and atag.isdigit()):
            return 0
        before, self._atag = self._atag, int(atag)
        return max(0, self._atag - before - 1) if before is not None else 0

    def _stimulate(
        self, exchange: _Exchange, stimulus: Stimulus, now: float, response: Response | None = None
    ) -> list[Event]:
        exchange.phase, action = TRANSITIONS[exchange.phase][stimulus]
        if action is SessionAction.PAUSE and exchange.pauses == self._deadlines.repeats:
            exchange.phase, action = ExchangePhase.OVER, SessionAction.REFUSE
            outcome: SwitchError | Response = SwitchBusyError(
                "RL", f"{exchange.verb} is to be repeated later, again and again"
            )
        else:
            outcome = self._outcome(exchange, action, now, response)
        if exchange.phase is ExchangePhase.OVER:
            return [self._end(exchange, outcome, answered=response is not None)]
        exchange.deadline = self._deadline(exchange, action, now)
        if action is SessionAction.SEND_AGAIN:
            self._outgoing += exchange.wire
        return []

    def _outcome(
        self, exchange: _Exchange, action: SessionAction, now: float, response: Response | None
    ) -> SwitchError | Response:
        if action is SessionAction.DELIVER and response is not None:
            return _verdict(exchange.verb, response)
        if action is SessionAction.CONFIRM:
            return Response("", exchange.ctag, "OK")
        if action is SessionAction.REFUSE:
            return CommandDeniedError("NG", f"the switch rejected {exchange.verb}")
        if action is SessionAction.DISCLAIM:
            return UnconfirmedCommandError(f"the switch does not know what became of {exchange.verb} (NA)")
        return SwitchTimeoutError(f"no answer to {exchange.verb} within {now - exchange.began:.3g} s")

    def _deadline(self, exchange: _Exchange, action: SessionAction, now: float) -> float:
        limits = self._deadlines
        if action is SessionAction.PAUSE:
            exchange.pauses += 1
            return now + limits.first_pause * 2.0 ** (exchange.pauses - 1)
        wait = limits.acknowledged if action is SessionAction.EXTEND else limits.answer
        return min(now + wait, max(now, exchange.began + limits.longest))

    def _end(self, exchange: _Exchange, outcome: SwitchError | Response, *, answered: bool) -> Event:
        del self._exchanges[exchange.ctag]
        if not answered:
            self._expired[exchange.ctag] = None
            if len(self._expired) > REMEMBERED:
                del self._expired[next(iter(self._expired))]
        if isinstance(outcome, Response):
            return Answered(exchange.ctag, outcome)
        return CommandFailed(exchange.ctag, outcome)


def _verdict(verb: str, response: Response) -> SwitchError | Response:
    """Return the answer itself if it confirms the command, else the error that it stands for."""
    if response.code == "COMPLD":
        return response
    if response.code == "DENY":
        return CommandDeniedError(response.error_code or "DENY", response.error_text)
    if response.code == "PRTL":
        return PartialCompletionError("PRTL", response.error_text or f"{verb} was done in part")
    return UnconfirmedCommandError(f"the switch answered {verb} with {response.code}, which confirms nothing")
