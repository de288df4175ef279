"""The agents of the transfers' hosts, writing to the disk that stands for those of all hosts."""

from __future__ import annotations

from collections.abc import Sequence

from mininet_topos.agents import AgentPlaces, Agents
from soak.room import Room


def agents_of(room: Room, hosts: Sequence[str]) -> Agents:
    """Agents on `hosts` of the machine room."""
    places = AgentPlaces("incoming", room.hosts / "received", room.folder, room.papers.secret)
    return Agents(room.lab, hosts, places)
