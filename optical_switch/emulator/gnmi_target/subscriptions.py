"""The RPC Subscribe of gNMI: ONCE, POLL, and STREAM with ON_CHANGE."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence

import grpc

from optical_switch.emulator.gnmi_target.admission import RpcAdmission
from optical_switch.emulator.gnmi_target.backlog import Backlog
from optical_switch.emulator.gnmi_target.mirror import DatabaseMirror
from optical_switch.emulator.gnmi_target.refusals import RpcRefusalError, exhausted, invalid, unsupported
from optical_switch.emulator.gnmi_target.requested_path import RequestedPath, requested_path, response_prefix
from optical_switch.emulator.gnmi_target.service import MAX_PATHS, uses_model
from optical_switch.emulator.gnmi_target.tables import RowChange
from optical_switch.sonic_ocs.proto import gnmi_pb2 as gnmi


class SubscriptionService:
    """Serves subscriptions from the mirrors of the databases.

    Parameters
    ----------
    mirrors : Sequence[DatabaseMirror]
        The mirrors.
    admission : RpcAdmission
        Which RPCs are served.
    delay : Callable[[], Awaitable[None]]
        Function that delays an answer if a fault demands it.
    """

    def __init__(
        self, mirrors: Sequence[DatabaseMirror], admission: RpcAdmission, delay: Callable[[], Awaitable[None]]
    ) -> None:
        self._mirrors = mirrors
        self._admission = admission
        self._delay = delay

    async def subscribe(self, _requests: object, context: grpc.aio.ServicerContext) -> None:
        """Serve one subscription list until it ends (gNMI 3.5)."""
        try:
            await self._admission.admit(context.invocation_metadata())
            with self._admission.subscription():
                request = await _next(context)
                if request is None or request.WhichOneof("request") != "subscribe":
                    raise invalid("the first request must have subscribe: there is no subscription yet (gNMI 3.5.1.1)")
                await self._serve(request.subscribe, context)
        except RpcRefusalError as refusal:
            await self._delay()
            await context.abort(refusal.code, refusal.text)

    async def _serve(self, subscriptions: gnmi.SubscriptionList, context: grpc.aio.ServicerContext) -> None:
        stream = _SubscriptionStream(subscriptions, requested_paths(subscriptions), context)
        for mirror in self._mirrors:
            mirror.listeners.add(stream.add_changes)
        try:
            await self._delay()
            await stream.send_all(self._mirrors)
            if subscriptions.mode == gnmi.SubscriptionList.POLL:
                while (request := await _next(context)) is not None:
                    if request.WhichOneof("request") != "poll":
                        raise invalid("a subscription cannot be changed: open another one (gNMI 3.5.1.1)")
                    await self._admission.admit(context.invocation_metadata())
                    await self._delay()
                    await stream.send_all(self._mirrors)
            elif subscriptions.mode == gnmi.SubscriptionList.STREAM:
                await stream.send_changes()
        finally:
            for mirror in self._mirrors:
                mirror.listeners.discard(stream.add_changes)


class _SubscriptionStream:
    """The responses to one subscription list."""

    def __init__(
        self,
        subscriptions: gnmi.SubscriptionList,
        requested: Sequence[RequestedPath],
        context: grpc.aio.ServicerContext,
    ) -> None:
        self._requested = requested
        self._tables = {table.name: table for one in requested for table in one.selection.tables}.values()
        self._backlog = Backlog(requested)
        self._prefix = response_prefix(subscriptions.prefix)
        self._updates_only = subscriptions.updates_only
        self._context = context
        self._wake = asyncio.Event()

    def add_changes(self, changes: Sequence[RowChange]) -> None:
        """Add the changes of a database."""
        self._backlog.add_changes(changes)
        self._wake.set()

    async def send_all(self, mirrors: Sequence[DatabaseMirror]) -> None:
        """Send all selected leaves, or with `updates_only` none, and `sync_response` (gNMI 3.5.2.3)."""
        for mirror in mirrors:
            await mirror.refresh(self._tables)
        # Earlier changes are in the mirrors.
        self._backlog = Backlog(self._requested)
        if not self._updates_only:
            for mirror in mirrors:
                self._backlog.add_all(mirror.rows)
        await self._send()
        await self._context.write(gnmi.SubscribeResponse(sync_response=True))

    async def send_changes(self) -> None:
        """Send what changes until the client ends the call. Raises `RpcRefusalError` if it sends another request."""
        further = asyncio.create_task(_refuse_further(self._context))
        further.add_done_callback(lambda _: self._wake.set())
        try:
            while True:
                await self._wake.wait()
                self._wake.clear()
                # A client that sends nothing more still receives; an error ends the subscription here.
                if further.done():
                    further.result()
                await self._send()
        finally:
            further.cancel()
            await asyncio.wait({further})

    async def _send(self) -> None:
        for notification in self._backlog.take(self._prefix, time.time_ns()):
            await self._context.write(gnmi.SubscribeResponse(update=notification))


async def _refuse_further(context: grpc.aio.ServicerContext) -> None:
    if await _next(context) is not None:
        raise invalid("a stream takes no further request: open another subscription (gNMI 3.5.1.1)")


async def _next(context: grpc.aio.ServicerContext) -> gnmi.SubscribeRequest | None:
    """Return the next request of a client; None after the last one."""
    request: gnmi.SubscribeRequest = await context.read()
    return None if request is grpc.aio.EOF else request


def requested_paths(subscriptions: gnmi.SubscriptionList) -> list[RequestedPath]:
    """Return the paths of a subscription list.

    Raises
    ------
    RpcRefusalError
        If the list is empty or too long, a path cannot be read, or a mode or option is not supported.
    """
    if not subscriptions.subscription:
        raise invalid("the subscription list is empty (gNMI 3.5.1.2)")
    if len(subscriptions.subscription) > MAX_PATHS:
        raise exhausted(f"a subscription list may have {MAX_PATHS} paths: open several subscriptions")
    prefix, encoding = subscriptions.prefix, subscriptions.encoding
    paths = [requested_path(prefix, one.path, encoding) for one in subscriptions.subscription]
    if subscriptions.mode == gnmi.SubscriptionList.STREAM:
        for one in subscriptions.subscription:
            if one.mode == gnmi.SAMPLE:
                raise unsupported("SAMPLE is not supported: use ON_CHANGE, all data of this model are events")
            if one.heartbeat_interval:
                raise unsupported("heartbeat_interval is not supported: leave it out, or poll")
    return paths if uses_model(subscriptions.use_models) else []
