"""Every step is answered exactly once, whatever switches do and in whatever order answers come."""

from __future__ import annotations

from collections import Counter
from ipaddress import IPv4Network

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from blast_controller.core.model.commands import Forward, ForwardingChange, SetForwarding
from blast_controller.core.model.events import (
    DeviceConnected,
    DeviceDisconnected,
    StepConfirmed,
    StepFailed,
    TableObserved,
)
from blast_controller.openflow.rules import AddRule, DeleteRule, DeleteStray, RuleSettings, UnknownRule
from blast_controller.openflow.session import ANSWER_TIMEOUT, WINDOW, MasterTerms
from blast_controller.openflow.steps import ForwardingSteps
from blast_controller.openflow.vocabulary import (
    BarrierAnswered,
    ChangeRequested,
    Connected,
    CountRules,
    Effect,
    ErrorReceived,
    Fence,
    HangUp,
    Input,
    MalformedMessage,
    MasterLost,
    Message,
    PortReported,
    PortState,
    ProbeRequested,
    Read,
    ReadOurRules,
    RejectCall,
    RequestMaster,
    RoleAnswered,
    RulesCounted,
    RulesRead,
    SessionLost,
    Transmit,
    TransmitProbe,
)

TIMEOUT = 2.0
GROUPS = IPv4Network("239.77.0.0/16")
GOOD = Forward(1, "10.0.0.1", "239.77.0.1", (2,))
OTHER = Forward(3, "10.0.0.1", "239.77.0.1", (2,))
BAD = Forward(1, "10.0.0.1", "10.0.0.2", (2,))
STRAY = UnknownRule(0, 5, 0xB1A5 << 48, b"\0\1\0\4")


