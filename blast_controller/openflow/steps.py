"""Who is connected, what was sent to whom, and which step still waits for its answer: the sans-IO core of this part.

Theory of operation
-------------------
A **session** is one connection of one ToR, named by an opaque object and compared by identity, because the same ToR
can be back before its old connection is reported dead. Its states:

| state     | input                       | next      | effects                                             |
|-----------|-----------------------------|-----------|-----------------------------------------------------|
| (none)    | Connected                   | preparing | send: (delete all of ours,) guards, barrier         |
| preparing | barrier reply               | up        | DeviceUp                                            |
| preparing | refusal, `PREPARE_TIMEOUT`  | (none)    | hang up: a ToR without its guards is not used       |
| preparing | Lost                        | (none)    |                                                     |
| up        | Command                     | up        | send: rules, barrier                                |
| up        | refusal of a rule           | up        | StepFailed for the step of that rule                |
| up        | barrier reply               | up        | StepConfirmed for the steps that were not refused   |
| up        | step's deadline             | up        | StepFailed                                          |
| up        | Lost, or Connected anew     | (none)    | DeviceDown, StepFailed for every unanswered step    |

What an earlier run left behind is deleted when a ToR first connects in this run. When it connects again, what it kept
of this run's rules stays, so that a short interruption of the control network costs no packet.

A **batch** is what one command sends: rules, then one barrier. A switch may answer a rule with an error that carries
the rule's transaction id (xid); the barrier's reply means that every rule before it is in force or was refused.
At most `WINDOW` batches are on their way to one ToR; further ones wait here, so that the framework's own send queue
(16 entries) never blocks the caller. A batch keeps its place until its barrier reply, even when its steps have failed
for want of time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Network

from blast_controller.core.commands import ForwardingChange, SetForwarding
from blast_controller.core.events import DeviceDown, DeviceUp, StepConfirmed, StepFailed
from blast_controller.openflow.rules import (
    AddRule,
    DeleteAllOurs,
    InvalidForward,
    Operation,
    RuleSettings,
    guards,
    operations,
)

WINDOW = 8
PREPARE_TIMEOUT = 10.0
_XIDS = 0xFFFF_FFFF


@dataclass(frozen=True, slots=True)
class Connected:
    """A ToR finished its handshake on `session`."""

    session: object
    datapath: int


@dataclass(frozen=True, slots=True)
class Lost:
    """`session` is dead."""

    session: object
    reason: str


@dataclass(frozen=True, slots=True)
class Barrier:
    """The ToR answered the barrier request `xid`."""

    session: object
    xid: int


@dataclass(frozen=True, slots=True)
class Refusal:
    """The ToR answered the message `xid` with an error."""

    session: object
    xid: int
    reason: str


@dataclass(frozen=True, slots=True)
class Command:
    """The core wants `change`, asked at time `asked`."""

    change: SetForwarding
    asked: float


Input = Connected | Lost | Barrier | Refusal | Command


@dataclass(frozen=True, slots=True)
class Transmit:
    """Send these operations under these transaction ids, then a barrier request under `barrier`."""

    session: object
    operations: tuple[tuple[int, Operation], ...]
    barrier: int


@dataclass(frozen=True, slots=True)
class HangUp:
    """Close `session`."""

    session: object
    reason: str


Event = DeviceUp | DeviceDown | StepConfirmed | StepFailed
Effect = Transmit | HangUp | Event
StepKey = tuple[int, int]
"""(reservation, step)"""


@dataclass(slots=True)
class _Batch:
    message: Transmit
    step_of: Mapping[int, StepKey]
    unanswered: list[StepKey]
    asked: float
    deadline: float
    open: bool = True
    """Whether its deadline still means something."""


@dataclass(slots=True)
class _Session:
    handle: object
    datapath: int
    up: bool = False
    sent: dict[int, _Batch] = field(default_factory=dict)
    waiting: deque[_Batch] = field(default_factory=deque)

    def batches(self) -> list[_Batch]:
        return [*self.sent.values(), *self.waiting]


class Steps:
    """Turns inputs into effects. Times are seconds of any monotonic clock.

    Parameters
    ----------
    settings : where our rules live.
    optical_ports : the optical ports of each known datapath; others are never written to.
    group_network : the range of group addresses, e.g. 239.77.0.0/16.
    step_timeout : seconds from a command to its barrier reply before its steps fail.
    """

    def __init__(
        self,
        settings: RuleSettings,
        optical_ports: Mapping[int, Sequence[int]],
        group_network: IPv4Network,
        step_timeout: float,
    ) -> None:
        self._settings = settings
        self._guards = {
            datapath: guards(settings, ports, group_network) for datapath, ports in sorted(optical_ports.items())
        }
        self._step_timeout = step_timeout
        self._sessions: dict[object, _Session] = {}
        self._current: dict[int, _Session] = {}
        self._cleared: set[int] = set()
        self._last_xid = 0
        self._earliest: float | None = None

    def knows(self, datapath: int) -> bool:
        """Whether `datapath` is one of ours."""
        return datapath in self._guards

    def receive(self, happened: Input, now: float) -> list[Effect]:
        """The effects of one input."""
        match happened:
            case Connected(handle, datapath):
                return self._connected(handle, datapath, now)
            case Command(change, asked):
                return self._command(change, asked)
            case Lost(handle, reason) if session := self._sessions.get(handle):
                return self._end(session, reason)
            case Barrier(handle, xid) if session := self._sessions.get(handle):
                return self._barrier(session, xid, now)
            case Refusal(handle, xid, reason) if session := self._sessions.get(handle):
                return self._refusal(session, xid, reason)
            case _:
                return []

    def expire(self, now: float) -> list[Effect]:
        """The effects of time alone."""
        if self._earliest is None or now < self._earliest:
            return []
        effects = [effect for session in list(self._sessions.values()) for effect in self._expire(session, now)]
        deadlines = [batch.deadline for s in self._sessions.values() for batch in s.batches() if batch.open]
        self._earliest = min(deadlines, default=None)
        return effects

    def next_deadline(self) -> float | None:
        """When `expire` is next to be called (it may then have nothing to do); None while nothing can be late."""
        return self._earliest

    def _connected(self, handle: object, datapath: int, now: float) -> list[Effect]:
        if not self.knows(datapath):
            return []
        effects: list[Effect] = []
        if (old := self._current.get(datapath)) is not None:
            reason = "the switch opened a new connection"
            effects += [*self._end(old, reason), HangUp(old.handle, reason)]
        session = self._sessions[handle] = self._current[datapath] = _Session(handle, datapath)
        preparation: list[Operation] = [AddRule(guard) for guard in self._guards[datapath]]
        if datapath not in self._cleared:
            preparation.insert(0, DeleteAllOurs(self._settings.table))
        batch = self._batch(handle, [(None, operation) for operation in preparation], now, now + PREPARE_TIMEOUT)
        return effects + self._send(session, batch)

    def _command(self, change: SetForwarding, asked: float) -> list[Effect]:
        steps = list(dict.fromkeys(_step(part) for part in change.changes))
        session = self._current.get(change.datapath)
        if session is None or not session.up:
            return _failures(change.datapath, steps, f"ToR {change.datapath:016x} is not connected")
        failures: list[Effect] = []
        owned: list[tuple[StepKey | None, Operation]] = []
        for step in steps:
            try:
                owned += [(step, operation) for operation in self._operations(change, step)]
            except InvalidForward as error:
                failures += _failures(change.datapath, [step], str(error))
        refused = {(f.reservation, f.step) for f in failures if isinstance(f, StepFailed)}
        batch = self._batch(session.handle, owned, asked, asked + self._step_timeout)
        batch.unanswered = [step for step in steps if step not in refused]
        return failures + (self._send(session, batch) if batch.unanswered else [])

    def _operations(self, change: SetForwarding, step: StepKey) -> list[Operation]:
        parts = [part for part in change.changes if _step(part) == step]
        return [operation for part in parts for operation in operations(self._settings, part)]

    def _batch(
        self, handle: object, owned: Iterable[tuple[StepKey | None, Operation]], asked: float, deadline: float
    ) -> _Batch:
        numbered = [(self._next_xid(), step, operation) for step, operation in owned]
        message = Transmit(handle, tuple((xid, operation) for xid, _, operation in numbered), self._next_xid())
        step_of = {xid: step for xid, step, _ in numbered if step is not None}
        self._earliest = deadline if self._earliest is None else min(self._earliest, deadline)
        return _Batch(message, step_of, [], asked, deadline)

    def _next_xid(self) -> int:
        self._last_xid = self._last_xid % _XIDS + 1
        return self._last_xid

    def _send(self, session: _Session, batch: _Batch) -> list[Effect]:
        session.waiting.append(batch)
        return self._refill(session)

    def _refill(self, session: _Session) -> list[Effect]:
        effects: list[Effect] = []
        while session.waiting and len(session.sent) < WINDOW:
            batch = session.waiting.popleft()
            session.sent[batch.message.barrier] = batch
            effects.append(batch.message)
        return effects

    def _barrier(self, session: _Session, xid: int, now: float) -> list[Effect]:
        batch = session.sent.pop(xid, None)
        if batch is None:
            return []
        if not session.up:
            session.up = True
            self._cleared.add(session.datapath)
            return [DeviceUp(session.datapath)]
        confirmed: list[Effect] = [
            StepConfirmed(session.datapath, *step, elapsed=now - batch.asked) for step in batch.unanswered
        ]
        return confirmed + self._refill(session)

    def _refusal(self, session: _Session, xid: int, reason: str) -> list[Effect]:
        batch = next((b for b in session.sent.values() if xid in _xids(b.message)), None)
        if batch is None:
            return []
        sentence = f"ToR {session.datapath:016x} refused: {reason}"
        if not session.up:
            return [*self._end(session, sentence), HangUp(session.handle, sentence)]
        # An error to the barrier itself says nothing about the rules: then no step of the batch can be confirmed.
        steps = [batch.step_of[xid]] if xid in batch.step_of else list(batch.unanswered)
        failed = [step for step in steps if step in batch.unanswered]
        batch.unanswered = [step for step in batch.unanswered if step not in failed]
        if xid == batch.message.barrier:
            del session.sent[xid]
        return _failures(session.datapath, failed, sentence) + self._refill(session)

    def _end(self, session: _Session, reason: str) -> list[Effect]:
        del self._sessions[session.handle], self._current[session.datapath]
        unanswered = [step for batch in session.batches() for step in batch.unanswered]
        sentence = f"ToR {session.datapath:016x} was lost: {reason}"
        failures = _failures(session.datapath, unanswered, sentence)
        return [DeviceDown(session.datapath, reason), *failures] if session.up else failures

    def _expire(self, session: _Session, now: float) -> list[Effect]:
        late = [batch for batch in session.batches() if batch.open and batch.deadline <= now]
        if late and not session.up:
            reason = f"no answer to the guard rules within {PREPARE_TIMEOUT:g} s"
            return [*self._end(session, reason), HangUp(session.handle, reason)]
        sentence = f"ToR {session.datapath:016x} did not confirm within {self._step_timeout:g} s"
        failed = [step for batch in late for step in batch.unanswered]
        for batch in late:
            batch.unanswered, batch.open = [], False
        session.waiting = deque(batch for batch in session.waiting if batch.open)
        return _failures(session.datapath, failed, sentence)


def _step(part: ForwardingChange) -> StepKey:
    return part.reservation, part.step


def _xids(message: Transmit) -> set[int]:
    return {message.barrier, *(xid for xid, _ in message.operations)}


def _failures(datapath: int, steps: Iterable[StepKey], reason: str) -> list[Effect]:
    return [StepFailed(datapath, *step, reason=reason) for step in steps]
