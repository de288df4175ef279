"""A network namespace, held open by a process that does nothing else."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from mininet_topos.kernel.errors import HostError


@contextmanager
def held_namespace(environment: Mapping[str, str]) -> Iterator[int]:
    """Yield the process id of a holder, which runs until the block ends.

    Raises `HostError`.
    """
    holder = subprocess.Popen(
        ["mnexec", "-n", "sleep", "infinity"],
        env=environment,
        stdin=subprocess.DEVNULL,
        # A Ctrl-C is for us, who remove everything in order.
        start_new_session=True,
    )
    try:
        _await_namespace(holder)
        yield holder.pid
    finally:
        holder.terminate()
        holder.wait()


def _await_namespace(holder: subprocess.Popen[bytes]) -> None:
    """Wait until the holder has left ours: `mnexec` becomes `sleep` when it has."""
    while Path(f"/proc/{holder.pid}/comm").read_text().strip() != "sleep":
        if holder.poll() is not None:
            raise HostError(f"this machine refuses network namespaces (mnexec ended with {holder.returncode}): be root")
