"""Options of `blast send` that have bounds: those of nodes along a pipeline, and of agents started over SSH."""

from __future__ import annotations

import argparse

from blast_client.options import checked
from blast_client.units import format_bytes, parse_bytes, parse_seconds
from blast_transport.wire.pipeline_bounds import LARGEST_BUFFER, LONGEST_TIMEOUT, SHORTEST_TIMEOUT, SMALLEST_BUFFER

LARGEST_WINDOW = 1024
"""Each host that is being started costs a process here."""
LONGEST_START = 3600.0


def add_ssh(parser: argparse.ArgumentParser) -> None:
    """The options of agents that are started over SSH."""
    ssh = parser.add_argument_group("hosts without an agent")
    ssh.add_argument("--ssh", action="store_true", help="start agents over SSH, for this transfer only")
    ssh.add_argument("--ssh-folder", metavar="PATH", help="where they write; {host} in it is the host's name")
    ssh.add_argument("--ssh-user", metavar="NAME")
    ssh.add_argument("--ssh-port", metavar="PORT", type=int)
    ssh.add_argument("--ssh-options", metavar="TEXT", default="", help="as on ssh's command line")
    ssh.add_argument(
        "--ssh-window",
        metavar="N",
        type=checked(parse_window),
        help="start at most so many at once, TakTuk's window (default: 32)",
    )
    ssh.add_argument(
        "--start-timeout", metavar="TIME", type=checked(parse_start), help="each within this time (default: 30s)"
    )


def parse_window(text: str) -> int:
    """How many hosts are started at once. Raises ValueError."""
    if not text.isdecimal() or not 1 <= int(text[:9]) <= LARGEST_WINDOW:
        raise ValueError(f"a window is a number from 1 to {LARGEST_WINDOW}, not {text!r}")
    return int(text)


def parse_start(text: str) -> float:
    """Seconds that the start of an agent may take. Raises ValueError."""
    return _within(parse_seconds(text), 1.0, LONGEST_START, text)


def parse_node_timeout(text: str) -> float:
    """Seconds of silence after which a node is dead. Raises ValueError."""
    return _within(parse_seconds(text), SHORTEST_TIMEOUT, LONGEST_TIMEOUT, text)


def parse_buffer(text: str) -> int:
    """Bytes that a node keeps. Raises ValueError."""
    size = parse_bytes(text)
    if not SMALLEST_BUFFER <= size <= LARGEST_BUFFER:
        bounds = f"{SMALLEST_BUFFER >> 20}MiB to {LARGEST_BUFFER >> 20}MiB"
        raise ValueError(f"a buffer may have {bounds}, and {text!r} is {format_bytes(size)}")
    return size


def _within(seconds: float, least: float, most: float, text: str) -> float:
    if not least <= seconds <= most:
        raise ValueError(f"{text!r} is out of bounds: from {least:g} to {most:g} s")
    return seconds
