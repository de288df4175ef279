"""An agent in every site, which keeps what it receives in memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mininet_topos.lab import registry
from mininet_topos.lab.agents import AgentPlaces, Agents, write_new_secret
from mininet_topos.sites.sites import Sites

FOLDER = "incoming"
"""The folder's name for senders."""


@contextmanager
def agents_on(sites: Sites) -> Iterator[Agents]:
    """Run agents on all hosts, and yield them when they are ready.

    Raises `ProcessError` when one does not start.
    """
    memory = registry.memory(sites.id)
    memory.mkdir(mode=0o700)
    secret = write_new_secret(sites.directory / "agents.secret")
    with Agents(sites, sites.hosts, AgentPlaces(FOLDER, memory, sites.directory, secret, durable=False)) as agents:
        yield agents
