"""The bare protocol exchange that sets one circuit, for each driver: prebuilt bytes, and only what shows its effect.

    tl1              one ent-crs-fiber and its answer
    sonic-ocs-gnmi   one Set, and the notifications until both sides are `connected`
    sonic-ocs-redis  one transaction, and keyspace events, each with a reading, until both sides are `connected`
    netconf          one edit-config of the candidate and one commit, over SSH

gNMI and NETCONF use the libraries of the drivers for gRPC and SSH, without the drivers' own messages and checks.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AsyncExitStack, suppress

import asyncssh
import grpc

from benchmarks.control_plane.drivers.switch_endpoints import PASSWORD, USER, SwitchEndpoint
from optical_switch.model import Circuit
from optical_switch.netconf.framing import END, in_one_chunk, with_end
from optical_switch.netconf.messages import hello, rpc
from optical_switch.netconf.operations import commit, edit_config
from optical_switch.netconf.polatis import PortNumbering, circuits_edit
from optical_switch.sonic_ocs.gnmi_messages import OcsRequests
from optical_switch.sonic_ocs.proto import gnmi_pb2

CIRCUIT = Circuit(2, 3)
"""The circuit that is set: any one, with different ports."""
NAMES = ("2A", "3B")
"""Its ports as SONiC names them."""

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class UnexpectedReplyError(Exception):
    """The switch did not do what the exchange is about. The message is its reply."""


class BareExchange(ABC):
    """Connections to a switch, and the exchanges that set and remove the circuit."""

    def __init__(self, endpoint: SwitchEndpoint) -> None:
        self._endpoint = endpoint
        self._stack = AsyncExitStack()

    async def close(self) -> None:
        """Disconnect."""
        await self._stack.aclose()

    @abstractmethod
    async def open(self) -> None:
        """Connect, and subscribe if the protocol reports the effect of changes."""

    @abstractmethod
    async def connect(self) -> None:
        """Set the circuit; return when it is set."""

    @abstractmethod
    async def disconnect(self) -> None:
        """Remove it; return when it is removed."""

    def _closing(self, streams: Streams) -> Streams:
        self._stack.callback(streams[1].close)
        return streams


class Tl1Exchange(BareExchange):
    """The exchange by TL1."""

    async def open(self) -> None:
        """Connect."""
        host, port = self._endpoint.host_and_port
        self._reader, self._writer = self._closing(await asyncio.open_connection(host, port))

    async def connect(self) -> None:
        """Send ent-crs-fiber."""
        await self._command(b"ent-crs-fiber::10002,20003:1:::opmode=sync;\n")

    async def disconnect(self) -> None:
        """Send dlt-crs-fiber."""
        await self._command(b"dlt-crs-fiber::10002,20003:1;\n")

    async def _command(self, command: bytes) -> None:
        self._writer.write(command)
        await self._reader.readuntil(b";")  # the echo
        reply = await self._reader.readuntil(b";")
        if b"COMPLD" not in reply:
            raise UnexpectedReplyError(reply.decode(errors="replace"))


class GnmiExchange(BareExchange):
    """The exchange by gNMI; messages that arrive are searched without being parsed."""

    async def open(self) -> None:
        """Subscribe."""
        requests = OcsRequests("databases")
        self._connects = requests.change((), (CIRCUIT,)).SerializeToString()
        self._disconnects = requests.change((CIRCUIT,), ()).SerializeToString()
        channel = grpc.aio.insecure_channel(self._endpoint.address, options=(("grpc.use_local_subchannel_pool", 1),))
        self._stack.push_async_callback(channel.close)
        self._set = channel.unary_unary("/gnmi.gNMI/Set")
        self._subscription = channel.stream_stream("/gnmi.gNMI/Subscribe")()
        # Before the channel is closed, or gRPC leaves a task behind.
        self._stack.push_async_callback(_cancel, self._subscription)
        await self._subscription.write(requests.subscribe().SerializeToString())
        while not gnmi_pb2.SubscribeResponse.FromString(await self._subscription.read()).sync_response:
            pass

    async def connect(self) -> None:
        """Send Set, and wait until two ports are reported as connected."""
        await self._change(self._connects, b'"connected"')

    async def disconnect(self) -> None:
        """Send Set, and wait until two ports are reported as blocked."""
        await self._change(self._disconnects, b'"blocked"')

    async def _change(self, request: bytes, status: bytes) -> None:
        await self._set(request)
        missing = len(NAMES)
        while missing > 0:
            missing -= (await self._subscription.read()).count(status)


class RedisExchange(BareExchange):
    """The exchange by the databases, in the protocol RESP2."""

    _KEY = "OCS_CROSS_CONNECT|2A-3B"

    async def open(self) -> None:
        """Connect to both databases, and subscribe to the changes of ports."""
        self._config, self._state, self._events = [await self._connect_to(number) for number in (4, 6, 6)]
        await self._ask(self._state, ["CONFIG", "SET", "notify-keyspace-events", "AKE"])
        await self._ask(self._events, ["PSUBSCRIBE", "__keyspace@6__:OCS_PORT_TABLE|*"])
        change = ["HSET", self._KEY, "a_side", NAMES[0], "b_side", NAMES[1]]
        self._connects = b"".join(map(_resp, (["MULTI"], change, ["EXEC"])))
        self._disconnects = b"".join(map(_resp, (["MULTI"], ["DEL", self._KEY], ["EXEC"])))
        self._readings = {name: _resp(["HGET", f"OCS_PORT_TABLE|{name}", "oper_status"]) for name in NAMES}

    async def connect(self) -> None:
        """Change CONFIG_DB, and wait until STATE_DB shows both ports as connected."""
        await self._change(self._connects, b"connected")

    async def disconnect(self) -> None:
        """Change CONFIG_DB, and wait until STATE_DB shows both ports as blocked."""
        await self._change(self._disconnects, b"blocked")

    async def _connect_to(self, number: int) -> Streams:
        streams = self._closing(await asyncio.open_unix_connection(self._endpoint.redis_socket))
        await self._ask(streams, ["SELECT", str(number)])
        return streams

    async def _ask(self, streams: Streams, command: list[str]) -> object:
        streams[1].write(_resp(command))
        return await _reply(streams[0])

    async def _change(self, transaction: bytes, status: bytes) -> None:
        reader, writer = self._config
        writer.write(transaction)
        for _ in range(3):
            await _reply(reader)
        await self._wait_status(self._readings, status)

    async def _wait_status(self, readings: Mapping[str, bytes], status: bytes) -> None:
        reader, writer = self._state
        missing = set(readings)
        while missing:
            message = await _reply(self._events[0])
            assert isinstance(message, list), "a subscription has messages only"
            name = message[2].rpartition(b"|")[2].decode()
            if name in missing:
                writer.write(readings[name])
                if await _reply(reader) == status:
                    missing.remove(name)


class NetconfExchange(BareExchange):
    """The exchange by NETCONF; replies are searched without being parsed."""

    async def open(self) -> None:
        """Log in and exchange hellos."""
        host, port = self._endpoint.host_and_port
        connection = await asyncssh.connect(
            host, port, username=USER, password=PASSWORD, known_hosts=None, config=None, client_keys=None,
            agent_path=None, gss_host=None, compression_algs=None,
        )  # fmt: skip
        self._stack.callback(connection.close)
        self._writer, self._reader, _ = await connection.open_session(subsystem="netconf", encoding=None)
        self._writer.write(with_end(hello()))
        await self._reader.readuntil(END)
        numbering = PortNumbering(self._endpoint.ports + 1)
        self._connects = self._edit(circuits_edit((), (CIRCUIT,), numbering))
        self._disconnects = self._edit(circuits_edit((CIRCUIT,), (), numbering))
        self._commit = in_one_chunk(rpc("2", commit()))

    async def connect(self) -> None:
        """Edit and commit."""
        await self._request(self._connects)
        await self._request(self._commit)

    async def disconnect(self) -> None:
        """Edit and commit."""
        await self._request(self._disconnects)
        await self._request(self._commit)

    def _edit(self, content: str) -> bytes:
        return in_one_chunk(rpc("1", edit_config("candidate", content, rollback=False)))

    async def _request(self, request: bytes) -> None:
        self._writer.write(request)
        reply = await self._reader.readuntil(b"\n##\n")
        if b"rpc-error" in reply:
            raise UnexpectedReplyError(reply.decode(errors="replace"))


BARE_EXCHANGES: Mapping[str, type[BareExchange]] = {
    "tl1": Tl1Exchange,
    "sonic-ocs-gnmi": GnmiExchange,
    "sonic-ocs-redis": RedisExchange,
    "netconf": NetconfExchange,
}
"""The exchange of each driver."""


async def _cancel(call: grpc.aio.StreamStreamCall) -> None:
    call.cancel()
    with suppress(asyncio.CancelledError):
        await call.code()


def _resp(words: list[str]) -> bytes:
    parts = (f"${len(word)}\r\n{word}\r\n" for word in words)
    return f"*{len(words)}\r\n{''.join(parts)}".encode()


async def _reply(reader: asyncio.StreamReader) -> object:
    """Return a reply of Redis: bytes or a list. Raises UnexpectedReplyError."""
    line = await reader.readline()
    kind, rest = line[:1], line[1:-2]
    if kind == b"*":
        return [await _reply(reader) for _ in range(int(rest))]
    if kind == b"$" and rest != b"-1":
        return (await reader.readexactly(int(rest) + 2))[:-2]
    if kind == b"-":
        raise UnexpectedReplyError(rest.decode(errors="replace"))
    return rest
