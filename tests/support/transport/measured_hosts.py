"""Agents in threads that measure as the command runs them, and agents in processes that freeze."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from blast_base.endpoint import Endpoint
from blast_transport.agent.process import make_server
from blast_transport.agent.reporting import RefusalReason, Reporter
from blast_transport.agent.server import AgentServer
from blast_transport.agent.settings import AgentAccessSection, AgentClientSection, AgentSection, LimitsSection, Settings
from blast_transport.credentials.material import Credentials
from blast_transport.links.dialling import Address
from blast_transport.measuring.sink import Sink
from tests.support.transport.transport_hosts import Process, agent_process, serving
from tests.support.waiting import eventually


@dataclass(frozen=True)
class Host:
    """An agent in this process."""

    name: str
    server: AgentServer

    @property
    def address(self) -> Address:
        return (self.name, *self.server.endpoint)

    def at_rest(self) -> None:
        """Wait until all measurements on these hosts have ended."""
        eventually(lambda: self.server._measurements._running is None, f"{self.name} to be at rest")
        eventually(lambda: not self.server.busy, f"the connections to {self.name} to close")

    def received(self) -> int:
        """Return the bytes received in the current measurement."""
        running = self.server._measurements._running
        return running[1]._arrivals.bytes if running is not None and isinstance(running[1], Sink) else 0

    def refused(self, reason: RefusalReason = RefusalReason.MEASURE) -> int:
        return self.server.refusals.totals[reason]


@contextmanager
def host(
    name: str,
    credentials: Credentials = None,
    clients: Sequence[AgentClientSection] = (),
    limits: LimitsSection | None = None,
) -> Iterator[Host]:
    """Run a host that listens on loopback during the block."""
    settings = Settings(
        AgentSection(Endpoint("127.0.0.1", 0)),
        limits=limits or LimitsSection(memory_bytes=1),
        access=AgentAccessSection(client=tuple(clients)),
    )
    server = make_server(settings, credentials, Reporter())
    with serving(server):
        yield Host(name, server)


def host_process(folder: Path, name: str, more: str = "", limits: str = "") -> AbstractContextManager[Process]:
    """Run `blast agent run` during the block; `more` and `limits` are added to its configuration."""
    config = folder / f"{name}.toml"
    config.write_text(f'[agent]\nlisten = "127.0.0.1:0"\n{more}\n[limits]\nmemory_bytes = 1\n{limits}\n')
    return agent_process(config)
