"""The paper's greedy, sentence by sentence, with dictionaries and sets: slow, plain, and nothing of ours inside."""

from __future__ import annotations

import math


def papers_text(groups, budgets, splitters, ways, most):
    """Blast, section III-C.2, for splitters of one size; `groups` are (name, set of vertices, racks, weight)."""
    ordered = sorted(groups, key=lambda g: g[3] / g[2], reverse=True)
    cascade = splitters if most is None else most
    feasible = [g for g in ordered if g[2] <= 2 or g[2] <= cascade * (ways + 1) - 2 * (cascade - 1)]
    selected = []
    for candidate in feasible:
        appeared = {v: sum(v in g[1] for g in selected) for v in candidate[1]}
        consumed = sum(math.ceil((g[2] - 2) / (ways - 1)) for g in [*selected, candidate])
        if all(appeared[v] < budgets[v] for v in candidate[1]) and consumed <= splitters:
            selected.append(candidate)
    return [name for name, *_ in selected]


def plain_pieces(leaves, sizes, most):
    """One splitter after the other: the smallest left that covers the rest alone, else the largest left."""
    left, taken, legs = sorted(sizes), [], 1
    while legs < leaves:
        if not left or (most is not None and len(taken) == most):
            return None
        covering = [n for n in left if legs - 1 + n >= leaves]
        taken.append(covering[0] if covering else left[-1])
        left.remove(taken[-1])
        legs += taken[-1] - 1
    return tuple(taken)


class NaiveGreedy:
    """Pending and running groups; every event is followed by a look at every pending group, best score first."""

    def __init__(self, budgets, pool, most, allowance):
        self.ports = dict(enumerate(budgets))
        self.sizes = dict(pool)
        self.most = most
        self.allowance = dict(allowance)
        self.pending = []
        self.running = {}

    def pieces(self, group):
        """The splitters that serve `group` now, or None."""
        if any(self.ports[v] <= 0 for v in vertices(group)):
            return None
        free = [ways for ways, number in self.sizes.items() for _ in range(number)]
        pieces = plain_pieces(group.leaves, free, self.most)
        if pieces is None or len(pieces) > self.allowance.get(group.tenant, math.inf):
            return None
        return pieces

    def serve(self):
        """Rescan all."""
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
        for ways in pieces:
            self.sizes[ways] = self.sizes.get(ways, 0) + change


def vertices(group):
    """The set of a group's vertices."""
    return {v for v in range(group.ports.bit_length()) if group.ports >> v & 1}
