"""Policies over time: decisions against an oracle that tries every job, conservation, and the bound on waiting."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.b_matching.feasibility import Feasibility
from algorithms.b_matching.group import Vertices, directional_ports, shared_ports
from algorithms.scheduling import POLICIES
from algorithms.scheduling.job import MAX_PARTS, Job, PartName
from algorithms.scheduling.policy import Policy, State
from algorithms.scheduling.srpt_lease import ShortestRemaining
from tests.support.controller.scheduling import SET_UP, Clock, Plain, job

RACKS = 9
EXACT = [name for name, policy in POLICIES.items() if not policy.keys_fall]
"""Policies that serve jobs in the exact order of their keys, so that every event can be compared with the oracle."""


class NothingAges(Policy):
    """Another policy without overdue jobs."""

    def __init__(self, inner: Policy) -> None:
        self.inner = inner
        self.quantum = inner.quantum  # type: ignore[method-assign]
        self.fewest_receivers = inner.fewest_receivers  # type: ignore[method-assign]
        self.keys_fall = inner.keys_fall

    def key(self, job: Job, now: float, state: State) -> float:
        return self.inner.key(job, now, state)

    def max_wait(self, job: Job) -> float:
        return math.inf


@dataclass(frozen=True)
class Ask:
    """The next arrival, `after` seconds later."""

    after: float
    seconds: float
    racks: list[int]
    may_split: bool
    priority: int


asks = st.lists(
    st.builds(
        Ask,
        after=st.sampled_from([0.0, 0.01, 0.2, 0.6]),
        seconds=st.floats(0.01, 4.0),
        racks=st.lists(st.integers(0, RACKS - 1), min_size=2, max_size=RACKS, unique=True),
        may_split=st.booleans(),
        priority=st.sampled_from([0, 0, 0, 1]),
    ),
    max_size=25,
)
pools = st.fixed_dictionaries({4: st.integers(0, 4), 16: st.integers(0, 1)})


def numbering(directional: bool) -> tuple[Vertices, int]:
    return (directional_ports(RACKS), 2 * RACKS) if directional else (shared_ports, RACKS)


def job_of(name: int, ask: Ask, now: float, vertices: Vertices) -> Job:
    return job(
        name, ask.racks, ask.seconds, now, vertices, parts=MAX_PARTS if ask.may_split else 1, priority=ask.priority
    )


@pytest.mark.parametrize("policy", EXACT)
@settings(max_examples=100, deadline=None)
@given(asks=asks, pool=pools, directional=st.booleans(), ports=st.integers(1, 2))
def test_decision_equals_trial_of_every_pending_job(
    policy: str, asks: list[Ask], pool: dict[int, int], directional: bool, ports: int
) -> None:
    vertices, count = numbering(directional)
    rule = NothingAges(POLICIES[policy])
    clock = Clock(rule, {"ocs": [ports] * count}, {"ocs": pool})
    plain = Plain(rule, Feasibility([ports] * count, pool))
    chosen: list[tuple[PartName, int]] = []
    play = clock.play

    def recorded(selection):  # type: ignore[no-untyped-def]
        chosen[:] = [(start.job.name, start.job.receivers) for start in selection.starts]
        return play(selection)

    clock.play = recorded  # type: ignore[method-assign]

    def step() -> None:
        name, last = clock.ends[0][2:]
        seconds = clock.lit[name].seconds
        clock.step()
        assert plain.end(name, seconds, last, clock.now) == chosen

    for number, ask in enumerate(asks):
        until = clock.now + ask.after
        while clock.next_end <= until:
            step()
        clock.now = until
        new = job_of(number, ask, clock.now, vertices)
        clock.arrive(new)
        assert plain.arrive(new, clock.now) == chosen
    while clock.ends:
        step()


@pytest.mark.parametrize("policy", sorted(POLICIES))
@settings(max_examples=50, deadline=None)
@given(asks=asks, pool=pools, directional=st.booleans(), withdrawn=st.sets(st.integers(0, 24)))
def test_every_receiver_gets_whole_volume_once(
    policy: str, asks: list[Ask], pool: dict[int, int], directional: bool, withdrawn: set[int]
) -> None:
    vertices, count = numbering(directional)
    # Two unlike switches: the second has no ports on the first three racks, and another pool.
    budgets = {"a": [1] * count, "b": [0 if v % RACKS < 3 else 1 for v in range(count)]}
    clock = Clock(POLICIES[policy], budgets, {"a": pool, "b": {4: 2}})
    jobs = {}
    for number, ask in enumerate(asks):
        clock.run(clock.now + ask.after)
        jobs[number] = job_of(number, ask, clock.now, vertices)
        clock.arrive(jobs[number])
        if number in withdrawn:
            for part in range(MAX_PARTS):
                if (number, part) in clock.scheduler._places:
                    clock.withdraw((number, part))
            del jobs[number]
    clock.run()
    stuck = {waiting.request for waiting in clock.scheduler.waiting}
    for number, whole in jobs.items():
        parts = [name for name in clock.done if name[0] == number]
        assert len(parts) <= MAX_PARTS and len(parts) <= whole.parts
        if number in stuck:
            # Only hardware that can never serve it keeps a job for ever.
            assert 1 + 3 * pool[4] + 15 * pool[16] < len(asks[number].racks) - 1
            continue
        served = 0
        for name in parts:
            assert not served & clock.receivers[name]
            served |= clock.receivers[name]
            assert clock.sent[name] == pytest.approx(whole.size)
        assert served == whole.receivers


class FastAging(ShortestRemaining):
    """The default, overdue sooner, so that a test sees many overdue jobs."""

    def max_wait(self, job: Job) -> float:
        return 2.0 * max(0.5, job.size)


class NoAging(ShortestRemaining):
    """The default without aging."""

    def max_wait(self, job: Job) -> float:
        return math.inf


def longest_start(clock: Clock, target: Job) -> float:
    """Return the bound of the scheduler's docstring on the start of the target, at its due time (now)."""
    due = clock.now
    lease = 1.25 * 0.5 + SET_UP
    bound = due + lease
    known = [*clock.scheduler.waiting, *(start.job for start in clock.lit.values())]
    for other in known:
        if other.name == target.name or other.submitted_at + clock.policy.max_wait(other) > due:
            continue
        remaining = other.remaining
        if other.name in clock.lit:
            set_up = 0.0 if other.continues else SET_UP
            remaining -= max(0.0, due - clock.lit_at[other.name] - set_up)
        bound += other.parts * (lease + remaining + SET_UP)
    return bound


