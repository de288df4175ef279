"""Capacities from an external monitor, such as Delphoi in the paper: a program that runs once.

The program reads {"root": …, "receivers": […]} from standard input and writes a network file to standard output; its
standard error is that of this process. No shell runs it. It is killed at its timeout, or if its output is too large.
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

from blast_base.child_process import child_process
from blast_client.api.base_error import BlastError, InvalidArgumentError
from blast_client.capacities.by_file import refuse_others
from blast_client.capacities.capacities import MAX_BYTES, Capacities, InvalidNetworkFileError, read_capacities

TIMEOUT_SECONDS = 60.0
"""A monitor answers from what it has measured before."""

_READ_BYTES = 1 << 16
"""One read of a pipe."""


class MonitorError(BlastError):
    """The monitor failed, or did not write a network."""


class MonitorCapacities:
    """A CapacitySource that runs a command, within limits. Raises InvalidArgumentError."""

    def __init__(self, command: str, seconds: float = TIMEOUT_SECONDS, max_bytes: int = MAX_BYTES) -> None:
        try:
            self._command = shlex.split(command)
        except ValueError as error:
            raise InvalidArgumentError(f"cannot parse the monitor command {command!r}: {error}") from error
        if not self._command:
            raise InvalidArgumentError("the monitor command is empty: name a program")
        self._seconds, self._max_bytes = seconds, max_bytes

    def capacities(self, root: str, receivers: Sequence[str]) -> Capacities:
        """Run the monitor and return its capacities. Raises MonitorError."""
        question = json.dumps({"root": root, "receivers": list(receivers)}).encode()
        answer = self._ask(question + b"\n")
        try:
            found = read_capacities(answer)
            refuse_others(found, root, receivers)
        except InvalidNetworkFileError as error:
            raise MonitorError(f"the output of the monitor {self._command[0]} is not valid: {error}") from error
        return found

    def _ask(self, question: bytes) -> bytes:
        name = self._command[0]
        try:
            # A file in memory, since the question may exceed the buffer of a pipe and the monitor may not read it.
            with os.fdopen(os.memfd_create("question"), "w+b") as asked:
                asked.write(question)
                asked.seek(0)
                with child_process(self._command, _kill, stdin=asked, stdout=subprocess.PIPE) as process:
                    return self._answer(process)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise MonitorError(f"cannot run the monitor {name}: {reason}") from error

    def _answer(self, process: subprocess.Popen[bytes]) -> bytes:
        deadline = time.monotonic() + self._seconds
        assert process.stdout is not None
        try:
            answer = self._read(process.stdout.fileno(), deadline)
            status = process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired as error:
            raise self._too_late() from error
        if status:
            raise MonitorError(f"the monitor {self._command[0]} failed with exit status {status}")
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
                if len(answer) > self._max_bytes:
                    raise MonitorError(f"the monitor {self._command[0]} writes more than {self._max_bytes} bytes")

    def _too_late(self) -> MonitorError:
        return MonitorError(f"the monitor {self._command[0]} did not answer within {self._seconds:g} s")


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill the process group."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdout is not None:
        process.stdout.close()
