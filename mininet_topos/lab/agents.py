"""Agents in the hosts of a lab: `blast agent run` in each, with one folder that is the host's own."""

from __future__ import annotations

import json
import os
import secrets
import signal
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from mininet_topos.kernel.process import LabProcess

PORT = 9095
"""The default port of agents."""
BLAST = str(Path(sysconfig.get_path("scripts")) / "blast")
_READY_SECONDS = 120.0
"""Many agents start at once on few processors."""
_SECRET_BYTES = 48
"""More than the 32 that agents require."""


class LocalHosts(Protocol):
    """Hosts that live on this machine: a lab, or sites."""

    @property
    def id(self) -> str:
        """The mark of all its processes."""

    def pid(self, host: str) -> int:
        """Return the id of the process that holds a host's network namespace."""

    def address(self, host: str) -> str:
        """Return a host's address on the packet network."""


@dataclass(frozen=True)
class AgentPlaces:
    """The folders of a lab's agents.

    Each agent has one folder, called `folder` by senders: the one with the host's name below `data`. Configurations and
    logs are in `papers`. The content of the file `secret` authorizes sending to all of them. `durable`: files are
    synced.
    """

    folder: str
    data: Path
    papers: Path
    secret: Path
    durable: bool = True


class Agents:
    """Agents on `hosts`, up while the `with` block runs. Raises `ProcessError` when one does not start."""

    def __init__(self, lab: LocalHosts, hosts: Sequence[str], places: AgentPlaces) -> None:
        self._lab, self.places = lab, places
        self.hosts = list(hosts)
        self.addresses = {host: lab.address(host) for host in hosts}
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

    def kill(self, host: str) -> None:
        """Kill a host's agent; its files stay."""
        self._processes[host].kill()

    def restart(self, host: str) -> None:
        """Kill a host's agent and start it again; its files stay. Raises `ProcessError`."""
        self.kill(host)
        self._processes[host] = self._start(host)
        self._processes[host].wait_ready(_READY_SECONDS)

    def address(self, host: str) -> str:
        """Return the address at which a host's agent listens, `address:port`."""
        return f"{self.addresses[host]}:{PORT}"

    def folder(self, host: str) -> Path:
        """Return the folder in which a host's files arrive."""
        return self.places.data / host

    def log(self, host: str) -> Path:
        """Return the log file of a host's agent."""
        return self.places.papers / f"agent-{host}.log"

    def _start(self, host: str) -> LabProcess:
        self.folder(host).mkdir(parents=True, exist_ok=True)
        config = self.places.papers / f"agent-{host}.toml"
        config.write_text(self._config(host))
        enter = ["mnexec", "-a", str(self._lab.pid(host))]
        command = [*enter, BLAST, "agent", "run", "--config", str(config), "--json"]
        return LabProcess(f"agent of {host}", command, self._lab.id, self.log(host))

    def _config(self, host: str) -> str:
        quoted = json.dumps
        return (
            f"[agent]\nlisten = {quoted(self.address(host))}\noptical_address = {quoted(self.addresses[host])}\n"
            f"durable = {quoted(self.places.durable)}\n"
            f"[[folder]]\nname = {quoted(self.places.folder)}\npath = {quoted(str(self.folder(host)))}\n"
            "claimed = true\n"
            f"[access]\nsecret_file = {quoted(str(self.places.secret))}\n"
        )

    def _stop(self) -> None:
        # All at once: each may take a while to end.
        for process in self._processes.values():
            if process.running:
                os.kill(process.pid, signal.SIGTERM)
        for process in self._processes.values():
            process.stop()


def write_new_secret(file: Path) -> Path:
    """Write a new secret for agents into `file`, for its owner alone, and return the file."""
    file.touch(mode=0o600)
    file.write_text(secrets.token_urlsafe(_SECRET_BYTES))
    return file
