"""Dialogues with a ToR: one small state machine for each kind.

A dialogue opens with some messages, takes the answers with its transaction ids, and may continue with more messages.
It is `done` when no answer is outstanding. While it is `exclusive`, nothing else may be sent to this ToR, because its
next messages depend on the answers. After `deadline` an answer is too late; None if that does not matter any more. A
Reaction with `over` means that the ToR cannot be used on this connection, with the reason.

| dialogue | first messages                                         | after the answers                               |
|----------|--------------------------------------------------------|-------------------------------------------------|
| standing | role request: slave, the leader's generation           | done, whatever they are                         |
| claiming | role request: master, own generation                   | done                                            |
| reading  | flow statistics of own cookies, aggregate of all rules | (deletions, barrier, additions, barrier,) done  |
| changing | rules, barrier                                         | (deletions of steps not refused, barrier,) done |

**A change**: if a step both adds and removes rules, its removals are sent after its additions are confirmed, so that a
remaining member of a group loses no packet, and never if an addition was refused, because then the old rules must stay.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from blast_controller.core.model.events import StepConfirmed, StepFailed
from blast_controller.core.model.identifiers import DatapathId
from blast_controller.openflow.audit import Audit
from blast_controller.openflow.rules import Operation, Rule, UnknownRule
from blast_controller.openflow.vocabulary import (
    Answer,
    BarrierAnswered,
    CountRules,
    ErrorReceived,
    Event,
    Fence,
    Message,
    Numbered,
    ReadOurRules,
    RequestMaster,
    RequestSlave,
    RoleAnswered,
    RulesCounted,
    RulesRead,
    StepKey,
)

MAX_RULES = 1_000_000
"""Far above the tables of switches: a faulty switch must not fill the memory."""
FENCED = "another controller is the master of this ToR"
_LAST_XID = 0xFFFF_FFFF
"""Transaction ids have 32 bits (OpenFlow 1.3, section 7.1)."""


def transaction_ids() -> Iterator[int]:
    """Yield 1, 2, … and start again after the last; 0 is left to unsolicited messages."""
    while True:
        yield from range(1, _LAST_XID + 1)


@dataclass(frozen=True, slots=True)
class Reaction:
    """Messages to send, events to report, and a reason to hang up."""

    send: tuple[Numbered, ...] = ()
    events: tuple[Event, ...] = ()
    over: str | None = None


class Dialogue(ABC):
    """One of the dialogues above."""

    def __init__(self, numbers: Iterator[int], deadline: float) -> None:
        self.deadline: float | None = deadline
        self.done = False
        self._numbers = numbers
        self._xids: set[int] = set()

    def concerns(self, xid: int) -> bool:
        """Return true if a message of this dialogue had this transaction id."""
        return xid in self._xids

    @property
    @abstractmethod
    def exclusive(self) -> bool:
        """Return true if nothing else may be sent before this dialogue continues."""

    @abstractmethod
    def open(self) -> tuple[Numbered, ...]:
        """Return the first messages."""

    @abstractmethod
    def receive(self, answer: Answer, now: float) -> Reaction:
        """Process an answer."""

    @abstractmethod
    def expire(self) -> Reaction:
        """Handle the end of the time for answers."""

    def abandon(self, reason: str) -> tuple[Event, ...]:
        """Return the events that are outstanding when the connection ends."""
        return ()

    def _number(self, messages: Sequence[Message]) -> tuple[Numbered, ...]:
        numbered = tuple([(next(self._numbers), message) for message in messages])
        self._xids.update([xid for xid, _ in numbered])
        return numbered


class StandbyDialogue(Dialogue):
    """Ask to be a slave, whom a ToR does not obey. It may refuse to make us one: we write nothing in any case."""

    exclusive = True

    def __init__(self, numbers: Iterator[int], deadline: float, generation: int) -> None:
        super().__init__(numbers, deadline)
        self._generation = generation

    def open(self) -> tuple[Numbered, ...]:
        """Return the role request."""
        return self._number([RequestSlave(self._generation)])

    def receive(self, answer: Answer, now: float) -> Reaction:
        """Finish: every answer ends this dialogue."""
        self.done = True
        return Reaction()

    def expire(self) -> Reaction:
        """End the connection: a ToR that does not answer would not be taken over in time either."""
        return Reaction(over="it did not answer the role request in time")


class Claiming(Dialogue):
    """Ask to be the master; nothing else is sent before the answer."""

    exclusive = True

    def __init__(self, numbers: Iterator[int], deadline: float, generation: int) -> None:
        super().__init__(numbers, deadline)
        self._generation = generation

    def open(self) -> tuple[Numbered, ...]:
        """Return the role request."""
        return self._number([RequestMaster(self._generation)])

    def receive(self, answer: Answer, now: float) -> Reaction:
        """Process the role reply: master, or the end of the connection."""
        match answer:
            case RoleAnswered(master=True):
                self.done = True
                return Reaction()
            case ErrorReceived(fenced=False, reason=reason):
                return Reaction(over=f"it refused the master role: {reason}")
            case _:
                return Reaction(
                    over=f"{FENCED}: it refused generation {self._generation} as older than that controller's"
                )

    def expire(self) -> Reaction:
        """End the connection: a ToR that does not answer is not written to."""
        return Reaction(over="it did not answer the role request in time")


class ReadingDialogue(Dialogue):
    """Read our rules and count the rest; mend what the audit finds wrong, if asked to."""

    def __init__(
        self,
        numbers: Iterator[int],
        deadline: float,
        audit: Callable[[Sequence[Rule | UnknownRule]], Audit],
        mend: bool,
    ) -> None:
        super().__init__(numbers, deadline)
        self.findings = Audit(frozenset())
        self._audit = audit
        self._mend = mend
        self._rules: list[Rule | UnknownRule] = []
        self._complete = False
        self._count: int | None = None
        self._repairs: list[Sequence[Operation]] = []

    @property
    def exclusive(self) -> bool:
        """Return true until the end: a repair must not meet rules that were written after the reading."""
        return not self.done

    @property
    def foreign(self) -> int:
        """Return the number of foreign rules."""
        return max(0, (self._count or 0) - len(self._rules))

    def open(self) -> tuple[Numbered, ...]:
        """Return both requests."""
        return self._number([ReadOurRules(), CountRules()])

    def receive(self, answer: Answer, now: float) -> Reaction:
        """Collect, judge, mend."""
        match answer:
            case RulesRead(rules=rules, last=last) if not self._complete:
                self._rules += rules
                self._complete = last
                if len(self._rules) > MAX_RULES:
                    return Reaction(over=f"it reported more than {MAX_RULES} rules of this controller")
            case RulesCounted(rules=count) if self._count is None:
                self._count = count
            case BarrierAnswered():
                return self._next_repair()
            case ErrorReceived(fenced=fenced, reason=reason):
                return Reaction(over=FENCED if fenced else f"it refused: {reason}")
        if not self._complete or self._count is None:
            return Reaction()
        self.findings = self._audit(self._rules)
        if self._mend:
            self._repairs = [part for part in (self.findings.deletions, self.findings.additions) if part]
        return self._next_repair()

    def expire(self) -> Reaction:
        """Fail the connection of a ToR that does not report its rules or accept its guards."""
        return Reaction(over="it did not answer the request for its rules in time")

    def _next_repair(self) -> Reaction:
        if not self._repairs:
            self.done = True
            return Reaction()
        return Reaction(self._number([*self._repairs.pop(0), Fence()]))


@dataclass(frozen=True, slots=True)
class StepRules:
    """The rules of a step of a change: to send at once, and after their confirmation."""

    first: tuple[Operation, ...]
    then: tuple[Operation, ...] = ()


class Changing(Dialogue):
    """Carry out some steps; each is confirmed or failed once."""

    def __init__(
        self,
        numbers: Iterator[int],
        deadline: float,
        datapath: DatapathId,
        steps: Mapping[StepKey, StepRules],
        asked: float,
    ) -> None:
        super().__init__(numbers, deadline)
        self._datapath = datapath
        self._steps = steps
        self._asked = asked
        self._timeout = deadline - asked
        self._unanswered = list(steps)
        self._step_of: dict[int, StepKey] = {}
        self._fence = 0
        self._second_part = any(rules.then for rules in steps.values())

    @property
    def exclusive(self) -> bool:
        """Return true while deletions are outstanding: a later change may add the same rule again."""
        return self._second_part

    def open(self) -> tuple[Numbered, ...]:
        """Return the first messages of every step."""
        return self._send([(step, operation) for step, rules in self._steps.items() for operation in rules.first])

    def receive(self, answer: Answer, now: float) -> Reaction:
        """Confirm or fail steps, and go on with the second part."""
        match answer:
            case BarrierAnswered(xid=xid) if xid == self._fence:
                return self._fenced(now)
            case ErrorReceived(fenced=True):
                return Reaction(over=FENCED)
            case ErrorReceived(xid=xid, reason=reason):
                return self._refused(xid, f"ToR {self._datapath:016x} refused: {reason}")
            case _:
                return Reaction()

    def expire(self) -> Reaction:
        """Fail the steps; the dialogue keeps its place until the barrier is answered."""
        self.deadline, self._second_part = None, False
        return Reaction(events=self.abandon(f"ToR {self._datapath:016x} did not confirm within {self._timeout:g} s"))

    def abandon(self, reason: str) -> tuple[Event, ...]:
        """Fail every unanswered step."""
        return self._fail(list(self._unanswered), reason)

    def _fenced(self, now: float) -> Reaction:
        waiting = [step for step in self._unanswered if self._second_part and self._steps[step].then]
        confirmed = [step for step in self._unanswered if step not in waiting]
        self._unanswered, self._second_part, self.done = waiting, False, not waiting
        events = tuple([StepConfirmed(self._datapath, *step, elapsed=now - self._asked) for step in confirmed])
        then = [(step, operation) for step in waiting for operation in self._steps[step].then]
        return Reaction(self._send(then) if then else (), events)

    def _refused(self, xid: int, reason: str) -> Reaction:
        # An error for the barrier itself does not concern the rules: then no step can be confirmed.
        steps = [self._step_of[xid]] if xid in self._step_of else list(self._unanswered)
        if xid == self._fence:
            self.done = True
        return Reaction(events=self._fail([step for step in steps if step in self._unanswered], reason))

    def _fail(self, steps: Sequence[StepKey], reason: str) -> tuple[Event, ...]:
        self._unanswered = [step for step in self._unanswered if step not in steps]
        return tuple(StepFailed(self._datapath, *step, reason=reason) for step in steps)

    def _send(self, owned: Sequence[tuple[StepKey, Operation]]) -> tuple[Numbered, ...]:
        *rules, fence = numbered = self._number([*[operation for _, operation in owned], Fence()])
        for (xid, _), (step, _) in zip(rules, owned, strict=True):
            self._step_of[xid] = step
        self._fence, _ = fence
        return numbered
