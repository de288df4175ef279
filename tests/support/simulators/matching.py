"""Small random matchings, with reference solutions: the paper's greedy algorithm, and exhaustive search."""

from __future__ import annotations

import math
import random
from collections import Counter
from itertools import combinations

from algorithms.b_matching.feasibility import Feasibility, by_count
from algorithms.b_matching.group import CompetingGroup, directional_ports, members, shared_ports


def matching(rng, racks=8, groups=9, sizes=(4,), max_pieces=None, directional=False, budget=2):
    """Draw (groups, feasibility) from `rng`."""
    vertices = directional_ports(racks) if directional else shared_ports
    found = []
    for number in range(groups):
        chosen = rng.sample(range(racks), rng.randint(2, racks))
        weight = rng.choice([1.0, 2.0, 3.0, rng.randint(1, 200) / 4, 1e7 + rng.randint(0, 3)])
        found.append(CompetingGroup(number, vertices(chosen[0], chosen[1:]), len(chosen), len(chosen) - 1, weight))
    budgets = [rng.randint(0 if rng.random() < 0.1 else 1, budget) for _ in range(racks * (1 + directional))]
    pool = {fan_out: rng.randint(0, 3) for fan_out in sizes}
    return found, Feasibility(budgets, pool, by_count(max_pieces))


def faults(selection, feasibility, max_pieces=None):
    """Return the faults of a selection, counted from scratch: one sentence each."""
    wrong = []
    names = [group.name for group, _ in selection]
    if len(set(names)) < len(names):
        wrong.append("a group is served twice")
    at_vertex = Counter(vertex for group, _ in selection for vertex in members(group.ports))
    wrong += [f"vertex {v} is overdrawn" for v, used in at_vertex.items() if used > max(0, feasibility.left(v))]
    used_of = Counter(fan_out for _, pieces in selection for fan_out in pieces)
    wrong += [f"1:{w} is overdrawn" for w, used in used_of.items() if used > feasibility.pool.get(w, 0)]
    for group, pieces in selection:
        if 1 + sum(fan_out - 1 for fan_out in pieces) < group.leaves:
            wrong.append(f"{group.name} has too few leaves")
        if max_pieces is not None and len(pieces) > max_pieces:
            wrong.append(f"{group.name} has too many splitters")
    return wrong


def heaviest(groups, feasibility, max_pieces=None):
    """Return the weight of the best selection, by trying every set of groups with every set of splitters."""
    trees = {}
    supply = [fan_out for fan_out, count in feasibility.pool.items() for _ in range(count)]
    for group in groups:
        limit = len(supply) if max_pieces is None else min(max_pieces, len(supply))
        trees[group.name] = {
            tuple(sorted(pieces))
            for number in range(limit + 1)
            for pieces in combinations(supply, number)
            if 1 + sum(fan_out - 1 for fan_out in pieces) >= group.leaves
        }
    ports = {vertex: max(0, feasibility.left(vertex)) for group in groups for vertex in members(group.ports)}

    def best(number, ports, pool):
        if number == len(groups):
            return 0.0
        group = groups[number]
        found = best(number + 1, ports, pool)
        used = members(group.ports)
        if all(ports[v] for v in used):
            left = ports | {v: ports[v] - 1 for v in used}
            for pieces in trees[group.name]:
                rest = pool - Counter(pieces)
                if rest + Counter(pieces) == pool:
                    found = max(found, group.weight + best(number + 1, left, rest))
        return found

    return best(0, ports, Counter(supply))


def seeded(seed):
    """Return a random generator for a test."""
    return random.Random(f"matching/{seed}")


def papers_text(groups, budgets, splitters, fan_out, max_pieces):
    """Apply Blast, section III-C.2, for splitters of one size; `groups` are (name, vertices, racks, weight)."""
    ordered = sorted(groups, key=lambda g: g[3] / g[2], reverse=True)
    cascade = splitters if max_pieces is None else max_pieces
    feasible = [g for g in ordered if g[2] <= 2 or g[2] <= cascade * (fan_out + 1) - 2 * (cascade - 1)]
    selected = []
    for candidate in feasible:
        appeared = {v: sum(v in g[1] for g in selected) for v in candidate[1]}
        consumed = sum(math.ceil((g[2] - 2) / (fan_out - 1)) for g in [*selected, candidate])
        if all(appeared[v] < budgets[v] for v in candidate[1]) and consumed <= splitters:
            selected.append(candidate)
    return [name for name, *_ in selected]


def plain_pieces(leaves, sizes, max_pieces, outputs=1):
    """Choose splitters one after the other: the smallest that covers the rest alone, otherwise the largest."""
    left, taken = sorted(sizes), []
    while outputs < leaves:
        if not left or outputs < 1 or (max_pieces is not None and len(taken) == max_pieces):
            return None
        covering = [n for n in left if outputs - 1 + n >= leaves]
        taken.append(covering[0] if covering else left[-1])
        left.remove(taken[-1])
        outputs += taken[-1] - 1
    return tuple(taken)


class NaiveGreedy:
    """Pending and running groups; every event leads to a scan of all pending groups, best score first."""

    def __init__(self, budgets, pool, max_pieces, allowance):
        self.ports = dict(enumerate(budgets))
        self.sizes = dict(pool)
        self.max_pieces = max_pieces
        self.allowance = dict(allowance)
        self.pending = []
        self.running = {}

    def pieces(self, group):
        """Return the splitters that serve `group` now, or None."""
        if any(self.ports[v] <= 0 for v in vertices(group)):
            return None
        free = [fan_out for fan_out, number in self.sizes.items() for _ in range(number)]
        pieces = plain_pieces(group.leaves, free, self.max_pieces)
        if pieces is None or len(pieces) > self.allowance.get(group.tenant, math.inf):
            return None
        return pieces

    def serve(self):
        """Scan all groups again."""
        found = []
        for group in sorted(self.pending, key=lambda g: g.weight / g.racks, reverse=True):
            pieces = self.pieces(group)
            if pieces is not None:
                self.pending.remove(group)
                self.start(group, pieces)
                found.append((group, pieces))
        return found

    def start(self, group, pieces):
        """Serve `group`, whether it fits or not."""
        self.running[group.name] = (group, pieces)
        self.count(vertices(group), pieces, -1)
        if group.tenant in self.allowance:
            self.allowance[group.tenant] -= len(pieces)

    def end(self, name):
        """Forget a pending or running group."""
        self.pending = [g for g in self.pending if g.name != name]
        if name in self.running:
            group, pieces = self.running.pop(name)
            self.count(vertices(group), pieces, 1)
            if group.tenant in self.allowance:
                self.allowance[group.tenant] += len(pieces)

    def count(self, ports, pieces, change):
        """Add `change` to each of these ports and splitters."""
        for vertex in ports:
            self.ports[vertex] += change
        for fan_out in pieces:
            self.sizes[fan_out] = self.sizes.get(fan_out, 0) + change


def vertices(group):
    """Return the set of a group's vertices."""
    return {v for v in range(group.ports.bit_length()) if group.ports >> v & 1}
