"""Sets of hosts in the notation of ClusterShell, `node[1-64,70]` and `@group`, with a bound on their size.

ClusterShell expands and folds them; it is an optional dependency, which starting agents over SSH also needs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise

from blast_base.extras import how_to_install

MAX_HOSTS = 10_000
"""Maximum number of hosts of one transfer."""

_SIGNS = re.compile(r"[\[\]@!&^]")
_RANGES = re.compile(r"\[([^\[\]]*)\]")
_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9})(?:/(\d{1,9}))?)?")
_PORT = re.compile(r"(.*\]):(\d+)")
_NUMBER = re.compile(r"\d+")
_PLAIN = re.compile(r"[A-Za-z0-9_.-]+")
_SHOWN = 8
"""Number of names that are listed if they cannot be folded."""
_LONGEST = 300
_MAX_FOLDED = 200
"""Maximum number of names with several numbers each, such as addresses: folding takes quadratic time."""


def split(text: str) -> list[str]:
    """Split a text at commas outside of brackets, and strip white space."""
    begins, depth = [0], 0
    for place, character in enumerate(text, 1):
        depth += (character == "[") - (character == "]")
        if depth <= 0 and character == ",":
            begins.append(place)
    return [text[begin : end - 1].strip() for begin, end in pairwise([*begins, len(text) + 1])]


def is_set(text: str) -> bool:
    """Return True for the notation of a set; a text that begins with [ is an IPv6 address."""
    return "=" not in text and not text.startswith("[") and _SIGNS.search(text) is not None


def expanded(text: str) -> list[str]:
    """Return the hosts of a set as HOST or HOST:PORT. Raises ValueError, for a large set before it is expanded."""
    if found := _PORT.fullmatch(text):
        return [f"{host}:{found[2]}" for host in expanded(found[1])]
    count = 1
    for ranges in _RANGES.findall(text):
        count *= sum(_length(one.strip(), text) for one in ranges.split(","))
        check_count(count, text)
    try:
        from ClusterShell.NodeSet import NodeSet, NodeSetException
        from ClusterShell.NodeUtils import GroupResolverError, GroupSourceError
    except ImportError:
        raise ValueError(f"sets of hosts like {text!r} need the Python package ClusterShell: {_install()}") from None
    try:
        hosts = NodeSet(text)
        check_count(len(hosts), text)
        if not hosts:
            raise ValueError(f"{text!r} names no host")
        return [str(host) for host in hosts]
    except (GroupResolverError, GroupSourceError) as error:
        reason = f"ClusterShell cannot resolve the group ({error}): add it to groups.conf, or write the hosts"
        raise ValueError(f"{text!r} is no set of hosts: {reason}") from error
    except NodeSetException as error:
        raise ValueError(f"{text!r} is no set of hosts: {error}") from error


def check_count(count: int, text: str) -> None:
    """Raise ValueError for more hosts than one transfer may have."""
    if count > MAX_HOSTS:
        raise ValueError(f"{text!r} names more than {MAX_HOSTS} hosts, the maximum of one transfer: send it in parts")


def folded(names: Iterable[str]) -> str:
    """Return names in short form for a message: node[1-64], or the first names if they cannot be folded."""
    listed = list(names)
    shown = _by_ranges(listed) if len(listed) > 1 else ", ".join(listed)
    if shown and len(shown) <= _LONGEST:
        return shown
    more = f" and {len(listed) - _SHOWN} more" if len(listed) > _SHOWN + 1 else ""
    return ", ".join(listed[:_SHOWN] if more else listed) + more


def _by_ranges(names: list[str]) -> str:
    """Return names folded by ClusterShell; empty if it is not installed or would take long."""
    several = any(len(_NUMBER.findall(name)) > 1 for name in names)
    if (several and len(names) > _MAX_FOLDED) or not all(_PLAIN.fullmatch(name) for name in names):
        return ""
    try:
        from ClusterShell.NodeSet import NodeSet
    except ImportError:
        return ""
    return str(NodeSet.fromlist(names))


def _length(written: str, text: str) -> int:
    """Return an upper bound of the size of a range. Raises ValueError."""
    found = _RANGE.fullmatch(written)
    if found is None:
        raise ValueError(f"{text!r} has {written!r} in brackets: write ranges like [1-64,70], of at most nine digits")
    first, last, step = int(found[1]), int(found[2] or found[1]), int(found[3] or 1)
    return max(0, last - first) // max(1, step) + 1


def _install() -> str:
    return f"{how_to_install('ssh')}, or write the names"
