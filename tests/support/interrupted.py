"""Run `blast` in its own process and interrupt it as a terminal does; stop any process temporarily."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.support.waiting import eventually

TIMEOUT = 60.0


@contextmanager
def started(*words: str, environment: Mapping[str, str] | None = None) -> Iterator[subprocess.Popen[str]]:
    """Run `blast` with these arguments in a session of its own, which is killed at the end if it still runs."""
    # A process that runs the tests in the background may ignore SIGINT, which children inherit.
    command = ["env", "--default-signal=INT", str(Path(sys.executable).with_name("blast")), *words]
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        env={**os.environ, **(environment or {})},
    )  # fmt: skip
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def ended(process: subprocess.Popen[str], number: int = signal.SIGINT) -> tuple[int, str, str]:
    """Send the signal to the whole group, as a terminal does; status, output and errors once all of it has gone."""
    os.killpg(process.pid, number)
    out, err = process.communicate(timeout=TIMEOUT)
    eventually(lambda: not members(process.pid), f"the children of {process.pid} to end")
    return process.returncode, out, err


def members(group: int, group_of: Callable[[int], int] = os.getpgid) -> list[int]:
    """Return the live processes of a group, or with `os.getsid` of a session."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
                if group_of(int(entry.name)) == group and state not in "ZX":
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


@contextmanager
def frozen(pid: int | None) -> Iterator[None]:
    """Stop a process for the duration of the block; its sockets stay open."""
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)
