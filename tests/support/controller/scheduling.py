"""A virtual clock around the scheduler, which checks after every event that nothing is used twice or left idle."""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from algorithms.b_matching.feasibility import Feasibility
from algorithms.b_matching.group import Vertices, members, shared_ports
from algorithms.scheduling.job import Job, PartName, multicast
from algorithms.scheduling.policy import Policy, State
from algorithms.scheduling.scheduler import Scheduler
from algorithms.scheduling.selection import Selection, Start

SET_UP = 0.025


def job(
    request: object,
    racks: Sequence[int],
    seconds: float,
    at: float = 0.0,
    vertices: Vertices = shared_ports,
    **more: object,
) -> Job:
    """Return a job from the first rack to the others."""
    group = multicast(request, racks, seconds, vertices, str(more.pop("tenant", "")))
    return replace(Job(request, group, vertices(racks[0], ()), seconds, at), **more)  # type: ignore[arg-type]


class Clock:
    """A clock that executes the decisions of the scheduler. `budgets` and `pools` by switch are the total resources."""

    def __init__(
        self, policy: Policy, budgets: dict[str, list[int]], pools: dict[str, dict[int, int]], **more: object
    ) -> None:
        self.policy, self.budgets, self.pools = policy, budgets, pools
        switches = {name: Feasibility(budgets[name], pools[name]) for name in budgets}
        self.scheduler = Scheduler(policy, switches, State(SET_UP), **more)  # type: ignore[arg-type]
        self.now = 0.0
        self.ends: list[tuple[float, int, PartName, bool]] = []
        self.sequence = 0
        self.lit: dict[PartName, Start] = {}
        self.lit_at: dict[PartName, float] = {}
        self.started: dict[PartName, float] = {}
        self.done: dict[PartName, float] = {}
        self.sent: Counter[PartName] = Counter()
        self.receivers: dict[PartName, int] = {}

    def arrive(self, new: Job) -> Selection:
        return self.play(self.scheduler.arrive(new, self.now))

    def withdraw(self, name: PartName) -> Selection:
        self.lit.pop(name, None)
        self.ends = [end for end in self.ends if end[2] != name]
        heapq.heapify(self.ends)
        return self.play(self.scheduler.withdraw(name, self.now))

    @property
    def next_end(self) -> float:
        return self.ends[0][0] if self.ends else math.inf

    def step(self) -> PartName:
        """Advance to the end of the next lease."""
        self.now, _, name, last = heapq.heappop(self.ends)
        start = self.lit.pop(name)
        self.sent[name] += start.seconds
        if last:
            self.done[name] = self.now
            self.play(self.scheduler.complete(name, self.now))
        else:
            before = start.job.name
            selection = self.play(self.scheduler.lease_end(name, self.now))
            goes_on = any(s.job.name == before and s.job.continues for s in selection.starts)
            assert (selection.paused is None) == goes_on
        return name

    def run(self, until: float = math.inf) -> None:
        while self.ends and self.next_end <= until:
            self.step()
        if until < math.inf:
            self.now = max(self.now, until)

    def play(self, selection: Selection) -> Selection:
        for start in selection.starts:
            name = start.job.name
            assert name not in self.lit
            self.lit[name], self.lit_at[name] = start, self.now
            self.started.setdefault(name, self.now)
            if start.rest is not None:
                self.sent[start.rest.name] = self.sent[name]
            self.receivers[name] = start.job.receivers
            self.sequence += 1
            end = self.now + (0.0 if start.job.continues else SET_UP) + start.seconds
            heapq.heappush(self.ends, (end, self.sequence, name, start.last))
        self.check()
        return selection

    # ------------------------------------------------------------------------------------ invariants

    def left(self, switch: str) -> tuple[list[int], dict[int, int]]:
        """Return the unused ports and splitters, counted from the lit trees."""
        ports, pool = self.budgets[switch][:], dict(self.pools[switch])
        for start in self.lit.values():
            if start.switch == switch:
                for vertex in members(start.job.group.ports):
                    ports[vertex] -= 1
                for fan_out in start.pieces:
                    pool[fan_out] -= 1
        return ports, pool

    def check(self) -> None:
        """Check that no resource is used twice, trees are large enough, and no group waits that could be served."""
        assert {start.job.name for start in self.scheduler.running} == set(self.lit)
        for start in self.lit.values():
            assert 1 + sum(fan_out - 1 for fan_out in start.pieces) >= start.job.group.leaves
            assert start.job.group.leaves == start.job.receivers.bit_count()
        for switch in self.budgets:
            ports, pool = self.left(switch)
            assert min(ports, default=0) >= 0 <= min(pool.values(), default=0)
            if self.scheduler.holder is None:
                for waiting in self.scheduler.waiting:
                    assert not self.could_start(waiting, ports, pool), (waiting, ports, pool)

    def could_start(self, waiting: Job, ports: list[int], pool: dict[int, int]) -> bool:
        """Return True if a group could start, by counting, with the minimum number of receivers of the policy."""
        if not all(ports[vertex] for vertex in members(waiting.sender)):
            return False
        free = sum(1 for vertex in members(waiting.receivers) if ports[vertex])
        fewest = self.policy.fewest_receivers(waiting)
        leaves = 1 + sum((fan_out - 1) * count for fan_out, count in pool.items())
        return free >= fewest and leaves >= fewest