class Switches(RuleBasedStateMachine):
    """Two ToRs that answer late, wrongly, never, twice, or go away; a third that is not configured."""

    @initialize()
    def start(self) -> None:
        self.steps = ForwardingSteps(MasterTerms(RuleSettings(), 5, TIMEOUT), {1: [9], 2: [9]}, GROUPS)
        self.now = 100.0
        self.sessions: dict[int, object] = {}
        self.waiting: dict[int, object] = {}
        self.dead: list[object] = []
        self.received: dict[object, list[tuple[int, Message]]] = {}
        self.master: set[object] = set()
        self.answers: Counter[tuple[int, int]] = Counter()
        self.asked: dict[tuple[int, int], float] = {}
        self.readings = [0, 0]
        self.up: dict[int, bool] = {1: False, 2: False, 3: False}

    def give(self, happened: Input) -> None:
        self.take(self.steps.receive(happened, self.now))

    def take(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Transmit(session, messages):
                    assert session not in self.dead
                    self.sessions |= {d: s for d, s in self.waiting.items() if s is session}
                    self.waiting = {d: s for d, s in self.waiting.items() if s is not session}
                    kinds = {type(message) for _, message in messages}
                    assert session in self.master or kinds == {RequestMaster}, "written to before the role was ours"
                    self.received[session] += messages
                case RejectCall(session):
                    assert not self.received[session], "no message was sent to it"
                    self.dead.append(session)
                    self.waiting = {d: s for d, s in self.waiting.items() if s is not session}
                case HangUp(session):
                    self.dead.append(session)
                    self.sessions = {d: s for d, s in self.sessions.items() if s is not session}
                case DeviceConnected(device):
                    assert not self.up[int(device)]
                    self.up[int(device)] = True
                case DeviceDisconnected(device):
                    self.up[int(device)] = False
                case StepConfirmed() | StepFailed():
                    self.answers[effect.reservation, effect.step] += 1
                case TableObserved():
                    self.readings[1] += 1

    @rule(datapath=st.sampled_from([1, 2, 3]))
    def connect(self, datapath: int) -> None:
        session = object()
        self.received[session] = []
        first, third = datapath not in self.sessions, datapath in self.waiting
        if first:
            self.sessions[datapath] = session
        elif datapath != 3 and not third:
            self.waiting[datapath] = session
        up = dict(self.up)
        self.give(Connected(session, datapath))
        assert bool(self.received[session]) == (datapath != 3 and first)
        assert up == self.up, "a connection alone takes over no ToR"
        assert (session in self.dead) == third

    @rule(datapath=st.sampled_from([1, 2]))
    def lose_the_second(self, datapath: int) -> None:
        if session := self.waiting.pop(datapath, None):
            self.dead.append(session)
            before = dict(self.up)
            self.give(SessionLost(session, "cut"))
            assert before == self.up

    @rule(datapath=st.sampled_from([1, 2]))
    def lose(self, datapath: int) -> None:
        if session := self.sessions.pop(datapath, None):
            self.dead.append(session)
            self.give(SessionLost(session, "cut"))
            assert not self.up[datapath]

    @rule(
        datapath=st.sampled_from([1, 2]), how=st.sampled_from([MasterLost, lambda s: MalformedMessage(s, "it raves")])
    )
    def misbehave(self, datapath: int, how: type[MasterLost]) -> None:
        if session := self.sessions.get(datapath):
            self.give(how(session))
            assert session in self.dead
            assert not self.up[datapath]

    @rule(datapath=st.sampled_from([1, 2]), port=st.sampled_from([8, 9]), up=st.booleans())
    def port(self, datapath: int, port: int, up: bool) -> None:
        if session := self.sessions.get(datapath):
            self.give(PortReported(session, PortState(port, up)))

    @precondition(lambda self: self.dead)
    @rule(data=st.data())
    def dead_session_speaks(self, data: st.DataObject) -> None:
        session = data.draw(st.sampled_from(self.dead))
        before = (dict(self.up), self.answers.copy())
        for xid, _ in self.received[session]:
            self.give(BarrierAnswered(session, xid))
            self.give(RoleAnswered(session, xid, True))
            self.give(RulesRead(session, xid, (), True))
        self.give(SessionLost(session, "late"))
        assert before == (self.up, self.answers)

    @rule(
        datapath=st.sampled_from([1, 2, 3]),
        changes=st.lists(st.tuples(st.sampled_from([GOOD, BAD]), st.booleans()), min_size=1, max_size=3),
    )
    def command(self, datapath: int, changes: list[tuple[Forward, bool]]) -> None:
        first = len(self.asked) + 1
        asked = [
            ForwardingChange(first + n, 1, remove=(OTHER,) if removes else (), add=(forward,))
            for n, (forward, removes) in enumerate(changes)
        ]
        for change in asked:
            self.asked[change.reservation, 1] = self.now
        up = self.up[datapath]
        self.give(ChangeRequested(SetForwarding(datapath, tuple(asked)), self.now))
        refused = sum(self.answers[change.reservation, 1] for change in asked)
        assert refused == (sum(forward is BAD for forward, _ in changes) if up else len(changes))

    @rule(datapath=st.sampled_from([1, 2, 3]), mend=st.booleans())
    def read(self, datapath: int, mend: bool) -> None:
        self.readings[0] += self.up[datapath]
        self.give(Read(datapath, mend))

    @rule(datapath=st.sampled_from([1, 2]), data=st.data())
    def answer(self, datapath: int, data: st.DataObject) -> None:
        session = self.sessions.get(datapath)
        if session is not None and self.received[session]:
            xid, message = data.draw(st.sampled_from(self.received[session]))
            refuses = data.draw(st.sampled_from([False] * 5 + [True]))
            if refuses:
                self.give(ErrorReceived(session, xid, "no", fenced=data.draw(st.booleans())))
            else:
                self.reply(session, xid, message, data.draw(st.booleans()))

    @rule(datapath=st.sampled_from([1, 2]), stray=st.booleans())
    def answer_everything(self, datapath: int, stray: bool) -> None:
        """Answer every message, as a correct switch does."""
        session, done = self.sessions.get(datapath), 0
        while session is not None and session not in self.dead and done < len(self.received[session]):
            xid, message = self.received[session][done]
            done += 1
            self.reply(session, xid, message, stray)
        if session is not None and session not in self.dead:
            assert self.up[datapath]

    def reply(self, session: object, xid: int, message: Message, stray: bool) -> None:
        match message:
            case RequestMaster():
                self.master.add(session)
                self.give(RoleAnswered(session, xid, True))
            case ReadOurRules():
                self.give(RulesRead(session, xid, (STRAY,) if stray else (), False))
                self.give(RulesRead(session, xid, (), True))
            case CountRules():
                self.give(RulesCounted(session, xid, 3))
            case Fence():
                self.give(BarrierAnswered(session, xid))

    @rule(seconds=st.sampled_from([0.1, 1.0, TIMEOUT, ANSWER_TIMEOUT]))
    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.take(self.steps.expire(self.now))

    @invariant()
    def no_step_is_answered_twice_or_left_beyond_its_deadline(self) -> None:
        if not hasattr(self, "answers"):
            return
        assert not [step for step, count in self.answers.items() if count > 1]
        assert self.readings[1] <= self.readings[0]
        overdue = [s for s, asked in self.asked.items() if asked + TIMEOUT <= self.now and not self.answers[s]]
        if self.steps.next_deadline() is None or self.steps.next_deadline() > self.now:  # type: ignore[operator]
            assert not overdue

    def teardown(self) -> None:
        if hasattr(self, "answers"):
            for _ in range(2):
                # The second connection is used once the first one has been silent, and is silent as well.
                self.wait(TIMEOUT + ANSWER_TIMEOUT)
            assert all(self.answers[step] == 1 for step in self.asked)
            assert self.steps.next_deadline() is None


Switches.TestCase.settings = settings(max_examples=80, stateful_step_count=30, deadline=None)
TestSwitches = Switches.TestCase


class Bench:
    """Steps with one ToR that is up; its messages are answered by hand."""

    def __init__(self) -> None:
        self.steps = ForwardingSteps(MasterTerms(RuleSettings(), 5, TIMEOUT), {1: []}, GROUPS)
        self.session = object()
        self.xids: dict[type[Message], int] = {}
        self.events: list[Effect] = []
        self.note(self.steps.receive(Connected(self.session, 1), 0.0))
        self.note(self.steps.receive(RoleAnswered(self.session, self.xids[RequestMaster], True), 0.0))
        self.note(self.steps.receive(RulesRead(self.session, self.xids[ReadOurRules], (), True), 0.0))
        self.note(self.steps.receive(RulesCounted(self.session, self.xids[CountRules], 0), 0.0))
        self.barrier(0.0)
        assert self.events == [DeviceConnected(1, rules=frozenset())]

    def note(self, effects: list[Effect]) -> list[type[Message]]:
        """Record the effects and keep the events; return the kinds of messages that were sent."""
        sent = [numbered for effect in effects if isinstance(effect, Transmit) for numbered in effect.messages]
        self.xids |= {type(message): xid for xid, message in sent}
        self.events += [effect for effect in effects if not isinstance(effect, Transmit)]
        return [type(message) for _, message in sent]

    def change(self, *changes: ForwardingChange, now: float = 0.0) -> list[type[Message]]:
        return self.note(self.steps.receive(ChangeRequested(SetForwarding(1, changes), now), now))

    def barrier(self, now: float = 0.5) -> list[type[Message]]:
        return self.note(self.steps.receive(BarrierAnswered(self.session, self.xids[Fence]), now))

    def refuse(self, kind: type[Message]) -> list[type[Message]]:
        return self.note(self.steps.receive(ErrorReceived(self.session, self.xids[kind], "table full"), 0.1))

    def taken(self) -> list[Effect]:
        events, self.events = self.events[1:], self.events[:1]
        return events


BOTH = ForwardingChange(7, 1, remove=(OTHER,), add=(GOOD,))


def test_additions_are_in_force_before_deletions_are_sent() -> None:
    bench = Bench()
    assert bench.change(BOTH) == [AddRule, Fence]
    assert bench.barrier() == [DeleteRule, Fence]
    assert bench.taken() == []
    assert bench.barrier() == []
    assert bench.taken() == [StepConfirmed(1, 7, 1, 0.5)]


def test_step_with_a_refused_addition_deletes_nothing() -> None:
    bench = Bench()
    bench.change(BOTH)
    bench.refuse(AddRule)
    assert bench.barrier() == []
    assert bench.taken() == [StepFailed(1, 7, 1, "ToR 0000000000000001 refused: table full")]


def test_overdue_step_deletes_nothing() -> None:
    bench = Bench()
    bench.change(BOTH)
    late = bench.xids[Fence]
    assert len(bench.steps.expire(TIMEOUT)) == 1
    assert bench.change(ForwardingChange(8, 1, add=(GOOD,)), now=TIMEOUT) == [AddRule, Fence], (
        "and does not delay others"
    )
    assert bench.note(bench.steps.receive(BarrierAnswered(bench.session, late), TIMEOUT)) == []


def test_pure_additions_and_removals_do_not_wait_for_other_steps() -> None:
    bench = Bench()
    removal, addition = ForwardingChange(8, 1, remove=(GOOD,)), ForwardingChange(9, 1, add=(GOOD,))
    assert bench.change(BOTH, removal, addition) == [AddRule, DeleteRule, AddRule, Fence]
    assert bench.barrier() == [DeleteRule, Fence]
    assert bench.taken() == [StepConfirmed(1, 8, 1, 0.5), StepConfirmed(1, 9, 1, 0.5)]


def test_later_change_waits_for_the_deletions_of_an_earlier_one() -> None:
    """Otherwise the deletions would match a rule that the later change adds."""
    bench = Bench()
    bench.change(BOTH)
    assert bench.change(ForwardingChange(7, 2, add=(OTHER,))) == []
    assert bench.barrier() == [DeleteRule, Fence, AddRule, Fence]


def test_reading_follows_earlier_changes_and_delays_later_ones() -> None:
    bench = Bench()
    bench.change(ForwardingChange(7, 1, add=(GOOD,)))
    assert bench.note(bench.steps.receive(Read(1, mend=True), 0.0)) == [ReadOurRules, CountRules]
    assert bench.change(ForwardingChange(8, 1, add=(OTHER,))) == []
    bench.note(bench.steps.receive(RulesRead(bench.session, bench.xids[ReadOurRules], (STRAY,), True), 0.1))
    sent = bench.note(bench.steps.receive(RulesCounted(bench.session, bench.xids[CountRules], 4), 0.1))
    assert sent == [DeleteStray, Fence]
    assert bench.barrier() == [AddRule, Fence]  # the guard
    assert bench.barrier() == [AddRule, Fence]  # the change that waited
    assert bench.taken() == [TableObserved(1, frozenset(), 3)]


def test_reading_without_repair_writes_nothing() -> None:
    bench = Bench()
    bench.note(bench.steps.receive(Read(1, mend=False), 0.0))
    bench.note(bench.steps.receive(RulesRead(bench.session, bench.xids[ReadOurRules], (STRAY,), True), 0.1))
    assert bench.note(bench.steps.receive(RulesCounted(bench.session, bench.xids[CountRules], 4), 0.1)) == []
    assert bench.taken() == [TableObserved(1, frozenset(), 3)]


def test_step_without_rules_is_a_barrier_with_a_deadline() -> None:
    bench, nothing = Bench(), [ForwardingChange(7, 1), ForwardingChange(7, 1), ForwardingChange(8, 1)]
    assert bench.change(*nothing) == [Fence]
    bench.barrier()
    assert bench.taken() == [StepConfirmed(1, 7, 1, 0.5), StepConfirmed(1, 8, 1, 0.5)]
    bench.change(*nothing, now=1.0)
    assert len(bench.steps.expire(3.0)) == 2
    assert bench.steps.expire(10.0) == []
    assert bench.steps.next_deadline() is None


def test_window_limits_open_steps_and_overdue_steps_are_not_sent() -> None:
    bench = Bench()
    fences = []
    for reservation in range(1, 2 * WINDOW + 1):
        bench.change(ForwardingChange(reservation, 1, add=(GOOD,)))
        fences.append(bench.xids[Fence])
    assert len(set(fences)) == WINDOW
    assert bench.note(bench.steps.receive(BarrierAnswered(bench.session, fences[0]), 0.5)) == [AddRule, Fence]
    assert bench.taken() == [StepConfirmed(1, 1, 1, 0.5)]
    assert len(bench.steps.expire(TIMEOUT)) == 2 * WINDOW - 1
    assert bench.note(bench.steps.receive(BarrierAnswered(bench.session, fences[1]), TIMEOUT)) == []


def test_repeated_role_refusal_is_reported_once() -> None:
    steps = ForwardingSteps(MasterTerms(RuleSettings(), 5, TIMEOUT), {1: []}, GROUPS)
    effects = []
    for _ in range(3):
        session = object()
        (claim,) = steps.receive(Connected(session, 1), 0.0)
        assert isinstance(claim, Transmit)
        effects += steps.receive(ErrorReceived(session, claim.messages[0][0], "stale", fenced=True), 0.0)
    downs = [effect for effect in effects if isinstance(effect, DeviceDisconnected)]
    assert [down.reason for down in downs] == [
        "another controller is the master of this ToR: it refused generation 5 as older than that controller's"
    ]
    assert sum(isinstance(effect, HangUp) for effect in effects) == 3


def test_tor_without_role_or_rules_reply_is_disconnected_and_reported() -> None:
    for answers in (0, 1):
        steps, session = ForwardingSteps(MasterTerms(RuleSettings(), 5, TIMEOUT), {1: []}, GROUPS), object()
        (claim,) = steps.receive(Connected(session, 1), 0.0)
        assert isinstance(claim, Transmit)
        if answers:
            steps.receive(RoleAnswered(session, claim.messages[0][0], True), 0.0)
        assert steps.expire(ANSWER_TIMEOUT - 0.1) == []
        down, hang_up = steps.expire(ANSWER_TIMEOUT)
        assert isinstance(down, DeviceDisconnected)
        assert down.reason == (
            "it did not answer the request for its rules in time"
            if answers
            else "it did not answer the role request in time"
        )
        assert isinstance(hang_up, HangUp)
        assert steps.next_deadline() is None


def test_role_other_than_master_counts_as_refusal() -> None:
    steps, session = ForwardingSteps(MasterTerms(RuleSettings(), 5, TIMEOUT), {1: []}, GROUPS), object()
    (claim,) = steps.receive(Connected(session, 1), 0.0)
    assert isinstance(claim, Transmit)
    down, _ = steps.receive(RoleAnswered(session, claim.messages[0][0], False), 0.0)
    assert isinstance(down, DeviceDisconnected)
    assert "another controller" in down.reason


def test_fenced_probe_ends_the_session() -> None:
    bench = Bench()
    assert bench.note(bench.steps.receive(ProbeRequested(1, 9, b"x"), 0.0)) == [TransmitProbe]
    bench.note(bench.steps.receive(ErrorReceived(bench.session, bench.xids[TransmitProbe], "bad port"), 0.0))
    assert bench.taken() == [], "another error harms nothing"
    assert bench.note(bench.steps.receive(ProbeRequested(1, 9, b"x"), 0.0)) == [TransmitProbe]
    bench.note(bench.steps.receive(ErrorReceived(bench.session, bench.xids[TransmitProbe], "no", fenced=True), 0.0))
    assert bench.taken()[0] == DeviceDisconnected(1, "another controller is the master of this ToR")


def test_fenced_rule_fails_its_step_and_ends_the_session() -> None:
    bench = Bench()
    bench.change(BOTH)
    bench.note(bench.steps.receive(ErrorReceived(bench.session, bench.xids[AddRule], "no", fenced=True), 0.1))
    down, failed, hang_up = bench.taken()
    assert down == DeviceDisconnected(1, "another controller is the master of this ToR")
    assert isinstance(failed, StepFailed)
    assert "another controller is the master" in failed.reason
    assert isinstance(hang_up, HangUp)


def test_refused_barrier_confirms_nothing() -> None:
    bench = Bench()
    bench.change(BOTH, ForwardingChange(8, 1, add=(GOOD,)))
    assert bench.refuse(Fence) == []
    assert [type(event) for event in bench.taken()] == [StepFailed, StepFailed]
    assert bench.change(ForwardingChange(9, 1, add=(GOOD,))) == [AddRule, Fence]
