"""Light that goes back whatever happens to whoever asked for it: finished, withdrawn, or said to be left."""

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
from tests.support.memory_controller import MemoryController, serving
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
    """What happens in a block."""


# ---------------------------------------------------------------------- synchronous


def test_a_transfer_that_is_done_is_finished(client, controller):
    with client.granted(request()) as grant:
        assert (grant.key, grant.groupAddress) == ("k", "239.1.0.1")
        assert controller.state() is PartState.ACTIVE
    assert controller.state() is PartState.DONE


@pytest.mark.parametrize("mishap", [MishapError, KeyboardInterrupt])
def test_after_any_exception_it_is_withdrawn(client, controller, mishap):
    with pytest.raises(mishap), client.granted(request()):
        raise mishap
    assert controller.state() is PartState.WITHDRAWN


@pytest.mark.parametrize("mishap", [None, MishapError])
def test_a_connection_that_was_lost_meanwhile_is_made_anew(client, controller, mishap):
    with contextlib.suppress(MishapError), client.granted(request()):
        controller.drop()
        if mishap:
            raise mishap
    assert controller.state() is (PartState.WITHDRAWN if mishap else PartState.DONE)


def test_light_that_had_gone_before_the_end_is_told(client, controller):
    with pytest.raises(Ended) as ended, client.granted(request()):
        controller._end("k", ttypes.PartState.EXPIRED, "the lease is over")
    assert ended.value.state is PartState.EXPIRED


def test_light_that_had_gone_does_not_hide_what_went_wrong(client, controller):
    with pytest.raises(MishapError) as mishap, client.granted(request()):
        controller._end("k", ttypes.PartState.EXPIRED, "the lease is over")
        raise MishapError
    assert not hasattr(mishap.value, "__notes__"), "there is nothing left to be told of"


def test_parts_that_nobody_would_use_are_withdrawn(client, controller):
    controller.parts_left = True
    with client.granted(request()):
        pass
    assert controller.state() is PartState.WITHDRAWN


def test_who_does_not_get_light_in_time_leaves_nothing_waiting(client, controller):
    client.submit(request("first"))
    with pytest.raises(TimedOut), client.granted(request(), timeout=0.01):
        raise AssertionError("there was no grant")
    assert controller.state() is PartState.WITHDRAWN


def test_a_request_of_somebody_else_under_the_same_key_is_left_alone(client, controller):
    client.submit(request())
    with pytest.raises(KeyReused), client.granted(request(bytes=1)):
        raise AssertionError("there was no grant")
    assert controller.state() is PartState.ACTIVE


def test_refusals_come_through(client, controller):
    for wrong, error in ((request(receivers=["nowhere"]), Rejected), (request(receivers="h21"), InvalidArgumentError)):
        with pytest.raises(error), client.granted(wrong):
            raise AssertionError("there was no grant")
    assert controller.requests == {}


def test_what_could_not_be_withdrawn_is_told(caplog):
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


def test_giving_back_does_not_wait_for_a_controller_that_is_silent(monkeypatch):
    monkeypatch.setattr(withdrawal, "TIMEOUT_S", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent, serving(DroppingController()) as (_, host, port):
        client = Client(f"{host}:{port}", timeout=600)
        with pytest.raises(MishapError) as mishap, client.granted(request()):
            client.close()
            client._controllers.address = client.address._replace(port=silent.getsockname()[1])
            raise MishapError
        client.close()
    assert "could not be withdrawn" in mishap.value.__notes__[0]


def test_an_interrupted_request_is_withdrawn(client, controller, monkeypatch):
    """What Ctrl-C does in the middle of the wait: the exception comes out of reading the reply."""
    client.submit(request("first"))

    def interrupted(self, *_):
        eventually(lambda: "k" in controller.requests, "the request to be there")
        raise KeyboardInterrupt

    monkeypatch.setattr(BlastOperator.Client, "recv_request", interrupted)
    with pytest.raises(KeyboardInterrupt):
        client.request(request())
    assert controller.state() is PartState.WITHDRAWN
    assert controller.state("first") is PartState.ACTIVE


def test_an_interrupt_before_anything_was_asked_asks_nothing(client, controller, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(socket, "create_connection", interrupted)
    with pytest.raises(KeyboardInterrupt):
        client.request(request())
    assert controller.calls == []


# ---------------------------------------------------------------------- asyncio


@pytest.mark.parametrize("mishap", [MishapError, asyncio.CancelledError])
async def test_with_asyncio_after_any_exception_it_is_withdrawn(controller, mishap):
    async with AsyncClient(controller.address) as client:
        with pytest.raises(mishap):
            async with client.granted(request()):
                raise mishap
        assert controller.state() is PartState.WITHDRAWN


async def test_with_asyncio_refusals_come_through(controller):
    async with AsyncClient(controller.address) as client:
        with pytest.raises(Rejected):
            async with client.granted(request(receivers=["nowhere"])):
                raise AssertionError("there was no grant")
        with pytest.raises(ControllerUnreachableError):
            async with AsyncClient("127.0.0.1:1").granted(request()):
                raise AssertionError("there was no grant")


@pytest.mark.parametrize("mishap", [None, MishapError])
async def test_with_asyncio_a_connection_that_was_lost_meanwhile_is_made_anew(controller, mishap):
    async with AsyncClient(controller.address) as client:
        with contextlib.suppress(MishapError):
            async with client.granted(request()):
                await asyncio.to_thread(controller.drop)
                if mishap:
                    raise mishap
    assert controller.state() is (PartState.WITHDRAWN if mishap else PartState.DONE)


async def test_a_task_that_is_cancelled_in_its_block_gives_light_back(controller):
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
async def test_a_cancelled_request_is_withdrawn_and_other_calls_go_on(controller, times):
    async with AsyncClient(controller.address) as client:
        await client.submit(request("first"))
        other = asyncio.create_task(client.request(request("other")))
        task = asyncio.create_task(client.request(request()))
        await eventually_async(lambda: {"k", "other"} <= controller.requests.keys(), "the requests to be there")
        for _ in range(times):
            task.cancel()
            await asyncio.sleep(0)  # the task hears of it
        with pytest.raises(asyncio.CancelledError):
            await task
        await eventually_async(lambda: controller.state() is PartState.WITHDRAWN, "the withdrawal")
        await client.finish("first")
        assert (await other).key == "other", "the light is for who still waits"


async def test_a_cancelled_request_that_could_not_be_withdrawn_is_told(caplog, monkeypatch):
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


async def test_a_request_cancelled_while_nobody_is_there_yet_waits_for_nothing(monkeypatch):
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
