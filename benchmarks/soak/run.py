"""A soak from beginning to end: the room, the load, its slices, the conclusion; `Reached` is filled on the way."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from blast_api.ttypes import FabricStatus
from blast_client import Client
from mininet_topos.errors import HostError
from soak.aftermath import over
from soak.agents import Agents
from soak.conclusion import compare, holdings, settled
from soak.latencies import Window
from soak.leftovers import left_by
from soak.places import OPERATOR, PLAN, TRANSFERS, hosts_of
from soak.processes import Load
from soak.reached import Pause, Reached
from soak.relay import Relay
from soak.room import Room
from soak.roster import SEND_SECONDS
from soak.sampling import Held, Sample, held_by, leaks, size_of
from soak.schedule import BASELINE, CALIBRATION, MOST_PAUSE_SECONDS, PAUSE, PAUSE_SECONDS, SOAK, Slice
from soak.transfers import Sender

SAMPLE_SECONDS = 5.0
_DEVICES_SECONDS = 120.0
_TURN_SECONDS = 0.25

Progress = Callable[[Slice, float], None]
"""Hears of the slice that runs and of the seconds since the load began."""


class Soak:
    """One soak. `reached` is what it has come to, at any time."""

    def __init__(self, reached: Reached, progress: Progress) -> None:
        self.reached = reached
        self._progress = progress
        self._begun = self._next_sample = 0.0

    def run(self) -> None:
        """Do it all. Raises LabError, ChildFailed; KeyboardInterrupt ends it early, and everything with it."""
        with tempfile.TemporaryDirectory(prefix="blast-soak-", dir="/var/tmp") as folder:
            room = Room(Path(folder))
            try:
                with room:
                    self._in(room)
            finally:
                self.reached.ends = room.ends
                self.reached.left += left_by(room.lab_id) if room.lab_id else []

    def _in(self, room: Room) -> None:
        hosts = hosts_of(TRANSFERS)
        with Agents(room, hosts) as agents, Relay(room.lab, hosts), room.client(OPERATOR) as operator:
            _await_devices(operator)
            operator.close()
            before = holdings(room, agents)
            with self._senders(room, agents) as senders, ExitStack() as stack:
                load = Load(room, agents, self.reached, stack)
                self._slices(room, agents, load)
                for sender in senders:
                    sender.stop()
                load.end_honest()
            for sender in senders:
                sender.sweep()
            self._conclude(room, agents, before)

    def _conclude(self, room: Room, agents: Agents, before: dict[str, Held | None]) -> None:
        room.supervise()
        self.reached.differences += compare(room)
        self.reached.compared = True
        self.reached.left += settled(lambda: leaks(before, holdings(room, agents)))
        self._sample(room, agents)

    # ---------------------------------------------------------------------------------------------------- slices

    def _slices(self, room: Room, agents: Agents, load: Load) -> None:
        self._begun = self._next_sample = time.monotonic()
        for part in self.reached.plan:
            if part.phase == BASELINE:
                self._baseline(part, room, agents, load)
            else:
                self._soak(part, room, agents, load)
                self._calm_down(room, agents, load)

    def _baseline(self, part: Slice, room: Room, agents: Agents, load: Load) -> None:
        before = load.burnt_cpu
        load.burn(self.reached.hostile_cpu.share)
        window = self._pass(part, room, agents, load)
        load.burn(0.0)
        self.reached.burnt_cpu.add(load.burnt_cpu - before, window.end - window.begin)

    def _soak(self, part: Slice, room: Room, agents: Agents, load: Load) -> None:
        load.attack()
        before = load.hostile_cpu
        window = self._pass(part, room, agents, load)
        self.reached.hostile_cpu.add(load.hostile_cpu - before, window.end - window.begin)
        load.relent()

    def _calm_down(self, room: Room, agents: Agents, load: Load) -> None:
        """Let the controller come to an end with what hostile clients have left behind, within reason."""
        begin, calm = time.monotonic(), False
        while not calm and time.monotonic() < begin + MOST_PAUSE_SECONDS:
            self._pass(Slice(PAUSE, PAUSE_SECONDS), room, agents, load)
            calm = over(room)
        self.reached.pauses.append(Pause(time.monotonic() - begin, calm))

    def _pass(self, part: Slice, room: Room, agents: Agents, load: Load) -> Window:
        """Let time pass, and look after everything meanwhile."""
        begin = time.monotonic()
        while (now := time.monotonic()) < begin + part.seconds:
            room.supervise()
            load.collect()
            if now >= self._next_sample:
                self._next_sample = now + SAMPLE_SECONDS
                self._sample(room, agents)
            self._progress(part, now - self._begun)
            time.sleep(_TURN_SECONDS)
        window = Window(part.phase, begin, time.monotonic())
        if part.phase in (CALIBRATION, BASELINE, SOAK):
            self.reached.windows.append(window)
        return window

    def _sample(self, room: Room, agents: Agents) -> None:
        self.reached.samples.append(
            Sample(
                time.monotonic() - self._begun,
                held_by(room.lab.controller_pid),
                {host: held for host, pid in agents.pids.items() if (held := held_by(pid)) is not None},
                size_of(room.journal),
                size_of(room.controller_log, *map(agents.log, agents.hosts)),
            )
        )

    # ---------------------------------------------------------------------------------------------------- senders

    @contextmanager
    def _senders(self, room: Room, agents: Agents) -> Iterator[list[Sender]]:
        """Sending while the block runs; at its end they end what they have begun, or are ended if it was left early."""
        count = self.reached.roster.senders
        # Appending is all that these threads do to what is shared.
        senders = [
            Sender(room, agents, number, SEND_SECONDS, self.reached.calls.append) for number in range(1, count + 1)
        ]
        self.reached.received = [sender.received for sender in senders]
        try:
            for sender in senders:
                sender.start()
            yield senders
        except BaseException:
            for sender in senders:
                sender.kill()
            raise
        finally:
            for sender in senders:
                sender.stop()
                sender.join()


def _await_devices(operator: Client) -> None:
    """Until the controller has all devices. Raises `HostError`."""
    deadline = time.monotonic() + _DEVICES_SECONDS
    while not _all_connected(operator.fabric()):
        if time.monotonic() > deadline:
            raise HostError(f"not all devices of {PLAN.summary} came to the controller in {_DEVICES_SECONDS:g} s")
        time.sleep(0.1)


def _all_connected(fabric: FabricStatus) -> bool:
    return all(device.connected for device in (*fabric.racks, *fabric.opticalSwitches))
