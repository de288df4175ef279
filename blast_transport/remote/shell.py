"""One SSH connection to each host, by ClusterShell, in a thread of its own."""

from __future__ import annotations

import shlex
import shutil
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from blast_transport.remote.hosts import HostRegistry

try:
    from ClusterShell.Event import EventHandler
    from ClusterShell.Task import task_self, task_terminate
except ImportError:  # The extra `ssh` is not installed; nothing else of the agent needs it.
    task_self = task_terminate = None
    EventHandler = object

IS_INSTALLED = task_self is not None
"""ClusterShell is there."""

_TICK_SECONDS = 0.1
"""Within this time, Ctrl-C and a timeout take effect."""
_CONNECT_SECONDS = 10
"""Of ssh, unless the whole start has less time."""
_MAX_WORKERS = 1 << 20
"""No limit of ClusterShell: the window of starts is ours."""
_MARGIN_SECONDS = 5.0
"""For processes that end after their connection is closed."""
# A connection that is cut silently is detected after a quarter of a minute.
_SSH_OPTIONS = "-oServerAliveInterval=5 -oServerAliveCountMax=3"
_END = "end"


@dataclass(frozen=True, slots=True)
class ShellSettings:
    """Settings of the SSH connections; see remote_start.StartOptions."""

    user: str | None
    port: int | None
    ssh_options: str
    window: int
    seconds: float


class RemoteShells:
    """Remote runs of `command` on every host of `book`, with the input of `stdin_of`, which `end` closes."""

    def __init__(
        self, command: str, stdin_of: Callable[[str], bytes], settings: ShellSettings, book: HostRegistry
    ) -> None:
        self._handler = _ShellHandler(command, stdin_of, settings, book)
        self._book = book
        self._timeout = settings.seconds
        self._thread = threading.Thread(target=self._handler.run, name="ssh", daemon=True)

    def start(self) -> None:
        """Start the agents; return when every host is ready or has failed."""
        self._thread.start()
        # The handler gives up host by host; this is for a handler that is gone.
        while not self._book.settled.wait(self._timeout):
            if not self._thread.is_alive():
                self._book.conclude("starting agents was broken off")

    def end(self, seconds: float) -> None:
        """End the remote commands within `seconds`, and kill the remaining ones."""
        self._handler.end(seconds)
        if self._thread.is_alive():
            self._thread.join(seconds + _MARGIN_SECONDS)


class _Worker(Protocol):
    """ClusterShell's worker: one command on one host."""

    SNAME_STDERR: str

    def write(self, buf: bytes) -> None: ...

    def set_write_eof(self) -> None: ...

    def abort(self) -> None: ...


class _Port(Protocol):
    """ClusterShell's way into the thread of a task."""

    def msg_send(self, send_msg: tuple[str, float]) -> object: ...


class _Task(Protocol):
    """The methods of a ClusterShell task that this module uses."""

    def set_default(self, default_key: str, value: object) -> None: ...

    def set_info(self, info_key: str, value: object) -> None: ...

    def port(self, *, handler: EventHandler, autoclose: bool) -> _Port: ...

    def timer(self, fire: float, *, handler: EventHandler, interval: float, autoclose: bool) -> object: ...

    def shell(self, command: str, **options: object) -> _Worker: ...

    def run(self) -> None: ...


class _ShellHandler(EventHandler):  # type: ignore[misc]
    """Handler of ClusterShell's events; all methods but `end` run in its thread."""

    def __init__(
        self, command: str, stdin_of: Callable[[str], bytes], settings: ShellSettings, book: HostRegistry
    ) -> None:
        super().__init__()
        self._command, self._stdin_of, self._settings, self._book = command, stdin_of, settings, book
        self._workers: dict[str, _Worker] = {}
        self._cut_at: float | None = None
        self._ready = threading.Event()
        self._port: _Port | None = None
        self._task: _Task

    def run(self) -> None:
        """Run the thread."""
        try:
            self._task = _prepared(task_self(), self._settings)
            self._port = self._task.port(handler=self, autoclose=True)
            self._task.timer(_TICK_SECONDS, handler=self, interval=_TICK_SECONDS, autoclose=True)
            self._ready.set()
            self._start_some()
            self._task.run()
        finally:
            self._ready.set()
            self._book.conclude("starting agents was broken off")
            task_terminate()

    def end(self, seconds: float) -> None:
        """Close every standard input, and after `seconds` kill the commands that still run.

        May be called from any thread.
        """
        self._ready.wait(seconds)
        # Where the task is over, its port is closed.
        with suppress(AttributeError, OSError, KeyError):
            if self._port is not None:
                self._port.msg_send((_END, time.monotonic() + seconds))

    # ------------------------------------------------------------------------------------------------- events

    def ev_read(self, worker: _Worker, node: str, sname: str, msg: bytes) -> None:
        """Handle a line."""
        if sname == worker.SNAME_STDERR:
            self._book.complained(node, msg)
        else:
            self._book.received_line(node, msg)
        self._start_some()

    def ev_hup(self, worker: _Worker, node: str, rc: int | None) -> None:
        """Handle the end of a connection."""
        self._workers.pop(node, None)
        self._book.closed(node, rc)
        self._start_some()

    def ev_msg(self, port: _Port, msg: tuple[str, float]) -> None:
        """Handle the main thread's request to end."""
        _, self._cut_at = msg
        self._book.conclude("the start was broken off")
        for worker in list(self._workers.values()):
            worker.set_write_eof()

    def ev_timer(self, timer: object) -> None:
        """Handle the timer."""
        now = time.monotonic()
        for host in self._book.late(now):
            self._abort(host)
        if self._cut_at is not None and now > self._cut_at:
            for host in list(self._workers):
                self._abort(host)
        self._start_some()

    def _start_some(self) -> None:
        while self._cut_at is None:
            deadline = time.monotonic() + self._settings.seconds
            host = self._book.next_to_start(self._settings.window, deadline)
            if host is None:
                return
            worker = self._task.shell(self._command, nodes=host, handler=self, stderr=True, stdin=True, tree=False)
            worker.write(self._stdin_of(host))
            self._workers[host] = worker

    def _abort(self, host: str) -> None:
        worker = self._workers.pop(host, None)
        if worker is not None:
            worker.abort()


def _prepared(task: _Task, settings: ShellSettings) -> _Task:
    # Whatever defaults the user's own ClusterShell has, this is no clush.
    task.set_default("stdout_msgtree", False)
    task.set_default("stderr_msgtree", False)
    task.set_info("fanout", _MAX_WORKERS)
    task.set_info("command_timeout", 0)
    task.set_info("connect_timeout", min(_CONNECT_SECONDS, max(1, int(settings.seconds))))
    port = [f"-oPort={settings.port}"] if settings.port is not None else []
    task.set_info("ssh_options", " ".join([settings.ssh_options, *port, _SSH_OPTIONS]))
    task.set_info("ssh_user", settings.user)
    # In a session of its own, ssh does not get the interrupt of this process, which can then end it in order.
    setsid = shutil.which("setsid")
    task.set_info("ssh_path", f"{shlex.quote(setsid)} ssh" if setsid else "ssh")
    return task
