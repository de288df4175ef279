"""Adaptation of the trees of one transfer to changed rates of the network.

The planner decides on new trees, and the sending session uses them. This module connects both: a thread owns the
planner, since the session must not wait for plans, and another thread runs each probe.
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
from blast_transport.transports.sight import PhaseMeasurement

Probe = Callable[[str, str], float]
"""Function (from, to) that returns the bits/s of a short stream between two hosts. Raises OSError, TransportError."""

WORTH = 1.2
"""Minimum ratio of the planned rate of trees to that of a pipeline, since trees need more connections."""

SETTLED_SECONDS = 1.5
"""Time after which the measured rates of a phase are valid: TCP connections start slowly."""

_LOOK_SECONDS = 0.5
"""Within this time, the thread notices that the transfer has ended."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Probed:
    suspect: Suspect
    rate: float | None


class TreeGuide:
    """The adaptation of one transfer from the planner's root; without `probe`, recovered paths are not detected.

    `choice`: the initial trees, at `rate` bits/s. Raises WrongInputError if no trees reach the receivers.
    """

    def __init__(self, planner: TreePlanner, receivers: Sequence[str], probe: Probe | None = None) -> None:
        self._planner, self._probe = planner, probe
        self._receivers = list(receivers)
        self._events: queue.SimpleQueue[PhaseMeasurement | _Probed | None] = queue.SimpleQueue()
        self._probing = False
        self._over = Event()
        planned = _converted(lambda: planner.plan(self._receivers))
        self.rate = planned.rate
        self.choice = self._choice_of(planned)

    def are_worth_it(self, order: Sequence[str]) -> bool:
        """Return True if the planned rate is at least WORTH times that of a pipeline. Raises WrongInputError."""
        return self.rate >= WORTH * _converted(lambda: self._planner.chain_rate(order))

    @contextmanager
    def guiding(self, route: Route) -> Iterator[None]:
        """Pass better trees to a route during a block."""
        Thread(target=self._run, args=(route,), name="tree planner", daemon=True).start()
        try:
            yield
        finally:
            # The result of a running plan or probe is dropped.
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
                # Keep the current trees.
                continue
            if better is not None and not self._over.is_set():
                route.improve(self._choice_of(better))

    def _take(self, event: PhaseMeasurement | _Probed | None, now: float) -> PlannedTrees | None:
        """Handle an event; return better trees, or None."""
        planner = self._planner
        if isinstance(event, PhaseMeasurement):
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
        """Probe the next suspect path, one at a time."""
        if self._probe is None or self._probing or (suspect := self._planner.suspect(now)) is None:
            return
        self._probing = True
        Thread(target=self._try, args=(self._probe, suspect), name="tree probe", daemon=True).start()

    def _try(self, probe: Probe, suspect: Suspect) -> None:
        rate = None
        try:
            rate = probe(suspect.sender, suspect.receiver)
        except (OSError, TransportError):
            # The path is still broken.
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


def _converted(plan: Callable[[], T]) -> T:
    """Call a planner, and convert its exceptions to those of the transport."""
    try:
        return plan()
    except ValueError as error:
        raise WrongInputError(str(error)) from error
    except RuntimeError as error:
        raise TransportError(f"planning trees failed: {error}") from error
