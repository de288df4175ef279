"""What is run on a bare host over SSH, before there is an agent: a line for its shell.

It finds a Python, makes a private temporary folder, takes the agent's file from standard input, and starts it; whatever
ends the agent, the folder goes. Whatever login shell reads the line first, it is one quoted argument of `sh`.
"""

from __future__ import annotations

import shlex

COMPLAINT = "blast-agent: "
"""How a line begins that says why there is no agent."""

PYTHONS = ("python3", "python3.14", "python3.13", "python3.12", "python3.11")
_IS_NEW_ENOUGH = "import sys; sys.exit(sys.version_info < (3, 11))"
# All in one line and without quotes. Not a byte more than SIZE is read: what follows is for the agent.
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
    """The command line that takes `size` bytes of the agent's file from standard input, then starts it."""
    script = "; ".join(_STEPS).replace("SIZE", str(size)).replace("PYTHONS", " ".join(pythons))
    return f"exec sh -c {shlex.quote(script)}"
