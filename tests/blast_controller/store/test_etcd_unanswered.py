"""Commits whose answer is lost are never written twice, nor reported as not written."""

import socket
import threading
from contextlib import suppress
from socketserver import BaseRequestHandler, ThreadingTCPServer

import pytest

from blast_controller.core.model.records import Record
from blast_controller.store.etcd.access import EtcdTimeouts
from blast_controller.store.etcd.connection import EtcdConnection
from blast_controller.store.etcd.errors import DeposedError, EtcdRefusalError, StoreUnavailableError
from blast_controller.store.etcd.history import EtcdHistory
from blast_controller.store.etcd.methods import RANGE, TXN
from blast_controller.store.etcd.proto import etcd_pb2 as api
from blast_controller.store.etcd.requests import get, put
from blast_controller.store.etcd.store import StorePolicy
from blast_controller.store.etcd.trimming import Trimmer
from blast_controller.store.retention import Retention
from tests.support.controller.etcd_server import LONG, SHORT
from tests.support.waiting import eventually

pytestmark = pytest.mark.etcd
GOES_ON = EtcdTimeouts(in_all=30.0, at_one=0.4)


class MutingProxy(ThreadingTCPServer):
    """A TCP proxy that can delay requests or answers and cut all connections; a context manager.

    It forwards connections on loopback to `port` there; its own is `port`.
    """

    def __init__(self, port: int) -> None:
        super().__init__(("127.0.0.1", 0), BaseRequestHandler)
        self._target = port
        self.port: int = self.server_address[1]
        self._answers, self._requests = threading.Event(), threading.Event()
        self._sockets: list[socket.socket] = []
        self.pass_on()
        threading.Thread(target=self.serve_forever, args=(0.01,)).start()

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.pass_on()
        self.cut()
        self.server_close()

    def hold_answers(self) -> None:
        """Hold back answers; requests still arrive."""
        self._answers.clear()

    def hold_requests(self) -> None:
        """Hold back requests."""
        self._requests.clear()

    def pass_on(self) -> None:
        """Pass on all data again, including delayed data."""
        self._answers.set()
        self._requests.set()

    def cut(self) -> None:
        """End all connections; delayed data is lost."""
        sockets, self._sockets = self._sockets, []
        for one in sockets:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def get_request(self):
        """Accept and connect in the thread that accepts, so that `cut` knows both sockets of every connection."""
        client, address = super().get_request()
        try:
            server = socket.create_connection(("127.0.0.1", self._target), 10)
        except OSError:
            client.close()
            raise
        server.settimeout(None)
        self._sockets += [client, server]
        return (client, server), address

    def finish_request(self, request, client_address) -> None:
        client, server = request
        back = threading.Thread(target=self._pump, args=(server, client, self._answers))
        back.start()
        self._pump(client, server, self._requests)
        back.join()

    def shutdown_request(self, request) -> None:
        """Leave closing to `cut`, since a side that has ended may still receive."""

    def _pump(self, source: socket.socket, target: socket.socket, may_go: threading.Event) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                may_go.wait()
                target.sendall(data)
        with suppress(OSError):
            target.shutdown(socket.SHUT_RDWR)


def row(key):
    return Record("request", key, {"is": key})


def reservation(key, element):
    return Record("reservation", key, {"number": key}, frozenset({element}))


@pytest.fixture
def proxy(etcd):
    with MutingProxy(etcd.port) as made:
        yield made


@pytest.fixture
def wire(controllers, proxy):
    """Return a connection through the proxy."""
    return controllers.connection(proxy.port)


@pytest.fixture
def far(controllers, proxy, wire):
    """Return an open store behind the proxy, whose lease outlives the test."""
    store = controllers.store(leadership=controllers.leadership(wire, ttl=60))
    controllers.on_close(proxy.pass_on)
    store.open()
    return store


