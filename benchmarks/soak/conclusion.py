"""The end of a soak: light is asked for once more, and journal, rules and cross-connects must agree, lit and dark."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from thrift.Thrift import TException

from blast_api.ttypes import Ended, MulticastRequest
from blast_client import ControllerUnreachable
from mininet_topos.agents import Agents
from mininet_topos.errors import LabError
from soak.aftermath import ALIVE
from soak.comparison import Readings, dark, differences
from soak.places import APPLICATIONS, HONEST_TENANTS, OPERATOR, PLAN, hosts_of
from soak.readings import read
from soak.room import Room
from soak.sampling import Held, held_by
from tl1_driver.errors import Tl1Error

SETTLE_SECONDS = 180.0
GRANT_SECONDS = 120.0
"""Guards against hanging: how long it takes decides nothing."""
BYTES = 10**9
"""Enough for a lease that outlives the comparison."""
_POLL_SECONDS = 0.5
"""Reading takes processor time from those who are to come to rest."""


def readings(room: Room) -> Readings:
    """The three accounts as they are now."""
    return read(PLAN, room.bridges, room.journal, room.lab.tl1)


def compare(room: Room) -> list[str]:
    """What does not agree at the end, a sentence each; leaves the lab dark."""
    try:
        return _compared(room)
    except (TException, ControllerUnreachable) as error:
        return [f"the controller did not serve at the end: {type(error).__name__}: {error}"]
    except (LabError, Tl1Error, OSError, sqlite3.Error, ValueError, KeyError) as error:
        return [f"the devices or the journal could not be read at the end: {type(error).__name__}: {error}"]


def _compared(room: Room) -> list[str]:
    unanswered = settled(lambda: _given_up(room))
    if unanswered:
        return unanswered
    found = [f"when all had been given up, {fault}" for fault in settled(lambda: dark(readings(room)))]
    with lit(room):
        found += [f"with light, {fault}" for fault in settled(lambda: differences(readings(room)))]
    after = settled(lambda: [*dark(readings(room)), *differences(readings(room))])
    return found + [f"after the light was given back, {fault}" for fault in after]


def _given_up(room: Room) -> list[str]:
    """Withdraw every request that is alive, for what hostile clients leave behind is theirs to leave; what fails."""
    try:
        with room.client(OPERATOR) as operator:
            for request in list(operator.list_requests(ALIVE)):
                with suppress(Ended):
                    operator.withdraw(f"{request.tenant}/{request.key}")
    except (TException, ControllerUnreachable) as error:
        return [f"the controller did not serve at the end: {type(error).__name__}: {error}"]
    return []


@contextmanager
def lit(room: Room) -> Iterator[None]:
    """Light for three groups: one through a splitter, one of two racks, one within a rack."""
    one, two, three, four, five = (hosts_of((rack,)) for rack in APPLICATIONS)
    groups = ((one[0], [two[0], three[0], three[1]]), (four[0], [five[0]]), (two[0], [two[1]]))
    with room.client(HONEST_TENANTS[1]) as client:
        keys = []
        for number, (sender, receivers) in enumerate(groups):
            request = MulticastRequest(f"last-{os.getpid()}-{time.monotonic_ns()}-{number}", sender, receivers, BYTES)
            client.request(request, GRANT_SECONDS)
            keys.append(request.key)
        yield
        for key in keys:
            client.finish(key)


def settled(faults: Callable[[], list[str]], seconds: float = SETTLE_SECONDS) -> list[str]:
    """The faults that are still there when things have had time to settle."""
    deadline = time.monotonic() + seconds
    while found := faults():
        if time.monotonic() > deadline:
            return found
        time.sleep(_POLL_SECONDS)
    return []


def holdings(room: Room, agents: Agents) -> dict[str, Held | None]:
    """What the controller and each agent hold now."""
    found = {f"agent {host}": held_by(pid) for host, pid in agents.pids.items()}
    return {"the controller": held_by(room.lab.controller_pid), **found}
