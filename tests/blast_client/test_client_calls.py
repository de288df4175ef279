# ruff: noqa: N802 - the method and argument names are those of the interface
"""Both clients against the real server: typed exceptions, lost connections, time-outs, addresses."""

from __future__ import annotations

import asyncio
import inspect
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import pytest

from blast_api import BlastOperator
from blast_api.ttypes import EventKind, PartState
from blast_client import (
    AsyncClient,
    Client,
    ControllerUnreachableError,
    Extension,
    MulticastRequest,
    Rejected,
    TimedOut,
    UnknownRequest,
)
from blast_client.api.async_io import ClientConnection
from blast_controller.rpc.connections.framed_server import FramedServer
from tests.support.controller.memory_controller import MemoryController, serving
from tests.support.waiting import eventually_async


def request(key: str = "k", **options) -> MulticastRequest:
    return MulticastRequest(**{"key": key, "sender": "h11", "receivers": ["h21", "h31"], "bytes": 10**8, **options})


# ---------------------------------------------------------------------- synchronous


def test_client_submits_extends_finishes_and_withdraws_requests(client):
    client.ping()
    assert client.version().software == "memory"
    assert client.submit(request()).state == PartState.ACTIVE
    event = client.await_event("k")
    assert (event.kind, event.grant.groupAddress) == (EventKind.GRANTED, "239.1.0.1")
    assert client.extend("k", Extension(addReceivers=["h41"])).receivers == ["h21", "h31", "h41"]
    assert client.finish("k").state == PartState.DONE
    assert client.status("k").state == PartState.DONE
    assert client.request(request("k2"), timeout=5).key == "k2"
    assert client.withdraw("k2").state == PartState.WITHDRAWN


def test_request_timeout_may_exceed_socket_timeout(controller):
    with Client(controller.address, timeout=1) as client, Client(controller.address) as other:
        other.submit(request("first"))
        timer = threading.Timer(1.5, other.finish, ["first"])
        timer.start()
        assert client.request(request("second"), timeout=20).key == "second"
        timer.join()


def test_request_times_out_with_reason_and_stays_pending(client):
    client.submit(request("first"))
    with pytest.raises(TimedOut, match="no splitter is free"):
        client.request(request("second"), timeout=0.05)
    assert client.status("second").state == PartState.PENDING


def test_list_requests_reads_all_pages(client):
    for number in range(7):
        client.submit(request(f"k{number}"))
    assert [r.key for r in client.list_requests(page=3)] == [f"k{n}" for n in range(7)]
    assert [r.key for r in client.list_requests([PartState.ACTIVE])] == ["k0"]


def by_asyncio(address, **options):
    """Return a function that sends a ping with the asynchronous client."""

    async def ping():
        async with AsyncClient(address, **options) as client:
            await client.ping()

    return lambda: asyncio.run(ping())


def test_clients_report_refused_connection():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    for ping in (Client(f"127.0.0.1:{port}").ping, by_asyncio(f"127.0.0.1:{port}")):
        with pytest.raises(ControllerUnreachableError, match=f"127.0.0.1:{port} .*blast controller run"):
            ping()