@pytest.fixture
def in_vain(proxy, wire):
    """Return a function that runs an operation while its request or answer is held back, so that it fails."""

    def act(hold, operation, meanwhile=lambda: None):
        wire.timeouts = SHORT
        hold()
        try:
            with pytest.raises(StoreUnavailableError, match="etcd cannot be reached at") as caught:
                operation()
            meanwhile()
        finally:
            proxy.pass_on()
            wire.timeouts = LONG
        assert caught.value.may_be_done

    return act


@pytest.fixture
def near(controllers):
    """Return the history in etcd, read without the proxy."""
    return EtcdHistory(controllers.connection(), controllers.keys)


def keys(history):
    return [entry.key for entry in history.read(0, 100)]


def test_commit_succeeds_if_only_its_answer_is_cut_off(proxy, far, near):
    far.commit([row("before")], at=1.0)
    proxy.hold_answers()
    outcome = []
    committing = threading.Thread(target=lambda: outcome.append(far.commit([row("a"), row("b")], at=2.0)))
    committing.start()
    eventually(lambda: keys(near)[-1:] == ["b"], "it to be written")
    proxy.cut()
    proxy.pass_on()
    committing.join(30)
    assert outcome == [None], "the commit succeeds"
    far.commit([row("after")], at=3.0)
    assert keys(near) == ["epoch", "before", "a", "b", "after"]


def test_commit_without_an_answer_is_not_written_twice(proxy, far, near, in_vain):
    in_vain(proxy.hold_answers, lambda: far.commit([row("a"), reservation("1", "port:1")], at=1.0))
    assert keys(near) == ["epoch", "a", "1"]
    # The runtime repeats the records together with later ones.
    far.commit([row("a"), reservation("1", "port:1"), row("b")], at=2.0)
    assert keys(near) == ["epoch", "a", "1", "b"]
    far.close()
    assert list(far.open().of("request")) == ["a", "b"]


def test_commit_that_never_arrived_is_written_once(proxy, far, near, in_vain):
    in_vain(proxy.hold_requests, lambda: far.commit([row("a")], at=1.0), lambda: _is_empty(near))
    in_vain(proxy.hold_requests, lambda: far.commit([row("a"), row("b")], at=1.0))
    far.commit([row("a"), row("b")], at=1.0)
    # All delayed requests have arrived by now, too.
    far.commit([row("c")], at=2.0)
    assert keys(near) == ["epoch", "a", "b", "c"]


def _is_empty(near):
    assert keys(near) == ["epoch"]


def test_unanswered_commit_precedes_the_next_one(proxy, far, near, in_vain):
    in_vain(proxy.hold_requests, lambda: far.commit([row("a")], at=1.0))
    far.commit([row("other")], at=2.0)
    assert keys(near) == ["epoch", "a", "other"]


def test_repeatedly_unanswered_commits_are_each_written_once(proxy, far, near, in_vain):
    rows = []
    for key in "abcd":
        rows.append(row(key))
        in_vain(proxy.hold_answers, lambda: far.commit(rows, at=1.0))
        # The earlier records are decided, and the next commit is unanswered itself.
        far.compact(at=1.0)
    far.commit([*rows, row("e")], at=2.0)
    # Once acknowledged, the same records may be written again.
    far.commit(rows, at=3.0)
    assert keys(near) == ["epoch", *"abcde", *"abcd"]


def test_unanswered_compaction_does_not_repeat_a_written_commit(controllers, proxy, wire, near, in_vain, monkeypatch):
    policy = StorePolicy(wait=0.0, retention=Retention(entries=2))
    store = controllers.store(policy, controllers.leadership(wire, ttl=60))
    controllers.on_close(proxy.pass_on)
    store.open()
    store.commit([row("a"), row("b")], at=1.0)
    in_vain(proxy.hold_answers, lambda: store.commit([row("c")], at=2.0))
    change = Trimmer.change
    held = []

    def then_held(*arguments):
        found = change(*arguments)
        if not held:
            held.append(proxy.hold_answers())
        return found

    monkeypatch.setattr(Trimmer, "change", then_held)
    in_vain(lambda: None, lambda: store.compact(at=2.0))
    store.commit([row("c"), row("d")], at=3.0)
    assert keys(near) == ["b", "c", "d"]


