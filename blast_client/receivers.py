"""Where agents are, as people and programs write it: HOST, HOST:PORT or HOST=ADDRESS:PORT."""

from __future__ import annotations

from collections.abc import Iterable

AGENT_PORT = 9095

Receiver = tuple[str, str, int]
"""(name, address, port) of an agent."""


def parse_receivers(texts: Iterable[str]) -> list[Receiver]:
    """Read several, none of them twice. Raises ValueError."""
    found = [parse_receiver(text.strip()) for text in texts]
    names = [name for name, _, _ in found]
    if len(set(names)) < len(names):
        raise ValueError("a receiver is named twice")
    return found


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
    if not name or not host or not port.isdecimal() or not 0 < int(port) < 1 << 16:
        raise ValueError(f"{text!r} is not HOST, HOST:PORT or HOST=ADDRESS:PORT")
    return name, host, int(port)