class Plain:
    """The oracle: the same decisions by trying all pending groups, best first, at every event. One switch, no aging."""

    def __init__(self, policy: Policy, free: Feasibility) -> None:
        self.policy, self.free, self.state = policy, free, State(SET_UP)
        self.waiting: dict[PartName, Job] = {}
        self.light: dict[PartName, tuple[Job, tuple[int, ...]]] = {}
        self.places: dict[PartName, int] = {}

    def arrive(self, new: Job, now: float) -> list[tuple[PartName, int]]:
        self.add(new)
        return self.serve(now)

    def add(self, new: Job) -> None:
        self.waiting[new.name] = new
        self.places[new.name] = len(self.places)

    def end(self, name: PartName, seconds: float, last: bool, now: float) -> list[tuple[PartName, int]]:
        held, pieces = self.light.pop(name)
        self.free.give_back(held.group, pieces)
        if last:
            return self.serve(now)
        self.waiting[name] = replace(held.after(seconds), continues=True)
        return self.serve(now, pieces)

    def rank(self, waiting: Job, now: float) -> tuple[float, float, int]:
        return (-waiting.priority, self.policy.key(waiting, now, self.state), self.places[waiting.name])

    def serve(self, now: float, pieces_before: tuple[int, ...] = ()) -> list[tuple[PartName, int]]:
        chosen = []
        order = [(self.rank(waiting, now), name) for name, waiting in self.waiting.items()]
        heapq.heapify(order)
        while order:
            _, name = heapq.heappop(order)
            waiting = self.waiting[name]
            served = self.fit(waiting, pieces_before if waiting.continues else None)
            if served is None:
                if waiting.continues:
                    self.waiting[name] = replace(waiting, continues=False)
                    heapq.heappush(order, (self.rank(self.waiting[name], now), name))
                continue
            part, pieces = served
            del self.waiting[name]
            left = waiting.receivers & ~part.receivers
            if left:
                half = waiting.parts // 2
                part = replace(part, parts=half)
                rest = replace(waiting.only(left), number=waiting.number + half, parts=half)
                self.add(rest)
                heapq.heappush(order, (self.rank(rest, now), rest.name))
            self.free.take(part.group, pieces)
            self.light[name] = (part, pieces)
            chosen.append((name, part.receivers))
        return chosen

    def fit(self, waiting: Job, pieces_before: tuple[int, ...] | None) -> tuple[Job, tuple[int, ...]] | None:
        if pieces_before is not None:
            if self.free.full & waiting.group.ports:
                return None
            left = Counter(self.free.pool)
            left.subtract(pieces_before)
            return None if min(left.values(), default=0) < 0 else (waiting, pieces_before)
        if self.free.full & waiting.sender:
            return None
        fewest = self.policy.fewest_receivers(waiting)
        free = [vertex for vertex in members(waiting.receivers) if not self.free.full >> vertex & 1]
        for count in (len(free), fewest):
            if fewest <= count <= len(free):
                part = waiting.only(sum(1 << vertex for vertex in free[:count]))
                pieces = self.free.fit(part.group)
                if pieces is not None:
                    return part, pieces
        return None
