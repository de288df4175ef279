"""Reload of a changed configuration file while sessions continue.

Permissions, access rules and certificates apply to later connections and sessions. Other settings need a restart. An
invalid file changes nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from blast_transport.agent.host_check import check_host
from blast_transport.agent.process import parts_of
from blast_transport.agent.reporting import Reporter
from blast_transport.agent.server import AgentServer
from blast_transport.agent.settings import Settings, load
from blast_transport.base.errors import TransportError

WAITS = frozenset(
    {
        "agent.listen",
        "agent.stop_timeout_ms",
        "access.handshake_timeout_ms",
        "limits.sessions",
        "limits.connections",
        "limits.unauthenticated",
        "limits.unauthenticated_per_host",
        "log.level",
        "log.format",
    }
)
"""Keys whose change waits for a restart."""


class AgentReloader:
    """Reloads the file at `path`, with which `server` was made."""

    def __init__(self, path: Path, settings: Settings, server: AgentServer, reporter: Reporter) -> None:
        self._path, self._settings, self._server, self._reporter = path, settings, server, reporter

    def reload(self) -> None:
        """Apply the present file, and report the result."""
        try:
            settings = load(self._path)
            parts = parts_of(settings, check_host(settings), self._reporter)
        except TransportError as error:
            message = f"the configuration stays as it was: {error}"
            self._reporter.report("reload", message, logging.ERROR, result="refused", reason=str(error))
            return
        self._server.renew(parts)
        waiting = sorted(set(changed_keys(self._settings, settings)) & WAITS)
        message = f"the configuration is reloaded; {', '.join(waiting)} wait for a restart" if waiting else "reloaded"
        self._reporter.report("reload", message, result="cold" if waiting else "warm", waiting=waiting or None)


def changed_keys(old: Settings, new: Settings) -> Iterator[str]:
    """Return the keys that differ, as table.key or the name of an array of tables."""
    before, after = asdict(old), asdict(new)
    for name, table in before.items():
        if not isinstance(table, dict):
            yield from [name] if table != after[name] else []
            continue
        yield from (f"{name}.{key}" for key, value in table.items() if value != after[name][key])
