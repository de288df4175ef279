"""A command like rsh, for tools that start themselves on other hosts and then talk by sockets of their own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transport_bed.run import Run


def remote_shell(run: Run) -> Path:
    """Write it for a bed; commands run in the folder of their receiver.

    Every host gets a host name of its own, which is how OpenMPI tells them apart.
    """
    cases = [
        f"{run.bed.packet_address(receiver)}) holder={run.bed.pid(receiver)}; cd {run.directory(receiver)} ;;"
        for receiver in run.receivers
    ]
    script = run.folder / "rsh"
    script.write_text(
        "#!/bin/sh\n"
        'address=$1; shift; case "$address" in\n'
        + "\n".join(cases)
        + '\n*) echo "no host $address" >&2; exit 1 ;; esac\n'
        + """exec mnexec -a "$holder" unshare --uts sh -c 'hostname "h$1"; shift; eval "$*"' sh "$address" "$@"\n"""
    )
    script.chmod(0o755)
    return script
