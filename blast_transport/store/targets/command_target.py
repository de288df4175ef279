"""A command that is fed what is received, in order, through a pipe."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from blast_transport.base.errors import ForgottenError, NoThreadError, StoreError, sentence
from blast_transport.store.targets.stderr_copy import StderrTail
from blast_transport.store.targets.target import Buffer

REPLAY_BYTES = 32 << 20
"""Bytes of recent data that are kept for a neighbor in a pipeline that lost them."""

TIMEOUT_SECONDS = 30.0
"""Seconds for which a command may accept nothing before it fails."""

_END_SECONDS = 3600.0
_KILL_SECONDS = 5.0
_STATUS_SECONDS = 1.0
"""Seconds to end for a command that has closed its input."""
_OUR_ERRORS = 2
"""The descriptor of standard error."""


class TargetCommand(Protocol):
    """Command to run: its arguments, its whole environment and its working directory."""

    @property
    def name(self) -> str:
        """Return its name for messages."""

    @property
    def arguments(self) -> tuple[str, ...]:
        """Return the program and its arguments."""

    @property
    def environment(self) -> Mapping[str, str]:
        """Return its whole environment."""

    @property
    def folder(self) -> Path:
        """Return its working directory."""

    @property
    def report_errors(self) -> bool:
        """Return whether the sender gets the last line of its standard error when it fails."""


_running: set[subprocess.Popen[bytes]] = set()
_starting = threading.RLock()


def kill_commands() -> None:
    """Kill running commands: a command that outlives this process would take its partial input for the whole."""
    # A command that another thread is just starting is killed as well.
    with _starting:
        for process in list(_running):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


class CommandTarget:
    """Target that pipes into `command`, without a shell. Raises StoreError if it cannot be started.

    Its output goes to this process's standard error, because standard output is for events.
    """

    in_order = True
    descriptor: int | None = None

    def __init__(
        self, command: TargetCommand, replay_bytes: int = REPLAY_BYTES, timeout: float = TIMEOUT_SECONDS
    ) -> None:
        self.place = command.name
        self._timeout = timeout
        self._kept: deque[bytes] = deque()
        self._first_held = self._end = 0
        self._replay_bytes = replay_bytes
        self._words: StderrTail | None = None
        try:
            with _starting:
                self._process = self._started(command)
                _running.add(self._process)
        except (OSError, NoThreadError) as error:
            raise StoreError(f"cannot run the command {command.name}: {sentence(error)}") from error
        assert self._process.stdin is not None
        self._input = self._process.stdin
        os.set_blocking(self._input.fileno(), False)

    def _started(self, command: TargetCommand) -> subprocess.Popen[bytes]:
        self._words = StderrTail() if command.report_errors else None
        try:
            return subprocess.Popen(
                list(command.arguments),
                stdin=subprocess.PIPE,
                stdout=_OUR_ERRORS,
                stderr=_OUR_ERRORS if self._words is None else self._words.writer,
                cwd=command.folder,
                env=dict(command.environment),
                bufsize=0,
                start_new_session=True,
            )
        finally:
            if self._words is not None:
                os.close(self._words.writer)

    def write(self, offset: int, *pieces: Buffer) -> None:
        """Write the next bytes to the command; wait until it accepts them. Raise StoreError."""
        assert offset == self._end
        data = b"".join(pieces)
        rest = memoryview(data)
        while rest:
            rest = rest[self._give(rest) :]
        self._kept.append(data)
        self._end += len(data)
        while self._kept and self._end - self._first_held - len(self._kept[0]) >= self._replay_bytes:
            self._first_held += len(self._kept.popleft())

    def read(self, offset: int, view: memoryview) -> int:
        """Read data that the command got recently. Raise ForgottenError."""
        if offset < self._first_held:
            raise ForgottenError(self._first_held)
        position, filled = self._first_held, 0
        for piece in self._kept:
            if position + len(piece) > offset + filled and filled < len(view):
                part = piece[offset + filled - position :][: len(view) - filled]
                view[filled : filled + len(part)] = part
                filled += len(part)
            position += len(piece)
        return filled

    def commit(self, size: int, *, fsync: bool) -> None:
        """Close the command's input and wait for its end. Raise StoreError unless it succeeded.

        Whether the command's own output is durable is unknown here.
        """
        try:
            self._input.close()
            self._process.wait(_END_SECONDS)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise StoreError(f"the command {self.place} did not end: {error}") from error
        _running.discard(self._process)
        if self._process.returncode != 0:
            raise StoreError(f"the command {self.place} failed ({self._status()}){self._last_words()}")
        self._forget_words()

    def discard(self, *, resumable: bool) -> None:
        """End the command, because its input is incomplete."""
        if self._process.poll() is None:
            self._signal(signal.SIGTERM)
            try:
                self._process.wait(_KILL_SECONDS)
            except subprocess.TimeoutExpired:
                self._signal(signal.SIGKILL)
                self._process.wait()
        _running.discard(self._process)
        with suppress(OSError):
            self._input.close()
        self._forget_words()

    def _forget_words(self) -> None:
        if self._words is not None:
            self._words.close()

    def _last_words(self) -> str:
        """Return the last line of its output, as the end of a sentence."""
        last_line = "" if self._words is None else self._words.after_end()
        return f": {last_line}" if last_line else ""

    def _signal(self, number: signal.Signals) -> None:
        """Send the signal to the command and its children."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def _give(self, data: memoryview) -> int:
        """Write a part of this to the command; return the number of bytes. Raise StoreError."""
        waiting = select.poll()
        try:
            waiting.register(self._input, select.POLLOUT)
            if waiting.poll(self._timeout * 1000):
                # None: it takes less than the kernel wants to give at once.
                return self._input.write(data) or 0
        except (OSError, ValueError) as error:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_STATUS_SECONDS)
            status = f"({self._status()}){self._last_words()}"
            raise StoreError(f"the command {self.place} takes no more data {status}") from error
        raise StoreError(f"the command {self.place} has accepted no data for {self._timeout:g} s")

    def _status(self) -> str:
        code = self._process.poll()
        if code is None:
            return "it closed its input"
        return f"exit status {code}" if code >= 0 else f"ended by signal {-code}"
