"""Capacities that an external monitor knows (as Delphoi does in the paper): a program of the user's, run once.

It is given {"root": …, "receivers": […]} on standard input, and writes a network file to standard output. What it says
on standard error goes to ours. It is not given to a shell, and killed where it takes too long or says too much.
"""

from __future__ import annotations

import json
import os
import selectors
import shlex
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress

from blast_client.base_error import BlastError, WrongArgument
from blast_client.capacities.by_file import refuse_others
from blast_client.capacities.capacities import MAX_BYTES, Capacities, WrongNetwork, read_capacities
from blast_transport.base.child_process import child_process

TIMEOUT_SECONDS = 60.0

_READ_BYTES = 1 << 16


class MonitorFailed(BlastError):
    """The monitor did not say what it should have."""


class MonitorCapacities:
    """A CapacitySource: a command line, within limits. Raises WrongArgument."""

    def __init__(self, command: str, seconds: float = TIMEOUT_SECONDS, max_bytes: int = MAX_BYTES) -> None:
        try:
            self._command = shlex.split(command)
        except ValueError as error:
            raise WrongArgument(f"the monitor {command!r} is no command line: {error}") from error
        if not self._command:
            raise WrongArgument("the monitor is an empty command line: name a program")
        self._seconds, self._most = seconds, max_bytes

    def capacities(self, root: str, receivers: Sequence[str]) -> Capacities:
        """What it says. Raises MonitorFailed."""
        question = json.dumps({"root": root, "receivers": list(receivers)}).encode()
        answer = self._ask(question + b"\n")
        try:
            found = read_capacities(answer)
            refuse_others(found, root, receivers)
        except WrongNetwork as error:
            raise MonitorFailed(f"the monitor {self._command[0]} says what is no network: {error}") from error
        return found

    def _ask(self, question: bytes) -> bytes:
        name = self._command[0]
        try:
            # A file (in memory): it may be more than a pipe holds, and nobody has to read it.
            with os.fdopen(os.memfd_create("question"), "w+b") as asked:
                asked.write(question)
                asked.seek(0)
                with child_process(self._command, _kill, stdin=asked, stdout=subprocess.PIPE) as process:
                    return self._answer(process)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise MonitorFailed(f"the monitor {name} cannot be run: {reason}") from error

    def _answer(self, process: subprocess.Popen[bytes]) -> bytes:
        deadline = time.monotonic() + self._seconds
        assert process.stdout is not None
        try:
            answer = self._read(process.stdout.fileno(), deadline)
            status = process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired as error:
            raise self._too_late() from error
        if status:
            raise MonitorFailed(f"the monitor {self._command[0]} has failed, with status {status}")
        return answer

    def _read(self, pipe: int, deadline: float) -> bytes:
        answer = bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(pipe, selectors.EVENT_READ)
            while True:
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    raise self._too_late()
                if not (some := os.read(pipe, _READ_BYTES)):
                    return bytes(answer)
                answer += some
                if len(answer) > self._most:
                    raise MonitorFailed(f"the monitor {self._command[0]} writes more than {self._most} bytes")

    def _too_late(self) -> MonitorFailed:
        return MonitorFailed(f"the monitor {self._command[0]} has not answered within {self._seconds:g} s")


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End it with whatever it has started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdout is not None:
        process.stdout.close()
