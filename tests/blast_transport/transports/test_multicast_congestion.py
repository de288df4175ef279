"""Congestion control of the transport `multicast`, in a simulated network beside TCP Reno."""

from __future__ import annotations

import math
import random
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blast_transport.base.errors import RemoteProtocolError
from blast_transport.transports.multicast.control import CongestionControl
from blast_transport.transports.multicast.feedback import PathReport
from blast_transport.transports.multicast.slow_start import SlowStart
from blast_transport.transports.multicast.window import CongestionWindow
from tests.support.transport.bottleneck import Bottleneck, Clock, Flow, MulticastFlow, RenoFlow

RATE = 1650.0
"""Segments a second: 20 Mbit/s."""
BEGIN, END = 10.0, 40.0
RECOVERED = 25.0
"""The bottleneck changes at BEGIN, and is again as before from then on."""
MAX_SECONDS, MIN_GOODPUT = 5.0, 0.1
"""Bars of issue 43 for a bottleneck that changes, in simulated time."""
FOUR, TWO = dict.fromkeys("abcd", 0.0), dict.fromkeys("ab", 0.0)


def shares(flows: list[Flow], clock: Clock) -> list[float]:
    """Run the flows, and return the rate of each between BEGIN and END as a share of the link."""
    for number, flow in enumerate(flows):
        clock.at(0.1 * number, flow.start)
    clock.run(BEGIN)
    before = [flow.delivered for flow in flows]
    clock.run(END)
    return [(flow.delivered - some) / (END - BEGIN) / RATE for flow, some in zip(flows, before, strict=True)]


def multicast(clock: Clock, link: Bottleneck, round_trip: float, losses: dict[str, float] = FOUR) -> MulticastFlow:
    return MulticastFlow(clock, link, round_trip / 2, losses, random.Random(1))


def delivered_in_tenths(flow: Flow, clock: Clock) -> list[int]:
    """Run the flow until END; return the segments that have arrived at each tenth of a second."""
    clock.at(0.0, flow.start)
    counts = []
    for tenth in range(int(END * 10) + 1):
        clock.run(tenth / 10)
        counts.append(flow.delivered)
    return counts


def seconds_to_settle(counts: list[int], change: float, limit: float) -> float:
    """Return the seconds from a change to the first second with 0.8 to 1.0 of the limit, but for one segment."""
    begin = int(change * 10)
    ends = range(begin + 10, len(counts))
    return next(end - begin for end in ends if 0.8 * limit <= counts[end] - counts[end - 10] <= limit + 1) / 10


def longest_below(counts: list[int], limit: float) -> float:
    """Return the longest time after BEGIN with less than MIN_GOODPUT of the limit on average."""
    pairs = combinations(enumerate(counts[int(BEGIN * 10) :]), 2)
    few = MIN_GOODPUT * limit / 10
    return max((end - begin for (begin, one), (end, two) in pairs if two - one < few * (end - begin)), default=0) / 10


@pytest.mark.parametrize("round_trip", [0.002, 0.02])
@pytest.mark.parametrize("room", [20, 100])
def test_session_alone_uses_the_bottleneck(round_trip: float, room: int) -> None:
    clock = Clock()
    link = Bottleneck(clock, RATE, room)
    (share,) = shares([multicast(clock, link, round_trip)], clock)
    assert share > 0.95


@pytest.mark.parametrize("round_trip", [0.002, 0.02])
@pytest.mark.parametrize("room", [20, 100])
@pytest.mark.parametrize("number", [1, 4])
def test_session_takes_about_the_share_of_tcp(round_trip: float, room: int, number: int) -> None:
    clock = Clock()
    link = Bottleneck(clock, RATE, room)
    tcp = [RenoFlow(clock, link, round_trip / 2) for _ in range(number)]
    *others, ours = shares([*tcp, multicast(clock, link, round_trip)], clock)
    fair = 1 / (number + 1)
    assert 0.5 * fair < ours < 1.5 * fair
    assert all(share > 0.5 * fair for share in others)
    assert sum(others) + ours > 0.95


@pytest.mark.parametrize("round_trip", [0.002, 0.02])
@pytest.mark.parametrize("room", [20, 100])
def test_session_follows_bottleneck_that_halves_and_recovers(round_trip: float, room: int) -> None:
    clock = Clock()
    link = Bottleneck(clock, RATE, room)
    clock.at(BEGIN, lambda: setattr(link, "rate", RATE / 2))
    clock.at(RECOVERED, lambda: setattr(link, "rate", RATE))
    counts = delivered_in_tenths(multicast(clock, link, round_trip, TWO), clock)
    assert seconds_to_settle(counts, BEGIN, RATE / 2) <= MAX_SECONDS
    assert seconds_to_settle(counts, RECOVERED, RATE) <= MAX_SECONDS
    assert longest_below(counts, RATE) <= MAX_SECONDS


