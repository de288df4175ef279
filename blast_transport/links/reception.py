"""Listener of a chain's source, for nodes that fetch data which their neighbors no longer hold."""

from __future__ import annotations

import hmac
import socket
import time
from collections.abc import Callable
from contextlib import suppress

from blast_base.endpoint import Endpoint
from blast_transport.base.errors import NoThreadError, TransportError
from blast_transport.base.threads import start_thread
from blast_transport.links.chain_source import SourceAdmission
from blast_transport.links.connection_limits import ConnectionLimiter
from blast_transport.links.first_message import read_first
from blast_transport.wire.joining import Join
from blast_transport.wire.messages import Phase

_TIMEOUT_SECONDS = 5.0
"""A connection that does not introduce itself holds a thread."""
_SECONDS_WITHOUT_ROOM = 0.2
"""Pause while the process has no descriptor left; a shorter one would only use CPU time."""


class Reception:
    """Accepts connections at `listener`, which it owns, in a thread of its own, until `close`.

    `accept` is given the connection and the name of every member of `phase` that comes, in some thread.
    """

    def __init__(
        self,
        listener: socket.socket,
        admission: SourceAdmission,
        phase: Phase,
        accept: Callable[[socket.socket, str], None],
    ) -> None:
        self._listener, self._admission, self._phase, self._accept = listener, admission, phase, accept
        # A connection counts as unauthenticated until its Join arrives; then the source owns it.
        self._limiter = ConnectionLimiter()
        self._closed = False
        start_thread("reception", self._run)

    def close(self) -> None:
        """Accept no more."""
        self._closed = True
        # Closing alone would not end an accept that waits.
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _run(self) -> None:
        while not self._closed:
            try:
                sock, (host, port, *_) = self._listener.accept()
            except OSError:
                # The client has disconnected, or no descriptor is left: both are temporary.
                time.sleep(_SECONDS_WITHOUT_ROOM)
                continue
            if self._limiter.enter(host):
                sock.close()
                continue
            try:
                start_thread("reception", self._attend, sock, host, port)
            except NoThreadError:
                sock.close()
                self._limiter.leave(host, guest=False)

    def _attend(self, sock: socket.socket, host: str, port: int) -> None:
        try:
            self._admit(sock, str(Endpoint(host, port)))
        finally:
            self._limiter.leave(host, guest=False)

    def _admit(self, sock: socket.socket, address: str) -> None:
        try:
            sock.settimeout(_TIMEOUT_SECONDS)
            sock = self._admission.admit(sock, address).sock
            join = read_first(sock, _TIMEOUT_SECONDS, _TIMEOUT_SECONDS)
        except (OSError, TransportError):
            sock.close()
            return
        phase = self._phase
        if (
            isinstance(join, Join)
            and (join.session, join.phase) == (phase.session, phase.number)
            and hmac.compare_digest(join.token, phase.token)
        ):
            self._accept(sock, join.name)
        else:
            sock.close()
