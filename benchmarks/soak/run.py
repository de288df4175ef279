"""A soak from beginning to end: the room, the load, its slices, the conclusion; `Reached` is filled on the way."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from blast_api.ttypes import FabricStatus
from mininet_topos.agents import Agents
from mininet_topos.errors import HostError
from mininet_topos.relay import relay
from soak.agents import agents_of
from soak.conclusion import compare, holdings, settled
from soak.leftovers import left_by
from soak.places import OPERATOR, PLAN, TRANSFERS, hosts_of
from soak.processes import Load
from soak.reached import Reached
from soak.room import Room
from soak.roster import SEND_SECONDS
from soak.sampling import leaks
from soak.timeline import Progress, Timeline
from soak.transfers import Sender

_DEVICES_SECONDS = 120.0
"""A guard against hanging."""


def run(reached: Reached, progress: Progress) -> None:
    """Do it all. Raises LabError, ChildFailed; KeyboardInterrupt ends it early, and everything with it."""
    with (
        tempfile.TemporaryDirectory(prefix="blast-soak-", dir="/var/tmp") as folder,
        # Hosts have disks of their own: on the controller's one, its commits would wait for everybody's files.
        tempfile.TemporaryDirectory(prefix="blast-soak-", dir="/dev/shm") as hosts,
    ):
        _keep_bytecode(Path(folder) / "bytecode")
        room = Room(Path(folder), Path(hosts))
        try:
            with room:
                _run_in(room, reached, progress)
        finally:
            reached.ends = room.ends
            reached.left += left_by(room.lab_id) if room.lab_id else []


def _keep_bytecode(folder: Path) -> None:
    """Processes that are started from now on keep the bytecode of what they import in `folder`.

    Where it may not be written at all, each `blast send` compiles a hundred modules, 0.3 s of a processor, which those
    who install a package never see: its bytecode comes with the installation.
    """
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = str(folder)


def _run_in(room: Room, reached: Reached, progress: Progress) -> None:
    hosts = hosts_of(TRANSFERS)
    with agents_of(room, hosts) as agents, relay(room.lab, hosts):
        _await_devices(room)
        before = holdings(room, agents)
        timeline = Timeline(room, agents, reached, progress)
        with _senders(room, agents, reached) as senders, ExitStack() as stack:
            load = Load(room, agents, reached, stack)
            timeline.follow(load)
            for sender in senders:
                sender.stop()
            load.end_honest()
        for sender in senders:
            sender.sweep()
        room.supervise()
        reached.differences += compare(room)
        reached.compared = True
        reached.left += settled(lambda: leaks(before, holdings(room, agents)))
        timeline.sample()


@contextmanager
def _senders(room: Room, agents: Agents, reached: Reached) -> Iterator[list[Sender]]:
    """Sending while the block runs; then they end what they have begun, or are ended where the block was left early."""
    # Appending is all that these threads do to what is shared.
    numbers = range(1, reached.roster.senders + 1)
    senders = [Sender(room, agents, number, SEND_SECONDS, reached.calls.append) for number in numbers]
    reached.received = [sender.received for sender in senders]
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


def _await_devices(room: Room) -> None:
    """Until the controller has all devices. Raises `HostError`."""
    deadline = time.monotonic() + _DEVICES_SECONDS
    with room.client(OPERATOR) as operator:
        while not _all_connected(operator.fabric()):
            if time.monotonic() > deadline:
                raise HostError(f"not all devices of {PLAN.summary} came to the controller in {_DEVICES_SECONDS:g} s")
            time.sleep(0.1)


def _all_connected(fabric: FabricStatus) -> bool:
    return all(device.connected for device in (*fabric.racks, *fabric.opticalSwitches))