@pytest.mark.parametrize("round_trip", [0.002, 0.02])
@pytest.mark.parametrize(("burst", "period"), [(0.2, 2.0), (1.0, END)])
def test_session_recovers_from_bursts_of_loss(round_trip: float, burst: float, period: float) -> None:
    clock = Clock()
    link = Bottleneck(clock, RATE, 20)
    for number in range(math.ceil((RECOVERED - BEGIN) / period)):
        begin = BEGIN + number * period
        clock.at(begin, lambda until=begin + burst: setattr(link, "lost_until", until))  # type: ignore[misc]
    counts = delivered_in_tenths(multicast(clock, link, round_trip, TWO), clock)
    assert longest_below(counts, RATE) <= MAX_SECONDS
    assert seconds_to_settle(counts, RECOVERED, RATE) <= MAX_SECONDS


def test_two_sessions_share_a_bottleneck() -> None:
    clock = Clock()
    link = Bottleneck(clock, RATE, 50)
    one, other = shares([multicast(clock, link, 0.02), multicast(clock, link, 0.02)], clock)
    assert one + other > 0.95 and 0.5 < one / other < 2


def test_marks_of_a_queue_slow_the_sender_before_anything_is_lost() -> None:
    clock = Clock()
    link = Bottleneck(clock, RATE, 200, marks_from=30)
    flow = multicast(clock, link, 0.02)
    (share,) = shares([flow], clock)
    assert share > 0.85
    assert flow.lost == 0


@pytest.mark.parametrize(
    ("loss", "receivers", "round_trip", "seconds"),
    [
        (0.001, 1, 0.05, 20.0),
        (0.01, 1, 0.05, 20.0),
        (0.001, 32, 0.05, 20.0),
        (0.05, 32, 0.05, 20.0),
        (0.05, 1, 0.0005, 2.0),
    ],
)
def test_rate_with_random_loss_is_that_of_tcp(loss: float, receivers: int, round_trip: float, seconds: float) -> None:
    """The square-root formula (Mathis and others, 1997), for a link that is no bottleneck.

    Losses of several receivers do not add up, and a lost end of a small window costs no timeout.
    """
    clock = Clock()
    link = Bottleneck(clock, 100 * RATE, 1000)
    flow = multicast(clock, link, round_trip, {str(number): loss for number in range(receivers)})
    clock.at(0.0, flow.start)
    clock.run(seconds)
    expected = math.sqrt(1.5 / loss) / round_trip
    assert 0.6 < flow.delivered / seconds / expected < 1.4


def test_receiver_that_loses_more_than_others_represents_all() -> None:
    clock = Clock()
    link = Bottleneck(clock, 100 * RATE, 1000)
    flow = multicast(clock, link, 0.05, {"a": 0.0, "b": 0.02, "c": 0.001})
    shares([flow], clock)
    assert flow.control.representative == "b"


def test_silent_representative_is_replaced() -> None:
    clock = Clock()
    link = Bottleneck(clock, RATE, 50)
    flow = multicast(clock, link, 0.02)
    clock.at(0.0, flow.start)
    clock.run(1.0)
    silent = flow.control.representative
    assert silent is not None
    flow.silence(silent)
    clock.run(2.0)
    before = flow.delivered
    clock.run(6.0)
    assert flow.control.representative not in {silent, None}
    assert flow.delivered - before > 0.8 * RATE * 4


def test_receiver_that_does_not_keep_up_does_not_represent_others() -> None:
    control = CongestionControl()
    control.admit({"a", "b"})
    control.sent(0, 4, 0.0, 0.001)
    control.receive("late", PathReport(1, 0, 0, 0), 0.01)
    assert control.representative is None
    control.receive("a", PathReport(2, 0, 0, 0), 0.02)
    assert control.representative == "a"
    control.admit({"b"})
    assert control.representative is None
    control.receive("b", PathReport(2, 0, 0, 0), 0.03)
    assert control.representative == "b"


def test_receiver_that_nothing_reaches_is_found_a_second_after_the_first_segment() -> None:
    control = CongestionControl()
    control.admit(("a", "b"))
    assert control.unreached(5.0) == []
    control.sent(0, 4, 5.0, 5.1)
    control.receive("a", PathReport(2, 0, 0, 0), 5.2)
    control.admit(("a", "b", "late"))
    assert control.unreached(5.9) == []
    assert control.unreached(6.2) == ["b"]
    control.sent(4, 8, 8.0, 8.0)
    assert control.unreached(8.9) == ["b"], "nothing has left for the late one until now"
    assert control.unreached(9.1) == ["b", "late"]


def test_receiver_that_loses_its_group_is_found_when_others_have_got_more_for_a_second() -> None:
    control = CongestionControl()
    control.admit(("a", "b"))
    control.sent(0, 4, 5.0, 5.0)
    for name in ("a", "b"):
        control.receive(name, PathReport(2, 0, 0, 0), 5.1)
    assert control.unreached(9.0) == [], "nothing was sent"
    for number in range(1, 11):
        assert control.unreached(9.0 + number / 10) == []
        control.sent(4 * number, 4 * number + 4, 8.9 + number / 10, 8.9 + number / 10)
        control.receive("a", PathReport(4 * number + 4, 0, 0, 0), 9.0 + number / 10)
    assert control.unreached(10.0) == ["b"]


