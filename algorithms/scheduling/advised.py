"""A scheduler with advice: it reports contention before it decides, and can wait for advice on it.

Between `gather` and `decide`, `contention` serves overdue parts and returns the choice to make, if there is one. Then
either `decide` serves all parts, the `chosen` ones before others of their priority; or `postpone` serves no other part
for now. A part whose lease has ended keeps its resources meanwhile, and its lease must be ended again before the next
`decide`. Overdue parts are never postponed, so the bound on waiting still holds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from algorithms.b_matching.feasibility import Feasibility
from algorithms.scheduling.contention import Chosen, Contender, Contention, KnownTrees
from algorithms.scheduling.fitting import Hold, JobOffer, Switch, continued, kept_free, offer, with_pieces
from algorithms.scheduling.job import Job, PartName
from algorithms.scheduling.placing import Placing
from algorithms.scheduling.policy import Policy, State
from algorithms.scheduling.queues import NEW, Rank, Token
from algorithms.scheduling.scheduler import Scheduler, Waiting
from algorithms.scheduling.selection import Start

MAX_CONTENDERS = 256
"""Maximum number of parts in one contention, those of the best rank; the others are served after the advice."""


class AdvisedScheduler(Scheduler):
    """A scheduler whose decisions can be postponed and advised. It raises the same exceptions as `Scheduler`.

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
        super().__init__(policy, switches, state, limits, placing)
        self._preferred: dict[PartName, Chosen] = {}

    def contention(self, now: float) -> Contention | None:
        """Serve overdue parts, and return the parts that could start now but not all together.

        Parameters
        ----------
        now : float
            The current time in seconds.

        Returns
        -------
        Contention or None
            Of the parts that could start, the ones of the highest priority; None if there is no choice to make.
        """
        freed, self._gathered = self._gathered or [], []
        self._kept_on += self._serve_urgent([*freed, NEW], now)
        able = self._able(now)
        for place in able:
            self._queues.move(place, [NEW])
        self._gathered.append(NEW)
        contenders = self._contenders([offers for offers in able.values() if offers])
        if len({contender.name for contender in contenders}) < 2:
            return None
        found = Contention(tuple(contenders), self._free_for(contenders), self._tenants_left(contenders))
        return None if found.is_settled() else found

    def postpone(self, now: float) -> tuple[tuple[Start, ...], tuple[PartName, ...], tuple[PartName, ...]]:
        """Serve no other part for now.

        Parameters
        ----------
        now : float
            The current time in seconds.

        Returns
        -------
        starts : tuple of Start
            Parts that start or continue.
        paused : tuple of PartName
            Parts that pause.
        again : tuple of PartName
            Parts that keep their resources, and whose lease must be ended again before the next `decide`.
        """
        self._gathered = None
        starts, self._kept_on = tuple(self._kept_on), []
        over, self._over = self._over, []
        ended = [name for name in over if self.waits(name)]
        again = [name for name in ended if self._keeps_meanwhile(name, now)]
        return starts, tuple(name for name in ended if name not in again), tuple(again)

    def decide(self, now: float, chosen: Sequence[Chosen] = ()) -> tuple[tuple[Start, ...], tuple[PartName, ...]]:
        """Serve after the events since `gather`, the chosen parts first within each priority, as far as they fit.

        Parameters
        ----------
        now : float
            The current time in seconds.
        chosen : sequence of Chosen, optional
            Parts to prefer; parts that no longer wait are ignored.

        Returns
        -------
        starts : tuple of Start
            Parts that start or continue, in the order of decision.
        paused : tuple of PartName
            Parts that pause.
        """
        self._preferred = {choice.name: choice for choice in chosen if self.waits(choice.name)}
        for name in self._preferred:
            place = self._places[name]
            self._queues.put(place, self._rank(self._waiting[place].job, now), [NEW])
        self._queues.start([NEW])
        decided = super().decide(now)
        self._preferred = {}
        return decided

    # ------------------------------------------------------------------------------------------- contention

    def _able(self, now: float) -> dict[int, list[JobOffer]]:
        """Return the parts that could start now, best rank first, with their offers (none: try the part)."""
        able: dict[int, list[JobOffer]] = {}
        while len(able) < MAX_CONTENDERS and (place := self._next(now)) is not None:
            waiting = self._waiting[place]
            offers = self._offers(waiting)
            if offers or waiting.light is not None:
                able[place] = offers
            elif isinstance(blockers := self._offer(waiting), list):
                self._queues.move(place, blockers)
        return able

    def _offers(self, waiting: Waiting) -> list[JobOffer]:
        if waiting.light is not None:
            same = self._offer(waiting)
            return [same] if isinstance(same, JobOffer) else []
        hold = self._hold_against(waiting.job)
        found = (offer(waiting.job, waiting.fewest, switch, hold) for switch in self._wired_for(waiting.job))
        fitting = [o for o in found if isinstance(o, JobOffer) and self._within_limit(o.job, o.pieces)]
        return [o for o in fitting if self._may_do(waiting, o, hold)]

    def _contenders(self, able: Sequence[Sequence[JobOffer]]) -> list[Contender]:
        """Return contenders of the highest priority, which always precedes the value of others.

        The result is empty if fewer than two of them wait without resources of their own.
        """
        priority = max((offers[0].job.priority for offers in able), default=0)
        first = [offers for offers in able if offers[0].job.priority == priority]
        if sum(not offers[0].job.continues for offers in first) < 2:
            return []
        return [
            Contender(o.job.name, o.switch.name, replace(o.job.group, weight=self._worth(o.job)))
            for offers in first
            for o in offers
        ]

    def _worth(self, job: Job) -> float:
        return self.policy.objective(job, self.state)

    def _free_for(self, contenders: Sequence[Contender]) -> dict[str, Feasibility]:
        """Return the free resources of each switch for these contenders, less the share held for the overdue part."""
        free: dict[str, Feasibility] = {}
        for name in dict.fromkeys(contender.switch for contender in contenders):
            switch = self._switches[name]
            leaves = {contender.group.leaves for contender in contenders if contender.switch == name}
            left = switch.free if self._hold is None else kept_free(switch, self._hold)
            free[name] = left.choosing(KnownTrees(leaves, left))
        return free

    def _tenants_left(self, contenders: Sequence[Contender]) -> dict[str, float]:
        tenants = {contender.group.tenant for contender in contenders}
        return {tenant: self._left(tenant) for tenant in sorted(tenants) if self._left(tenant) < math.inf}

    # ------------------------------------------------------------------------------------------- advice

    def _rank(self, job: Job, now: float) -> Rank:
        return (-job.priority, -math.inf) if job.name in self._preferred else super()._rank(job, now)

    def _offer(self, waiting: Waiting) -> JobOffer | list[Token]:
        chosen = self._preferred.get(waiting.job.name)
        switch = self._switches.get(chosen.switch) if chosen is not None else None
        if chosen is not None and switch is not None and waiting.light is None:
            hold = self._hold_against(waiting.job)
            advised = self._advised(waiting, switch, chosen, hold)
            if advised is not None:
                return advised
        return super()._offer(waiting)

    def _advised(self, waiting: Waiting, switch: Switch, chosen: Chosen, hold: Hold | None) -> JobOffer | None:
        found = offer(waiting.job, waiting.fewest, switch, hold)
        if not isinstance(found, JobOffer):
            return None
        advised = self._on(waiting, with_pieces(found, chosen.pieces, hold), hold)
        return advised if isinstance(advised, JobOffer) else None

    def _keeps_meanwhile(self, name: PartName, now: float) -> bool:
        """Reserve the resources of a part whose lease has ended again, if all of them are still free."""
        place = self._places[name]
        waiting = self._waiting[place]
        light = waiting.light
        if light is None:
            return False
        hold = self._hold_against(waiting.job)
        same = continued(waiting.job, self._switches[light.switch], light.pieces, hold)
        if same is None or not self._placing.has_kept(name):
            self._wait(replace(waiting.job, continues=False), now)
            return False
        del self._waiting[place]
        self._queues.drop(place)
        self._placing.keep(name)
        self._take(light)
        return True
