"""Small random matchings, and slow plain answers to compare with."""

from __future__ import annotations

import random
from collections import Counter
from itertools import combinations

from algorithms.b_matching.feasibility import Feasibility, by_count
from algorithms.b_matching.group import Group, directional_ports, members, shared_ports


def matching(rng, racks=8, groups=9, sizes=(4,), most=None, directional=False, budget=2):
    """(groups, feasibility) drawn from `rng`."""
    vertices = directional_ports(racks) if directional else shared_ports
    found = []
    for number in range(groups):
        chosen = rng.sample(range(racks), rng.randint(2, racks))
        weight = rng.choice([1.0, 2.0, 3.0, rng.uniform(0.1, 50)])
        found.append(Group(number, vertices(chosen[0], chosen[1:]), len(chosen), len(chosen) - 1, weight))
    budgets = [rng.randint(0 if rng.random() < 0.1 else 1, budget) for _ in range(racks * (1 + directional))]
    pool = {ways: rng.randint(0, 3) for ways in sizes}
    return found, Feasibility(budgets, pool, by_count(most))


def faults(selection, feasibility, most=None):
    """What is wrong with a selection, counted from scratch: one sentence each."""
    wrong = []
    names = [group.name for group, _ in selection]
    if len(set(names)) < len(names):
        wrong.append("a group is served twice")
    at_vertex = Counter(vertex for group, _ in selection for vertex in members(group.ports))
    wrong += [f"vertex {v} is overdrawn" for v, used in at_vertex.items() if used > max(0, feasibility.left(v))]
    used_of = Counter(ways for _, pieces in selection for ways in pieces)
    wrong += [f"1:{w} is overdrawn" for w, used in used_of.items() if used > feasibility.pool.get(w, 0)]
    for group, pieces in selection:
        if 1 + sum(ways - 1 for ways in pieces) < group.leaves:
            wrong.append(f"{group.name} has too few leaves")
        if most is not None and len(pieces) > most:
            wrong.append(f"{group.name} has too many splitters")
    return wrong


def heaviest(groups, feasibility, most=None):
    """The weight of the best selection, by trying every set of groups with every set of splitters."""
    trees = {}
    supply = [ways for ways, count in feasibility.pool.items() for _ in range(count)]
    for group in groups:
        limit = len(supply) if most is None else min(most, len(supply))
        trees[group.name] = {
            tuple(sorted(pieces))
            for number in range(limit + 1)
            for pieces in combinations(supply, number)
            if 1 + sum(ways - 1 for ways in pieces) >= group.leaves
        }
    ports = {vertex: max(0, feasibility.left(vertex)) for group in groups for vertex in members(group.ports)}

    def best(number, ports, pool):
        if number == len(groups):
            return 0.0
        group = groups[number]
        found = best(number + 1, ports, pool)
        wanted = members(group.ports)
        if all(ports[v] for v in wanted):
            left = ports | {v: ports[v] - 1 for v in wanted}
            for pieces in trees[group.name]:
                rest = pool - Counter(pieces)
                if rest + Counter(pieces) == pool:
                    found = max(found, group.weight + best(number + 1, left, rest))
        return found

    return best(0, ports, Counter(supply))


def seeded(seed):
    """A generator of its own for a test."""
    return random.Random(f"matching/{seed}")
