"""Shell line of a sender for a host without an installation, such as `gunzip | dd of=/dev/sda2`, as an agent's command.

A pipeline fails if any of its parts fails, where the shell supports it: otherwise a missing `gunzip` would leave an
empty disk, and the successful `dd` would report success.
"""

from __future__ import annotations

from blast_transport.base.errors import WrongInputError

COMMAND = "sh"
"""Name of the command."""
MAX_BYTES = 8192

_FILE_NAME = "{file_name}"
_RUN = (
    "if (set -o pipefail) 2>/dev/null; then set -o pipefail; "
    'elif command -v bash >/dev/null 2>&1; then exec bash -o pipefail -c "$1"; fi; eval "$1"'
)


def table_of(line: str, folder: str) -> dict[str, object]:
    """Return the line as a [[command]] that runs in this folder (empty: /). Raise WrongInputError."""
    if not line.strip() or "\0" in line:
        raise WrongInputError("the command is empty, or has a NUL character: write what a shell is to run")
    if len(line.encode(errors="replace")) > MAX_BYTES:
        raise WrongInputError(f"a command of more than {MAX_BYTES} bytes is not taken: put it into a script there")
    if _FILE_NAME in line:
        raise WrongInputError(f'a shell finds the name in "$BLAST_FILE_NAME": write that instead of {_FILE_NAME}')
    run = ["/bin/sh", "-c", _RUN, "sh", line]
    return {"name": COMMAND, "run": run, "folder": folder or "/", "report_errors": True}
