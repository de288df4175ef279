"""Shell line that starts an agent on a host over SSH.

It finds a Python, creates a private temporary folder, reads the agent's file from standard input, and starts it; the
folder is removed however the agent ends. For any login shell the line is one quoted argument of `sh`.
"""

from __future__ import annotations

import shlex

COMPLAINT = "blast-agent: "
"""Beginning of a line with the reason why there is no agent."""

PYTHONS = ("python3", "python3.14", "python3.13", "python3.12", "python3.11")
_IS_NEW_ENOUGH = "import sys; sys.exit(sys.version_info < (3, 11))"
# In one line and without quotes. It reads exactly SIZE bytes: the rest is for the agent.
_TAKE = (
    "import os, sys; f = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_EXCL, 384); "
    "left = lambda: SIZE - os.fstat(f).st_size; "
    "all(iter(lambda: os.write(f, os.read(0, min(65536, left()))), 0)); sys.exit(left() > 0)"
)

BEGINNING = "#!/usr/bin/env python3"
"""Of the agent's file."""
_EATEN = "a start-up file of the login shell reads standard input, where the agent comes: let it read /dev/null"
_SHORT = "there is no room, or a start-up file of the login shell reads standard input"

_STEPS = (
    "umask 077",
    f'fail() {{ echo "{COMPLAINT}$1"; exit 1; }}',
    "python= found=",
    "for one in PYTHONS; do"
    ' if command -v "$one" >/dev/null 2>&1; then found="$found$one "; '
    f'if "$one" -I -S -c "{_IS_NEW_ENOUGH}" </dev/null >/dev/null 2>&1; then python=$one; break; fi; fi; done',
    'if [ -z "$found" ]; then fail "there is no python3"; fi',
    'if [ -z "$python" ]; then one=${found%% *}; '
    'fail "$one ($("$one" --version 2>&1)) is too old, or does not run: Python 3.11 is needed"; fi',
    'folder=$(mktemp -d "${TMPDIR:-/tmp}/blast-agent.XXXXXXXX") || fail "no temporary folder can be made"',
    'trap "rm -rf \\"$folder\\"" EXIT',
    'trap "exit 1" HUP INT PIPE TERM',
    f'"$python" -I -S -c "{_TAKE}" "$folder/agent.pyz" || fail "the agent cannot be copied to $folder: {_SHORT}"',
    f'[ "$(head -c {len(BEGINNING)} "$folder/agent.pyz")" = "{BEGINNING}" ] || fail "{_EATEN}"',
    # With the packages that the host has: some make it faster.
    '"$python" -I -B "$folder/agent.pyz" on-demand',
)


def start_line(size: int, pythons: tuple[str, ...] = PYTHONS) -> str:
    """Return the command line that reads `size` bytes of the agent's file from standard input, then starts it."""
    script = "; ".join(_STEPS).replace("SIZE", str(size)).replace("PYTHONS", " ".join(pythons))
    return f"exec sh -c {shlex.quote(script)}"
