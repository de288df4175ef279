# ruff: noqa: N802, N803 - the method and argument names are those of the interface
"""The framed server over real sockets: pipelining, deferred replies, vanished clients, limits, malformed input."""

from __future__ import annotations

import socket
import struct
import sys
import threading
import time
import types
from concurrent.futures import Future
from contextlib import ExitStack

import pytest
from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.protocol.TCompactProtocol import TCompactProtocolAccelerated
from thrift.Thrift import TApplicationException, TMessageType
from thrift.transport.TTransport import TMemoryBuffer

from blast_api import Blast, BlastOperator
from blast_api.ttypes import Denied, Event, EventKind, MulticastRequest, Rejected, TimedOut
from blast_controller.rpc.connections.connection import Connection, settle, settle_with_error
from blast_controller.rpc.connections.dispatch import answer, deferred_reply
from blast_controller.rpc.connections.framed_server import FramedServer, ServerLimits
from blast_controller.rpc.connections.messages import RefusalErrors, ServiceCodec
from blast_controller.rpc.convert import REFUSALS
from tests.support.controller.memory_controller import MemoryController, serving
from tests.support.waiting import HANGING, eventually


class Parking(MemoryController):
    """Every wait is parked until the test settles it."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: dict[str, Future] = {}
        self.changed = threading.Condition()
        self.closed: list[int] = []

    def awaitEvent(self, connection, key, afterSequence, timeoutMs):
        connection.on_close(lambda: self.closed.append(connection.id))
        with self.changed:
            self.waits[key] = Future()
            self.changed.notify_all()
            return self.waits[key]

    def until(self, condition) -> None:
        with self.changed:
            assert self.changed.wait_for(condition, HANGING)


class Wire:
    """A client that speaks frames and nothing else."""

    def __init__(self, host: str, port: int, protocol=TBinaryProtocolAccelerated, source="127.0.0.1") -> None:
        self.socket = socket.create_connection((host, port), 30, (source, 0))
        self.protocol = protocol

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def body(self, method: str, *arguments, sequence: int = 1) -> bytes:
        buffer = TMemoryBuffer()
        client = BlastOperator.Client(self.protocol(buffer))
        client._seqid = sequence
        getattr(client, f"send_{method}")(*arguments)
        return buffer.getvalue()

    def frame(self, method: str, *arguments, sequence: int = 1) -> bytes:
        body = self.body(method, *arguments, sequence=sequence)
        return struct.pack("!i", len(body)) + body

    def send(self, *call, **options) -> None:
        self.socket.sendall(self.frame(*call, **options))

    def receive(self) -> bytes:
        (length,) = struct.unpack("!i", self.exactly(4))
        return self.exactly(length)

    def exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            piece = self.socket.recv(count - len(data))
            if not piece:
                raise EOFError
            data += piece
        return data

    def header(self, body: bytes):
        return self.protocol(TMemoryBuffer(body)).readMessageBegin()

    def result(self, method: str, body: bytes):
        return getattr(BlastOperator.Client(self.protocol(TMemoryBuffer(body))), f"recv_{method}")()

    def call(self, method: str, *arguments):
        self.send(method, *arguments)
        return self.result(method, self.receive())

    def is_closed(self) -> bool:
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True


@pytest.fixture
def parking():
    handler = Parking()
    with serving(handler) as (server, host, port):
        yield handler, server, host, port


# ---------------------------------------------------------------------- calls


@pytest.mark.parametrize("protocol", [TBinaryProtocolAccelerated, TCompactProtocolAccelerated])
def test_both_protocols_and_both_services(protocol):
    with serving(MemoryController()) as (_, host, port), Wire(host, port, protocol) as wire:
        assert wire.call("version").software == "memory"
        assert wire.call("ping") is None
        assert [e.name for e in wire.call("elements")] == ["splitter:s1", "splitter:s2"]
        status = wire.call("submit", MulticastRequest("k", "h11", ["h21", "h31"], 10**12))
        assert (status.bytes, status.receivers) == (10**12, ["h21", "h31"])
        for sequence in (0, 1, -1, (1 << 31) - 1, -(1 << 31)):
            wire.send("ping", sequence=sequence)
            assert wire.header(wire.receive()) == ("ping", TMessageType.REPLY, sequence)


def test_base_service_has_no_operator_calls():
    with serving(MemoryController(), service=Blast) as (_, host, port), Wire(host, port) as wire:
        with pytest.raises(TApplicationException) as refused:
            wire.call("elements")
        assert refused.value.type == TApplicationException.UNKNOWN_METHOD
        assert wire.call("version").software == "memory"


def test_pipelined_calls_are_executed_in_order():
    with serving(MemoryController()) as (_, host, port), Wire(host, port) as wire:
        request = MulticastRequest("k", "h11", ["h21"], 1)
        calls = [("submit", request), ("awaitEvent", "k", 0, 1000), ("withdraw", "k"), ("awaitEvent", "k", 1, 1000)]
        wire.socket.sendall(b"".join(wire.frame(*call, sequence=n) for n, call in enumerate(calls)))
        replies = {wire.header(body)[2]: body for body in (wire.receive() for _ in calls)}
        assert wire.result("awaitEvent", replies[1]).kind == EventKind.GRANTED
        assert wire.result("awaitEvent", replies[3]).kind == EventKind.ENDED


def test_missing_field_is_named_and_the_connection_stays_open():
    with serving(MemoryController()) as (server, host, port), Wire(host, port) as wire:
        with pytest.raises(TApplicationException, match="sender is unset") as refused:
            wire.call("submit", MulticastRequest(key="k", receivers=["h21"], bytes=1))
        assert refused.value.type == TApplicationException.PROTOCOL_ERROR
        assert wire.call("version").software == "memory"
        assert server.counters.refused_calls == 1


def test_undeclared_exception_becomes_an_internal_error(caplog):
    class Broken(MemoryController):
        def fabric(self, connection):
            raise ZeroDivisionError("secret detail")

    with serving(Broken()) as (server, host, port), Wire(host, port) as wire:
        with pytest.raises(TApplicationException) as failed:
            wire.call("fabric")
        assert failed.value.type == TApplicationException.INTERNAL_ERROR
        assert "secret" not in str(failed.value)
        assert wire.call("version").software == "memory"
        assert server.counters.failed_calls == 1
    assert "ZeroDivisionError: secret detail" in caplog.text


def test_server_rejects_a_handler_that_lacks_a_method():
    class Half:
        def ping(self, connection): ...

        def disconnected(self, connection): ...

    with pytest.raises(TypeError, match="lacks submit"):
        FramedServer(Blast, Half())


def test_message_other_than_a_call_is_refused():
    with serving(MemoryController()) as (_, host, port), Wire(host, port) as wire:
        body = bytearray(wire.body("ping"))
        body[3] = TMessageType.REPLY
        wire.socket.sendall(struct.pack("!i", len(body)) + body)
        with pytest.raises(TApplicationException) as refused:
            wire.result("ping", wire.receive())
        assert refused.value.type == TApplicationException.INVALID_MESSAGE_TYPE


# ---------------------------------------------------------------------- deferred replies


def test_deferred_replies_are_sent_in_order_of_completion(parking):
    handler, _, host, port = parking
    with Wire(host, port) as wire:
        for sequence, key in enumerate(("a", "b", "c")):
            wire.send("awaitEvent", key, 0, 1000, sequence=sequence)
        handler.until(lambda: len(handler.waits) == 3)
        for key, sequence in (("c", 2), ("a", 0)):
            assert settle(handler.waits[key], Event(7, EventKind.REVOKED, 0, reason=key))
            body = wire.receive()
            assert wire.header(body)[2] == sequence
            assert wire.result("awaitEvent", body).reason == key
        assert settle_with_error(handler.waits["b"], TimedOut("later"))
        with pytest.raises(TimedOut, match="later"):
            wire.result("awaitEvent", wire.receive())


def test_parked_calls_occupy_no_worker(parking):
    handler, server, host, port = parking
    wires = [Wire(host, port) for _ in range(50)]
    try:
        for number, wire in enumerate(wires):
            frames = (wire.frame("awaitEvent", f"{number}/{n}", 0, 1000, sequence=n) for n in range(10))
            wire.socket.sendall(b"".join(frames))
        handler.until(lambda: len(handler.waits) == 500)
        eventually(lambda: server.counters.parked == 500)
        with Wire(host, port) as other:
            for _ in range(20):
                other.call("ping")
        for future in handler.waits.values():
            settle(future, Event(1, EventKind.GRANTED, 0))
        for wire in wires:
            assert sorted(wire.header(wire.receive())[2] for _ in range(10)) == list(range(10))
        assert server.counters.parked == 0
    finally:
        for wire in wires:
            wire.socket.close()


def test_only_the_waits_of_a_vanished_client_are_cancelled(parking):
    handler, server, host, port = parking
    with Wire(host, port) as survivor:
        survivor.send("awaitEvent", "stays", 0, 1000)
        closed = Wire(host, port)
        closed.send("awaitEvent", "polite", 0, 1000)
        reset = Wire(host, port)
        reset.send("awaitEvent", "reset", 0, 1000)
        handler.until(lambda: len(handler.waits) == 3)
        eventually(lambda: server.counters.parked == 3)
        closed.socket.close()
        reset.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        reset.socket.close()
        eventually(lambda: len(handler.disconnects) == 2)
        assert sorted(handler.disconnects) == sorted(handler.closed)
        assert handler.waits["polite"].cancelled() and handler.waits["reset"].cancelled()
        assert not settle(handler.waits["polite"], Event(1, EventKind.GRANTED, 0))
        assert server.counters.parked == 1
        assert settle(handler.waits["stays"], Event(1, EventKind.GRANTED, 0))
        assert survivor.result("awaitEvent", survivor.receive()).sequence == 1


def test_wait_parked_after_its_client_vanished_is_cancelled():
    class Slow(Parking):
        started, go_on = threading.Event(), threading.Event()

        def awaitEvent(self, connection, *arguments):
            self.started.set()
            assert self.go_on.wait(30)
            return super().awaitEvent(connection, *arguments)

    handler = Slow()
    with serving(handler) as (server, host, port):
        with Wire(host, port) as wire:
            wire.send("awaitEvent", "late", 0, 1000)
            assert handler.started.wait(30)
        eventually(lambda: server.counters.connections == 0)
        assert handler.disconnects == []
        handler.go_on.set()
        eventually(lambda: handler.disconnects)
        assert handler.waits["late"].cancelled()


def test_caller_of_a_cancelled_future_gets_an_error(parking):
    handler, _, host, port = parking
    with Wire(host, port) as wire:
        wire.send("awaitEvent", "k", 0, 1000)
        handler.until(lambda: handler.waits)
        handler.waits["k"].cancel()
        with pytest.raises(TApplicationException, match="cancelled"):
            wire.result("awaitEvent", wire.receive())


@pytest.mark.parametrize("limits", [ServerLimits(parked_per_connection=2), ServerLimits(parked=2)])
def test_waits_beyond_the_limit_are_refused_as_declared_error(limits):
    handler = Parking()
    with (
        serving(handler, limits=limits, refusals=RefusalErrors(Denied)) as (server, host, port),
        Wire(host, port) as wire,
    ):
        for key in "ab":
            wire.send("awaitEvent", key, 0, 1000)
        with pytest.raises(Denied, match="limit"):
            wire.call("awaitEvent", "c", 0, 1000)
        assert handler.waits["c"].cancelled()
        assert server.counters.refused_waits == 1
        settle(handler.waits["a"], Event(1, EventKind.GRANTED, 0))
        wire.receive()
        wire.send("awaitEvent", "d", 0, 1000)
        handler.until(lambda: "d" in handler.waits)
        eventually(lambda: server.counters.parked == 2)


def test_waits_beyond_the_limit_are_refused_without_declared_error():
    with (
        serving(Parking(), limits=ServerLimits(parked=0)) as (_, host, port),
        Wire(host, port) as wire,
        pytest.raises(TApplicationException, match="limit"),
    ):
        wire.call("awaitEvent", "c", 0, 1000)


def test_connections_beyond_the_limit_are_closed():
    with (
        serving(MemoryController(), limits=ServerLimits(connections=1)) as (server, host, port),
        Wire(host, port) as first,
    ):
        first.call("ping")
        with Wire(host, port) as second:
            assert second.is_closed()
        first.call("ping")
        eventually(lambda: server.counters.connections == 1)
        assert server.counters.refused_connections == 1


def test_connections_of_one_account_are_limited():
    limits = ServerLimits(connections=4, connections_per_account=2)
    with serving(MemoryController(), limits=limits) as (server, host, port), ExitStack() as stack:
        own = [stack.enter_context(Wire(host, port)) for _ in range(2)]
        for wire in own:
            wire.call("ping")
        assert stack.enter_context(Wire(host, port)).is_closed()
        other = stack.enter_context(Wire(host, port, source="127.0.0.2"))
        other.call("ping")
        own[0].socket.close()
        eventually(lambda: server.counters.connections == 2, event="the end of one of them")
        stack.enter_context(Wire(host, port)).call("ping")


# ---------------------------------------------------------------------- framing


def test_server_serves_others_while_a_frame_is_incomplete():
    receivers = [f"host-{n:06d}" for n in range(2000)]
    with serving(MemoryController()) as (_, host, port), Wire(host, port) as wire:
        frame = wire.frame("submit", MulticastRequest("k", "h11", receivers, 1))
        for begin, end in ((0, 3), (3, 8191), (8191, len(frame))):
            wire.socket.sendall(frame[begin:end])
            with Wire(host, port) as other:
                other.call("ping")
        with pytest.raises(Exception, match="host-000000"):
            wire.result("submit", wire.receive())


def test_oversized_call_gets_an_error_before_its_connection_closes():
    with serving(MemoryController()) as (server, host, port), Wire(host, port) as wire:
        wire.send("ping")
        frame = wire.frame("submit", MulticastRequest("k", "h11", ["x" * (2 << 20)], 1), sequence=42)
        wire.socket.sendall(frame)
        assert wire.header(wire.receive())[0] == "ping"
        body = wire.receive()
        assert wire.header(body)[2] == 42
        with pytest.raises(TApplicationException, match="exceeds the cap of 1048576") as refused:
            wire.result("submit", body)
        assert refused.value.type == TApplicationException.PROTOCOL_ERROR
        assert wire.is_closed()
        assert server.counters.oversized == 1


def string(text: bytes) -> bytes:
    return struct.pack("!i", len(text)) + text


def message(arguments: bytes, method: bytes = b"submit") -> bytes:
    return framed(b"\x80\x01\x00\x01" + string(method) + struct.pack("!i", 1) + arguments)


def framed(body: bytes) -> bytes:
    return struct.pack("!i", len(body)) + body


MALFORMED = {
    "empty frame": struct.pack("!i", 0),
    "2 GiB": struct.pack("!i", (1 << 31) - 1),
    "HTTP": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "name longer than the message": framed(b"\x80\x01\x00\x01\x7f\xff\xff\xff"),
    "name in bad UTF-8": framed(b"\x80\x01\x00\x01" + string(b"\xff\xfe") + bytes(4)),
    "huge string length": message(b"\x0c\x00\x01\x0b\x00\x01\x7f\xff\xff\xff"),
    "huge list length": message(b"\x0c\x00\x01\x0f\x00\x03\x0b\x7f\xff\xff\xff"),
    "list of another type": message(b"\x0c\x00\x01\x0f\x00\x03\x02\x00\x00\x00\x02\x01\x01\x00\x00"),
    "structs 300000 deep": message(b"\x0c\x00\x63" * 300_000),
    "lists 200000 deep": message(b"\x0f\x00\x63" + b"\x0f\x00\x00\x00\x01" * 200_000),
    "surplus bytes after the call": message(b"\x00garbage", b"ping"),
    "endless compact number": framed(b"\x82\x21" + b"\xff" * ((1 << 20) - 2)),
    "compact sequence number beyond 32 bits": framed(b"\x82\x21\xff\xff\xff\xff\xff\x7f\x04ping\x00"),
}  # fmt: skip


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_input_closes_its_own_connection_only(parking, name, caplog):
    handler, server, host, port = parking
    with Wire(host, port) as innocent, Wire(host, port) as culprit:
        innocent.send("awaitEvent", "k", 0, 1000)
        handler.until(lambda: handler.waits)
        culprit.socket.sendall(MALFORMED[name])
        assert culprit.is_closed()
        eventually(lambda: server.counters.malformed + server.counters.oversized == 1)
        settle(handler.waits["k"], Event(1, EventKind.GRANTED, 0))
        assert innocent.result("awaitEvent", innocent.receive()).sequence == 1
    assert "closed:" in caplog.text


def test_server_closes_the_connection_of_an_incomplete_frame():
    with serving(MemoryController()) as (server, host, port):
        with Wire(host, port) as wire:
            wire.socket.sendall(wire.frame("status", "k")[:-3])
        with Wire(host, port) as other:
            other.call("ping")
        eventually(lambda: server.counters.connections == 0)


def test_server_pauses_a_client_that_does_not_read_its_replies():
    class LargeReplies(MemoryController):
        def journal(self, connection, afterSequence, limit):
            raise Denied("x" * 500_000)

    with serving(LargeReplies()) as (server, host, port), Wire(host, port) as wire:
        wire.socket.sendall(b"".join(wire.frame("journal", 0, 1, sequence=n) for n in range(100)))
        with Wire(host, port) as other:
            for _ in range(100):  # the server could have read more calls after each of these
                other.call("ping")
        assert server.counters.calls - 100 < 100
        assert [wire.header(wire.receive())[2] for _ in range(100)] == list(range(100))


# ---------------------------------------------------------------------- start and stop


def test_start_on_an_address_in_use_raises_os_error():
    with serving(MemoryController()) as (_, host, port):
        second = FramedServer(BlastOperator, MemoryController())
        try:
            with pytest.raises(OSError, match="in use"):
                second.start(host, port)
            assert second.start(host, 0)[1] != port
        finally:
            second.stop()


def test_stop_cancels_waits_and_lets_running_calls_finish():
    class Slow(Parking):
        started = threading.Event()

        def fabric(self, connection):
            self.started.set()
            time.sleep(0.2)  # a slow handler: it should still be at work when the server is stopped
            return super().fabric(connection)

    handler = Slow()
    server = FramedServer(BlastOperator, handler)
    host, port = server.start(port=0)
    with Wire(host, port) as waiting, Wire(host, port) as working:
        waiting.send("awaitEvent", "k", 0, 1000)
        handler.until(lambda: handler.waits)
        working.send("fabric")
        assert handler.started.wait(30)
        server.stop()
        assert len(working.result("fabric", working.receive()).racks) == 4
        assert waiting.is_closed() and working.is_closed()
    assert handler.waits["k"].cancelled()
    assert len(handler.disconnects) == 2
    with pytest.raises(OSError):
        Wire(host, port)
    server.stop()


def test_stop_does_not_wait_for_a_call_beyond_its_grace():
    class Stuck(MemoryController):
        started, go_on = threading.Event(), threading.Event()

        def fabric(self, connection):
            self.started.set()
            assert self.go_on.wait(30)
            return super().fabric(connection)

    handler = Stuck()
    server = FramedServer(BlastOperator, handler)
    with Wire(*server.start(port=0)) as wire:
        wire.send("fabric")
        assert handler.started.wait(30)
        try:
            server.stop(grace=0.05)
            assert wire.is_closed()
        finally:
            handler.go_on.set()


# ---------------------------------------------------------------------- oneway methods


class Oneway:
    """A handler of a service with one oneway method; ours has none."""

    def __init__(self) -> None:
        self.received: list[str] = []

    def notify(self, connection, text):
        self.received.append(text)
        if text == "wrong":
            raise ValueError(text)
        return Future() if text == "later" else None

    def disconnected(self, connection): ...


@pytest.mark.parametrize("method", [b"status", b"ping", b"no_such_method"])
def test_call_sent_as_oneway_gets_no_reply(method):
    """The client would read it as the reply to its next call."""
    arguments = b"\x0b\x00\x01" + string(b"unknown") if method == b"status" else b""
    body = b"\x80\x01\x00\x04" + string(method) + bytes(4) + arguments + b"\x00"
    assert answer(ServiceCodec(BlastOperator), MemoryController(), Connection(1, "test"), body) is None


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (("submit", MulticastRequest("job?", "h11", ["h21"], 1)), (Rejected, "bad_key")),
        (("submit", MulticastRequest("k", "h11", ["h21", "h?"], 1)), (Rejected, "bad_text")),
        (("submit", MulticastRequest("k", "h?", ["h21"], 1)), (Rejected, "bad_text")),
        (("withdraw", "job?"), (Rejected, "bad_key")),
        (("status", "job?"), (TApplicationException, "not valid UTF-8")),
        (("login", "token?"), (TApplicationException, "not valid UTF-8")),
    ],
    ids=lambda value: str(value)[:40],
)
def test_text_that_is_not_utf8_is_rejected(call, error):
    """Thrift decodes every wrong byte as the same character: two keys would become one request."""
    with serving(MemoryController(), refusals=REFUSALS) as (_, host, port), Wire(host, port) as wire:
        wire.socket.sendall(wire.frame(*call).replace(b"?", b"\xff"))
        with pytest.raises(error[0]) as caught:
            wire.result(call[0], wire.receive())
        assert error[1] in repr(caught.value) + str(caught.value)


def test_oneway_calls_are_executed_and_never_answered(monkeypatch, caplog):
    module = types.ModuleType("tiny_service")
    module.Iface = type("Iface", (), {"notify": Oneway.notify, "__module__": module.__name__})
    module.notify_args = Blast.status_args
    monkeypatch.setitem(sys.modules, module.__name__, module)
    codec, handler, connection = ServiceCodec(module), Oneway(), Connection(1, "test")
    for text in ("good", "wrong", "later"):
        body = b"\x80\x01\x00\x04" + string(b"notify") + bytes(4) + b"\x0b\x00\x01" + string(text.encode()) + b"\x00"
        outcome = answer(codec, handler, connection, body)
        if text == "later":
            outcome.future.set_result(None)
            outcome = deferred_reply(codec, outcome.call, outcome.future)
        assert outcome is None
    assert handler.received == ["good", "wrong", "later"]
    assert "ValueError: wrong" in caplog.text
