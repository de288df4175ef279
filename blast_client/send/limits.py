"""Options of `blast send` with bounds: nodes of a pipeline, and agents that are started over SSH."""

from __future__ import annotations

import argparse

from blast_base.command_line import checked
from blast_client.cli.units import format_bytes, parse_bytes, parse_seconds
from blast_transport.wire.pipeline_bounds import LARGEST_BUFFER, LONGEST_TIMEOUT, SHORTEST_TIMEOUT, SMALLEST_BUFFER

LARGEST_WINDOW = 1024
"""Maximum number of concurrent starts; each is a process."""
LONGEST_START = 3600.0
"""Seconds; a host that has not started after an hour will not start."""


def add_ssh(parser: argparse.ArgumentParser) -> None:
    """Add the options of group SSH: agents that are started for one transfer."""
    ssh = parser.add_argument_group("SSH", "Agents for hosts that run none.")
    ssh.add_argument("--ssh", action="store_true", help="agents that are started over SSH for this transfer")
    ssh.add_argument("--ssh-folder", metavar="PATH", help="folder of the agents; {host} stands for the host's name")
    ssh.add_argument("--ssh-user", metavar="NAME", help="user on the hosts (default: that of ssh)")
    ssh.add_argument("--ssh-port", metavar="PORT", type=int, help="port of the SSH servers (default: that of ssh)")
    ssh.add_argument("--ssh-options", metavar="TEXT", default="", help="options of the ssh command")
    ssh.add_argument(
        "--ssh-window",
        metavar="N",
        type=checked(parse_window),
        help="maximum number of concurrent starts, TakTuk's window (default: 32)",
    )
    ssh.add_argument(
        "--start-timeout",
        metavar="TIME",
        type=checked(parse_start),
        help="time limit of each start (default: 30s)",
    )


def parse_window(text: str) -> int:
    """Parse the maximum number of concurrent starts. Raises ValueError."""
    if not text.isdecimal() or not 1 <= int(text[:9]) <= LARGEST_WINDOW:
        raise ValueError(f"the window must be a number from 1 to {LARGEST_WINDOW}, not {text!r}")
    return int(text)


def parse_start(text: str) -> float:
    """Parse the time limit of a start, in seconds. Raises ValueError."""
    return _within(parse_seconds(text), 1.0, LONGEST_START, text)


def parse_node_timeout(text: str) -> float:
    """Parse the timeout of a pipeline node, in seconds. Raises ValueError."""
    return _within(parse_seconds(text), SHORTEST_TIMEOUT, LONGEST_TIMEOUT, text)


def parse_buffer(text: str) -> int:
    """Parse the buffer of a pipeline node, in bytes. Raises ValueError."""
    size = parse_bytes(text)
    if not SMALLEST_BUFFER <= size <= LARGEST_BUFFER:
        bounds = f"{SMALLEST_BUFFER >> 20}MiB to {LARGEST_BUFFER >> 20}MiB"
        raise ValueError(f"{text!r} is out of range ({format_bytes(size)}): a buffer has {bounds}")
    return size


def _within(seconds: float, minimum: float, maximum: float, text: str) -> float:
    if not minimum <= seconds <= maximum:
        raise ValueError(f"{text!r} is out of range: give {minimum:g} to {maximum:g} s")
    return seconds
