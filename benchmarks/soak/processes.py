"""The processes of the load: honest clients, hostile clients, and who burns what these used."""

from __future__ import annotations

import json
import os
import sys
from contextlib import ExitStack
from pathlib import Path

from child import Child

from mininet_topos.agents import PORT, Agents
from mininet_topos.names import MARK
from soak.latencies import Call
from soak.reached import Reached
from soak.rhythm import Rhythm
from soak.room import Room

_BENCHMARKS = Path(__file__).resolve().parents[1]
_READY_SECONDS = _OFF_SECONDS = _END_SECONDS = 180.0
"""Guards against hanging."""


class Load:
    """Starts them all; they end with the stack that they were started on, whatever happens.

    Raises ChildFailed where one does not come up.
    """

    def __init__(self, room: Room, agents: Agents, reached: Reached, stack: ExitStack) -> None:
        self._room, self._agents, self._reached, self._stack = room, agents, reached, stack
        roster = reached.roster
        where = ["--controller", room.lab.thrift, "--papers", str(room.papers.folder)]
        many = ["--applications", str(roster.applications), "--observers", str(roster.observers)]
        self._honest = self._child("honest", *where, *many)
        self._burner = self._child("burner")
        self._hostile: Child | None = None
        self._measured: Rhythm | None = None
        self._shares: list[float] = []
        self._hostile_words = [*where, *self._targets()]

    def attack(self) -> None:
        """Let hostile clients begin. Raises ChildFailed."""
        if self._reached.roster.attacks:
            self._hostile = self._child("hostile", *self._hostile_words)
            # Its start is no hostile client's use of the processors.
            self._hostile.next(_READY_SECONDS)
            self._hostile.order("on")
            self._measured = Rhythm(self._hostile.cpu_seconds)

    def relent(self) -> None:
        """Let them vanish, and note what they did. Raises ChildFailed."""
        if self._hostile is not None and self._measured is not None:
            self._shares = self._measured.stop()
            self._hostile.order("off")
            self._hostile.end(_OFF_SECONDS)
            for told in self._hostile.rest():
                self._reached.hostile_now = told
            self._reached.end_attack()
            self._hostile = None

    def burn(self) -> None:
        """Burn what hostile clients used at last, in their rhythm."""
        self._burner.order(json.dumps(self._shares))

    def burn_no_more(self) -> None:
        """Leave the processors alone."""
        self._burner.order("[]")

    @property
    def hostile_cpu(self) -> float:
        """Seconds of processor time that hostile clients have used."""
        return self._hostile.cpu_seconds() if self._hostile is not None else 0.0

    @property
    def burnt_cpu(self) -> float:
        """Seconds of processor time that were burnt."""
        return self._burner.cpu_seconds()

    def collect(self) -> None:
        """Take over what clients have done since the last time. Raises ChildFailed."""
        self._reached.calls += [Call(**line) for line in self._honest.waiting()]
        for told in self._hostile.waiting() if self._hostile is not None else ():
            self._reached.hostile_now = told

    def end_honest(self) -> None:
        """Let the honest clients end what they have begun. Raises ChildFailed."""
        self._honest.end(_END_SECONDS)
        self._reached.calls += [Call(**line) for line in self._honest.rest()]

    def _targets(self) -> list[str]:
        lab, addresses = self._room.lab, self._agents.addresses
        hosts = [[host, lab.host(host).pid, addresses[host]] for host in self._agents.hosts]
        words = ["--openflow", lab.openflow, "--agent-port", str(PORT), "--hosts", json.dumps(hosts)]
        return [*words, "--attacks", *self._reached.roster.attacks]

    def _child(self, name: str, *arguments: str) -> Child:
        # The lab's mark, so that whoever removes the lab removes these, too.
        path = os.pathsep.join([str(_BENCHMARKS), os.environ.get("PYTHONPATH", "")])
        command = ["env", f"{MARK}={self._room.lab.id}", f"PYTHONPATH={path}", sys.executable, "-m", f"soak.{name}"]
        child = Child(name, [*command, *arguments], self._room.folder / f"{name}.log")
        self._stack.callback(child.kill)
        return child
