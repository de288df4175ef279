"""Where agents are, as people and programs write it: HOST, HOST:PORT or HOST=ADDRESS:PORT, or a set of hosts."""

from __future__ import annotations

from collections.abc import Iterable

from blast_client.node_sets import check_count, expanded, is_set, split

AGENT_PORT = 9095

Receiver = tuple[str, str, int]
"""(name, address, port) of an agent."""


def parse_receivers(texts: Iterable[str]) -> list[Receiver]:
    """Read several, each of which may be a set of hosts or a list with commas, none of them twice. Raises ValueError.

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
    """Raises ValueError if a host is named twice."""
    names = set[str]()
    for name, _, _ in receivers:
        if name in names:
            raise ValueError(f"a receiver is named twice: {name}")
        names.add(name)


def parse_receiver(text: str) -> Receiver:
    """Read one. Raises ValueError.

    >>> parse_receiver("h2"), parse_receiver("h2=10.0.0.2:7000")
    (('h2', 'h2', 9095), ('h2', '10.0.0.2', 7000))
    """
    name, equals, address = text.partition("=")
    host, colon, port = (address if equals else name).rpartition(":")
    if not colon:
        host, port = port, str(AGENT_PORT)
    name = name if equals else host
    if not name or not host or any(map(str.isspace, text)) or not port.isdecimal() or not 0 < int(port) < 1 << 16:
        raise ValueError(f"{text!r} is not HOST, HOST:PORT or HOST=ADDRESS:PORT")
    return name, host, int(port)


def written(receiver: Receiver) -> str:
    """As `parse_receiver` reads it.

    >>> written(("h2", "h2", 9095)), written(("h2", "10.0.0.2", 7000))
    ('h2', 'h2=10.0.0.2:7000')
    """
    name, host, port = receiver
    if name == host:
        return name if port == AGENT_PORT else f"{name}:{port}"
    return f"{name}={host}:{port}"
