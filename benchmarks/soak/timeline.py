"""The slices of a soak as they come to pass, with a look at everything now and then."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from mininet_topos.agents import Agents
from soak.aftermath import over
from soak.latencies import Window
from soak.processes import Load
from soak.reached import Pause, Reached
from soak.room import Room
from soak.sampling import Sample, held_by, size_of
from soak.schedule import BASELINE, MOST_PAUSE_SECONDS, PAUSE, PAUSE_SECONDS, Slice

SAMPLE_SECONDS = 5.0
_TURN_SECONDS = 0.25

Progress = Callable[[Slice, float], None]
"""Hears of the slice that runs and of the seconds since the load began."""


class Timeline:
    """Goes through the plan of `reached`, and writes down there what comes of it."""

    def __init__(self, room: Room, agents: Agents, reached: Reached, progress: Progress) -> None:
        self._room, self._agents, self._reached, self._progress = room, agents, reached, progress
        self._begun = self._next_sample = time.monotonic()

    def follow(self, load: Load) -> None:
        """All slices, one after the other. Raises ChildFailed, and `ProcessFault` for a controller that is lost."""
        for part in self._reached.plan:
            if part.phase == BASELINE:
                window = self._baseline(part, load)
            else:
                # What an attack leaves behind is the attack's, too.
                window = replace(self._attack(part, load), end=self._calm_down(load))
            self._reached.windows.append(window)

    def sample(self) -> None:
        """Look at everything."""
        pids = self._agents.pids
        self._reached.samples.append(
            Sample(
                time.monotonic() - self._begun,
                held_by(self._room.lab.controller_pid),
                {host: held for host, pid in pids.items() if (held := held_by(pid)) is not None},
                size_of(self._room.journal),
                size_of(self._room.controller_log, *map(self._agents.log, self._agents.hosts)),
            )
        )

    def _baseline(self, part: Slice, load: Load) -> Window:
        before = load.burnt_cpu
        load.burn()
        window = self._pass(part, load)
        load.burn_no_more()
        self._reached.burnt_cpu.add(load.burnt_cpu - before, window.seconds)
        return window

    def _attack(self, part: Slice, load: Load) -> Window:
        load.attack()
        before = load.hostile_cpu
        window = self._pass(part, load)
        self._reached.hostile_cpu.add(load.hostile_cpu - before, window.seconds)
        load.relent()
        return window

    def _calm_down(self, load: Load) -> float:
        """Let the controller come to an end with what hostile clients have left behind, within reason; when it did."""
        begin, calm = time.monotonic(), False
        while not calm and time.monotonic() < begin + MOST_PAUSE_SECONDS:
            self._pass(Slice(PAUSE, PAUSE_SECONDS), load)
            calm = over(self._room)
        end = time.monotonic()
        self._reached.pauses.append(Pause(end - begin, calm))
        return end

    def _pass(self, part: Slice, load: Load) -> Window:
        """Let time pass, and look after everything meanwhile."""
        begin = time.monotonic()
        while (now := time.monotonic()) < begin + part.seconds:
            self._room.supervise()
            load.collect()
            if now >= self._next_sample:
                self._next_sample = now + SAMPLE_SECONDS
                self.sample()
            self._progress(part, now - self._begun)
            time.sleep(_TURN_SECONDS)
        return Window(part.phase, begin, time.monotonic())