def test_report_without_progress_does_not_change_the_round_trip() -> None:
    """A segment that was sent again would count from the time at which it was sent first."""
    control = CongestionControl()
    control.sent(0, 8, 0.0, 0.0)
    control.receive("a", PathReport(2, 0, 0, 0), 0.01)
    rate = control.rate(1.0)
    control.receive("a", PathReport(2, 0, 0, 0), 1.5)
    assert control.rate(1.0) == rate


def test_group_that_reaches_no_receiver_any_more_is_noticed_after_four_timeouts() -> None:
    control, now, sent = CongestionControl(), 0.0, 0
    control.admit({"a", "b"})
    for passed in (3, 4):
        for _ in range(4):
            assert not control.reaches_none
            control.sent(sent, sent + 2, now, now)
            sent, now = sent + 2, now + 20.0
            # The first call after a report restarts the time.
            assert control.tick(now) or control.tick(now + 20.0)
            now += 20.0
        assert control.reaches_none
        control.receive("a", PathReport(passed, 0, 0, 0), now)
        assert not control.reaches_none
        control.receive("b", PathReport(passed, 0, 0, 0), now)


def test_report_before_anything_was_sent_is_rejected() -> None:
    with pytest.raises(RemoteProtocolError, match="not sent"):
        CongestionControl().receive("a", PathReport(1, 0, 0, 0), 0.0)


@given(st.lists(st.tuples(st.sampled_from(["send", "pass", "lose", "wait"]), st.integers(1, 50)), max_size=60))
def test_window_stays_within_bounds_in_any_sequence(steps: list[tuple[str, int]]) -> None:
    window, sent, now = CongestionWindow(), 0, 0.0
    for step, amount in steps:
        now += 0.001
        before = window.segments
        match step:
            case "send":
                sent += max(0, min(amount, window.room(sent)))
            case "wait":
                now += amount / 100
                window.expire(sent, now)
            case _:
                position = min(sent, window.acknowledged + amount)
                window.measure(0.001 * amount)
                window.acknowledge(position, sent, position if step == "lose" else None, now)
                assert window.segments <= before + amount
                assert step == "pass" or window.segments <= before
        assert window.segments >= 2 and 0 <= window.acknowledged <= sent
        assert 0 < window.rate(12_000) < math.inf


@settings(max_examples=20)
@given(st.integers(1, 400))
def test_one_loss_event_halves_the_window_once(lost: int) -> None:
    """All segments that were in flight at the first loss belong to one event (RFC 5681)."""
    window = CongestionWindow(segments=400.0, threshold=1.0)
    window.acknowledge(1, 400, 1, 0.1)
    assert window.segments == 200
    window.acknowledge(400, 420, lost, 0.2)
    assert window.segments == 200
    window.acknowledge(420, 500, 410, 0.3)
    assert window.segments == 100


def test_second_timeout_in_a_row_keeps_the_threshold() -> None:
    """An outage shows no smaller capacity, however many timeouts it lasts (RFC 5681, section 3.1)."""
    window = CongestionWindow(segments=400.0)
    window.measure(0.01)
    window.acknowledge(1, 400, None, 0.0)
    assert window.expire(400, 1.0) and window.expire(402, 3.0)
    assert (window.segments, window.threshold) == (2, 200.5)


def rounds_of(trips: list[list[float]]) -> list[tuple[float, bool]]:
    """Return the growth of slow start after each round with these round trips, and whether it is over."""
    start, results = SlowStart(), []
    for number, seconds in enumerate(trips):
        for trip in seconds:
            start.measure(trip)
        results.append((start.growth, start.over))
        start.acknowledge(number, number + 1)
    return results


def test_slow_start_ends_when_the_shortest_round_trip_grows_for_five_rounds() -> None:
    assert rounds_of([[0.001] * 8] * 2 + [[0.006] * 8] * 6) == [(1.0, False)] * 2 + [(0.25, False)] * 5 + [(0.25, True)]


@pytest.mark.parametrize("trips", [[0.001] + [0.5] * 8, [0.5] * 7], ids=["one short trip", "few samples"])
def test_slow_start_ignores_long_round_trips_of_a_busy_host(trips: list[float]) -> None:
    assert rounds_of([[0.001] * 8] + [trips] * 9) == [(1.0, False)] * 10


def test_slow_start_resumes_when_round_trips_shorten() -> None:
    grown = [[0.001] * 8] + [[0.006] * 8] * 3
    assert rounds_of([*grown, [0.005] * 8, [0.005] * 8])[-2:] == [(1.0, False)] * 2
