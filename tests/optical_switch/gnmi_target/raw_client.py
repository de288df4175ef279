"""A gNMI client of bare protobuf messages, so that the tests send exactly what they name."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any

import grpc
import pytest

from optical_switch.sonic_ocs.proto import gnmi_pb2 as gnmi
from tests.support.waiting import HANGING

if TYPE_CHECKING:
    from redis.asyncio import Redis

    from optical_switch.emulator.gnmi_target.target import SonicOcsTarget

CONFIG = gnmi.Path(target="CONFIG_DB")
STATE = gnmi.Path(target="STATE_DB")
YANG = gnmi.Path(origin="sonic-ocs")
Metadata = Sequence[tuple[str, str]]
# Without it all channels of a process to one address share a connection.
OWN_CONNECTION = (("grpc.use_local_subchannel_pool", 1),)


def path(*names: str | tuple[str, Mapping[str, str]], **attributes: str) -> gnmi.Path:
    """Return a path: each name, or a name with keys."""
    pairs = [(name, {}) if isinstance(name, str) else name for name in names]
    return gnmi.Path(elem=[gnmi.PathElem(name=name, key=keys) for name, keys in pairs], **attributes)


def model_path(table: str, key: str = "", leaf: str = "", key_name: str = "") -> gnmi.Path:
    """Return a path of the model: a table, its list, an entry or a leaf."""
    lists = {"OCS_PORT": "OCS_PORT_LIST", "OCS_CROSS_CONNECT": "OCS_CROSS_CONNECT_LIST"}
    list_name = lists[table.removesuffix("_TABLE")]
    key_name = key_name or ("simplex_port_id" if "PORT" in table else "cross_connect_id")
    names: list[str | tuple[str, Mapping[str, str]]] = ["sonic-ocs", table]
    if key:
        names.append((list_name, {key_name: key}))
    if leaf:
        names.append(leaf)
    return path(*names)


def ietf(value: object) -> gnmi.TypedValue:
    return gnmi.TypedValue(json_ietf_val=json.dumps(value).encode())


def update(where: gnmi.Path, value: object) -> gnmi.Update:
    return gnmi.Update(path=where, val=ietf(value))


def cross_connect(name: str) -> gnmi.Update:
    """Return the update that sets a cross-connect in the notation of the database."""
    a_side, _, b_side = name.partition("-")
    return update(path("OCS_CROSS_CONNECT", name), {"a_side": a_side, "b_side": b_side})


def text_of(where: gnmi.Path) -> str:
    return "/".join(
        elem.name + "".join(f"[{key}={value}]" for key, value in sorted(elem.key.items())) for elem in where.elem
    )


def value_of(value: gnmi.TypedValue) -> Any:
    return json.loads(value.json_ietf_val or value.json_val)


class RawClient:
    """The four RPCs."""

    def __init__(self, channel: grpc.aio.Channel, metadata: Metadata = ()) -> None:
        self.channel = channel
        self._metadata = metadata

    async def capabilities(self) -> gnmi.CapabilityResponse:
        return await self._unary("Capabilities", gnmi.CapabilityRequest(), gnmi.CapabilityResponse)

    async def get(self, *paths: gnmi.Path, prefix: gnmi.Path = CONFIG, **fields: Any) -> gnmi.GetResponse:
        request = gnmi.GetRequest(**{"prefix": prefix, "path": paths, "encoding": gnmi.JSON_IETF} | fields)
        return await self._unary("Get", request, gnmi.GetResponse)

    async def value(self, where: gnmi.Path, prefix: gnmi.Path = CONFIG, **fields: Any) -> Any:
        """Return the value of a path that selects one node."""
        [notification] = (await self.get(where, prefix=prefix, **fields)).notification
        [found] = notification.update
        return value_of(found.val)

    async def set(self, *updates: gnmi.Update, timeout: float | None = None, **fields: Any) -> gnmi.SetResponse:
        request = gnmi.SetRequest(**{"prefix": CONFIG, "update": updates} | fields)
        return await self._unary("Set", request, gnmi.SetResponse, timeout)

    def subscribe(self) -> grpc.aio.StreamStreamCall:
        method = self.channel.stream_stream(
            "/gnmi.gNMI/Subscribe",
            request_serializer=gnmi.SubscribeRequest.SerializeToString,
            response_deserializer=gnmi.SubscribeResponse.FromString,
        )
        return method(metadata=tuple(self._metadata))

    async def _unary(self, name: str, request: Any, response: Any, timeout: float | None = None) -> Any:
        method = self.channel.unary_unary(
            f"/gnmi.gNMI/{name}",
            request_serializer=type(request).SerializeToString,
            response_deserializer=response.FromString,
        )
        return await method(request, metadata=tuple(self._metadata), timeout=timeout or HANGING)


@contextmanager
def refused(code: grpc.StatusCode, *texts: str) -> Iterator[None]:
    """Check that the block ends with this status, and that its text has these parts."""
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        yield
    assert raised.value.code() is code, raised.value.details()
    for text in texts:
        assert text in (raised.value.details() or "")


@asynccontextmanager
async def connected(
    address: str, metadata: Metadata = (), credentials: grpc.ChannelCredentials | None = None
) -> AsyncIterator[RawClient]:
    """Connect a client."""
    if credentials is None:
        channel = grpc.aio.insecure_channel(address, options=OWN_CONNECTION)
    else:
        channel = grpc.aio.secure_channel(address, credentials, options=OWN_CONNECTION)
    async with channel:
        yield RawClient(channel, metadata)


def subscription(*paths: gnmi.Path, prefix: gnmi.Path = STATE, **fields: Any) -> gnmi.SubscribeRequest:
    """Return the request of a STREAM subscription with ON_CHANGE unless `fields` change it."""
    mode = fields.pop("one_mode", gnmi.ON_CHANGE)
    entries = [gnmi.Subscription(path=where, mode=mode) for where in paths]
    listed = gnmi.SubscriptionList(**{"prefix": prefix, "subscription": entries, "encoding": gnmi.JSON_IETF} | fields)
    return gnmi.SubscribeRequest(subscribe=listed)


class StateView:
    """The leaves that a subscription has shown, by path."""

    def __init__(self, call: grpc.aio.StreamStreamCall) -> None:
        self.leaves: dict[str, Any] = {}
        self.history: list[tuple[str, Any]] = []
        self.notifications: list[gnmi.Notification] = []
        self._call = call

    async def read(self) -> gnmi.SubscribeResponse:
        async with asyncio.timeout(HANGING):
            response = await self._call.read()
        if response is grpc.aio.EOF:
            # The end of the call has the reason.
            raise EOFError(await self._call.code())
        for where in response.update.delete:
            removed = text_of(where)
            self.history.append((removed, None))
            self.leaves = {
                name: value
                for name, value in self.leaves.items()
                if name != removed and not name.startswith(f"{removed}/")
            }
        for one in response.update.update:
            self.leaves[text_of(one.path)] = value_of(one.val)
            self.history.append((text_of(one.path), value_of(one.val)))
        if response.HasField("update"):
            self.notifications.append(response.update)
        return response

    async def sync(self) -> None:
        """Read until `sync_response`."""
        while not (await self.read()).sync_response:
            pass

    async def until(self, condition: Callable[[dict[str, Any]], object]) -> None:
        """Read until the leaves satisfy a condition."""
        while not condition(self.leaves):
            await self.read()

    async def until_status(self, name: str, status: str) -> None:
        """Read until a cross-connect has a status."""
        await self.until(lambda leaves: leaves.get(f"OCS_CROSS_CONNECT_TABLE/{name}/status") == status)

    async def until_port(self, name: str, status: str) -> None:
        """Read until a port has a status."""
        await self.until(lambda leaves: leaves.get(f"OCS_PORT_TABLE/{name}/oper_status") == status)

    def cross_connect(self, name: str) -> dict[str, Any]:
        return self._row(f"OCS_CROSS_CONNECT_TABLE/{name}/")

    def port(self, name: str) -> dict[str, Any]:
        return self._row(f"OCS_PORT_TABLE/{name}/")

    def _row(self, prefix: str) -> dict[str, Any]:
        return {name.removeprefix(prefix): value for name, value in self.leaves.items() if name.startswith(prefix)}


@asynccontextmanager
async def watching(client: RawClient, *paths: gnmi.Path, **fields: Any) -> AsyncIterator[StateView]:
    """Subscribe, by default to the tables of ports and cross-connects in STATE_DB; the initial state has been read."""
    call = client.subscribe()
    try:
        await call.write(subscription(*(paths or (path("OCS_PORT_TABLE"), path("OCS_CROSS_CONNECT_TABLE"))), **fields))
        view = StateView(call)
        await view.sync()
        yield view
    finally:
        call.cancel()


@asynccontextmanager
async def redis_of(target: SonicOcsTarget, number: int) -> AsyncIterator[Redis]:
    """Connect to a database of a switch without gNMI, as an operator may."""
    from redis.asyncio import Redis

    redis = Redis(unix_socket_path=str(target.redis_socket), db=number, decode_responses=True, protocol=2)
    try:
        yield redis
    finally:
        await redis.aclose()


async def read_to_end(client: RawClient, *requests: gnmi.SubscribeRequest) -> list[gnmi.SubscribeResponse]:
    """Send requests, and return all responses of the call. Raises grpc.aio.AioRpcError if it ends with an error."""
    call = client.subscribe()
    for request in requests:
        await call.write(request)
    await call.done_writing()
    return [response async for response in call]
