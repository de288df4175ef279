"""Notation of agents: HOST, HOST:PORT or HOST=ADDRESS:PORT, or a set of hosts."""

from __future__ import annotations

from collections.abc import Iterable

from blast_base.endpoint import Endpoint, parse_endpoint
from blast_client.send.node_sets import check_count, expanded, is_set, split

AGENT_PORT = 9095
"""Default port of agents."""

_SIGNS = frozenset(" ,@[]")
"""Characters of lists and sets, which names must not contain."""

Receiver = tuple[str, str, int]
"""(name, address, port) of an agent."""


def parse_receivers(texts: Iterable[str]) -> list[Receiver]:
    """Parse receivers; each text may be a set of hosts or a list with commas. Raises ValueError, also for duplicates.

    >>> [name for name, _, _ in parse_receivers(["h2,h3", "node[9-10]"])]
    ['h2', 'h3', 'node9', 'node10']
    """
    found: list[Receiver] = []
    for text in texts:
        for part in split(text):
            found += map(parse_receiver, expanded(part) if is_set(part) else [part])
            check_count(len(found), text)
    check_once(found)
    return found


def check_once(receivers: Iterable[Receiver]) -> None:
    """Raise ValueError if a host is named twice."""
    names = set[str]()
    for name, _, _ in receivers:
        if name in names:
            raise ValueError(f"the receiver {name} is named twice")
        names.add(name)


def parse_receiver(text: str) -> Receiver:
    """Parse one receiver. Raises ValueError.

    >>> parse_receiver("h2"), parse_receiver("h2=10.0.0.2:7000"), parse_receiver("h2=[fd00::2]")
    (('h2', 'h2', 9095), ('h2', '10.0.0.2', 7000), ('h2', 'fd00::2', 9095))
    """
    name, equals, address = text.partition("=")
    try:
        host, port = parse_endpoint(address if equals else text, AGENT_PORT)
    except ValueError:
        host, port = "", 0
    name = name if equals else host
    if not host or not name or not name.isprintable() or not _SIGNS.isdisjoint(name):
        forms = "HOST, HOST:PORT or HOST=ADDRESS:PORT, with an IPv6 address in [ ]"
        raise ValueError(f"{text!r} is not {forms}, for example h2=10.0.0.2:{AGENT_PORT} or h2=[fd00::2]:{AGENT_PORT}")
    return name, host, port


def written(receiver: Receiver) -> str:
    """Return the notation of a receiver, which `parse_receiver` parses.

    >>> written(("h2", "h2", 9095)), written(("h2", "10.0.0.2", 7000)), written(("h2", "fd00::2", 9095))
    ('h2', 'h2=10.0.0.2:7000', 'h2=[fd00::2]:9095')
    """
    name, host, port = receiver
    if name == host and port == AGENT_PORT and ":" not in host:
        return name
    return f"{Endpoint(host, port)}" if name == host else f"{name}={Endpoint(host, port)}"
