"""Transfers in a fluid network: every flow has its max-min fair rate, which changes only at events.

Theory of operation. Between two events (a flow ends, flows begin or are stopped, a round of background traffic begins,
a scheduled call) all rates are constant, so the next end of a flow is known exactly and the simulation advances to it.
With `Stepping`, rates are not recomputed at every event: new flows wait, and freed capacity stays unused, until a share
of the elapsed time has passed; ends are still exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from blast_sim.base.virtual_clock import VirtualClock
from blast_sim.fair import SOLVER, FairShares, Paths, Solver
from blast_sim.fair.paths import Numbers, Places
from blast_sim.flow.background import Rounds

SAME_MOMENT = 1e-9
"""Seconds: flows that would end so soon after one another end together, whatever their rates were rounded to."""

Ended = Callable[[Places], None]
"""Called with the places of a transfer's flows that have ended."""


class StalledError(Exception):
    """No event is left although the simulation is not done: a method waits for an event that never occurs."""


@dataclass(frozen=True, slots=True)
class Stepping:
    """Rates are recomputed after `share` of the time since the start, but at least `min_seconds`."""

    min_seconds: float = 1e-3
    share: float = 2e-3

    def after(self, now: float) -> float:
        """Return the earliest time for new rates after those of `now`."""
        return now + max(self.min_seconds, self.share * now)


EXACT = Stepping(0.0, 0.0)


@dataclass(eq=False, slots=True)
class FlowTransfer:
    """Flows that began together."""

    number: int
    ids: Places
    ended: Ended
    active: int