@contextmanager
def impostor(answer: bytes | None):
    """Run a server that sends `answer` on every connection, or nothing if it is None, and yield its address."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        kept = []

        def serve():
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                kept.append(connection)
                if answer is not None:
                    connection.recv(1000)
                    connection.sendall(answer)
                    connection.close()

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield "{}:{}".format(*listening.getsockname())
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()
            for connection in kept:
                connection.close()


def test_clients_time_out_if_server_sends_no_answer():
    with impostor(None) as address:
        for ping in (Client(address, timeout=1.0).ping, by_asyncio(address, timeout=1.0)):
            with pytest.raises(ControllerUnreachableError, match=r"no answer within 1 s"):
                ping()


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\x00\x00\x00\x04oops", b""])
def test_clients_reject_answers_of_other_servers(answer):
    with impostor(answer) as address:
        for ping in (Client(address).ping, by_asyncio(address)):
            with pytest.raises(ControllerUnreachableError):
                ping()


def test_client_reconnects_to_restarted_controller():
    handler = MemoryController()
    server = FramedServer(BlastOperator, handler)
    host, port = server.start(port=0)
    with Client(f"{host}:{port}") as client:
        client.submit(request())
        server.stop()
        server = FramedServer(BlastOperator, handler)
        server.start(host, port)
        try:
            assert client.finish("k").state == PartState.DONE
        finally:
            server.stop()
        with pytest.raises(ControllerUnreachableError, match="refused"):
            client.status("k")


class Cutting(MemoryController):
    """Ends the connection in the middle of the first call of a kind."""

    def __init__(self, method: str) -> None:
        super().__init__()
        self.cut, self.times, self.server = method, 0, None

    def _once(self, name, original, connection, *arguments):
        if name == self.cut:
            self.times += 1
            if self.times == 1:
                self.drop()
                time.sleep(0.1)  # the connection is cut before the answer
        return original(connection, *arguments)

    def drop(self):
        shared = self.server._shared
        for connection in list(shared.connections):
            shared.loop.call_soon_threadsafe(connection.abort)

    def submit(self, *arguments):
        return self._once("submit", super().submit, *arguments)

    def awaitEvent(self, *arguments):
        return self._once("awaitEvent", super().awaitEvent, *arguments)

    def withdraw(self, *arguments):
        return self._once("withdraw", super().withdraw, *arguments)


@contextmanager
def cutting(method: str):
    handler = Cutting(method)
    with serving(handler) as (server, host, port):
        handler.server = server
        yield handler, f"{host}:{port}"


def test_client_repeats_idempotent_calls_on_new_connection():
    with cutting("submit") as (handler, address), Client(address) as client:
        client.ping()
        assert client.submit(request()).key == "k"
        assert handler.times == 2
    with cutting("awaitEvent") as (handler, address), Client(address) as client:
        client.submit(request())
        assert client.await_event("k").kind == EventKind.GRANTED
        assert handler.times == 2


def test_client_does_not_repeat_withdraw_after_broken_connection():
    with cutting("withdraw") as (handler, address), Client(address) as client:
        client.submit(request())
        with pytest.raises(ControllerUnreachableError, match="broke"):
            client.withdraw("k")
        assert handler.times == 1
        assert client.await_event("k", after_sequence=1).state == PartState.WITHDRAWN


# ---------------------------------------------------------------------- asyncio


async def test_async_client_multiplexes_calls_on_one_connection(controller):
    async with AsyncClient(controller.address) as client:
        await client.submit(request("first"))
        keys = [f"k{n}" for n in range(50)]
        await asyncio.gather(*(client.submit(request(key)) for key in keys))
        waits = {key: asyncio.create_task(client.await_event(key)) for key in keys}
        await client.ping()
        assert not any(wait.done() for wait in waits.values())
        running = "first"
        for _ in keys:
            await client.finish(running)
            done, _pending = await asyncio.wait(waits.values(), return_when=asyncio.FIRST_COMPLETED)
            event = done.pop().result()
            running = event.grant.key
            assert waits.pop(running).result() is event


async def test_async_client_raises_typed_errors_and_reads_pages(controller):
    async with AsyncClient(controller.address) as client:
        with pytest.raises(Rejected):
            await client.submit(request(receivers=["nowhere"]))
        with pytest.raises(UnknownRequest):
            await client.status("k")
        for number in range(5):
            await client.submit(request(f"k{number}"))
        with pytest.raises(TimedOut):
            await client.request(request("k4"), timeout=0.05)
        assert [r.key async for r in client.list_requests(page=2)] == [f"k{n}" for n in range(5)]
        assert (await client.elements())[0].name == "splitter:s1"


async def test_async_client_drops_answer_of_abandoned_call(controller):
    async with AsyncClient(controller.address) as client:
        await client.submit(request("first"))
        await client.submit(request("k"))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(client.await_event("k"), 0.05)
        await client.finish("first")
        assert (await client.status("k")).state == PartState.ACTIVE


async def test_cancellation_during_delivery_of_answer_wins(controller, monkeypatch):
    deliver = ClientConnection._deliver

    def cancelling(connection: ClientConnection, body: bytes) -> None:
        deliver(connection, body)
        calling.cancel()

    async with AsyncClient(controller.address) as client:
        await client.ping()
        with monkeypatch.context() as patched:
            patched.setattr(ClientConnection, "_deliver", cancelling)
            calling = asyncio.create_task(client.submit(request("k")))
            with pytest.raises(asyncio.CancelledError):
                await calling
        assert (await client.status("k")).state == PartState.ACTIVE, "the answer was there"


async def test_closing_connection_fails_outstanding_calls(controller):
    client = AsyncClient(controller.address)
    await client.submit(request("first"))
    await client.submit(request("k"))
    wait = asyncio.create_task(client.await_event("k"))
    await eventually_async(lambda: wait.get_coro().cr_await is not None, "the call to be on its way")
    await client.close()
    with pytest.raises(ControllerUnreachableError, match="was closed while the call was under way"):
        await asyncio.wait_for(wait, 5)


async def test_async_client_repeats_only_idempotent_calls():
    with cutting("submit") as (handler, address):
        async with AsyncClient(address) as client:
            await client.ping()
            assert (await client.submit(request())).key == "k"
            assert handler.times == 2
    with cutting("withdraw") as (handler, address):
        async with AsyncClient(address) as client:
            await client.submit(request())
            with pytest.raises(ControllerUnreachableError):
                await client.withdraw("k")
            assert handler.times == 1


def test_sync_and_async_clients_have_same_methods():
    def calls(kind):
        return {
            name: list(inspect.signature(member).parameters)
            for name, member in inspect.getmembers(kind, inspect.isfunction)
            if not name.startswith("_")
        }

    assert calls(Client) == calls(AsyncClient)


# ---------------------------------------------------------------------- small things


def test_import_without_thrift_names_package_to_install():
    code = "import sys; sys.modules['thrift'] = None; from blast_client import Client"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert run.stderr.strip().endswith("ImportError: Apache Thrift is not installed: pip install thrift")
