"""The optimizer in a process of lower priority beside the controller, restarted when it exits.

A thread would not do: a busy one would hold the interpreter's lock from the controller for tens of milliseconds. Every
question is answered exactly once: with an empty answer if the process died, or was so late that it was ended.
"""

from __future__ import annotations

import logging
import os
import pickle
import queue
import select
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from blast_controller.core.model.commands import Optimize
from blast_controller.core.model.events import Optimized
from blast_controller.optimizer.frames import LENGTH, frame

T = TypeVar("T")

READY_WITHIN = 30.0
"""Seconds for a process to start: it loads the solver."""

GRACE = 1.0
"""Seconds beyond its budget after which a process is taken for hung: on a busy machine it has a low priority."""

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
"""Seconds before a process that could not be started is tried again, doubled each time."""

log = logging.getLogger(__name__)


class WorkerLostError(Exception):
    """The process has ended, hangs, or answers nonsense. One sentence."""


class Worker:
    """One process. Raises WorkerLostError when it is started, waited for or asked and that does not work."""

    def __init__(self) -> None:
        try:
            # The working directory is not on the path, so no other modules are imported.
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "blast_controller.optimizer.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                bufsize=0,
            )
        except OSError as error:
            raise WorkerLostError(f"the optimizer process failed to start: {error.strerror}") from error
        self.pid = self._process.pid

    def wait_ready(self, seconds: float) -> int:
        """Wait until the process is ready, and return its memory in bytes."""
        return self._read(int, seconds)

    def ask(self, command: Optimize) -> Optimized:
        """Return the answer to a question; takes as long as that may take."""
        try:
            self._write(frame((command.contention, command.seconds, command.revision)))
        except OSError as error:
            raise WorkerLostError("the optimizer process exited") from error
        return Optimized(command.revision, self._read(tuple, command.seconds + GRACE))

    def kill(self) -> None:
        """Kill the process, from any thread; a pending call gets WorkerLostError."""
        self._process.kill()

    def end(self) -> None:
        """End the process and let go of its pipes."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def _write(self, data: bytes) -> None:
        assert self._process.stdin is not None
        view = memoryview(data)
        while view:
            view = view[self._process.stdin.write(view) :]

    def _read(self, kind: type[T], seconds: float) -> T:
        until = time.monotonic() + seconds
        size = LENGTH.unpack(self._bytes(LENGTH.size, until))[0]
        try:
            found = pickle.loads(self._bytes(size, until))
        except (pickle.UnpicklingError, EOFError, AttributeError, ImportError) as error:
            raise WorkerLostError(f"the optimizer sent an invalid answer: {error}") from error
        if not isinstance(found, kind):
            raise WorkerLostError(f"the optimizer sent an invalid answer: {type(found).__name__}")
        return found

    def _bytes(self, count: int, until: float) -> bytes:
        assert self._process.stdout is not None
        read = b""
        while len(read) < count:
            ready, _, _ = select.select([self._process.stdout], [], [], max(0.0, until - time.monotonic()))
            if not ready:
                raise WorkerLostError("the optimizer did not answer in time")
            more = os.read(self._process.stdout.fileno(), count - len(read))
            if not more:
                raise WorkerLostError("the optimizer process exited")
            read += more
        return read


class OptimizerProcess:
    """The process and a thread that talks to it. `post` gets the answers; `fatal` whatever was not expected."""

    def __init__(self, post: Callable[[Optimized], None], fatal: Callable[[BaseException], None]) -> None:
        self._post = post
        self._fatal = fatal
        self._questions: queue.SimpleQueue[Optimize | None] = queue.SimpleQueue()
        self._worker: Worker | None = None
        self._start_at = 0.0
        self._pause = FIRST_PAUSE
        self._ending = False
        self._thread = threading.Thread(target=self._run, name="optimizer", daemon=True)

    @property
    def pid(self) -> int | None:
        """Return the process, starting or ready; None while there is none."""
        worker = self._worker
        return None if worker is None else worker.pid

    def start(self) -> None:
        """Start the process; questions are taken from now on."""
        self._thread.start()

    def ask(self, command: Optimize) -> None:
        """Send a question; never blocks."""
        self._questions.put(command)

    def stop(self) -> None:
        """End the process; pending questions get an empty answer."""
        self._ending = True
        self._questions.put(None)
        worker = self._worker
        if worker is not None:
            worker.kill()
        if self._thread.is_alive():
            self._thread.join(timeout=5)

    def _run(self) -> None:
        try:
            while not self._ending:
                self._make_ready()
                command = self._next()
                if command is not None:
                    self._post(self._answer(command))
            while not self._questions.empty():
                if (command := self._questions.get()) is not None:
                    self._post(Optimized(command.revision))
        except BaseException as error:
            log.exception("the optimizer's thread failed")
            self._fatal(error)
        finally:
            self._drop()

    def _next(self) -> Optimize | None:
        """Return the next question, or None if the caller must check for the end or for the next start.

        Without a process, wait only until the next attempt to start one.
        """
        pause = None if self._worker is not None else max(0.0, self._start_at - time.monotonic())
        try:
            return self._questions.get(timeout=pause)
        except queue.Empty:
            return None

    def _answer(self, command: Optimize) -> Optimized:
        if self._worker is None:
            return Optimized(command.revision)
        try:
            return self._worker.ask(command)
        except WorkerLostError as gone:
            self._drop()
            if not self._ending:
                log.warning("%s; restarting it", gone)
            return Optimized(command.revision)

    def _make_ready(self) -> None:
        if self._worker is not None or self._ending or time.monotonic() < self._start_at:
            return
        try:
            self._worker = Worker()
            memory = self._worker.wait_ready(READY_WITHIN)
        except WorkerLostError as gone:
            self._drop()
            if not self._ending:
                log.error("%s; decisions continue without it, the next start is in %g s", gone, self._pause)
            self._start_at = time.monotonic() + self._pause
            self._pause = min(2 * self._pause, LONGEST_PAUSE)
        else:
            self._pause = FIRST_PAUSE
            log.info("the optimizer is ready: process %d, %.0f MiB", self._worker.pid, memory / 2**20)

    def _drop(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.end()
