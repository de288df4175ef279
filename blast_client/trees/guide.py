"""Sees to the trees of one transfer: plans them anew when its network turns out slower, or faster again.

What that means the planner decides, and the session that sends follows it. Here is only what lies between: a thread
that owns the planner, since the session must not wait for plans, and one for each probe.
"""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event, Thread
from typing import TypeVar

from blast_client.trees.planner import PlannedTrees, Suspect, TreePlanner
from blast_transport.base.errors import TransportError, WrongInputError
from blast_transport.links.dialling import SOURCE
from blast_transport.session.route import Route
from blast_transport.transports.choices import Tree, Trees
from blast_transport.transports.sight import Sight

Probe = Callable[[str, str], float]
"""(from, to) -> bits/s that a short stream between the two had. Raises OSError, TransportError."""

WORTH = 1.2
"""Times the rate of a pipeline that trees have to be planned for: they take more connections."""

SETTLED_SECONDS = 1.5
"""What is measured of a phase before says nothing of its trees: its connections begin slowly."""

_LOOK_SECONDS = 0.5

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Probed:
    suspect: Suspect
    rate: float | None


class TreeGuide:
    """For one transfer from the planner's root to these receivers; without `probe` nobody looks for what recovers.

    `choice`: the trees to begin with, at `rate` bits/s. Raises WrongInputError where none reach the receivers.
    """

    def __init__(self, planner: TreePlanner, receivers: Sequence[str], probe: Probe | None = None) -> None:
        self._planner, self._probe = planner, probe
        self._receivers = list(receivers)
        self._events: queue.SimpleQueue[Sight | _Probed | None] = queue.SimpleQueue()
        self._probing = False
        self._over = Event()
        planned = _told(lambda: planner.plan(self._receivers))
        self.rate = planned.rate
        self.choice = self._choice_of(planned)

    def are_worth_it(self, order: Sequence[str]) -> bool:
        """Whether the trees are planned to be enough faster than a pipeline in this order. Raises WrongInputError."""
        return self.rate >= WORTH * _told(lambda: self._planner.chain_rate(order))

    @contextmanager
    def guiding(self, route: Route) -> Iterator[None]:
        """While this lasts, `route` hears of better trees."""
        Thread(target=self._run, args=(route,), name="tree planner", daemon=True).start()
        try:
            yield
        finally:
            # Nobody waits for a plan or a probe that is under way: what comes of it is dropped.
            self._over.set()
            self._events.put(None)

    def _run(self, route: Route) -> None:
        while not self._over.is_set():
            try:
                event = self._events.get(timeout=_LOOK_SECONDS)
            except queue.Empty:
                event = None
            try:
                better = self._take(event, time.monotonic())
            except (ValueError, RuntimeError):
                # The trees that there are go on.
                continue
            if better is not None and not self._over.is_set():
                route.improve(self._choice_of(better))

    def _take(self, event: Sight | _Probed | None, now: float) -> PlannedTrees | None:
        """What is better after this; None: nothing."""
        planner = self._planner
        if isinstance(event, Sight):
            if lost := set(event.lost).intersection(self._receivers):
                self._receivers = [name for name in self._receivers if name not in lost]
                return planner.plan(self._receivers) if self._receivers else None
            if event.seconds < SETTLED_SECONDS and not event.broken:
                return None
            named = [
                (self._host(flow.parent), flow.child, flow.rate, flow.planned, flow.held_back) for flow in event.flows
            ]
            planner.see(named, [(self._host(parent), child) for parent, child in event.broken], now)
        elif isinstance(event, _Probed):
            self._probing = False
            if event.rate is not None:
                planner.probed(event.suspect, event.rate)
        self._look(now)
        return None if event is None else planner.better()

    def _look(self, now: float) -> None:
        """Probe what is suspect, one path at a time."""
        if self._probe is None or self._probing or (suspect := self._planner.suspect(now)) is None:
            return
        self._probing = True
        Thread(target=self._try, args=(self._probe, suspect), name="tree probe", daemon=True).start()

    def _try(self, probe: Probe, suspect: Suspect) -> None:
        rate = None
        try:
            rate = probe(suspect.sender, suspect.receiver)
        except (OSError, TransportError):
            # It is as broken as it was.
            pass
        finally:
            self._events.put(_Probed(suspect, rate))

    def _host(self, name: str) -> str:
        return self._planner.root if name == SOURCE else name

    def _choice_of(self, planned: PlannedTrees) -> Trees:
        root = self._planner.root
        trees = (
            Tree(rate, {child: SOURCE if parent == root else parent for child, parent in parents.items()})
            for rate, parents in planned.trees
        )
        return Trees(tuple(trees), self._events.put)


def _told(plan: Callable[[], T]) -> T:
    """What a planner says, in the words of the transport's errors."""
    try:
        return plan()
    except ValueError as error:
        raise WrongInputError(str(error)) from error
    except RuntimeError as error:
        raise TransportError(f"no trees were found: {error}") from error
