"""The paper's greedy against a plain transcription of its text, on the workload families that stress it.

Families: racks in a row or anywhere, few and many, with unicast pairs among them, equal weights, one port a rack or
several, and adversarial stars.
"""

from __future__ import annotations

import math
import random

from hypothesis import given
from hypothesis import strategies as st

from algorithms.b_matching.paper_greedy import select
from algorithms.b_matching.residual import Group, Residual


def papers_text(groups, ports, splitters, ways, most):
    """Section III-C.2, sentence by sentence."""
    ordered = sorted(groups, key=lambda g: g.volume / len(g.racks), reverse=True)
    most_splitters = splitters if most is None else most
    feasible = [g for g in ordered if len(g.racks) <= most_splitters * (ways + 1) - 2 * (most_splitters - 1)]
    selected = []
    for candidate in feasible:
        appeared = {rack: sum(rack in g.racks for g in selected) for rack in candidate.racks}
        consumed = sum(math.ceil((len(g.racks) - 2) / (ways - 1)) for g in [*selected, candidate])
        if all(appeared[rack] < ports[rack] for rack in candidate.racks) and consumed <= splitters:
            selected.append(candidate)
    return selected


def contiguous(rng, racks, size):
    first = rng.randrange(racks)
    return [(first + n) % racks for n in range(size)]


def anywhere(rng, racks, size):
    return rng.sample(range(racks), size)


def instance(family, seed, racks, groups):
    """A family of weighted groups; `family` is (placement, widths, weights, unicast)."""
    placement, widths, weights, unicast = family
    rng = random.Random(f"{family}/{seed}/{racks}/{groups}")
    found = []
    for number in range(groups):
        size = min(
            racks,
            {"wide": rng.randint(3, 25), "narrow": rng.randint(3, 5), "heavy-tailed": 2 + int(rng.paretovariate(0.8))}[
                widths
            ],
        )
        volume = {"equal": 300.0, "by size": 300.0 * (40 * size - 1), "lognormal": math.exp(rng.gauss(6, 1))}[weights]
        members = (contiguous if placement == "contiguous" else anywhere)(rng, racks, size)
        found.append(Group(number, frozenset(f"r{n}" for n in members), size - 1, volume))
    for number in range(unicast * racks):
        members = rng.sample(range(racks), 2)
        volume = min(12000.0, 100 * math.exp(rng.gauss(0, 1.5)))
        found.append(Group(-1 - number, frozenset(f"r{n}" for n in members), 1, volume))
    return found


FAMILIES = st.tuples(
    st.sampled_from(["contiguous", "anywhere"]),
    st.sampled_from(["wide", "narrow", "heavy-tailed"]),
    st.sampled_from(["equal", "by size", "lognormal"]),
    st.integers(0, 2),
)


@given(
    FAMILIES,
    st.integers(0, 10**6),
    st.integers(4, 40),
    st.integers(1, 60),
    st.integers(0, 20),
    st.sampled_from([2, 3, 4, 8, 16]),
    st.none() | st.integers(0, 8),
    st.sampled_from([(1,), (2,), (1, 2, 4), (0, 1)]),
)
def test_same_selection_as_the_papers_text(family, seed, racks, count, splitters, ways, most, ports):
    groups = instance(family, seed, racks, count)
    each = {f"r{n}": random.Random(f"{seed}/{n}").choice(ports) for n in range(racks)}
    found = select(groups, Residual({"ocs": each}, {"ocs": {ways: splitters}}, most))
    assert [g.name for g, _ in found] == [g.name for g in papers_text(groups, each, splitters, ways, most)]
    for group, choice in found:
        assert choice.ways == (ways,) * math.ceil((len(group.racks) - 2) / (ways - 1))


@given(
    FAMILIES,
    st.integers(0, 10**6),
    st.integers(4, 20),
    st.integers(1, 40),
    st.lists(st.dictionaries(st.sampled_from([2, 4, 8]), st.integers(0, 3)), min_size=1, max_size=3),
)
def test_mixed_pools_on_several_switches_are_never_overdrawn_and_nothing_fitting_is_left(
    family, seed, racks, count, pools
):
    groups = instance(family, seed, racks, count)
    switches = [f"ocs{n}" for n in range(len(pools))]
    rng = random.Random(seed)
    ports = {s: {f"r{n}": rng.randint(0, 2) for n in range(racks)} for s in switches}
    splitters = dict(zip(switches, pools, strict=True))
    left = Residual(ports, splitters)
    found = select(groups, left)
    for switch in switches:
        mine = [(g, c) for g, c in found if c.switch == switch]
        for rack, limit in ports[switch].items():
            assert sum(rack in g.racks for g, _ in mine) <= limit
        for ways in (2, 4, 8):
            assert sum(c.ways.count(ways) for _, c in mine) <= splitters[switch].get(ways, 0)
    for group, choice in found:
        assert 1 + sum(w - 1 for w in choice.ways) >= group.leaves
    served = {g.name for g, _ in found}
    assert all(left.fit(g) is None for g in groups if g.name not in served)


def test_the_star_that_ruins_the_greedy_ruins_ours_too():
    """ADV-star: a bait of slightly better score keeps r good groups out; the greedy takes the bait."""
    r = 10
    good = [Group(n, frozenset(f"{n}/{m}" for m in range(r)), r - 1, float(r)) for n in range(r)]
    bait = Group("bait", frozenset(f"{n}/0" for n in range(r)), r - 1, r * (1 + 1e-6))
    racks = {rack: 1 for g in good for rack in g.racks}
    found = select([*good, bait], Residual({"ocs": racks}, {"ocs": {4: r * r}}))
    assert [g.name for g, _ in found] == ["bait"]
