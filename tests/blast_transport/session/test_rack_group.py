"""Aggregated credits of a leader, compared with a model of its sender and its members."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from blast_transport.links.group import REPORT_SECONDS, LeaderGroup
from blast_transport.wire.messages import Abort, Credit, Demoted, Fin, Hello, Nack, Phase, Readmitted, Ready
from blast_transport.wire.relaying import GroupCredit, MemberCredits, RelayMessage
from blast_transport.wire.transports import OPTICAL, PIPELINE

SESSION = 7
MEMBERS = 3


def hello(session: int = SESSION) -> Hello:
    return Hello(session, 10, 1456, 44, "fast", "file", "name")


def phase(credit: int, transport: str = OPTICAL) -> Phase:
    return Phase(SESSION, 1, transport, 0, credit=credit)


@dataclass
class World:
    """Real positions of the members, and the positions that the leader reports to the sender."""

    credit: int
    group: LeaderGroup = field(default_factory=LeaderGroup)
    now: float = 0.0
    truth: dict[int, int] = field(default_factory=dict)
    known: dict[int, int] = field(default_factory=dict)
    apart: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Real and reported positions of demoted members."""
    messages: int = 0

    def join(self, member: int, held: int) -> None:
        self.group.from_sender(member, hello())
        assert not self.group.from_member(member, Ready(SESSION, ((0, held),) if held else ()))
        self.group.from_sender(member, phase(self.credit))
        self.truth[member] = self.known[member] = held

    def reach(self, member: int, handled: int) -> None:
        self.truth[member] = handled
        assert self.group.from_member(member, Credit(SESSION, handled, handled, handled))
        self.listen()

    def demote(self, member: int) -> None:
        self.group.from_sender(member, Demoted(SESSION))
        self.apart[member] = self.truth.pop(member), self.known.pop(member)

    def promote(self, member: int) -> None:
        self.group.from_sender(member, Readmitted(SESSION))
        self.truth[member], self.known[member] = self.apart.pop(member)

    def reach_apart(self, member: int, more: int) -> None:
        truth, known = self.apart[member]
        self.apart[member] = truth + more, known
        assert self.group.from_member(member, Credit(SESSION, truth + more, truth + more, truth + more))

    def leave(self, member: int) -> None:
        self.truth.pop(member, None)
        self.known.pop(member, None)
        self.apart.pop(member, None)

    def listen(self) -> None:
        for message in self.group.take(self.now):
            self.believe(message)

    def believe(self, message: RelayMessage) -> None:
        self.messages += 1
        match message:
            case GroupCredit(session, handled, ahead, behind):
                assert session == SESSION and handled <= ahead
                reached = {member: handled if member in behind else ahead for member in self.known}
            case MemberCredits(session, rows):
                assert session == SESSION
                reached = {member: handled for member, handled, _, _ in rows if member in self.known}
                for member, handled, _, _ in rows:
                    if member in self.apart:
                        self.apart[member] = self.apart[member][0], max(self.apart[member][1], handled)
        for member, handled in reached.items():
            assert handled <= self.truth[member], "the sender assumes no more than the member reported"
            self.known[member] = max(self.known[member], handled)


STEPS = st.one_of(
    st.tuples(st.just("reach"), st.integers(0, MEMBERS - 1), st.integers(0, 9)),
    st.tuples(st.just("join"), st.integers(0, MEMBERS - 1), st.integers(0, 20)),
    st.tuples(st.sampled_from(["demote", "promote"]), st.integers(0, MEMBERS - 1), st.just(0)),
    st.tuples(st.sampled_from(["fin", "lost", "quit"]), st.integers(0, MEMBERS - 1), st.just(0)),
    st.tuples(st.just("wait"), st.just(0), st.integers(1, 300)),
)


@given(st.integers(1, 6), st.lists(STEPS, min_size=20, max_size=60))
def test_reported_credits_are_safe_and_slowest_is_within_one_credit(credit, steps):
    world = World(credit)
    for kind, member, amount in steps:
        if kind == "join" and member not in world.truth and member not in world.apart:
            world.join(member, amount)
        elif kind == "reach" and member in world.truth:
            world.reach(member, world.truth[member] + amount)
        elif kind == "demote" and member in world.truth:
            world.demote(member)
        elif kind == "promote" and member in world.apart:
            world.promote(member)
        elif kind == "reach" and member in world.apart:
            world.reach_apart(member, amount)
        elif kind in ("fin", "quit") and member in world.truth:
            assert not world.group.from_member(member, Fin(SESSION) if kind == "fin" else Abort(SESSION, ""))
            world.leave(member)
        elif kind == "lost":
            world.group.lost(member)
            world.leave(member)
        elif kind == "wait":
            world.now += amount / 1000
        world.listen()
        if world.truth:
            assert min(world.truth.values()) < min(world.known.values()) + credit
    world.now += REPORT_SECONDS
    world.listen()
    assert world.known == world.truth, "all positions are reported in the end"
    assert world.group.deadline() is None


@given(st.integers(1, 8), st.integers(2, 40))
def test_message_count_barely_depends_on_number_of_members(credit, members):
    def messages(count: int) -> int:
        world = World(credit)
        for member in range(count):
            world.join(member, 0)
        for block in range(1, 101):
            for member in range(count):
                world.reach(member, block)
        return world.messages

    assert messages(members) <= messages(1) + 2


def test_leader_delays_credits_in_pipeline_phase():
    group = LeaderGroup()
    group.from_sender(0, hello())
    group.from_sender(0, phase(1, PIPELINE))
    for block in range(100):
        assert group.from_member(0, Credit(SESSION, block, block, block))
        group.take(0.001 * block)
    assert group.take(0.101) == []
    assert group.deadline() is not None
    assert MemberCredits(SESSION, ((0, 99, 99, 99),)) in group.take(10.0)


def test_group_credit_names_slow_member():
    group = LeaderGroup()
    for member in range(4):
        group.from_sender(member, hello())
        group.from_sender(member, phase(2))
    for member, handled in ((0, 8), (1, 9), (2, 3), (3, 10)):
        group.from_member(member, Credit(SESSION, handled, handled, handled))
    assert GroupCredit(SESSION, 3, 8, (2,)) in group.take(0.0)


def test_group_ignores_other_messages_and_sessions():
    group = LeaderGroup()
    group.from_sender(0, hello())
    assert not group.from_member(0, Nack(SESSION, ((1, 2),)))
    assert not group.from_member(0, Credit(SESSION + 1, 5, 5, 5))
    group.from_sender(0, hello(8))
    assert group.from_member(0, Credit(8, 1, 1, 1))
    assert group.take(0.0)[-1] == MemberCredits(8, ((0, 1, 1, 1),))
