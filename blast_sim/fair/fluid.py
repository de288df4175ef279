"""When flows end that share links fairly: exact events, from one start or end of a flow to the next."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from blast_sim.base.fair_solver import SOLVER, Solver
from blast_sim.fair.demands import Demands, check_links, checked_capacities
from blast_sim.fair.paths import Numbers, Paths, Places
from blast_sim.fair.same_time import SAME_TIME
from blast_sim.fair.shares import FairShares


def finish_times(  # noqa: PLR0913
    capacities: ArrayLike,
    paths: Paths,
    bits: ArrayLike,
    *,
    starts: ArrayLike = 0.0,
    demands: Demands | None = None,
    solver: Solver = SOLVER,
) -> Numbers:
    """Return the time at which every flow has carried its `bits` (of one flow, where an entry stands for several).

    Times in seconds if capacities are in bits per second. Infinitely many bits make a flow that never ends, as
    background; a flow without links and cap ends as it starts, one over a dead link never. Raises ValueError.
    """
    room = checked_capacities(capacities)
    check_links(paths, len(room))
    flows = len(paths)
    left, begin = (np.array(np.broadcast_to(np.asarray(value, np.float64), (flows,))) for value in (bits, starts))
    if not (left >= 0).all() or not (np.isfinite(begin) & (begin >= 0)).all():
        raise ValueError("bits must be at least 0, and starts finite and at least 0")
    demands = demands or Demands.of(flows)
    if solver == "numpy":
        return _stepped(room, paths, left, begin, demands)
    from blast_sim.fair.fluid_numba import run

    return run(room, paths, left, begin, demands)


def _stepped(room: Numbers, paths: Paths, left: Numbers, begin: Numbers, demands: Demands) -> Numbers:
    shares = FairShares(room, solver="numpy")
    ends = np.full(len(paths), np.inf)
    coming = np.argsort(begin, kind="stable")
    running: Places = np.zeros(0, np.int64)
    ids: Places = np.zeros(0, np.int64)
    now = 0.0
    while len(coming) or np.isfinite(left[running]).any():
        rates = shares.rates(ids)
        due = now + _durations(left[running], rates)
        first = float(due.min(initial=np.inf))
        following = float(begin[coming[0]]) if len(coming) else np.inf
        now, before = min(first, following), now
        if now == np.inf:
            break
        over = due <= now * (1 + SAME_TIME)
        going = np.isfinite(rates)
        left[running[going]] -= rates[going] * (now - before)
        ends[running[over]] = now
        shares.remove(ids[over])
        come = coming[: np.searchsorted(begin[coming], now, "right")]
        coming = coming[len(come) :]
        new = shares.add_demands(paths.take(come), demands.take(come))
        running, ids = np.concatenate([running[~over], come]), np.concatenate([ids[~over], new])
    return ends


def _durations(left: Numbers, rates: Numbers) -> Numbers:
    """Return the time that flows need for their remaining bits."""
    needed = np.full(len(left), np.inf)
    np.divide(left, rates, out=needed, where=rates > 0)
    needed[(left <= 0) | (rates == np.inf)] = 0.0
    return needed