class Simulation:
    """Flows over links of these capacities (bit/s), beside background traffic, on a clock of its own."""

    def __init__(
        self,
        capacities: ArrayLike,
        background: Rounds | None = None,
        stepping: Stepping = EXACT,
        solver: Solver = SOLVER,
    ) -> None:
        self.clock = VirtualClock()
        self.solves = 0
        self._shares = FairShares(capacities, solver=solver)
        self._background = background if background is not None and background.each_way else None
        self._stepping = stepping
        self._round = -1
        self._background_ids: dict[int, Places] = {}
        self._transfers: dict[int, FlowTransfer] = {}
        self._begun = 0
        self._stale = False
        self._not_before = 0.0
        # Of the flows that flow: ids and, in the same order, rates. By id: bits left, transfer, place in its transfer.
        self._ids: Places = np.zeros(0, np.int64)
        self._rates: Numbers = np.zeros(0)
        self._left: Numbers = np.zeros(0)
        self._owner: Places = np.zeros(0, np.int64)
        self._place: Places = np.zeros(0, np.int64)

    def start(
        self,
        paths: Paths,
        bits: ArrayLike,
        ended: Ended,
        multiplicity: ArrayLike | None = None,
        rate_caps: ArrayLike | None = None,
    ) -> FlowTransfer:
        """Begin flows of `bits` bits each; `multiplicity` and `rate_caps` as in `fair_rates`.

        `ended` is called at the end of flows, with the places in `paths` of all flows that end at that time. Raises
        ValueError for flows without bits or links, and for a transfer without flows, which would never end.
        """
        amounts = np.broadcast_to(np.asarray(bits, np.float64), (len(paths),))
        if not len(paths) or not (amounts > 0).all() or not (paths.lengths > 0).all():
            raise ValueError("a transfer needs flows, and each of them bits and links")
        ids = self._shares.add(paths, multiplicity=multiplicity, rate_caps=rate_caps)
        transfer = self._transfers[self._begun] = FlowTransfer(self._begun, ids, ended, len(ids))
        self._begun += 1
        self._grow(int(ids.max()) + 1)
        self._left[ids], self._owner[ids], self._place[ids] = amounts, transfer.number, np.arange(len(ids))
        self._ids = np.concatenate([self._ids, ids])
        self._rates = np.concatenate([self._rates, np.zeros(len(ids))])
        self._stale = True
        return transfer

    def stop(self, transfer: FlowTransfer) -> float:
        """Stop a transfer; return the remaining bits of its flows in total. `ended` is not called any more."""
        mine = self._owner[self._ids] == transfer.number
        removed = self._ids[mine]
        self._forget(mine)
        del self._transfers[transfer.number]
        return float(self._left[removed].sum())

    def bits_left(self, transfer: FlowTransfer) -> float:
        """Return the remaining bits of a transfer's flows in total."""
        return float(self._left[self._ids[self._owner[self._ids] == transfer.number]].sum())

    def rates_beside(self, paths: Paths) -> Numbers:
        """Return the rates that flows on these paths would have now, all at once in addition to the current ones."""
        if self._background is not None:
            self._change_round(self._background)
        ids = self._shares.add(paths)
        rates = self._shares.rates(ids)
        self._shares.remove(ids)
        self.solves += 1
        self._stale = True
        return rates

    def run(self, done: Callable[[], bool]) -> None:
        """Go on until `done()`. Raises StalledError when nothing is left that could happen."""
        self.clock.advance(self.clock.now)
        while not done():
            self._update_rates()
            moment = min(self.clock.next, self._next_end(), self._next_update())
            if moment == math.inf:
                raise StalledError(f"nothing happens any more after {self.clock.now:g} s")
            self._left[self._ids] -= self._rates * (moment - self.clock.now)
            self.clock.now = moment
            self._finish()
            self.clock.advance(moment)

    def _grow(self, needed: int) -> None:
        more = 2 * needed - len(self._left)
        if needed > len(self._left):
            self._left = np.concatenate([self._left, np.zeros(more)])
            self._owner = np.concatenate([self._owner, np.zeros(more, np.int64)])
            self._place = np.concatenate([self._place, np.zeros(more, np.int64)])

    # ----------------------------------------------------------------------------------------------- rates

    def _update_rates(self) -> None:
        if not len(self._ids) or self.clock.now < self._not_before:
            return
        if self._background is not None:
            self._change_round(self._background)
        if self._stale:
            self._rates = self._shares.rates(self._ids)
            self.solves += 1
            self._stale = False
            self._not_before = self._stepping.after(self.clock.now)

    def _change_round(self, background: Rounds) -> None:
        number = background.number(self.clock.now)
        if number == self._round:
            return
        self._round, self._stale = number, True
        before, self._background_ids = self._background_ids, {}
        for shift in background.shifts(number):
            kept = before.pop(shift, None)
            self._background_ids[shift] = self._shares.add(background.paths(shift)) if kept is None else kept
        for removed in before.values():
            self._shares.remove(removed)

    def _next_update(self) -> float:
        """Return the time at which rates are next updated without an event of a flow; infinite if never."""
        if not len(self._ids):
            return math.inf
        if self._stale:
            return self._not_before
        if self._background is None:
            return math.inf
        return max(self._background.end(self._round), self._not_before)

    # ------------------------------------------------------------------------------------------------ ends

    def _next_end(self) -> float:
        with np.errstate(divide="ignore"):
            return self.clock.now + float(np.min(self._left[self._ids] / self._rates, initial=math.inf))

    def _finish(self) -> None:
        over = self._left[self._ids] <= self._rates * SAME_MOMENT
        if not over.any():
            return
        ids = self._ids[over]
        self._forget(over)
        owners, places = self._owner[ids], self._place[ids]
        order = np.argsort(owners, kind="stable")
        numbers, starts = np.unique(owners[order], return_index=True)
        for number, theirs in zip(numbers.tolist(), np.split(places[order], starts[1:]), strict=True):
            transfer = self._transfers[number]
            transfer.active -= len(theirs)
            if not transfer.active:
                del self._transfers[number]
            transfer.ended(theirs)

    def _forget(self, which: NDArray[np.bool_]) -> None:
        self._shares.remove(self._ids[which])
        self._ids, self._rates = self._ids[~which], self._rates[~which]
        self._stale = True
