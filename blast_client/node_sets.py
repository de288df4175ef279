"""Sets of hosts as people write them, `node[1-64,70]` and `@group`: ClusterShell's, with a bound on what they become.

ClusterShell reads and folds them; it is there where agents are started over SSH, and asked for nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise

from blast_transport.base.extras import how_to_install

MAX_HOSTS = 10_000
"""Of one transfer."""

_SIGNS = re.compile(r"[\[\]@!&^]")
_RANGES = re.compile(r"\[([^\[\]]*)\]")
_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9})(?:/(\d{1,9}))?)?")
_PORT = re.compile(r"(.*\]):(\d+)")
_NUMBER = re.compile(r"\d+")
_PLAIN = re.compile(r"[A-Za-z0-9_.-]+")
_SHOWN = 8
"""Names that are written out where nobody can fold them."""
_LONGEST = 300
_MAX_FOLDED = 200
"""Names with several numbers in each, such as addresses: to fold them takes time that grows with their square."""


def split(text: str) -> list[str]:
    """What stands between commas outside of brackets, without white space around it."""
    begins, depth = [0], 0
    for place, character in enumerate(text, 1):
        depth += (character == "[") - (character == "]")
        if depth <= 0 and character == ",":
            begins.append(place)
    return [text[begin : end - 1].strip() for begin, end in pairwise([*begins, len(text) + 1])]


def is_set(text: str) -> bool:
    """Whether this is written like more than the name of one host; what begins with [ is an IPv6 address."""
    return "=" not in text and not text.startswith("[") and _SIGNS.search(text) is not None


def expanded(text: str) -> list[str]:
    """The hosts of a set, each as HOST or HOST:PORT. Raises ValueError, at once for what is too large."""
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


def check_count(count: int, what: str) -> None:
    """Raises ValueError where that are more hosts than one transfer has."""
    if count > MAX_HOSTS:
        raise ValueError(f"{what!r} names more than {MAX_HOSTS} hosts, which is as many as one transfer has")


def folded(names: Iterable[str]) -> str:
    """Names in few words, for a sentence: node[1-64], or the first of them where they cannot be folded."""
    listed = list(names)
    shown = _by_ranges(listed) if len(listed) > 1 else ", ".join(listed)
    if shown and len(shown) <= _LONGEST:
        return shown
    more = f" and {len(listed) - _SHOWN} more" if len(listed) > _SHOWN + 1 else ""
    return ", ".join(listed[:_SHOWN] if more else listed) + more


def _by_ranges(names: list[str]) -> str:
    """As ClusterShell folds them; empty where it is not there, or would take long."""
    several = any(len(_NUMBER.findall(name)) > 1 for name in names)
    if (several and len(names) > _MAX_FOLDED) or not all(_PLAIN.fullmatch(name) for name in names):
        return ""
    try:
        from ClusterShell.NodeSet import NodeSet
    except ImportError:
        return ""
    return str(NodeSet.fromlist(names))


def _length(written: str, text: str) -> int:
    """How many numbers a range has at most. Raises ValueError."""
    found = _RANGE.fullmatch(written)
    if found is None:
        raise ValueError(f"{text!r} has {written!r} in brackets: write ranges like [1-64,70], of at most nine digits")
    first, last, step = int(found[1]), int(found[2] or found[1]), int(found[3] or 1)
    return max(0, last - first) // max(1, step) + 1


def _install() -> str:
    return f"{how_to_install('ssh')}, or write the names"
