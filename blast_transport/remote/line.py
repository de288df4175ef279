"""A line of a sender's for the shell of a bare host, such as `gunzip | dd of=/dev/sda2`, as a command of an agent.

A pipeline fails if any of its parts does, where the host has a shell that can tell: else a `gunzip` that is not
installed would leave an empty disk, and `dd`, which succeeds, would call that done.
"""

from __future__ import annotations

from blast_transport.base.errors import WrongInputError

COMMAND = "sh"
"""What the command is called."""
MAX_BYTES = 8192

_FILE_NAME = "{file_name}"
_RUN = (
    "if (set -o pipefail) 2>/dev/null; then set -o pipefail; "
    'elif command -v bash >/dev/null 2>&1; then exec bash -o pipefail -c "$1"; fi; eval "$1"'
)


def table_of(line: str, folder: str) -> dict[str, object]:
    """The line as a [[command]] that runs in this folder (empty: /). Raises WrongInputError."""
    if not line.strip() or "\0" in line:
        raise WrongInputError("the command is empty, or has a NUL character: write what a shell is to run")
    if len(line.encode(errors="replace")) > MAX_BYTES:
        raise WrongInputError(f"a command of more than {MAX_BYTES} bytes is not taken: put it into a script there")
    if _FILE_NAME in line:
        raise WrongInputError(f'a shell finds the name in "$BLAST_FILE_NAME": write that instead of {_FILE_NAME}')
    run = ["/bin/sh", "-c", _RUN, "sh", line]
    return {"name": COMMAND, "run": run, "folder": folder or "/", "report_errors": True}
