"""A process on a host of the bed."""

from __future__ import annotations

import json
import os
import queue
import select
import signal
import subprocess
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from transport_bed.bed import Bed
from transport_bed.failures import RunFailed

_GRACE_SECONDS = 2.0


class Program:
    """A running command. Its standard output and error go to `log`; the lines of the former are also kept here."""

    def __init__(  # noqa: PLR0913, PLR0917 - what a process consists of
        self, bed: Bed, host: int, name: str, command: Sequence[str], log: Path, environment: Mapping[str, str]
    ) -> None:
        self.name, self.host = name, host
        self._log = log
        self._lines: queue.SimpleQueue[tuple[float, str] | None] = queue.SimpleQueue()
        with log.open("ab") as said:
            self._process = subprocess.Popen(
                bed.on(host, command),
                env={**bed.environment, **environment},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=said,
                start_new_session=True,
            )
        self._reader = threading.Thread(target=self._read, name=f"read-{name}", daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def status(self) -> int | None:
        """The exit status, or None while it runs."""
        return self._process.poll()

    def next_line(self, deadline: float) -> tuple[float, str]:
        """When its next line came (time.monotonic), and the line. Raises RunFailed when none comes in time."""
        try:
            said = self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            raise RunFailed(f"{self.name} said nothing in time{self._last_words()}") from None
        if said is None:
            self._lines.put(None)
            raise RunFailed(f"{self.name} ended with status {self._process.wait()}{self._last_words()}")
        return said

    def await_line(self, text: str, deadline: float) -> float:
        """When it said the line `text`. Raises RunFailed."""
        while True:
            moment, line = self.next_line(deadline)
            if line == text:
                return moment

    def await_event(self, event: str, deadline: float) -> float:
        """When it said a JSON line whose `event` is this one. Raises RunFailed, also when it says `failed` instead."""
        moment, _ = self.await_said(event, deadline)
        return moment

    def await_said(self, event: str, deadline: float) -> tuple[float, dict[str, Any]]:
        """As `await_event`, and all that the line says."""
        while True:
            moment, line = self.next_line(deadline)
            said = _parsed(line)
            if said.get("event") == event:
                return moment, said
            if said.get("event") == "failed":
                raise RunFailed(f"{self.name} failed: {said.get('reason')}")

    def last_json(self) -> dict[str, Any]:
        """The last JSON line of a program that has ended; nothing if it said none."""
        self._reader.join()
        last: dict[str, Any] = {}
        while (said := self._lines.get()) is not None:
            last = _parsed(said[1]) or last
        self._lines.put(None)
        return last

    def await_end(self, deadline: float) -> float:
        """When it ended. Raises RunFailed."""
        try:
            self._process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise RunFailed(f"{self.name} did not end in time{self._last_words()}") from None
        return time.monotonic()

    def tell(self, line: str) -> None:
        """Write a line to its standard input."""
        assert self._process.stdin is not None
        self._process.stdin.write(line.encode() + b"\n")
        self._process.stdin.flush()

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self._process.send_signal(number)

    def require_success(self) -> None:
        """Raises RunFailed unless it has ended with status 0."""
        if self._process.poll() != 0:
            raise RunFailed(f"{self.name} ended with status {self._process.returncode}{self._last_words()}")

    def end(self) -> None:
        """End it and what it has started."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.pid, number)
                # Of a stopped process only the kernel hears anything.
                os.killpg(self.pid, signal.SIGCONT)
            except ProcessLookupError:
                break
            try:
                self._process.wait(_GRACE_SECONDS)
            except subprocess.TimeoutExpired:
                continue
            break
        self._process.wait()
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._reader.join(_GRACE_SECONDS)

    def _read(self) -> None:
        output = self._process.stdout
        assert output is not None
        with output, self._log.open("ab") as log:
            for line in output:
                self._lines.put((time.monotonic(), line.decode(errors="replace").rstrip("\n")))
                log.write(line)
        self._lines.put(None)

    def _last_words(self) -> str:
        lines = [line for line in self._log.read_text(errors="replace").splitlines() if line.strip()]
        return f": {lines[-1]}" if lines else ""


def await_received(programs: Iterable[Program], deadline: float) -> tuple[float, float]:
    """When the first byte came to any of them, and when the last one had all: both by their `received`.

    Raises RunFailed.
    """
    heard = [program.await_said("received", deadline) for program in programs]
    return min(moment - said["seconds"] for moment, said in heard), max(moment for moment, _ in heard)


def await_exits(programs: Sequence[Program], deadline: float) -> None:
    """Wait until all have ended with status 0. Raises RunFailed."""
    waiting = {os.pidfd_open(program.pid): program for program in programs if program.status is None}
    ended = [program for program in programs if program not in waiting.values()]
    try:
        while waiting:
            poller = select.poll()
            for handle in waiting:
                poller.register(handle, select.POLLIN)
            ready = poller.poll(max(0.0, deadline - time.monotonic()) * 1000)
            if not ready:
                raise RunFailed(f"{next(iter(waiting.values())).name} was not done in time")
            for handle, _ in ready:
                os.close(handle)
                ended.append(waiting.pop(handle))
                ended[-1].require_success()
    finally:
        for handle in waiting:
            os.close(handle)
    for program in ended:
        program.require_success()


def _parsed(line: str) -> dict[str, Any]:
    try:
        said = json.loads(line)
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}
