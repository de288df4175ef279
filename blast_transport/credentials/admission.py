"""Connections whose both ends have proved who they are: how one becomes that, on either side."""

from __future__ import annotations

import math
import socket
import ssl
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from blast_transport.base.errors import AuthenticationError, sentence
from blast_transport.base.precedence import BEST_EFFORT, open_connection, set_precedence
from blast_transport.credentials.authentication import (
    WELCOME,
    AgentHandshake,
    ClientHandshake,
    ConnectionKeys,
    answer_length,
    refusal,
    refusal_read,
)
from blast_transport.credentials.material import Credentials, SharedSecret
from blast_transport.credentials.roles import SENDER, ClientRole
from blast_transport.credentials.tls import TlsFiles, certificate_names, is_certified, tls_reason

_MIN_SECONDS = 0.001
"""A timeout of 0 would make the socket non-blocking."""


class ProvenSocket(socket.socket):
    """A TCP socket whose two ends have proved the same secret, with the keys that came of it."""

    keys: ConnectionKeys

    @classmethod
    def of(cls, sock: socket.socket, keys: ConnectionKeys) -> ProvenSocket:
        """Wrap `sock` and take it over."""
        proven = cls(sock.family, sock.type, sock.proto, sock.detach())
        proven.keys = keys
        return proven


def hide(sock: socket.socket, session: int, key: bytes) -> bytes:
    """Mask or unmask the key of a sealed session for `sock`.

    TLS hides everything anyway, and what proves nothing stays on this machine: there it is the key as it is. Raises
    LocalProtocolError for another key of the same session, which would give both away.
    """
    return sock.keys.hide(session, key) if isinstance(sock, ProvenSocket) and key else key


@dataclass(frozen=True, slots=True)
class AgentConnection:
    """Authenticated connection to an agent. `sock` is blocking, without a timeout.

    `peer` describes the client, for messages; `role` limits its permissions (roles.SENDER, roles.NEIGHBOR).
    """

    sock: socket.socket
    peer: str
    role: str = SENDER

    def close(self) -> None:
        """Close the socket."""
        self.sock.close()


class Admission:
    """Authentication at the agent. Thread-safe. Raises SettingsError for files that cannot be used."""

    def __init__(self, credentials: Credentials, clients: Iterable[ClientRole] = (), seconds: float = 5.0) -> None:
        self._credentials = credentials
        self._clients = [(client.names(), client.role) for client in clients]
        self._seconds = seconds
        self._context = credentials.for_agent() if isinstance(credentials, TlsFiles) else None

    def admit(self, sock: socket.socket, address: str, seconds: float = math.inf) -> AgentConnection:
        """Authenticate the client, or raise AuthenticationError; the caller then closes `sock`.

        The handshake takes at most `seconds`, and at most the limit of this object.
        """
        seconds = max(min(seconds, self._seconds), _MIN_SECONDS)
        deadline = time.monotonic() + seconds
        _without_delay(sock)
        if self._context is not None:
            sock.settimeout(seconds)
            return self._by_certificate(sock, self._context, address)
        if isinstance(self._credentials, SharedSecret):
            handshake = AgentHandshake(self._credentials.value, deadline)
            try:
                _talk(sock, handshake)
            except AuthenticationError as error:
                refuse(sock, str(error))
                raise
            return AgentConnection(_unhurried(ProvenSocket.of(sock, handshake.keys)), address)
        return AgentConnection(_unhurried(sock), address)

    def refuse(self, sock: socket.socket, reason: str) -> None:
        """Send the reason to a client that is not authenticated yet, where the protocol permits it, and close."""
        if isinstance(self._credentials, SharedSecret):
            refuse(sock, reason)
        sock.close()

    def _by_certificate(self, sock: socket.socket, context: ssl.SSLContext, address: str) -> AgentConnection:
        try:
            tls = context.wrap_socket(sock, server_side=True)
        except OSError as error:
            raise AuthenticationError(f"no TLS: {tls_reason(error)}") from error
        with _closed_on_error(tls):
            return self._welcomed(tls, address)

    def _welcomed(self, tls: ssl.SSLSocket, address: str) -> AgentConnection:
        names = certificate_names(tls)
        role = next((role for required, role in self._clients if required <= names), None)
        if role is None:
            refuse(tls, f"access.client of this agent does not permit {_shown(names)}; add it there")
            raise AuthenticationError(f"the certificate of {_shown(names)} matches no entry of access.client")
        _send(tls, WELCOME)
        return AgentConnection(_unhurried(tls), f"{address} ({_shown(names)})", role)