def test_deposed_leader_recognizes_its_written_commit(controllers, proxy, far, near, in_vain):
    in_vain(proxy.hold_answers, lambda: far.commit([row("a")], at=1.0))
    controllers.depose()
    new = controllers.store()
    assert list(new.open().of("request")) == ["a"]
    far.commit([row("a")], at=2.0)
    with pytest.raises(DeposedError):
        far.commit([row("late")], at=3.0)
    assert keys(near) == ["epoch", "a", "epoch"]


def test_deposed_leader_recognizes_its_unwritten_commit(controllers, proxy, far, near, in_vain):
    new = controllers.store()

    def take_over():
        controllers.depose()
        new.open()
        new.commit([row("b")], at=2.0)

    in_vain(proxy.hold_requests, lambda: far.commit([row("a")], at=1.0), take_over)
    with pytest.raises(DeposedError):
        far.commit([row("a")], at=2.0)
    assert keys(near) == ["epoch", "epoch", "b"]


class Repeating(EtcdConnection):
    """A connection that sends its next change twice, and calls `between` in between."""

    between = None

    def call(self, method, request, seconds=None):
        if method is TXN and request.compare and self.between:
            between, self.between = self.between, None
            super().call(method, request, seconds)
            between()
        return super().call(method, request, seconds)


def test_deposed_leader_that_cannot_read_recognizes_its_commit_later(controllers, near, monkeypatch):
    connection = controllers.connection(kind=Repeating)
    old, new = controllers.store(leadership=controllers.leadership(connection)), controllers.store()
    old.open()

    def away(history):
        raise StoreUnavailableError("here", "no answer in time")

    def take_over():
        controllers.depose()
        new.open()
        monkeypatch.setattr(EtcdHistory, "head", away)

    connection.between = take_over
    with pytest.raises(StoreUnavailableError):
        old.commit([row("a")], at=1.0)
    monkeypatch.undo()
    with pytest.raises(DeposedError):
        old.commit([row("a"), row("b")], at=2.0)
    old.commit([row("a")], at=3.0)
    assert keys(near) == ["epoch", "a", "epoch"]


def test_refusal_of_another_member_leaves_an_unanswered_call_undecided(controllers, proxy):
    endpoints = (f"127.0.0.1:{proxy.port}", f"127.0.0.1:{controllers.server.port}")
    connection = controllers.connection(endpoints=endpoints)
    connection.call(RANGE, get(controllers.keys.head))
    connection.timeouts, connection._current = GOES_ON, 0
    proxy.hold_answers()
    twice = [put(controllers.keys.head, b"a"), put(controllers.keys.head, b"b")]
    with pytest.raises(StoreUnavailableError, match="duplicate key") as caught:
        connection.call(TXN, api.TxnRequest(success=twice))
    assert caught.value.may_be_done
    proxy.pass_on()
    with pytest.raises(EtcdRefusalError, match="duplicate key"):
        connection.call(TXN, api.TxnRequest(success=twice))


def test_connection_uses_another_member_if_one_hangs(controllers, proxy):
    endpoints = (f"127.0.0.1:{proxy.port}", f"127.0.0.1:{controllers.server.port}")
    connection = controllers.connection(endpoints=endpoints)
    store = controllers.opened_store(leadership=controllers.leadership(connection))
    connection.timeouts = GOES_ON
    proxy.hold_answers()
    store.commit([row("a")], at=1.0)
    store.commit([row("b")], at=1.0)
    proxy.pass_on()
    assert [entry.key for entry in store.journal(0, 10)] == ["epoch", "a", "b"]
