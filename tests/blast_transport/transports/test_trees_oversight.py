"""Who is lost, what is broken, and when the trees are planned anew: on a clock of the test's own."""

from __future__ import annotations

import pytest

from blast_transport.base.errors import RemoteProtocolError
from blast_transport.session.renewals import Renewals
from blast_transport.store.blocks.store_pace import StorePace
from blast_transport.transports.sight import HostFlow
from blast_transport.transports.trees.flows import Meter
from blast_transport.transports.trees.oversight import Findings, Oversight
from blast_transport.transports.trees.pacing import TreePacer
from blast_transport.transports.trees.plan import PlacedTree, TreesPhase
from blast_transport.transports.trees.protocol.words import HostReport, decode_report, encode_report
from blast_transport.transports.trees.widening import Widening

MEMBERS = (("", "", 0), ("a", "h", 1), ("b", "h", 2), ("c", "h", 3), ("d", "h", 4))
CHAIN, STAR = PlacedTree(3e6, (0, 1, 2, 3)), PlacedTree(1e6, (0, 0, 0, 0))
A, B, C, D = 1, 2, 3, 4


class Watched:
    """A phase at which everybody says a word every 0.25 s, but for those who are `silent`."""

    def __init__(self, *trees: PlacedTree) -> None:
        self.now = 0.0
        self.oversight = Oversight(TreesPhase(1, 1, b"", 0, MEMBERS, trees, 0), 0.0)
        self.silent: set[int] = set()
        self.words = dict.fromkeys((A, B, C, D), HostReport())
        self.found = Findings()

    def run(self, seconds: float) -> Findings:
        """Until something comes to light, so many seconds at the most."""
        for _ in range(round(seconds * 20)):
            self.now += 0.05
            if round(self.now * 20) % 5 == 0:
                for place in self.words.keys() - self.silent:
                    self.oversight.word(place, self.words[place], self.now)
            found = self.oversight.tick(self.now)
            if found != Findings():
                return found
        return Findings()


def test_nothing_comes_to_light_of_hosts_that_are_well() -> None:
    assert Watched(CHAIN, STAR).run(30) == Findings()


def test_one_that_is_gone_and_had_children_costs_a_plan() -> None:
    phase = Watched(CHAIN)
    phase.oversight.receiver_lost("b", "its process ended")
    assert phase.run(1) == Findings({}, replan=True)


@pytest.mark.parametrize(("trees", "name"), [((CHAIN,), "d"), ((STAR,), "b")])
def test_one_that_passed_nothing_on_costs_nothing(trees: tuple[PlacedTree, ...], name: str) -> None:
    phase = Watched(*trees)
    phase.oversight.receiver_lost(name, "its process ended")
    assert phase.run(3) == Findings()
    sight = phase.oversight.sight(phase.now)
    assert sight is not None
    assert sight.lost == (name,)


def test_one_that_is_frozen_is_found_by_those_around_it() -> None:
    phase = Watched(CHAIN)
    phase.run(2)
    phase.silent = {B}
    phase.run(1)
    phase.words[A] = HostReport(lost=((A, B, "no message for 1 s"),))
    phase.words[C] = HostReport(lost=((B, C, "no message for 1 s"),))
    found = phase.run(2)
    assert found.lost.keys() == {"b"}
    assert found.replan
    assert phase.run(2) == Findings()
    assert not phase.oversight.broken


def test_an_edge_between_two_that_live_is_broken() -> None:
    phase = Watched(CHAIN, STAR)
    phase.run(1)
    phase.words[B] = HostReport(lost=((B, C, "no way"),))
    assert phase.run(2) == Findings({}, replan=True)
    assert phase.oversight.broken == (("b", "c"),)
    # The same word says nothing new.
    assert phase.run(5) == Findings()


def test_nobody_says_anything_of_an_edge_that_is_not_his() -> None:
    phase = Watched(CHAIN)
    phase.words[A] = HostReport(lost=((C, D, "a lie"), (A, C, "there is none")))
    assert phase.run(5) == Findings()


def test_whose_store_is_slow_while_others_keep_up_is_left_out() -> None:
    phase = Watched(CHAIN)
    phase.words[B] = HostReport(store=StorePace.SLOW)
    found = phase.run(5)
    assert found.lost.keys() == {"b"}
    assert found.replan


def test_where_all_stores_are_slow_the_trees_go_at_their_pace() -> None:
    phase = Watched(CHAIN)
    phase.words = dict.fromkeys(phase.words, HostReport(store=StorePace.SLOW))
    assert phase.run(10) == Findings()


