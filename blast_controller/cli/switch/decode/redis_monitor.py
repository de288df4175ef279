r"""Lines of `redis-cli MONITOR`, which shows the commands of all clients of a server.

    1790012345.123456 [4 10.0.0.9:51324] "HSET" "OCS_CROSS_CONNECT|1A-2B" "a_side" "1A" "b_side" "2B"

The database and the client are in brackets; words are quoted and escaped.
"""

from __future__ import annotations

import re
from typing import NamedTuple

MONITOR_LINE = re.compile(
    r'([0-9]{9,11}\.[0-9]{6}) \[([0-9]{1,5}) ([^\]\n]{1,200})\]((?: "(?:[^"\\]|\\.)*")+)\s*', re.DOTALL
)
_WORD = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|(.))", re.DOTALL)
_SIGNS = {"n": "\n", "r": "\r", "t": "\t", "a": "\a", "b": "\b"}


class MonitoredCommand(NamedTuple):
    """A command as the server carried it out, `time` in seconds since 1970."""

    time: float
    database: int
    client: str
    words: list[str]


def monitored_command(line: str) -> MonitoredCommand | None:
    """Return the command of a line, or None if it has another form."""
    found = MONITOR_LINE.fullmatch(line)
    if found is None:
        return None
    words = [_ESCAPE.sub(_unescaped, word) for word in _WORD.findall(found[4])]
    return MonitoredCommand(float(found[1]), int(found[2]), found[3], words)


def _unescaped(found: re.Match[str]) -> str:
    # A byte outside ASCII stays as it is written: several of them may be one character, or none.
    if found[1] is not None:
        code = int(found[1], 16)
        return chr(code) if code < 0x80 else found[0]
    return _SIGNS.get(found[2], found[2])
