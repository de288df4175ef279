"""A process on a host of a bed."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from benchmarks.control_plane.child import Process
from benchmarks.transfers.bed.failures import RunFailedError

_GRACE_SECONDS = 2.0


class Program(Process):
    """A running command in a new session; all of its output goes to `log`."""

    def __init__(self, name: str, command: Sequence[str], log: Path, environment: Mapping[str, str]) -> None:
        super().__init__(name, command, log, logged=True, env=environment, start_new_session=True)

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def status(self) -> int | None:
        """The exit status, or None while it runs."""
        return self._process.poll()

    def next_line(self, deadline: float) -> tuple[float, str]:
        """Return the time (time.monotonic) of its next line, and the line. Raises RunFailedError."""
        try:
            found = self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            raise RunFailedError(f"{self.name} printed nothing in time{self._last_line()}") from None
        if found is None:
            self._lines.put(None)
            raise RunFailedError(f"{self.name} ended with status {self._process.wait()}{self._last_line()}")
        return found

    def await_line(self, text: str, deadline: float) -> float:
        """Return the time of the line `text`. Raises RunFailedError."""
        while True:
            moment, line = self.next_line(deadline)
            if line == text:
                return moment

    def await_message(self, event: str, deadline: float) -> tuple[float, dict[str, Any]]:
        """Return the time and the JSON line with this `event`. Raises RunFailedError, also if the event is `failed`."""
        while True:
            moment, line = self.next_line(deadline)
            message = _parsed(line)
            if message.get("event") == event:
                return moment, message
            if message.get("event") == "failed":
                raise RunFailedError(f"{self.name} failed: {message.get('reason')}")

    def await_event(self, event: str, deadline: float) -> float:
        """Return the time of the JSON line with this `event`. Raises RunFailedError."""
        return self.await_message(event, deadline)[0]

    def last_json(self) -> dict[str, Any]:
        """Return the last JSON line of a program that has exited."""
        self._reader.join()
        last: dict[str, Any] = {}
        while (found := self._lines.get()) is not None:
            last = _parsed(found[1]) or last
        self._lines.put(None)
        return last

    def await_end(self, deadline: float) -> float:
        """Return the time of its exit. Raises RunFailedError."""
        try:
            self._process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise RunFailedError(f"{self.name} did not end in time{self._last_line()}") from None
        return time.monotonic()

    def require_success(self) -> None:
        """Raise RunFailedError unless it has exited with status 0."""
        if self._process.poll() != 0:
            raise RunFailedError(f"{self.name} ended with status {self._process.returncode}{self._last_line()}")

    def end(self) -> None:
        """End it and its children."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.pid, number)
                # A stopped process receives no signal before it continues.
                os.killpg(self.pid, signal.SIGCONT)
                self._process.wait(_GRACE_SECONDS)
            except ProcessLookupError:
                break
            except subprocess.TimeoutExpired:
                continue
            break
        self._process.wait()
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._reader.join(_GRACE_SECONDS)

    def _last_line(self) -> str:
        lines = [line for line in self._log.read_text(errors="replace").splitlines() if line.strip()]
        return f": {lines[-1]}" if lines else ""


def await_received(programs: Iterable[Program], deadline: float) -> tuple[float, float]:
    """Return the times of the first byte at any of them and of the last complete copy. Raises RunFailedError."""
    messages = [program.await_message("received", deadline) for program in programs]
    return min(moment - one["seconds"] for moment, one in messages), max(moment for moment, _ in messages)


def await_exits(programs: Sequence[Program], deadline: float) -> None:
    """Wait until all have exited with status 0. Raises RunFailedError as soon as one fails."""
    waiting = {os.pidfd_open(program.pid): program for program in programs if program.status is None}
    try:
        while waiting:
            ready = wait(list(waiting), max(0.0, deadline - time.monotonic()))
            if not ready:
                raise RunFailedError(f"{next(iter(waiting.values())).name} was not done in time")
            for handle in [handle for handle in waiting if handle in ready]:
                os.close(handle)
                waiting.pop(handle).require_success()
    finally:
        for handle in waiting:
            os.close(handle)
    for program in programs:
        program.require_success()


def _parsed(line: str) -> dict[str, Any]:
    try:
        document = json.loads(line)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}
