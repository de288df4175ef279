"""`granted` releases every request at the end of its block: finished, withdrawn, or reported as left."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import threading

import pytest

from blast_api import BlastOperator, ttypes
from blast_client import (
    AsyncClient,
    Client,
    ControllerUnreachableError,
    Ended,
    InvalidArgumentError,
    KeyReused,
    PartState,
    Rejected,
    TimedOut,
)
from blast_client.api import withdrawal
from tests.blast_client.test_client_calls import request
from tests.support.controller.memory_controller import MemoryController, serving
from tests.support.waiting import eventually, eventually_async


class DroppingController(MemoryController):
    """The memory controller, which can drop every connection, and serve requests of several parts."""

    server = address = None
    parts_left = False

    def drop(self):
        shared = self.server._shared
        for connection in list(shared.connections):
            shared.loop.call_soon_threadsafe(connection.abort)
        eventually(lambda: not shared.connections, "the connections to be dropped")

    def finish(self, connection, key, part, report):
        if self.parts_left:
            status = self.status(connection, key)
            status.state = ttypes.PartState.PENDING
            return status
        return super().finish(connection, key, part, report)

    def state(self, key="k"):
        return PartState(self.requests[key].state)


@pytest.fixture
def controller():
    handler = DroppingController(splitters=1)
    with serving(handler) as (server, host, port):
        handler.server, handler.address = server, f"{host}:{port}"
        yield handler


class MishapError(Exception):
    """An error in a block."""


# ---------------------------------------------------------------------- synchronous


def test_block_without_error_finishes_request(client, controller):
    with client.granted(request()) as grant:
        assert (grant.key, grant.groupAddress) == ("k", "239.1.0.1")
        assert controller.state() is PartState.ACTIVE
    assert controller.state() is PartState.DONE


@pytest.mark.parametrize("mishap", [MishapError, KeyboardInterrupt])
def test_exception_in_block_withdraws_request(client, controller, mishap):
    with pytest.raises(mishap), client.granted(request()):
        raise mishap
    assert controller.state() is PartState.WITHDRAWN


@pytest.mark.parametrize("mishap", [None, MishapError])
def test_granted_reconnects_after_lost_connection(client, controller, mishap):
    with contextlib.suppress(MishapError), client.granted(request()):
        controller.drop()
        if mishap:
            raise mishap
    assert controller.state() is (PartState.WITHDRAWN if mishap else PartState.DONE)


def test_expired_grant_raises_ended_at_end_of_block(client, controller):
    with pytest.raises(Ended) as ended, client.granted(request()):
        controller._end("k", ttypes.PartState.EXPIRED, "the lease is over")
    assert ended.value.state is PartState.EXPIRED


def test_expired_grant_does_not_hide_exception_of_block(client, controller):
    with pytest.raises(MishapError) as mishap, client.granted(request()):
        controller._end("k", ttypes.PartState.EXPIRED, "the lease is over")
        raise MishapError
    assert not hasattr(mishap.value, "__notes__"), "an ended request needs no note"


def test_pending_parts_are_withdrawn_at_end_of_block(client, controller):
    controller.parts_left = True
    with client.granted(request()):
        pass
    assert controller.state() is PartState.WITHDRAWN


def test_timeout_before_grant_withdraws_request(client, controller):
    client.submit(request("first"))
    with pytest.raises(TimedOut), client.granted(request(), timeout=0.01):
        raise AssertionError("there was no grant")
    assert controller.state() is PartState.WITHDRAWN


def test_reused_key_does_not_withdraw_existing_request(client, controller):
    client.submit(request())
    with pytest.raises(KeyReused), client.granted(request(bytes=1)):
        raise AssertionError("there was no grant")
    assert controller.state() is PartState.ACTIVE


def test_granted_raises_refusals(client, controller):
    for wrong, error in ((request(receivers=["nowhere"]), Rejected), (request(receivers="h21"), InvalidArgumentError)):
        with pytest.raises(error), client.granted(wrong):
            raise AssertionError("there was no grant")
    assert controller.requests == {}


def test_failed_withdrawal_is_noted_and_logged(caplog):
    handler = DroppingController()
    with (
        serving(handler) as (server, host, port),
        Client(f"{host}:{port}") as client,
        pytest.raises(MishapError) as mishap,
        client.granted(request()),
    ):
        server.stop()
        raise MishapError
    sentence = "request k could not be withdrawn and may hold optical resources until its lease expires; "
    assert mishap.value.__notes__[0].startswith(sentence)
    assert [(r.levelno, r.message.startswith(sentence)) for r in caplog.records if "blast_client" in r.name] == [
        (logging.WARNING, True)
    ]


def test_withdrawal_times_out_at_silent_controller(monkeypatch):
    monkeypatch.setattr(withdrawal, "TIMEOUT_S", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent, serving(DroppingController()) as (_, host, port):
        client = Client(f"{host}:{port}", timeout=600)
        with pytest.raises(MishapError) as mishap, client.granted(request()):
            client.close()
            client._controllers.address = client.address._replace(port=silent.getsockname()[1])
            raise MishapError
        client.close()
    assert "could not be withdrawn" in mishap.value.__notes__[0]


def test_interrupted_request_is_withdrawn(client, controller, monkeypatch):
    # Ctrl-C during the wait raises the exception in the read of the reply.
    client.submit(request("first"))

    def interrupted(self, *_):
        eventually(lambda: "k" in controller.requests, "the request to be there")
        raise KeyboardInterrupt

    monkeypatch.setattr(BlastOperator.Client, "recv_request", interrupted)
    with pytest.raises(KeyboardInterrupt):
        client.request(request())
    assert controller.state() is PartState.WITHDRAWN
    assert controller.state("first") is PartState.ACTIVE


def test_interrupt_before_connection_sends_no_call(client, controller, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(socket, "create_connection", interrupted)
    with pytest.raises(KeyboardInterrupt):
        client.request(request())
    assert controller.calls == []


# ---------------------------------------------------------------------- asyncio


@pytest.mark.parametrize("mishap", [MishapError, asyncio.CancelledError])
async def test_async_exception_in_block_withdraws_request(controller, mishap):
    async with AsyncClient(controller.address) as client:
        with pytest.raises(mishap):
            async with client.granted(request()):
                raise mishap
        assert controller.state() is PartState.WITHDRAWN


async def test_async_granted_raises_refusals(controller):
    async with AsyncClient(controller.address) as client:
        with pytest.raises(Rejected):
            async with client.granted(request(receivers=["nowhere"])):
                raise AssertionError("there was no grant")
        with pytest.raises(ControllerUnreachableError):
            async with AsyncClient("127.0.0.1:1").granted(request()):
                raise AssertionError("there was no grant")


@pytest.mark.parametrize("mishap", [None, MishapError])
async def test_async_granted_reconnects_after_lost_connection(controller, mishap):
    async with AsyncClient(controller.address) as client:
        with contextlib.suppress(MishapError):
            async with client.granted(request()):
                await asyncio.to_thread(controller.drop)
                if mishap:
                    raise mishap
    assert controller.state() is (PartState.WITHDRAWN if mishap else PartState.DONE)


async def test_task_cancelled_in_block_withdraws_request(controller):
    async with AsyncClient(controller.address) as client:
        inside = asyncio.Event()

        async def work():
            async with client.granted(request()):
                inside.set()
                await asyncio.Event().wait()

        task = asyncio.create_task(work())
        await inside.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert controller.state() is PartState.WITHDRAWN


@pytest.mark.parametrize("times", [1, 2])
async def test_cancelled_request_is_withdrawn_without_affecting_other_calls(controller, times):
    async with AsyncClient(controller.address) as client:
        await client.submit(request("first"))
        other = asyncio.create_task(client.request(request("other")))
        task = asyncio.create_task(client.request(request()))
        await eventually_async(lambda: {"k", "other"} <= controller.requests.keys(), "the requests to be there")
        for _ in range(times):
            task.cancel()
            await asyncio.sleep(0)  # lets the cancellation reach the task
        with pytest.raises(asyncio.CancelledError):
            await task
        await eventually_async(lambda: controller.state() is PartState.WITHDRAWN, "the withdrawal")
        await client.finish("first")
        assert (await other).key == "other", "the waiting request gets the grant"


async def test_failed_withdrawal_of_cancelled_request_is_logged(caplog, monkeypatch):
    monkeypatch.setattr(withdrawal, "TIMEOUT_S", 0.05)
    handler = DroppingController(splitters=1)
    silent = threading.Event()

    def status(*_):
        silent.wait(30)

    handler.status = status
    with serving(handler) as (_, host, port):
        async with AsyncClient(f"{host}:{port}") as client:
            await client.submit(request("first"))
            task = asyncio.create_task(client.request(request()))
            await eventually_async(lambda: "k" in handler.requests, "the request to be there")
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        silent.set()
    assert "request k could not be withdrawn" in caplog.text and "no answer within 0.05 s" in caplog.text


async def test_request_cancelled_during_connect_ends_at_once(monkeypatch):
    reached = asyncio.Event()

    async def unreachable(*_, **__):
        reached.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(asyncio, "open_connection", unreachable)
    client = AsyncClient("127.0.0.1:1")
    task = asyncio.create_task(client.request(request()))
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
