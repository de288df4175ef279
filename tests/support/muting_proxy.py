"""A TCP proxy that can hold back what one side says, or both, and cut all connections."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from types import TracebackType


class MutingProxy:
    """Forwards connections on loopback to `port` there; its own is `port`. To be used in a `with` block."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self._answers, self._requests = threading.Event(), threading.Event()
        self._answers.set()
        self._requests.set()
        self._ended = threading.Event()
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> MutingProxy:
        self._spawn(self._accept)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self.pass_on()
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        # Which adds to the others.
        self._threads[0].join(30)
        self._listening.close()
        self.cut()
        for thread in self._threads[1:]:
            thread.join(30)

    def hold_answers(self) -> None:
        """What clients say arrives, and they hear nothing."""
        self._answers.clear()

    def hold_requests(self) -> None:
        """What clients say waits here."""
        self._requests.clear()

    def pass_on(self) -> None:
        """All goes through again, also what was held back."""
        self._answers.set()
        self._requests.set()

    def cut(self) -> None:
        """End all connections; what was held back is lost."""
        sockets, self._sockets = self._sockets, []
        for one in sockets:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _spawn(self, work, *arguments) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self._ended.is_set():
            try:
                client, _ = self._listening.accept()
            except OSError:
                continue
            try:
                server = socket.create_connection(("127.0.0.1", self._target), 10)
            except OSError:
                client.close()
                continue
            server.settimeout(None)
            self._sockets += [client, server]
            self._spawn(self._pump, client, server, self._requests)
            self._spawn(self._pump, server, client, self._answers)

    def _pump(self, source: socket.socket, target: socket.socket, may_go: threading.Event) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                may_go.wait()
                target.sendall(data)
        with suppress(OSError):
            target.shutdown(socket.SHUT_RDWR)