def test_whose_store_takes_nothing_is_left_out_unless_it_is_alone() -> None:
    phase = Watched(CHAIN)
    phase.words[D] = HostReport(writing=1.6)
    found = phase.run(1)
    assert found.lost.keys() == {"d"}
    assert found.replan, "its parent waits for it"
    alone = Oversight(TreesPhase(1, 1, b"", 0, MEMBERS[:2], (PlacedTree(1.0, (0,)),), 0), 0.0)
    alone.word(A, HostReport(writing=60.0), 1.0)
    assert alone.tick(1.0) == Findings()


def test_what_is_seen_is_told_twice_a_second() -> None:
    phase = Watched(CHAIN, STAR)
    phase.words[A] = HostReport(flows=((B, 2.5e6, True),))
    phase.run(0.3)
    assert phase.oversight.sight(phase.now) is None
    phase.run(0.3)
    sight = phase.oversight.sight(phase.now)
    assert sight is not None
    assert HostFlow("a", "b", 2.5e6, 3e6, held_back=True) in sight.flows
    assert HostFlow("", "a", 0.0, 4e6, held_back=False) in sight.flows
    assert len(sight.flows) == 7
    assert phase.oversight.sight(phase.now) is None


def test_words_come_as_they_were_said_and_are_bounded() -> None:
    word = HostReport(((1, 2.5, True),), ((0, 1, "why"),), 2, 0.5)
    assert decode_report(encode_report(word), 2) == word
    long = HostReport(tuple((1, 1e9 / 7, True) for _ in range(5000)), tuple((0, 1, "x" * 5000) for _ in range(5000)))
    assert len(encode_report(long)) <= 1 << 14


WRONG = [
    HostReport(((2, 1.0, False),)),
    HostReport(((-1, 1.0, True),)),
    HostReport(lost=((0, 7, ""),)),
    HostReport(store=9),
    HostReport(writing=-1),
]


@pytest.mark.parametrize("word", WRONG)
def test_words_that_no_host_may_say(word: HostReport) -> None:
    with pytest.raises(RemoteProtocolError):
        decode_report(encode_report(word), 2)


def test_a_flow_is_measured_over_a_second_and_is_held_back_most_of_the_time() -> None:
    meter = Meter(0.0)
    for turn in range(8):
        meter.sent(25_000)
        meter.see(True, 0.25 * turn)
        meter.see(False, 0.25 * turn + (0.2 if turn < 4 else 0.05))
        rate, held_back = meter.take(0.25 * (turn + 1))
        assert rate == pytest.approx(800_000)
        assert held_back == (turn < 5)
    assert Meter(1.0).take(1.0) == (0.0, False)


def test_a_pace_is_kept_over_time_and_lets_whoever_is_late_catch_up_a_little() -> None:
    pace, now, sent = TreePacer(80e6, 0.0), 0.0, 0
    while now < 10:
        now += pace.wait(now) + 0.0007
        while pace.permits(now):
            pace.sent(pace.piece)
            sent += pace.piece
    assert sent == pytest.approx(1.1 * 10e6 * now, rel=0.05)
    now += 60
    burst = 0
    while pace.permits(now):
        pace.sent(pace.piece)
        burst += pace.piece
    assert burst <= 0.05 * 10e6


@pytest.mark.parametrize(("rate", "piece"), [(1e6, 8 << 10), (1e9, 1_375_000), (1e11, 1 << 20)])
def test_pieces_are_small_on_slow_edges_and_large_on_fast_ones(rate: float, piece: int) -> None:
    assert TreePacer(rate, 0.0).piece == min(piece, 1 << 20)


def test_streams_are_added_as_long_as_each_helps() -> None:
    widening = Widening()
    assert widening.judge(1, 10e6, True)
    assert widening.judge(2, 20e6, True)
    assert not widening.judge(3, 21e6, True)
    assert not any(widening.judge(3, 21e6, True) for _ in range(15))
    assert widening.judge(3, 21e6, True)
    assert not Widening().judge(8, 21e6, True)
    assert not Widening().judge(1, 21e6, False)


def test_a_phase_is_begun_anew_at_once_and_less_and_less_often_while_nothing_gets_better() -> None:
    renewals, now, waits = Renewals(), 0.0, []
    for _ in range(7):
        renewals.ask(10, now)
        assert renewals.due is not None
        waits.append(round(renewals.due - now, 3))
        now = renewals.due
        renewals.began(now)
    assert waits[0] == 0
    assert waits[1:] == [0.2, 0.4, 0.8, 1.6, 3.2, 3.2]
    renewals.ask(11, now)
    assert renewals.due == pytest.approx(now + 0.2)
