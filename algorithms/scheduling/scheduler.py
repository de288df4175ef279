"""The scheduler: one policy over the optical switches, event by event.

Theory of operation. Every event (a job arrives, completes, is withdrawn or changed; a lease ends; hardware fails or
returns) frees certain resources, and only jobs that wait for those are tried, best rank first. When a lease ends, its
job releases its resources and competes with the jobs that wait for any of them. If no job ranks better, it continues
without a set-up; otherwise it is paused and continues later at the byte where it stopped.

Starvation. A small group on free ports may always be served at once, so a wide one could wait forever until all its
racks happen to be free together. Hence a part is overdue `max_wait` after its request's submission. Of the overdue
waiting parts, the one that has been due longest is tried before all others, whatever its key or priority, and while it
cannot start it is the holder: no other part may start, or continue after its lease, on its ports or with splitters that
it lacks. Quanta are short, so held resources are idle for at most one lease.

Bound. Let due(j) = submitted(j) + max_wait(j), L the longest lease (1.25 x quantum + set-up; the longest service if a
running part may not be paused), B(j) the parts with an earlier due time that are unfinished at due(j), c(i) the seconds
that part i then still needs, one set-up included, and p(i) the number of parts into which it may still be split. Then,
on hardware that does not fail and under any load, a part j that its tenant's limit allows to start does so by

    due(j) + L + sum over i in B(j) of p(i) (L + c(i)).

Proof. Jobs that arrive after due(j) are due later. While j waits after due(j), let h be the part due earliest of the
unfinished ones: one of B(j), or j. If h is running, it keeps its resources, because it is tried first at the end of
each lease. Otherwise it is the holder: within L all leases on the resources that it needs have ended, none was renewed,
and it starts. So each part of B(j) takes at most L + c(i), once, and j itself L.

Placement. A job that fits by count may have no feasible light tree (a power budget), so `placing` is called before a
job starts. A job that was refused on a switch waits until that switch gains any resource, and as the holder it keeps
every splitter there free, with its ports: within L it is placed with nothing else lit on the resources that it needs,
and if that fails no tree exists. So the bound holds if placement succeeds as at admission.

Work. In one decision a part is tried once as it is, once more if its lease has ended and it does not continue, and
likewise the part that a start splits off: at most 2 (waiting parts + parts whose lease has ended + starts) tries
(`tried`).

With max_wait = AGING x max(QUANTUM, size) only jobs submitted before due(j) - AGING x QUANTUM can be in B(j): a wait is
AGING times a job's own size, plus the service of jobs due before it. The number of racks does not enter, because the
bound assumes that B(j) is served one after the other; parts on disjoint racks do not wait for one another.
"""

from __future__ import annotations

import math
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import cast

from algorithms.b_matching.feasibility import Feasibility, Pieces
from algorithms.b_matching.group import CompetingGroup, members
from algorithms.scheduling.fitting import Hold, JobOffer, Switch, continued, has_splitters, offer, pieces_for, split
from algorithms.scheduling.job import Job, PartName
from algorithms.scheduling.overdue import Overdue
from algorithms.scheduling.placing import ByNumber, Placement, PlacementTerms, Placing
from algorithms.scheduling.policy import Policy, State, chunk
from algorithms.scheduling.queues import NEW, Queues, Rank, Token
from algorithms.scheduling.selection import PartStateError, Selection, Start

FEWER = "fewer"
"""Kind of token that opens when a tree of that many leaves takes no more splitters than a tenant may still hold."""

LIGHT = "light"
"""Kind of token that opens when a switch's count of gains changes: its free resources had no feasible tree."""

WIRED = "wired"
"""Kind of token that opens when the sender has its first port on more switches than that."""

RE_RANK_SECONDS = 1.0
"""Interval at which the ranks of waiting jobs are recomputed, in rotation, if keys may fall with time."""

MAX_RE_RANKED = 32
"""Maximum number of ranks recomputed in one decision: its work does not depend on the number of waiting jobs."""


@dataclass(frozen=True, slots=True)
class _Refused:
    """The state at a refusal: the switch's count of gains, the tenant's allowance, the hold, and the offered ports."""

    gained: int
    left: float
    hold: Hold | None
    ports: int
    tenant_stops: bool


@dataclass(slots=True)
class Waiting:
    """A waiting job: the minimum number of receivers of a part, and its resources while its lease ends.

    `refused` maps switches on which no feasible tree existed to the state at the refusal.
    """

    job: Job
    fewest: int
    light: Start | None
    refused: dict[str, _Refused] = field(default_factory=dict)