def prove(sock: socket.socket, credentials: Credentials, name: str, seconds: float) -> socket.socket:
    """Authenticate this client to the agent at the other end of `sock`, and the agent to this client.

    `name` is required in the agent's certificate, if it has one. Return the socket to use, blocking and without a
    timeout. Raise AuthenticationError, or SettingsError for files that cannot be used; `sock` is then closed.
    """
    with _closed_on_error(sock):
        _without_delay(sock)
        if isinstance(credentials, TlsFiles):
            return _prove_by_certificate(sock, credentials.for_client(), name, seconds)
        if isinstance(credentials, SharedSecret):
            handshake = ClientHandshake(credentials.value, time.monotonic() + seconds)
            _send(sock, handshake.opening)
            _talk(sock, handshake)
            return _unhurried(ProvenSocket.of(sock, handshake.keys))
        return _unhurried(sock)


def prove_to_one_of(
    sock: socket.socket, credentials: Credentials, names: Collection[str], seconds: float
) -> socket.socket:
    """Authenticate as `prove` does, to an agent that may be any one of `names`."""
    if not isinstance(credentials, TlsFiles):
        return prove(sock, credentials, "", seconds)
    context = credentials.for_client()
    context.check_hostname = False
    with _closed_on_error(sock):
        _without_delay(sock)
        tls = _prove_by_certificate(sock, context, None, seconds)
        with _closed_on_error(tls):
            if not any(is_certified(tls, name) for name in names):
                raise AuthenticationError(
                    f"the certificate of {_shown(certificate_names(tls))} is of none of the hosts meant"
                )
        return tls


def dialer(credentials: Credentials) -> Callable[[tuple[str, str, int], float], socket.socket]:
    """Return a function that connects to an agent by (name, host, port) within a time, with both ends authenticated.

    That function raises OSError for an agent that it cannot reach, and AuthenticationError.
    """

    def dial(address: tuple[str, str, int], seconds: float) -> socket.socket:
        name, host, port = address
        give_up = time.monotonic() + seconds
        sock = prove(open_connection(host, port, seconds), credentials, name, give_up - time.monotonic())
        set_precedence(sock, BEST_EFFORT)
        return sock

    return dial


def refuse(sock: socket.socket, reason: str) -> None:
    """Send a refusal as a handshake message, if the other side still receives."""
    with suppress(OSError):
        sock.setblocking(False)
        sock.send(refusal(reason))


def _prove_by_certificate(
    sock: socket.socket, context: ssl.SSLContext, name: str | None, seconds: float
) -> ssl.SSLSocket:
    sock.settimeout(max(seconds, _MIN_SECONDS))
    try:
        tls = context.wrap_socket(sock, server_hostname=name)
    except ssl.SSLCertVerificationError as error:
        raise AuthenticationError(f"the agent's certificate is not that of {name}: {error.verify_message}") from error
    except OSError as error:
        raise AuthenticationError(f"no TLS with the agent: {tls_reason(error)}") from error
    with _closed_on_error(tls):
        _await_welcome(tls, time.monotonic() + seconds)
        tls.settimeout(None)
        return tls


def _await_welcome(sock: socket.socket, deadline: float) -> None:
    """Wait for the agent's confirmation.

    TLS does not report to the client whether its certificate was accepted (RFC 8446, section 4.4). Raises
    AuthenticationError.
    """
    answer = b""
    while (required := answer_length(answer) - len(answer)) > 0:
        answer += receive_some(sock, required, deadline)
    if answer != WELCOME:
        raise AuthenticationError(refusal_read(answer))


def _talk(sock: socket.socket, handshake: AgentHandshake | ClientHandshake) -> None:
    while handshake.expected_bytes:
        data = receive_some(sock, handshake.expected_bytes, handshake.deadline)
        answer = handshake.receive(data, time.monotonic())
        if answer:
            _send(sock, answer)


def receive_some(sock: socket.socket, max_bytes: int, deadline: float) -> bytes:
    """Receive 1 to `max_bytes` bytes. Raise AuthenticationError at the end of the connection or of the time."""
    left = deadline - time.monotonic()
    try:
        if left <= 0:
            raise TimeoutError
        sock.settimeout(left)
        data = sock.recv(max_bytes)
    except TimeoutError:
        raise AuthenticationError("nothing came in time") from None
    except OSError as error:
        raise AuthenticationError(f"the connection was lost: {sentence(error)}") from error
    if not data:
        raise AuthenticationError("the other side closed the connection without an answer")
    return data


def _send(sock: socket.socket, data: bytes) -> None:
    try:
        # A few bytes on a fresh connection always find room.
        sock.sendall(data)
    except OSError as error:
        raise AuthenticationError(f"the connection was lost: {sentence(error)}") from error


@contextmanager
def _closed_on_error(sock: socket.socket) -> Iterator[None]:
    try:
        yield
    except BaseException:
        sock.close()
        raise


def _without_delay(sock: socket.socket) -> None:
    """Disable Nagle's algorithm, which would delay the small messages of a handshake."""
    with suppress(OSError):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def _unhurried(sock: socket.socket) -> socket.socket:
    sock.settimeout(None)
    return sock


def _shown(names: frozenset[tuple[str, str]]) -> str:
    return ", ".join(ascii(value)[1:-1] for _, value in sorted(names)) or "no name"
