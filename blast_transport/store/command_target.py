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
from blast_transport.store.last_words import LastWords
from blast_transport.store.target import Buffer

REPLAY_BYTES = 32 << 20
"""How much of what was written is kept, for a neighbor in a pipeline that lost it."""

TIMEOUT_SECONDS = 30.0
"""How long a command may take nothing before it is given up."""

_END_SECONDS = 3600.0
_KILL_SECONDS = 5.0
_STATUS_SECONDS = 1.0
"""Who has closed its input mostly ends."""
_OUR_ERRORS = 2


class Command(Protocol):
    """What is run: its arguments, its whole environment and where."""

    @property
    def name(self) -> str:
        """What people call it."""

    @property
    def arguments(self) -> tuple[str, ...]:
        """The program and what it is given."""

    @property
    def environment(self) -> Mapping[str, str]:
        """All of it."""

    @property
    def folder(self) -> Path:
        """Where it runs."""

    @property
    def report_errors(self) -> bool:
        """Its sender is told the last line of its standard error when it fails."""


_running: set[subprocess.Popen[bytes]] = set()
_starting = threading.RLock()


def kill_commands() -> None:
    """Kill what still runs: a command that outlived us would take the part that it was given for the whole."""
    # A command that another thread is just starting is killed as well.
    with _starting:
        for process in list(_running):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


class CommandTarget:
    """Runs `command`, without a shell. Raises StoreError if it cannot be started.

    What it prints goes to our standard error: our standard output is for events.
    """

    in_order = True
    descriptor: int | None = None

    def __init__(self, command: Command, replay_bytes: int = REPLAY_BYTES, patience: float = TIMEOUT_SECONDS) -> None:
        self.place = command.name
        self._timeout = patience
        self._kept: deque[bytes] = deque()
        self._lowest = self._end = 0
        self._replay_bytes = replay_bytes
        self._words: LastWords | None = None
        try:
            with _starting:
                self._process = self._started(command)
                _running.add(self._process)
        except (OSError, NoThreadError) as error:
            raise StoreError(f"cannot run the command {command.name}: {sentence(error)}") from error
        assert self._process.stdin is not None
        self._input = self._process.stdin
        os.set_blocking(self._input.fileno(), False)

    def _started(self, command: Command) -> subprocess.Popen[bytes]:
        self._words = LastWords() if command.report_errors else None
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
        """Give the command its next bytes; waits until it takes them. Raises StoreError."""
        assert offset == self._end
        data = b"".join(pieces)
        rest = memoryview(data)
        while rest:
            rest = rest[self._give(rest) :]
        self._kept.append(data)
        self._end += len(data)
        while self._kept and self._end - self._lowest - len(self._kept[0]) >= self._replay_bytes:
            self._lowest += len(self._kept.popleft())

    def read(self, offset: int, view: memoryview) -> int:
        """What the command was given lately. Raises ForgottenError."""
        if offset < self._lowest:
            raise ForgottenError(self._lowest)
        position, filled = self._lowest, 0
        for piece in self._kept:
            if position + len(piece) > offset + filled and filled < len(view):
                part = piece[offset + filled - position :][: len(view) - filled]
                view[filled : filled + len(part)] = part
                filled += len(part)
            position += len(piece)
        return filled

    def commit(self, size: int, *, fsync: bool) -> None:
        """End the command's input and wait for its end. Raises StoreError unless it succeeded.

        What it has made of its input, and whether that lasts, is its own affair.
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
        """End the command: what it was given is not the whole."""
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
        """What it said last, as the end of a sentence."""
        said = "" if self._words is None else self._words.after_end()
        return f": {said}" if said else ""

    def _signal(self, number: signal.Signals) -> None:
        """To the command and what it has started."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def _give(self, data: memoryview) -> int:
        """Some of this to the command; the number of bytes. Raises StoreError."""
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
        raise StoreError(f"the command {self.place} has taken no data for {self._timeout:g} s")

    def _status(self) -> str:
        code = self._process.poll()
        if code is None:
            return "it closed its input"
        return f"exit status {code}" if code >= 0 else f"ended by signal {-code}"
