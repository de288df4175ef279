"""A method as a graph of phases: transfers that begin when those before them have ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike

from blast_sim.fair import Paths
from blast_sim.fair.paths import Places
from blast_sim.flow.engine import Simulation
from blast_sim.flow.relays import Relays


@dataclass(frozen=True, slots=True)
class Phase:
    """Flows of `bits` bits that begin `delay` seconds after the end of all phases in `after` (their places).

    A phase without flows is a pause. Paced senders keep to `rate_caps`, in bit/s. A flow over the hops of `relays` is
    followed by its last block, which passes them at their rates at that time.
    """

    paths: Paths = field(default_factory=Paths.none)
    bits: ArrayLike = 0.0
    after: Sequence[int] = ()
    delay: float = 0.0
    multiplicity: ArrayLike | None = None
    rate_caps: ArrayLike | None = None
    relays: Relays | None = None


def in_sequence(*phases: Phase) -> list[Phase]:
    """Return the phases in sequence: each begins after the one before it."""
    return [replace(phase, after=(place - 1,) if place else ()) for place, phase in enumerate(phases)]


class Graph:
    """Plays phases on a simulation; `done` is called when all have ended."""

    def __init__(self, simulation: Simulation, phases: Sequence[Phase], done: Callable[[], None]) -> None:
        self._simulation = simulation
        self._phases = phases
        self._done = done
        self._open = len(phases)
        self._waits_for = [len(set(phase.after)) for phase in phases]
        self._flowing = [len(phase.paths) for phase in phases]

    def start(self) -> None:
        """Begin with the phases that wait for no other."""
        if not self._open:
            self._done()
        for number, waits_for in enumerate(list(self._waits_for)):
            if not waits_for:
                self._appoint(number)

    def _appoint(self, number: int) -> None:
        delay = self._phases[number].delay
        if delay:
            self._simulation.clock.at(self._simulation.clock.now + delay, lambda: self._begin(number))
        else:
            self._begin(number)

    def _begin(self, number: int) -> None:
        phase = self._phases[number]
        if not len(phase.paths):
            self._end(number)
            return
        self._simulation.start(
            phase.paths, phase.bits, lambda ended: self._ended(number, ended), phase.multiplicity, phase.rate_caps
        )

    def _ended(self, number: int, flows: Places) -> None:
        self._flowing[number] -= len(flows)
        if not self._flowing[number]:
            self._await_last_block(number)

    def _await_last_block(self, number: int) -> None:
        relays, pace = self._phases[number].relays, self._phases[number].rate_caps
        if relays is None:
            self._end(number)
            return
        rates = self._simulation.rates_beside(relays.hops)
        lag = relays.lag(rates, float("inf") if pace is None else float(np.max(pace)))
        self._simulation.clock.at(self._simulation.clock.now + lag, lambda: self._end(number))

    def _end(self, number: int) -> None:
        self._open -= 1
        if not self._open:
            self._done()
        for later, phase in enumerate(self._phases):
            if number in phase.after:
                self._waits_for[later] -= 1
                if not self._waits_for[later]:
                    self._appoint(later)
