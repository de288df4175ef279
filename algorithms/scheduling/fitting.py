"""Fit of a job, or a part of it, on a switch; and the resources that block it otherwise."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from algorithms.b_matching.feasibility import Feasibility, Pieces
from algorithms.b_matching.group import CompetingGroup, members
from algorithms.scheduling.job import Job
from algorithms.scheduling.queues import Token


@dataclass(slots=True)
class Switch:
    """An optical switch: its free resources now, and those of the idle switch."""

    name: str
    free: Feasibility
    capacity: Feasibility


@dataclass(frozen=True, slots=True)
class JobOffer:
    """A job (or the part of it that fits) and the splitters for it."""

    job: Job
    switch: Switch
    pieces: Pieces


@dataclass(frozen=True, slots=True)
class Hold:
    """Resources held for the job that has been overdue longest, on the switches that could serve it when idle.

    On the `whole` switches the counts suffice but the placement was refused: every splitter there is kept free.
    """

    job: Job
    switches: frozenset[str]
    whole: frozenset[str] = frozenset()

    @property
    def token(self) -> Token:
        """The queue of jobs that wait for the end of the hold."""
        return ("hold", self.job.name, 0)

    def ports(self, switch: Switch) -> int:
        """Return the port vertices that other jobs must not use."""
        return self.job.group.ports if switch.name in self.switches else 0

    def lacks(self, switch: Switch, pieces: Pieces) -> bool:
        """Return whether taking these pieces would leave too few splitters for the held job."""
        if not pieces or switch.name not in self.switches:
            return False
        if switch.name in self.whole:
            return True
        pool = switch.free.pool
        for fan_out in pieces:
            pool[fan_out] -= 1
        lacks = not has_splitters(switch.free, self.job.group.leaves)
        for fan_out in pieces:
            pool[fan_out] += 1
        return lacks


def has_splitters(free: Feasibility, leaves: int) -> bool:
    """Return whether the pool suffices for a tree with `leaves` leaves."""
    return pieces_for(free, leaves) is not None


def pieces_for(free: Feasibility, leaves: int) -> Pieces | None:
    """Return the splitters that a tree with `leaves` leaves would take, or None."""
    return free.fit(CompetingGroup("", 0, 0, leaves, 0.0))


def offer(job: Job, fewest: int, switch: Switch, hold: Hold | None) -> JobOffer | list[Token]:
    """Return an offer of the switch for the job, or the resources that block it while all of them stay closed.

    `fewest` is the minimum number of receivers of a separate part; more are served if they are free. If splitters do
    not suffice for all free receivers, the first `fewest` are tried.
    """
    full = switch.free.full
    taken = full if hold is None else full | hold.ports(switch)
    busy = taken & job.group.ports
    job_now = job
    if busy:
        if busy & job.sender:
            return _blockers(job.sender, full, switch, hold)
        # With this many ports busy, fewer than `fewest` are free.
        watched = job.group.ports.bit_count() - fewest
        if busy.bit_count() >= watched:
            return _blockers(_first_bits(busy, watched), full, switch, hold)
        job_now = job.only(job.receivers & ~busy)
    pieces = switch.free.fit(job_now.group)
    if pieces is None and job_now.receivers.bit_count() > fewest:
        job_now = job.only(_first_bits(job_now.receivers, fewest))
        pieces = switch.free.fit(job_now.group)
    if pieces is None:
        return [("pool", switch.name, job_now.group.leaves)]
    if hold is not None and hold.lacks(switch, pieces):
        return [hold.token]
    return JobOffer(job_now, switch, pieces)


def continued(job: Job, switch: Switch, pieces: Pieces, hold: Hold | None) -> JobOffer | None:
    """Return an offer of the same resources, if all of them are still free and not held for another job."""
    pool = switch.free.pool
    if switch.free.full & job.group.ports or any(pool[fan_out] < pieces.count(fan_out) for fan_out in pieces):
        return None
    if hold is not None and (hold.ports(switch) & job.group.ports or hold.lacks(switch, pieces)):
        return None
    return JobOffer(job, switch, pieces)


def with_pieces(found: JobOffer, pieces: Pieces, hold: Hold | None) -> JobOffer:
    """Return the offer with these splitters instead, if they are free, suffice and are not held for another job."""
    needed, free = Counter(pieces), found.switch.free
    if any(free.pool.get(fan_out, 0) < count for fan_out, count in needed.items()):
        return found
    alone = free.copy()
    alone.pool.clear()
    alone.pool.update(needed)
    built = alone.splitters(found.job.group.leaves)
    if built is None or (hold is not None and hold.lacks(found.switch, built)):
        return found
    return replace(found, pieces=built)


def kept_free(switch: Switch, hold: Hold) -> Feasibility:
    """Return a copy of the free resources, without the held splitters."""
    left = switch.free.copy()
    if switch.name in hold.switches:
        held = None if switch.name in hold.whole else left.splitters(hold.job.group.leaves)
        if held is None:
            left.pool.clear()
        for fan_out in held or ():
            left.pool[fan_out] -= 1
    return left


def split(job: Job, part: Job) -> tuple[Job, Job | None]:
    """Return the part that is served, and the part that waits. Each may be split again half as often as the whole.

    So a paused part need not wait for all of its receivers at once.
    """
    left = job.receivers & ~part.receivers
    if not left:
        return part, None
    here = job.parts // 2
    return replace(part, parts=here), replace(job.only(left), number=job.number + here, parts=job.parts - here)


def _blockers(ports: int, full: int, switch: Switch, hold: Hold | None) -> list[Token]:
    tokens: list[Token] = [("port", switch.name, vertex) for vertex in members(ports & full)]
    if hold is not None and ports & ~full:
        tokens.append(hold.token)
    return tokens


def _first_bits(mask: int, count: int) -> int:
    rest = mask
    for _ in range(count):
        rest &= rest - 1
    return mask ^ rest