class Scheduler:
    """Waiting and running parts, and free resources. Every event takes `now` (seconds) and returns the changes.

    Parameters
    ----------
    policy : Policy
        Order of the jobs, and their leases.
    switches : mapping of str to Feasibility
        Name of each optical switch to its free resources, which the scheduler changes as jobs start.
    state : State, optional
        Set-up time and accounts of tenants; None: the defaults of `State`.
    limits : mapping of str to int, optional
        Tenants to the number of splitters that they may hold at once; -1: no optical path at all.
    placing : Placing, optional
        Called before a job starts; None: the counts decide.
    """

    def __init__(
        self,
        policy: Policy,
        switches: Mapping[str, Feasibility],
        state: State | None = None,
        limits: Mapping[str, int] | None = None,
        placing: Placing | None = None,
    ) -> None:
        self.policy = policy
        self.state = state or State()
        self._switches = {name: Switch(name, free, free.copy()) for name, free in switches.items()}
        self._wired: dict[int, list[Switch]] = {}
        for switch in self._switches.values():
            for vertex in members(switch.free.open):
                self._wired.setdefault(vertex, []).append(switch)
        self._limits = dict(limits or {})
        self.tried = 0
        self._placing: Placing = placing or ByNumber()
        self._gained: Counter[str] = Counter()
        self._held_pieces: Counter[str] = Counter()
        self._places: dict[PartName, int] = {}
        self._waiting: OrderedDict[int, Waiting] = OrderedDict()
        self._running: dict[PartName, Start] = {}
        self._arrivals = 0
        self._queues = Queues()
        self._counts: defaultdict[tuple[str, Hashable], set[int]] = defaultdict(set)
        self._overdue = Overdue(self._waiting.__contains__)
        self._hold: Hold | None = None
        self._ranked_at = 0.0
        self._gathered: list[Token] | None = None
        self._kept_on: list[Start] = []
        self._over: list[PartName] = []

    # ---------------------------------------------------------------------------------------------- events

    def arrive(self, job: Job, now: float) -> Selection:
        """Add a new part.

        Parameters
        ----------
        job : Job
            The part, which waits from now on.
        now : float
            The current time in seconds.

        Returns
        -------
        Selection
            Parts that start.

        Raises
        ------
        PartStateError
            If there is a part of this name already.
        """
        self._enter(job)
        self._wait(job, now)
        return Selection(self._serve([], now))

    def adopt(self, start: Start) -> None:
        """Add a part that already holds resources (found at a restart, or set otherwise), whatever it displaces.

        Parameters
        ----------
        start : Start
            The part and its resources.

        Raises
        ------
        PartStateError
            If there is a part of this name already.
        """
        self._enter(start.job)
        self._take(start)

    def complete(self, name: PartName, now: float) -> Selection:
        """End a running part and free its resources.

        Parameters
        ----------
        name : PartName
            Name of the part.
        now : float
            The current time in seconds.

        Returns
        -------
        Selection
            Parts that start.

        Raises
        ------
        PartStateError
            If the part is not running.
        """
        start, freed = self._stop(name)
        self._leave(start.job)
        return Selection(self._serve(freed, now))

    def lease_end(self, name: PartName, now: float, remaining: float | None = None) -> Selection:
        """End a lease: its job competes again.

        Parameters
        ----------
        name : PartName
            Name of the part.
        now : float
            The current time in seconds.
        remaining : float, optional
            Seconds of data still to send, as measured; None: as the scheduler computes them.

        Returns
        -------
        Selection
            Parts that start or continue, and the part if it pauses.

        Raises
        ------
        PartStateError
            If the part is not running.
        """
        start, freed = self._stop(name)
        job = replace(start.job.after(start.seconds), continues=True)
        if remaining is not None:
            job = replace(job, remaining=remaining)
        if self.policy.quantum(job) is None:
            kept_on = self._lease(job, start.switch, start.pieces)
            if self._gathered is None:
                return Selection((kept_on,))
            self._kept_on.append(kept_on)
            return Selection()
        self._wait(job, now, start)
        self._over.append(name)
        starts = self._serve(freed, now)
        return Selection(starts, None if self._gathered is not None else next(iter(self._paused()), None))

    def withdraw(self, name: PartName, now: float) -> Selection:
        """Remove a running or waiting part. A part that lost its circuits is withdrawn and arrives again.

        Parameters
        ----------
        name : PartName
            Name of the part.
        now : float
            The current time in seconds.

        Returns
        -------
        Selection
            Parts that start.

        Raises
        ------
        PartStateError
            If there is no part of this name.
        """
        if name in self._running:
            return self.complete(name, now)
        self._leave(self._waiting_job(name))
        return Selection(self._serve([], now))

    def extend(self, job: Job, now: float, pieces: Pieces | None = None) -> Selection:
        """Replace a part: more or less data, other receivers, another deadline.

        A running part continues in its lease with the changed group.

        Parameters
        ----------
        job : Job
            The changed part, under its old name.
        now : float
            The current time in seconds.
        pieces : Pieces, optional
            Fan-outs of the splitters that a running part uses from now on; None: the same as before.

        Returns
        -------
        Selection
            Parts that start.

        Raises
        ------
        PartStateError
            If there is no part of this name.
        """
        if job.name not in self._running:
            self._waiting_job(job.name)
            self._wait(job, now)
            self._overdue.look_again()
            return Selection(self._serve([], now))
        start, freed = self._stop(job.name)
        changed = replace(start, job=replace(job, continues=True), pieces=start.pieces if pieces is None else pieces)
        self._take(changed)
        return Selection(self._serve(freed, now))

    def limit(self, tenant: str, splitters: int | None, now: float) -> Selection:
        """Set the number of splitters that a tenant may hold.

        Parameters
        ----------
        tenant : str
            Name of the tenant.
        splitters : int or None
            Maximum number at once; None: unlimited; -1: no optical path at all.
        now : float
            The current time in seconds.

        Returns
        -------
        Selection
            Parts that start.
        """
        if splitters is None:
            self._limits.pop(tenant, None)
        else:
            self._limits[tenant] = splitters
        self._overdue.look_again()
        return Selection(self._serve(self._freed_of(tenant), now))

    def lose(self, switch: str, ports: int, pieces: Pieces) -> None:
        """Remove hardware. Parts that run on it are not stopped here.

        Parameters
        ----------
        switch : str
            Name of the optical switch.
        ports : int
            Vertices that lose one port each, as bits.
        pieces : Pieces
            Fan-outs of the lost splitters.
        """
        lost = _hardware(ports)
        self._switches[switch].free.take(lost, pieces)
        self._switches[switch].capacity.take(lost, pieces)
        # Jobs without a feasible tree on the remaining hardware must be tried again, to be reported.
        self._gained[switch] += 1

    def regain(self, switch: str, ports: int, pieces: Pieces, now: float) -> Selection:
        """Return hardware to use.

        Parameters
        ----------
        switch : str
            Name of the optical switch.
        ports : int
            Vertices that regain one port each, as bits.
        pieces : Pieces
            Fan-outs of the splitters that are usable again.
        now : float
            The current time in seconds.

        Returns
        -------
        Selection
            Parts that start.
        """
        back, here = _hardware(ports), self._switches[switch]
        here.capacity.give_back(back, pieces)
        freed = self._freed(switch, here.free.give_back(back, pieces), pieces)
        for vertex in members(ports):
            freed += self._wire(vertex, here)
        self._overdue.look_again()
        return Selection(self._serve(freed, now))

    def gather(self) -> None:
        """Defer the decisions of the next events to one call of `decide`."""
        self._gathered, self.tried = [], 0

    def decide(self, now: float) -> tuple[tuple[Start, ...], tuple[PartName, ...]]:
        """Serve after the events since `gather`.

        Parameters
        ----------
        now : float
            The current time in seconds.

        Returns
        -------
        starts : tuple of Start
            Parts that start or continue, in the order of decision.
        paused : tuple of PartName
            Parts that pause.
        """
        freed, self._gathered = self._gathered or [], None
        kept_on, self._kept_on = self._kept_on, []
        starts = (*kept_on, *self._serve(freed, now))
        return starts, self._paused()

    def _paused(self) -> tuple[PartName, ...]:
        """Return the parts that pause, because their lease has ended and they do not continue."""
        over, self._over = self._over, []
        return tuple(name for name in over if not (name in self._running and self._running[name].job.continues))

    # ----------------------------------------------------------------------------------------------- reads

    def waits(self, name: PartName) -> bool:
        """Return whether a part is known and not running.

        Parameters
        ----------
        name : PartName
            Name of the part.

        Returns
        -------
        bool
            False for an unknown part.
        """
        return name in self._places and name not in self._running

    def light_of(self, name: PartName) -> Start | None:
        """Return the resources of a part.

        Parameters
        ----------
        name : PartName
            Name of the part.

        Returns
        -------
        Start or None
            None if the part is not running.
        """
        return self._running.get(name)

    @property
    def waiting(self) -> list[Job]:
        """The waiting jobs, in order of arrival."""
        return [self._waiting[place].job for place in sorted(self._waiting)]

    @property
    def waiting_count(self) -> int:
        """The number of waiting jobs."""
        return len(self._waiting)

    @property
    def running(self) -> list[Start]:
        """The running parts."""
        return list(self._running.values())

    def is_refused(self, name: PartName) -> bool:
        """Return whether a part waits because no tree of the free resources is feasible, though the counts suffice.

        Parameters
        ----------
        name : PartName
            Name of the part.

        Returns
        -------
        bool
            False for an unknown or a running part.
        """
        return self.waits(name) and bool(self._waiting[self._places[name]].refused)

    @property
    def holder(self) -> Job | None:
        """The overdue job for which ports and splitters are kept free."""
        return None if self._hold is None else self._hold.job

    # --------------------------------------------------------------------------------- arrival and departure

    def _enter(self, job: Job) -> None:
        if job.name in self._places:
            raise PartStateError(f"the part {job.name} is here already")
        self._places[job.name] = self._arrivals
        self._arrivals += 1
        self.state.tenants.enter(job.group.tenant)

    def _leave(self, job: Job) -> None:
        place = self._places.pop(job.name)
        self._waiting.pop(place, None)
        self._queues.drop(place)
        self.state.tenants.leave(job.group.tenant)

    def _waiting_job(self, name: PartName) -> Job:
        place = self._places.get(name)
        if place is None or place not in self._waiting:
            raise PartStateError(f"the part {name} does not wait")
        return self._waiting[place].job

    def _wait(self, job: Job, now: float, light: Start | None = None) -> None:
        place = self._places[job.name]
        self._waiting[place] = Waiting(job, self.policy.fewest_receivers(job), light)
        self._overdue.put(self._due(job), place)
        self._queues.put(place, self._rank(job, now), [NEW])
        self._queues.start([NEW])

    def _due(self, job: Job) -> float:
        return job.submitted_at + self.policy.max_wait(job)

    def _rank(self, job: Job, now: float) -> Rank:
        return -job.priority, self.policy.key(job, now, self.state)

    def _stop(self, name: PartName) -> tuple[Start, list[Token]]:
        start = self._running.pop(name, None)
        if start is None:
            raise PartStateError(f"the part {name} has no light")
        group = start.job.group
        self._held_pieces[group.tenant] -= len(start.pieces)
        if start.pieces and group.tenant in self._limits:
            self._overdue.look_again()
        freed = self._switches[start.switch].free.give_back(group, start.pieces)
        return start, [*self._freed(start.switch, freed, start.pieces), *self._freed_of(group.tenant)]

    def _freed(self, switch: str, ports: int, pieces: Pieces) -> list[Token]:
        tokens: list[Token] = [("port", switch, vertex) for vertex in members(ports)]
        tokens += self._counted(LIGHT, switch)
        self._gained[switch] += 1
        self._counts.pop((LIGHT, switch), None)
        return [*tokens, *self._counted("pool", switch), *self._fewer(switch)] if pieces else tokens

    def _freed_of(self, tenant: str) -> list[Token]:
        """Return the tokens of jobs that wait until a tenant holds less, or is allowed more."""
        return [*self._counted("tenant", tenant), *self._fewer(tenant)]

    def _fewer(self, name: str) -> list[Token]:
        """Return the tokens of jobs that wait until fewer splitters suffice, on this switch or for this tenant."""
        owners = [owner for kind, owner in self._counts if kind == FEWER and name in cast(tuple[str, str], owner)]
        return [token for owner in owners for token in self._counted(FEWER, owner)]

    def _counted(self, kind: str, owner: Hashable) -> list[Token]:
        return [(kind, owner, count) for count in self._counts.get((kind, owner), ())]

    # -------------------------------------------------------------------------------------------- deciding

    def _serve(self, freed: Iterable[Token], now: float) -> tuple[Start, ...]:
        if self._gathered is not None:
            self._gathered += freed
            return ()
        starts = self._serve_urgent(freed, now)
        while (place := self._next(now)) is not None:
            start = self._try(place, now)
            if start is not None:
                starts.append(start)
        return tuple(starts)

    def _next(self, now: float) -> int | None:
        """Return the place of the next job of the walk, by its rank at `now`."""
        return self._queues.next(self._is_open, lambda place: self._rank(self._waiting[place].job, now))

    def _serve_urgent(self, freed: Iterable[Token], now: float) -> list[Start]:
        """Serve overdue parts, and begin a walk over jobs that wait for freed resources."""
        self._re_rank(now)
        starts: list[Start] = []
        self._queues.start(freed)
        self._set_hold(None)
        self._set_hold(self._serve_overdue(starts, now))
        return starts

    def _re_rank(self, now: float) -> None:
        """Recompute the ranks of the jobs whose turn it is, if keys may fall; a risen one is found when it comes up."""
        due = len(self._waiting) * min(1.0, (now - self._ranked_at) / RE_RANK_SECONDS) if self.policy.keys_fall else 0.0
        if due < 1.0:
            return
        self._ranked_at = now
        for place in list(islice(self._waiting, min(int(due), MAX_RE_RANKED))):
            self._waiting.move_to_end(place)
            self._queues.re_rank(place, self._rank(self._waiting[place].job, now))

    def _serve_overdue(self, starts: list[Start], now: float) -> int | None:
        while (place := self._overdue.first(now, self._can_start)) is not None:
            had_light = self._waiting[place].light is not None
            start = self._try(place, now)
            if start is not None:
                starts.append(start)
            elif not had_light:
                return place
        return None

    def _can_start(self, place: int) -> bool:
        waiting = self._waiting[place]
        job, left = waiting.job, self._left(waiting.job.group.tenant)
        return any(
            (pieces := switch.capacity.fit(job.group)) is not None
            and len(pieces) <= left
            and not ((refused := waiting.refused.get(switch.name)) and refused.tenant_stops and refused.left == left)
            for switch in self._wired_for(job)
        )

    def _wire(self, vertex: int, switch: Switch) -> list[Token]:
        """Note that a vertex has a port on a switch; return the token of jobs that wait for its first one there."""
        before = self._wired.get(vertex, [])
        if switch in before:
            return []
        self._wired[vertex] = [one for one in self._switches.values() if one is switch or one in before]
        return [(WIRED, vertex, len(before))]

    def _wired_for(self, job: Job) -> list[Switch]:
        """Return the switches on which the sender has ever had a port."""
        return self._wired.get(job.sender.bit_length() - 1, [])

    def _set_hold(self, place: int | None) -> None:
        before = self._hold
        self._hold = None
        if place is not None:
            waiting = self._waiting[place]
            could = (s.name for s in self._wired_for(waiting.job) if s.capacity.fit(waiting.job.group) is not None)
            self._hold = Hold(waiting.job, frozenset(could), frozenset(waiting.refused))
        if before is not None and not self._is_held_for(before.job.name):
            self._queues.start([before.token])

    def _is_held_for(self, name: Hashable) -> bool:
        return self._hold is not None and self._hold.job.name == name

    def _hold_against(self, job: Job) -> Hold | None:
        """Return the hold for a job other than this one."""
        return None if self._is_held_for(job.name) else self._hold

    def _is_open(self, token: Token) -> bool:
        kind, owner, number = token
        if kind == "port":
            return not self._switches[str(owner)].free.full >> number & 1
        if kind == "pool":
            return has_splitters(self._switches[str(owner)].free, number)
        if kind == "hold":
            return not self._is_held_for(owner)
        if kind == LIGHT:
            return self._gained[str(owner)] > number
        if kind == FEWER:
            switch, tenant = cast(tuple[str, str], owner)
            pieces = pieces_for(self._switches[switch].free, number)
            return pieces is not None and self._left(tenant) >= len(pieces)
        if kind == WIRED:
            return len(self._wired[cast(int, owner)]) > number
        return kind == "new" or self._left(str(owner)) >= number

    def _left(self, tenant: str) -> float:
        limit = self._limits.get(tenant)
        if limit is None:
            return math.inf
        # A tenant above its current limit may still have a circuit, which takes no splitter.
        return max(0, limit - self._held_pieces[tenant]) if limit >= 0 else -1

    def _within_limit(self, job: Job, pieces: Pieces) -> bool:
        return self._left(job.group.tenant) >= len(pieces)

    def _try(self, place: int, now: float) -> Start | None:
        waiting = self._waiting[place]
        self.tried += 1
        offered = self._offer(waiting)
        if isinstance(offered, JobOffer):
            if waiting.light is not None:
                self._placing.keep(waiting.job.name)
            return self._start(waiting.job, offered, now)
        if waiting.light is not None:
            # It cannot continue on its resources; so it waits like any other job, and may start elsewhere at once.
            self._wait(replace(waiting.job, continues=False), now)
        else:
            self._queues.move(place, offered)
        return None

    def _offer(self, waiting: Waiting) -> JobOffer | list[Token]:
        job, light = waiting.job, waiting.light
        hold = self._hold_against(job)
        if light is not None:
            same = continued(job, self._switches[light.switch], light.pieces, hold)
            goes_on = self._within_limit(job, light.pieces) and self._placing.has_kept(job.name)
            return same if same is not None and goes_on else []
        blockers: list[Token] = []
        wired = self._wired_for(job)
        for switch in wired:
            found = self._on(waiting, offer(job, waiting.fewest, switch, hold), hold)
            if isinstance(found, JobOffer):
                return found
            blockers += found
        for kind, owner, count in blockers:
            if kind != "port":
                self._counts[kind, owner].add(count)
        if len(wired) < len(self._switches):
            blockers.append((WIRED, job.sender.bit_length() - 1, len(wired)))
        return blockers

    def _on(self, waiting: Waiting, found: JobOffer | list[Token], hold: Hold | None) -> JobOffer | list[Token]:
        """Return the offer, or the tokens to wait for if the tenant's limit or the placement refuses it."""
        if not isinstance(found, JobOffer):
            return found
        tenant = waiting.job.group.tenant
        if not self._within_limit(waiting.job, found.pieces):
            # Fewer pieces would suffice once larger ones are free again.
            fewer = (FEWER, (found.switch.name, tenant), found.job.group.leaves)
            return [fewer, ("tenant", tenant, len(found.pieces))]
        return self._placed(waiting, found, hold)

    def _placed(self, waiting: Waiting, found: JobOffer, hold: Hold | None) -> JobOffer | list[Token]:
        job, switch = found.job, found.switch
        if self._may_do(waiting, found, hold):
            terms = PlacementTerms(switch.name, found.pieces, self._left(job.group.tenant), only=hold is not None)
            placed = self._placing.place(job, terms)
            if isinstance(placed, Placement):
                return replace(found, pieces=placed.pieces)
            waiting.refused[switch.name] = self._refused(found, hold, placed.tenant_stops)
        return self._until_more(waiting.refused[switch.name], found, hold)

    def _may_do(self, waiting: Waiting, found: JobOffer, hold: Hold | None) -> bool:
        """Return whether anything has changed since this switch refused the job."""
        before = waiting.refused.get(found.switch.name)
        return before is None or before != self._refused(found, hold, before.tenant_stops)

    def _refused(self, found: JobOffer, hold: Hold | None, tenant_stops: bool) -> _Refused:
        group, switch = found.job.group, found.switch.name
        return _Refused(self._gained[switch], self._left(group.tenant), hold, group.ports, tenant_stops)

    def _until_more(self, refused: _Refused, found: JobOffer, hold: Hold | None) -> list[Token]:
        tokens: list[Token] = [(LIGHT, found.switch.name, refused.gained)]
        tokens += [hold.token] if hold is not None else []
        more = ("tenant", found.job.group.tenant, int(refused.left) + 1) if refused.tenant_stops else None
        return [*tokens, more] if more else tokens

    def _start(self, job: Job, offered: JobOffer, now: float) -> Start:
        part, rest = split(job, offered.job)
        place = self._places[job.name]
        del self._waiting[place]
        self._queues.drop(place)
        start = replace(self._lease(part, offered.switch.name, offered.pieces), rest=rest)
        if rest is not None:
            self._enter(rest)
            self._wait(rest, now)
        return start

    def _lease(self, job: Job, switch: str, pieces: Pieces) -> Start:
        seconds = chunk(job, self.policy.quantum(job))
        start = Start(job, switch, pieces, seconds, job.known and seconds >= job.remaining)
        self.state.tenants.charge(job.group.tenant, seconds * job.group.racks)
        self._take(start)
        return start

    def _take(self, start: Start) -> None:
        self._running[start.job.name] = start
        self._held_pieces[start.job.group.tenant] += len(start.pieces)
        self._switches[start.switch].free.take(start.job.group, start.pieces)


def _hardware(ports: int) -> CompetingGroup:
    return CompetingGroup("hardware", ports, 0, 0, 0.0)
