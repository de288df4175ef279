"""States of the hosts whose agents are started over SSH, from their output. No processes, no clock."""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, auto

from blast_transport.remote.script import COMPLAINT

SSH_FAILED = 255
"""ssh's own exit status; every other one is that of the remote command."""

_LONGEST_REASON = 300
"""Characters of what a remote shell prints."""


class HostState(Enum):
    """State of a host."""

    WAITING = auto()
    STARTING = auto()
    READY = auto()
    FAILED = auto()


_OVER = (HostState.READY, HostState.FAILED)


@dataclass(slots=True)
class _RemoteHost:
    state: HostState = HostState.WAITING
    deadline: float = 0.0
    port: int = 0
    suites: frozenset[str] = frozenset()
    reason: str = ""
    last_error: str = ""


class HostRegistry:
    """The hosts of one start, in their order. Thread-safe; `settled` is set when all are ready or failed."""

    def __init__(self, hosts: Iterable[str]) -> None:
        self._hosts = {host: _RemoteHost() for host in hosts}
        self._waiting = deque(self._hosts)
        self._concluded = False
        self._lock = threading.RLock()
        self.settled = threading.Event()
        self._check_settled()

    @property
    def ports(self) -> dict[str, int]:
        """Return the ports of the agents that are ready."""
        with self._lock:
            return {name: host.port for name, host in self._hosts.items() if host.state is HostState.READY}

    @property
    def suites(self) -> frozenset[str]:
        """Return the suites that all ready agents can compute."""
        with self._lock:
            able = [host.suites for host in self._hosts.values() if host.state is HostState.READY]
        return frozenset.intersection(*able) if able else frozenset()

    @property
    def reasons(self) -> dict[str, str]:
        """Return the reason for each host without an agent."""
        with self._lock:
            return {name: host.reason for name, host in self._hosts.items() if host.state is HostState.FAILED}

    def next_to_start(self, window: int, deadline: float) -> str | None:
        """Return the next host to start, if fewer than `window` are being started; it has to be ready by `deadline`."""
        with self._lock:
            starting = sum(host.state is HostState.STARTING for host in self._hosts.values())
            if not self._waiting or starting >= window:
                return None
            name = self._waiting.popleft()
            self._hosts[name].state, self._hosts[name].deadline = HostState.STARTING, deadline
            return name

    def late(self, now: float) -> list[str]:
        """Fail the hosts whose time is over, and return them."""
        with self._lock:
            overdue = [
                name for name, host in self._hosts.items() if host.state is HostState.STARTING and now > host.deadline
            ]
            for name in overdue:
                self._fail(name, _with_detail("no agent came up in time", self._hosts[name].last_error))
            return overdue

    def received_line(self, name: str, line: bytes) -> None:
        """Handle a line of the remote standard output."""
        text = line.decode(errors="replace").strip()
        if text.startswith(COMPLAINT):
            self._fail(name, text.removeprefix(COMPLAINT))
            return
        event = _event(text)
        with self._lock:
            host = self._hosts[name]
            if event.get("event") == "unusable":
                self._fail(name, str(event.get("reason")))
            elif event.get("event") == "ready" and host.state is HostState.STARTING:
                self._ready(host, event)
            elif event.get("event") == "ended" and host.state is HostState.READY:
                host.last_error = str(event.get("reason"))

    def complained(self, name: str, line: bytes) -> None:
        """Handle a line of the remote standard error, or of ssh."""
        text = line.decode(errors="replace").strip()
        if text:
            with self._lock:
                self._hosts[name].last_error = text

    def closed(self, name: str, status: int | None) -> None:
        """Handle the end of the connection with this exit status."""
        with self._lock:
            host = self._hosts[name]
            if status == SSH_FAILED and host.state is not HostState.READY:
                self._fail(name, _with_detail("cannot be reached by SSH", host.last_error))
            elif host.state is HostState.READY and self._concluded:
                return
            elif host.state is HostState.READY:
                self._fail(name, _with_detail(f"the agent ended (status {status})", host.last_error))
            else:
                self._fail(name, _with_detail(f"the agent did not start (status {status})", host.last_error))

    def conclude(self, reason: str) -> None:
        """Fail all hosts that are not ready, for this reason; later ends of agents are not failures."""
        with self._lock:
            self._concluded = True
            for name, host in self._hosts.items():
                if host.state not in _OVER:
                    self._fail(name, reason)

    def _ready(self, host: _RemoteHost, event: dict[str, object]) -> None:
        port, suites = event.get("port"), event.get("suites")
        if isinstance(port, int) and isinstance(suites, list):
            host.state, host.port, host.suites = HostState.READY, port, frozenset(map(str, suites))
            self._check_settled()

    def _fail(self, name: str, reason: str) -> None:
        with self._lock:
            host = self._hosts[name]
            if host.state is not HostState.FAILED:
                shown = reason if reason.isprintable() else ascii(reason)[1:-1]
                host.state, host.reason = HostState.FAILED, shown[:_LONGEST_REASON]
            self._check_settled()

    def _check_settled(self) -> None:
        if all(host.state in _OVER for host in self._hosts.values()):
            self.settled.set()


def _event(text: str) -> dict[str, object]:
    """Return the event of an agent; empty for other output of a login shell."""
    try:
        event = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return event if isinstance(event, dict) else {}


def _with_detail(reason: str, detail: str) -> str:
    return f"{reason}: {detail}" if detail else reason
