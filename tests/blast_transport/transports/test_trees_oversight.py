"""Detection of lost hosts and broken edges, and replanning of trees, in simulated time."""

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
from blast_transport.transports.trees.protocol.fields import HostReport, decode_report, encode_report
from blast_transport.transports.trees.widening import Widening

MEMBERS = (("", "", 0), ("a", "h", 1), ("b", "h", 2), ("c", "h", 3), ("d", "h", 4))
CHAIN, STAR = PlacedTree(3e6, (0, 1, 2, 3)), PlacedTree(1e6, (0, 0, 0, 0))
A, B, C, D = 1, 2, 3, 4


class Watched:
    """A phase in which each host reports every 0.25 s, except the `silent` ones."""

    def __init__(self, *trees: PlacedTree) -> None:
        self.now = 0.0
        self.oversight = Oversight(TreesPhase(1, 1, b"", 0, MEMBERS, trees, 0), 0.0)
        self.silent: set[int] = set()
        self.words = dict.fromkeys((A, B, C, D), HostReport())
        self.found = Findings()

    def run(self, seconds: float) -> Findings:
        """Run until there are findings, for at most this number of seconds."""
        for _ in range(round(seconds * 20)):
            self.now += 0.05
            if round(self.now * 20) % 5 == 0:
                for place in self.words.keys() - self.silent:
                    self.oversight.word(place, self.words[place], self.now)
            found = self.oversight.tick(self.now)
            if found != Findings():
                return found
        return Findings()


def test_healthy_hosts_yield_no_findings() -> None:
    assert Watched(CHAIN, STAR).run(30) == Findings()


def test_lost_host_with_children_requires_new_plan() -> None:
    phase = Watched(CHAIN)
    phase.oversight.receiver_lost("b", "its process ended")
    assert phase.run(1) == Findings({}, replan=True)


@pytest.mark.parametrize(("trees", "name"), [((CHAIN,), "d"), ((STAR,), "b")])
def test_lost_leaf_requires_no_new_plan(trees: tuple[PlacedTree, ...], name: str) -> None:
    phase = Watched(*trees)
    phase.oversight.receiver_lost(name, "its process ended")
    assert phase.run(3) == Findings()
    sight = phase.oversight.sight(phase.now)
    assert sight is not None
    assert sight.lost == (name,)


def test_frozen_host_is_found_from_reports_of_neighbors() -> None:
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


def test_lost_edge_between_live_hosts_is_broken() -> None:
    phase = Watched(CHAIN, STAR)
    phase.run(1)
    phase.words[B] = HostReport(lost=((B, C, "no way"),))
    assert phase.run(2) == Findings({}, replan=True)
    assert phase.oversight.broken == (("b", "c"),)
    # The same report yields no new findings.
    assert phase.run(5) == Findings()


def test_reports_about_edges_of_other_hosts_are_ignored() -> None:
    phase = Watched(CHAIN)
    phase.words[A] = HostReport(lost=((C, D, "a lie"), (A, C, "there is none")))
    assert phase.run(5) == Findings()


def test_host_with_slow_store_is_excluded_if_others_keep_up() -> None:
    phase = Watched(CHAIN)
    phase.words[B] = HostReport(store=StorePace.SLOW)
    found = phase.run(5)
    assert found.lost.keys() == {"b"}
    assert found.replan


def test_no_host_is_excluded_if_all_stores_are_slow() -> None:
    phase = Watched(CHAIN)
    phase.words = dict.fromkeys(phase.words, HostReport(store=StorePace.SLOW))
    assert phase.run(10) == Findings()


def test_host_with_stuck_store_is_excluded_unless_it_is_alone() -> None:
    phase = Watched(CHAIN)
    phase.words[D] = HostReport(writing=1.6)
    found = phase.run(1)
    assert found.lost.keys() == {"d"}
    assert found.replan, "its parent waits for it"
    alone = Oversight(TreesPhase(1, 1, b"", 0, MEMBERS[:2], (PlacedTree(1.0, (0,)),), 0), 0.0)
    alone.word(A, HostReport(writing=60.0), 1.0)
    assert alone.tick(1.0) == Findings()


def test_flows_are_reported_twice_per_second() -> None:
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


def test_host_report_round_trips_and_has_bounded_size() -> None:
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
def test_invalid_host_report_is_rejected(word: HostReport) -> None:
    with pytest.raises(RemoteProtocolError):
        decode_report(encode_report(word), 2)


def test_meter_averages_flow_and_waits_over_one_second() -> None:
    meter = Meter(0.0)
    for step in range(8):
        meter.sent(25_000)
        meter.see(True, 0.25 * step)
        meter.see(False, 0.25 * step + (0.2 if step < 4 else 0.05))
        rate, held_back = meter.take(0.25 * (step + 1))
        assert rate == pytest.approx(800_000)
        assert held_back == (step < 5)
    assert Meter(1.0).take(1.0) == (0.0, False)


def test_pacer_keeps_rate_and_limits_catch_up() -> None:
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
def test_piece_size_grows_with_rate_of_edge(rate: float, piece: int) -> None:
    assert TreePacer(rate, 0.0).piece == min(piece, 1 << 20)


def test_streams_are_added_while_each_increases_rate() -> None:
    widening = Widening()
    assert widening.judge(1, 10e6, True)
    assert widening.judge(2, 20e6, True)
    assert not widening.judge(3, 21e6, True)
    assert not any(widening.judge(3, 21e6, True) for _ in range(15))
    assert widening.judge(3, 21e6, True)
    assert not Widening().judge(8, 21e6, True)
    assert not Widening().judge(1, 21e6, False)


def test_renewals_back_off_without_improvement() -> None:
    renewals, now, waits = Renewals(), 0.0, []
    # The first phase was not requested.
    renewals.began(now)
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
