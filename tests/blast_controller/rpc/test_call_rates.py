"""Token buckets: never more than the burst and the rate allow, never less than the rate, and no memory of the idle."""

from hypothesis import given
from hypothesis import strategies as st

from blast_controller.rpc.clients import rates
from blast_controller.rpc.clients.rates import CallRates, Rate

STEPS = st.lists(st.tuples(st.floats(0, 3), st.sampled_from("ab")), max_size=80)


@given(STEPS, st.floats(0.1, 10), st.integers(1, 10))
def test_calls_in_every_window_are_limited_to_burst_and_rate(steps, per_second, burst):
    buckets, now, taken = CallRates(Rate(per_second, burst)), 0.0, {"a": [], "b": []}
    for pause, account in steps:
        now += pause
        wait = buckets.seconds_until_free(account, now)
        if wait == 0.0:
            taken[account].append(now)
            for first, begin in enumerate(taken[account]):
                assert len(taken[account]) - first <= burst + per_second * (now - begin) + 1e-6
        else:
            assert 0 < wait <= 1 / per_second + 1e-9
            assert buckets.seconds_until_free(account, now) == wait, "a refusal costs nothing"


@given(STEPS, st.floats(0.1, 10), st.integers(1, 10))
def test_caller_within_the_rate_is_never_refused(steps, per_second, burst):
    buckets, now = CallRates(Rate(per_second, burst)), {"a": 0.0, "b": 0.0}
    for pause, account in steps:
        now[account] += 1 / per_second + pause + 1e-9
        assert buckets.seconds_until_free(account, now[account]) == 0.0


def test_refused_caller_gets_the_time_until_the_next_call():
    buckets = CallRates(Rate(per_second=2.0, burst=3))
    assert [buckets.seconds_until_free("a", 10.0) for _ in range(4)] == [0.0, 0.0, 0.0, 0.5]
    assert buckets.seconds_until_free("a", 10.5) == 0.0
    assert buckets.seconds_until_free("a", 10.5) == 0.5


def test_memory_for_many_accounts_is_bounded(monkeypatch):
    monkeypatch.setattr(rates, "MAX_ACCOUNTS", 100)
    buckets = CallRates(Rate(per_second=1.0, burst=2))
    for number in range(10_000):
        assert buckets.seconds_until_free(number, now=0.0) == 0.0
        assert len(buckets._spent) <= 101
    for number in range(10_000):
        buckets.seconds_until_free(number, now=100.0 + number)
    assert len(buckets._spent) <= 101
