"""Every step is answered exactly once, whatever switches do and in whatever order answers come."""

from __future__ import annotations

from collections import Counter
from ipaddress import IPv4Network

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from blast_controller.core.commands import Forward, ForwardingChange, SetForwarding
from blast_controller.core.events import DeviceDown, DeviceUp, StepConfirmed, StepFailed
from blast_controller.openflow.rules import RuleSettings
from blast_controller.openflow.steps import (
    PREPARE_TIMEOUT,
    WINDOW,
    Barrier,
    Command,
    Connected,
    Effect,
    HangUp,
    Input,
    Lost,
    Refusal,
    Steps,
    Transmit,
)

TIMEOUT = 2.0
GOOD = Forward(1, "10.0.0.1", "239.77.0.1", (2,))
BAD = Forward(1, "10.0.0.1", "10.0.0.2", (2,))


class Switches(RuleBasedStateMachine):
    """Two ToRs that answer late, wrongly, never, twice, or go away; a third that nobody knows."""

    @initialize()
    def start(self) -> None:
        self.steps = Steps(RuleSettings(), {1: [9], 2: [9]}, IPv4Network("239.77.0.0/16"), TIMEOUT)
        self.now = 100.0
        self.sessions: dict[int, object] = {}
        self.dead: list[object] = []
        self.received: dict[object, list[Transmit]] = {}
        self.answers: Counter[tuple[int, int]] = Counter()
        self.asked: dict[tuple[int, int], float] = {}
        self.up: dict[int, bool] = {1: False, 2: False, 3: False}

    def give(self, happened: Input) -> None:
        self.take(self.steps.receive(happened, self.now))

    def take(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Transmit(session):
                    assert session not in self.dead
                    self.received[session].append(effect)
                case HangUp(session):
                    self.dead.append(session)
                    self.sessions = {d: s for d, s in self.sessions.items() if s is not session}
                case DeviceUp(device) | DeviceDown(device):
                    assert self.up[device] == isinstance(effect, DeviceDown)
                    self.up[device] = not self.up[device]
                case StepConfirmed() | StepFailed():
                    self.answers[effect.reservation, effect.step] += 1

    @rule(datapath=st.sampled_from([1, 2, 3]))
    def connect(self, datapath: int) -> None:
        session = object()
        self.received[session] = []
        self.sessions[datapath] = session
        self.give(Connected(session, datapath))
        assert bool(self.received[session]) == (datapath != 3)

    @rule(datapath=st.sampled_from([1, 2]))
    def lose(self, datapath: int) -> None:
        if session := self.sessions.pop(datapath, None):
            self.dead.append(session)
            self.give(Lost(session, "cut"))
            assert not self.up[datapath]

    @precondition(lambda self: self.dead)
    @rule(data=st.data())
    def dead_session_speaks(self, data: st.DataObject) -> None:
        session = data.draw(st.sampled_from(self.dead))
        before = (dict(self.up), self.answers.copy())
        for message in self.received[session]:
            self.give(Barrier(session, message.barrier))
        self.give(Lost(session, "late"))
        assert before == (self.up, self.answers)

    @rule(datapath=st.sampled_from([1, 2, 3]), forwards=st.lists(st.sampled_from([GOOD, BAD]), min_size=1, max_size=3))
    def command(self, datapath: int, forwards: list[Forward]) -> None:
        first = len(self.asked) + 1
        changes = [ForwardingChange(first + n, 1, add=(forward,)) for n, forward in enumerate(forwards)]
        for change in changes:
            self.asked[change.reservation, 1] = self.now
        up = self.up[datapath]
        self.give(Command(SetForwarding(datapath, tuple(changes)), self.now))
        refused = sum(self.answers[change.reservation, 1] for change in changes)
        assert refused == (forwards.count(BAD) if up else len(forwards))

    @rule(datapath=st.sampled_from([1, 2]), data=st.data())
    def answer(self, datapath: int, data: st.DataObject) -> None:
        session = self.sessions.get(datapath)
        if session is not None and self.received[session]:
            message = data.draw(st.sampled_from(self.received[session]))
            xids = [xid for xid, _ in message.operations]
            if xids and data.draw(st.booleans()):
                self.give(Refusal(session, data.draw(st.sampled_from(xids)), "no"))
            else:
                self.give(Barrier(session, message.barrier))

    @rule(seconds=st.sampled_from([0.1, 1.0, TIMEOUT, PREPARE_TIMEOUT]))
    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.take(self.steps.expire(self.now))

    @invariant()
    def no_step_is_answered_twice_or_left_beyond_its_deadline(self) -> None:
        if not hasattr(self, "answers"):
            return
        assert not [step for step, count in self.answers.items() if count > 1]
        overdue = [s for s, asked in self.asked.items() if asked + TIMEOUT <= self.now and not self.answers[s]]
        if self.steps.next_deadline() is None or self.steps.next_deadline() > self.now:  # type: ignore[operator]
            assert not overdue

    def teardown(self) -> None:
        if hasattr(self, "answers"):
            self.wait(TIMEOUT + PREPARE_TIMEOUT)
            assert all(self.answers[step] == 1 for step in self.asked)
            assert self.steps.next_deadline() is None


Switches.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestSwitches = Switches.TestCase


def test_no_more_than_a_window_is_on_its_way() -> None:
    steps = Steps(RuleSettings(), {1: []}, IPv4Network("239.77.0.0/16"), TIMEOUT)
    session = object()
    (guard,) = steps.receive(Connected(session, 1), 0.0)
    assert isinstance(guard, Transmit)
    steps.receive(Barrier(session, guard.barrier), 0.0)
    sent: list[Effect] = []
    for reservation in range(1, 3 * WINDOW + 1):
        change = ForwardingChange(reservation, 1, add=(GOOD,))
        sent += steps.receive(Command(SetForwarding(1, (change,)), 0.0), 0.0)
    assert len(sent) == WINDOW
    confirmed = 0
    while sent:
        message = sent.pop(0)
        assert isinstance(message, Transmit)
        effects = steps.receive(Barrier(session, message.barrier), 0.5)
        confirmed += sum(isinstance(effect, StepConfirmed) for effect in effects)
        sent += [effect for effect in effects if isinstance(effect, Transmit)]
        assert len(sent) <= WINDOW
    assert confirmed == 3 * WINDOW