def starve(
    policy: Policy, before: list[Ask], hits: list[int], wide: list[int], seconds: float, each_end: int
) -> tuple[float, float]:
    """Return the start of a wide job and its bound, with `each_end` small jobs on its racks after each lease."""
    clock = Clock(policy, {"ocs": [1] * RACKS}, {"ocs": {4: 3}})
    for number, ask in enumerate(before):
        clock.run(clock.now + ask.after)
        clock.arrive(job_of(number, ask, clock.now, shared_ports))
    small = 0

    def hit() -> None:
        nonlocal small
        rack = wide[hits[small % len(hits)] % len(wide)]
        others = [(rack + 1 + small % 3) % RACKS, (rack + 5) % RACKS][: 1 + small % 2]
        small += 1
        clock.arrive(job(f"small {small}", [rack, *others], 0.01 * (1 + small % 20), clock.now))

    hit()
    target = job("target", wide, seconds, clock.now, parts=1)
    due = target.submitted_at + FastAging().max_wait(target)
    hit()
    clock.arrive(target)
    bound = math.inf
    while target.name not in clock.started:
        if clock.now > due + 200:
            return math.inf, bound
        if bound == math.inf and clock.next_end > due:
            clock.now = due
            bound = longest_start(clock, target)
        if clock.ends:
            clock.step()
        for _ in range(each_end):
            hit()
    return clock.started[target.name], bound


adversaries = {
    "before": asks,
    "hits": st.lists(st.integers(0, RACKS - 1), min_size=1, max_size=12),
    "wide": st.lists(st.integers(0, RACKS - 1), min_size=3, max_size=RACKS, unique=True),
    "seconds": st.floats(0.01, 3.0),
    "each_end": st.integers(1, 2),
}


@settings(max_examples=150, deadline=None)
@given(**adversaries)
def test_no_adversary_delays_a_job_beyond_the_bound(
    before: list[Ask], hits: list[int], wide: list[int], seconds: float, each_end: int
) -> None:
    start, bound = starve(FastAging(), before, hits, wide, seconds, each_end)
    assert start <= bound + 1e-9


def test_adversary_starves_job_without_aging() -> None:
    wide, hits = list(range(RACKS - 1)), [1, 5, 2, 6, 3, 7, 4, 0]
    start, bound = starve(FastAging(), [], hits, wide, 3.0, 1)
    assert start <= bound < 50
    start, _ = starve(NoAging(), [], hits, wide, 3.0, 1)
    assert start == math.inf


def test_tenants_with_constant_backlog_share_by_weight() -> None:
    weights = {"one": 1.0, "three": 3.0}
    clock = Clock(POLICIES["fair-share"], {"ocs": [1] * 3}, {"ocs": {4: 1}})
    clock.scheduler.state.tenants._weights.update(weights)
    for number in range(40):
        clock.arrive(job(number, [0, 1, 2], 1.0, 0.0, tenant="one"))
        clock.arrive(job(100 + number, [0, 1, 2], 7.0, 0.0, tenant="three"))
    had: defaultdict[str, float] = defaultdict(float)
    while clock.now < 9.0:
        start = next(iter(clock.lit.values()))
        had[start.job.group.tenant] += start.seconds
        clock.step()
    assert had["three"] / had["one"] == pytest.approx(3.0, rel=0.5)
