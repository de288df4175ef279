"""The incremental greedy against a rescan of all pending groups after every event."""

from __future__ import annotations

import random
from itertools import count

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from algorithms.b_matching.feasibility import Feasibility, by_count
from algorithms.b_matching.group import Group, bits
from algorithms.b_matching.incremental import IncrementalGreedy
from tests.support.greedy_oracle import NaiveGreedy, vertices

VERTICES = 7
TENANTS = ("open", "limited", "poor")
seeds = st.integers(0, 10**9)
few_pieces = st.lists(st.sampled_from([2, 4, 8]), max_size=2).map(tuple)
some_ports = st.sets(st.integers(0, VERTICES - 1), max_size=2)


class Events(RuleBasedStateMachine):
    """Arrivals, ends, withdrawals, quarantines, repairs, allowances and adoptions in any order."""

    @initialize(
        most_ports=st.sampled_from([1, 2, 5]),
        seed=seeds,
        pool=st.dictionaries(st.sampled_from([2, 4, 8]), st.integers(0, 3)),
        most=st.none() | st.integers(0, 3),
        allowance=st.dictionaries(st.sampled_from(TENANTS[1:]), st.integers(-1, 3)),
    )
    def idle(self, most_ports, seed, pool, most, allowance):
        rng = random.Random(seed)
        budgets = [rng.randint(0, most_ports) for _ in range(VERTICES)]
        self.ours = IncrementalGreedy(Feasibility(budgets, pool, by_count(most)), allowance)
        self.naive = NaiveGreedy(budgets, pool, most, allowance)
        self.names = count()
        self.away = []

    def new_group(self, rng):
        racks = rng.choice([2, 2, 3, 4, 5, 7])
        ports = bits(rng.sample(range(VERTICES), racks))
        return Group(next(self.names), ports, racks, racks - 1, float(racks * rng.randint(1, 4)), rng.choice(TENANTS))

    @rule(seed=seeds, arrivals=st.integers(0, 6), ends=st.integers(0, 2), withdrawals=st.integers(0, 2))
    def decide(self, seed, arrivals, ends, withdrawals):
        rng = random.Random(seed)
        arrived = [self.new_group(rng) for _ in range(arrivals)]
        running, pending = list(self.naive.running), [g.name for g in self.naive.pending]
        ended = rng.sample(running, min(ends, len(running))) + rng.sample(pending, min(withdrawals, len(pending)))
        rng.shuffle(ended)
        for name in ended:
            self.naive.end(name)
        self.naive.pending += arrived
        assert self.ours.decide(arrived, ended) == self.naive.serve()

    @rule(ports=some_ports, pieces=few_pieces)
    def withhold(self, ports, pieces):
        self.away.append((ports, pieces))
        self.ours.withhold(bits(ports), pieces)
        self.naive.count(ports, pieces, -1)

    @precondition(lambda self: self.away)
    @rule(seed=seeds)
    def repair(self, seed):
        self.bring(*self.away.pop(random.Random(seed).randrange(len(self.away))))

    @rule(ports=some_ports, pieces=few_pieces)
    def bring(self, ports, pieces):
        self.naive.count(ports, pieces, 1)
        assert self.ours.restore(bits(ports), pieces) == self.naive.serve()

    @rule(tenant=st.sampled_from(TENANTS), splitters=st.none() | st.integers(-1, 4))
    def allow(self, tenant, splitters):
        if splitters is None:
            self.naive.allowance.pop(tenant, None)
        else:
            self.naive.allowance[tenant] = splitters
        assert self.ours.allow(tenant, splitters) == self.naive.serve()

    @rule(seed=seeds, pieces=few_pieces)
    def adopt(self, seed, pieces):
        group = self.new_group(random.Random(seed))
        self.naive.start(group, pieces)
        self.ours.adopt(group, pieces)

    @invariant()
    def same_books(self):
        assert list(self.ours.pending) == self.naive.pending
        assert self.ours.running == self.naive.running

    @invariant()
    def no_wake_up_is_lost(self):
        assert all(self.naive.pieces(group) is None for group in self.naive.pending)


TestEvents = Events.TestCase
TestEvents.settings = settings(max_examples=100, stateful_step_count=30)


@pytest.mark.parametrize("splitters", [3, 300])
def test_long_run_with_many_pending(splitters):
    """Where ports bind and where splitters bind, with one port a rack; also that nothing is ever overdrawn."""
    rng = random.Random(f"long/{splitters}")
    ours = IncrementalGreedy(Feasibility([1] * 60, {4: splitters}))
    naive = NaiveGreedy([1] * 60, {4: splitters}, None, {})
    for number in range(700):
        racks = min(20, 2 + int(rng.paretovariate(0.8)))
        ports = bits(rng.sample(range(60), racks))
        group = Group(number, ports, racks, racks - 1, racks * rng.choice([1.0, 2.0, rng.random()]))
        ended = rng.sample(list(naive.running), len(naive.running) // 2) if number % 4 == 0 else []
        for name in ended:
            naive.end(name)
        naive.pending.append(group)
        assert ours.decide([group], ended) == naive.serve()
        assert len({v for g, _ in ours.running.values() for v in vertices(g)}) == sum(
            g.racks for g, _ in ours.running.values()
        )
        assert sum(len(pieces) for _, pieces in ours.running.values()) <= splitters
    assert len(ours.pending) > 100
