"""A connection to one database of a SONiC switch, by redis-py's connections.

Not by its clients, which connect again and repeat commands on their own: a session ends with its connection, and the
executor decides whether a transaction is repeated.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from redis._parsers import _AsyncRESP2Parser
from redis.asyncio.connection import AbstractConnection, Connection, SSLConnection, UnixDomainSocketConnection
from redis.exceptions import (
    AuthenticationError,
    AuthorizationError,
    BusyLoadingError,
    ExecAbortError,
    InvalidResponse,
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
    ResponseError,
)

from optical_switch.errors import (
    DeviceBusyError,
    OpticalSwitchError,
    ProtocolError,
    RefusedError,
    SessionLimitError,
    UnreachableError,
)
from optical_switch.printable import printable
from optical_switch.sonic_ocs.redis_commands import Command, Reply
from optical_switch.sonic_ocs.settings import RedisSettings

MAX_REPLY_BYTES = 4 << 20
"""Largest reply of the device, as by gNMI; the largest that is expected has a thousand keys."""

_CODES: dict[type[BaseException | None], str] = {
    AuthenticationError: "WRONGPASS",
    AuthorizationError: "NOAUTH",
    NoPermissionError: "NOPERM",
    ReadOnlyError: "READONLY",
    OutOfMemoryError: "OOM",
    ExecAbortError: "EXECABORT",
}
"""Error codes of Redis, which redis-py removes from the text of these errors."""


class _BoundedParser(_AsyncRESP2Parser):  # type: ignore[misc] # mypy does not read redis-py, which is not typed in full
    """redis-py's parser, which has no bounds of its own: a length that the device announces is read in full."""

    _left = MAX_REPLY_BYTES

    async def read_response(self, disable_decoding: bool = False) -> Reply:
        self._left = MAX_REPLY_BYTES
        reply: Reply = await super().read_response(disable_decoding=disable_decoding)
        return reply

    async def _readline(self) -> bytes:
        line: bytes = await super()._readline()
        # The length of a text, or the number of elements of an array, of which each takes bytes of its own.
        announced = int(line[1:]) if line[:1] in {b"$", b"*"} else 0
        self._left -= len(line) + max(announced, 0)
        if self._left < 0:
            raise InvalidResponse(f"a reply has more than {MAX_REPLY_BYTES} bytes")
        return line


class DatabaseConnection:
    """A connection to one database. Its methods raise OpticalSwitchError; after UnreachableError it cannot be used.

    Parameters
    ----------
    settings : RedisSettings
        How the switch is reached.
    number : int
        Number of the database.
    """

    def __init__(self, settings: RedisSettings, number: int) -> None:
        self._timeout = settings.target.timeout
        self._connection = _connection(settings, number)
        self._busy = asyncio.Lock()
        self._failure: OpticalSwitchError | None = None
        """The reason why the connection cannot be used."""

    async def connect(self) -> None:
        """Connect, log in and select the database."""
        async with self._exclusive():
            await self._connection.connect()

    async def close(self) -> None:
        """Disconnect."""
        self._failure = UnreachableError("the connection to the switch was closed")
        await self._connection.disconnect(nowait=True)

    async def exchange(self, commands: Sequence[Command]) -> list[Reply]:
        """Send commands and return their replies; errors among them as exceptions."""
        async with self._exclusive():
            return await self._exchange(commands)

    async def request(self, *command: str) -> Reply:
        """Send one command and return its reply. Raises the error that the device answers."""
        return refused_if_error((await self.exchange([command]))[0])

    async def transaction(self, commands: Sequence[Command]) -> list[Reply]:
        """Carry out commands in one transaction and return their replies; errors among them as exceptions.

        Raises RefusedError if the device refuses the transaction; nothing was done.
        """
        async with self._exclusive():
            # Apart from the others, which the device would carry out one by one if it refused this one.
            begun = await self._exchange([("MULTI",)])
            replies = [*begun] if isinstance(begun[0], Exception) else await self._exchange([*commands, ("EXEC",)])
        results = replies[-1]
        if isinstance(results, list):
            return results
        refusal = next((reply for reply in replies if isinstance(reply, Exception)), None)
        raise error_of(refusal or InvalidResponse(f"EXEC was answered by {results!r}"))

    async def message(self) -> Reply:
        """Wait for the next message of a subscription and return it."""
        try:
            return _reply(await self._connection.read_response())
        except (RedisError, OSError, ValueError, RecursionError) as error:
            raise error_of(error) from error

    @asynccontextmanager
    async def _exclusive(self) -> AsyncIterator[None]:
        """Keep the connection for one exchange; one that is interrupted leaves replies behind and makes it unusable."""
        async with self._busy:
            if self._failure is not None:
                raise self._failure.with_traceback(None)
            self._failure = UnreachableError("the connection to the switch was interrupted")
            try:
                async with asyncio.timeout(self._timeout):
                    yield
            except TimeoutError:
                self._failure = UnreachableError(f"no answer from the switch within {self._timeout:g} s")
                raise self._failure from None
            except (RedisError, OSError, ValueError, RecursionError) as error:
                self._failure = error_of(error)
                raise self._failure from error
            self._failure = None

    async def _exchange(self, commands: Sequence[Command]) -> list[Reply]:
        connection = self._connection
        await connection.send_packed_command(connection.pack_commands(commands))
        replies: list[Reply] = []
        for _ in commands:
            try:
                replies.append(_reply(await connection.read_response()))
            except ResponseError as error:
                replies.append(error)
        return replies


def refused_if_error(reply: Reply) -> Reply:
    """Return a reply, or raise the error that it is."""
    if isinstance(reply, Exception):
        raise error_of(reply)
    return reply


def error_of(error: Exception) -> OpticalSwitchError:
    """Return the error that stands for one of redis-py."""
    text = printable(str(error))
    if "max number of clients" in text:
        return SessionLimitError(text)
    if isinstance(error, BusyLoadingError):
        return DeviceBusyError(f"the switch takes no session now: {text}")
    # redis-py replaces a refused login by an error of the connection, whose cause is the login.
    code = _CODES.get(type(error)) or _CODES.get(type(error.__cause__))
    if code is not None or isinstance(error, ResponseError):
        return RefusedError(code or "ERR", text)
    if isinstance(error, InvalidResponse | ValueError | RecursionError):
        return ProtocolError(f"the switch does not speak the protocol of Redis: {text}")
    return UnreachableError(f"no connection to the database of the switch: {text}")


def _reply(reply: object) -> Reply:
    if isinstance(reply, list):
        return [_reply(element) for element in reply]
    if reply is None or isinstance(reply, str | int | Exception):
        return reply
    raise InvalidResponse(f"a reply of the type {type(reply).__name__}")


def _connection(settings: RedisSettings, number: int) -> AbstractConnection:
    # Timeouts are those of an exchange, and the only try is the first.
    common = {
        "db": number,
        "username": settings.login.user or None,
        "password": settings.login.password or None,
        "decode_responses": True,
        "encoding_errors": "backslashreplace",
        "parser_class": _BoundedParser,
        "protocol": 2,
        "socket_timeout": None,
        "socket_connect_timeout": None,
    }
    if settings.socket is not None:
        return UnixDomainSocketConnection(path=str(settings.socket), **common)
    common |= {"host": settings.target.host, "port": settings.target.port, "socket_keepalive": True}
    if settings.tls is None:
        return Connection(**common)
    connection = SSLConnection(**common)
    # In place of the context that redis-py would make, which trusts the authorities of this machine too.
    connection.ssl_context.context = settings.tls
    return connection
