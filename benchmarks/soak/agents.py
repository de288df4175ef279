"""The agents of the transfers' hosts, each `blast agent run` in its host, writing below a folder of its own."""

from __future__ import annotations

import os
import signal
import sysconfig
from collections.abc import Sequence
from pathlib import Path

from mininet_topos.process import LabProcess
from soak.places import PLAN
from soak.room import Room

PORT = 9095
_READY_SECONDS = 120.0
BLAST = str(Path(sysconfig.get_path("scripts")) / "blast")


class Agents:
    """Agents on `hosts`, up while the `with` block runs."""

    def __init__(self, room: Room, hosts: Sequence[str]) -> None:
        self._room = room
        self.hosts = list(hosts)
        self.addresses = {host.name: host.ip for rack in PLAN.rack_plans for host in rack.hosts if host.name in hosts}
        self._processes: dict[str, LabProcess] = {}

    def __enter__(self) -> Agents:
        try:
            for host in self.hosts:
                self._processes[host] = self._start(host)
            for process in self._processes.values():
                process.wait_ready(_READY_SECONDS)
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    @property
    def pids(self) -> dict[str, int]:
        """Process id of each host's agent."""
        return {host: process.pid for host, process in self._processes.items()}

    @property
    def ended(self) -> list[str]:
        """The hosts whose agent does not run any more."""
        return [host for host, process in self._processes.items() if not process.running]

    def folder(self, host: str) -> Path:
        """Where a host's files arrive."""
        return self._room.hosts / "received" / host

    def log(self, host: str) -> Path:
        """What a host's agent writes."""
        return self._room.folder / f"agent-{host}.log"

    def _start(self, host: str) -> LabProcess:
        self.folder(host).mkdir(parents=True)
        config = self._room.folder / f"agent-{host}.toml"
        address = self.addresses[host]
        config.write_text(
            f'[agent]\nlisten = "{address}:{PORT}"\nlight_address = "{address}"\n'
            f'[[folder]]\nname = "incoming"\npath = "{self.folder(host)}"\n'
            f'[access]\nsecret_file = "{self._room.papers.secret}"\n'
        )
        enter = ["mnexec", "-a", str(self._room.lab.host(host).pid)]
        command = [*enter, BLAST, "agent", "run", "--config", str(config), "--json"]
        return LabProcess(f"agent of {host}", command, self._room.lab.id, self.log(host))

    def _stop(self) -> None:
        # All at once: each may take a while to say goodbye.
        for process in self._processes.values():
            if process.running:
                os.kill(process.pid, signal.SIGTERM)
        for process in self._processes.values():
            process.stop()
