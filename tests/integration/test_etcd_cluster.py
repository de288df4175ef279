"""The journal in an etcd of three members: what members and controllers suffer, with real processes."""

import signal
import subprocess
import sys
import threading
from contextlib import ExitStack

import pytest

from blast_controller.core.model.records import Record
from blast_controller.store.errors import StoreFault
from blast_controller.store.etcd.access import Patience
from blast_controller.store.etcd.connection import Connection
from blast_controller.store.etcd.errors import StoreAway
from blast_controller.store.etcd.keys import Keys
from blast_controller.store.etcd.leadership import Leadership
from blast_controller.store.etcd.store import EtcdStore, Policy
from tests.support import etcd_server
from tests.support.etcd_server import PATIENCE, SHORT
from tests.support.waiting import eventually

LEADER = """
import sys
from blast_controller.core.model.records import Record
from blast_controller.store.etcd.access import Access
from blast_controller.store.etcd.connection import Connection
from blast_controller.store.etcd.keys import Keys
from blast_controller.store.etcd.leadership import Leadership
from blast_controller.store.etcd.store import EtcdStore
from blast_controller.store.errors import StoreFault

leadership = Leadership(Connection(Access(tuple(sys.argv[2:]))), Keys(sys.argv[1]), "old:1")
store = EtcdStore(leadership)
store.open()
for line in sys.stdin:
    print(leadership.still_leads(), end=" ")
    try:
        store.commit([Record("request", line.strip(), {})], 1.0)
        print("written", flush=True)
    except StoreFault as fault:
        print(type(fault).__name__, flush=True)
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    if reason := etcd_server.lacks():
        pytest.skip(reason)
    from tests.support.etcd_cluster import EtcdCluster

    with EtcdCluster(tmp_path_factory.mktemp("cluster")).running() as made:
        yield made


@pytest.fixture
def make(cluster):
    """Builds stores, as of a controller each, on one prefix."""
    with ExitStack() as undo:

        def build(prefix, ttl=5, address="here:1", connections=None):
            connection = Connection(cluster.access(Patience(10.0, 0.5)))
            undo.callback(connection.close)
            if connections is not None:
                connections.append(connection)
            store = EtcdStore(Leadership(connection, Keys(prefix), address, ttl), Policy(wait=30.0))
            undo.callback(store.close)
            return store

        yield build


@pytest.mark.parametrize("suffers", ["killed", "paused"])
def test_whatever_a_member_suffers_each_commit_is_written_once_and_in_its_place(cluster, make, suffers):
    store = make(f"/{suffers}/")
    store.open()
    ended = threading.Event()
    written = []

    def commit():
        while not ended.is_set():
            key = f"r{len(written)}"
            try:
                store.commit([Record("request", key, {"n": len(written)})], at=1.0)
            except StoreAway:
                # As the runtime does: the same again.
                continue
            written.append(key)

    committing = threading.Thread(target=commit)
    committing.start()
    for _ in range(2):
        before = len(written)
        eventually(lambda before=before: len(written) > before + 20, "commits")
        member = cluster.leader()
        during = len(written)
        cluster.kill(member) if suffers == "killed" else cluster.pause(member)
        eventually(lambda during=during: len(written) > during + 20, "commits without that member")
        cluster.start(member) if suffers == "killed" else cluster.go_on(member)
    ended.set()
    committing.join(60)
    assert [entry.key for entry in store.journal(1, 100_000)] == written
    store.close()
    assert list(make(f"/{suffers}/").open().of("request")) == written


def test_a_leader_that_was_paused_wakes_and_changes_nothing(cluster, make):
    process = subprocess.Popen(
        [sys.executable, "-c", LEADER, "/paused-leader/", *cluster.endpoints],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )

    def asked(key):
        process.stdin.write(f"{key}\n")
        process.stdin.flush()
        return process.stdout.readline().split()

    watchdog = threading.Timer(60, process.kill)
    watchdog.start()
    try:
        assert asked("a") == ["True", "written"]
        process.send_signal(signal.SIGSTOP)
        standby = make("/paused-leader/", ttl=1, address="new:1")
        assert list(standby.open().of("request")) == ["a"]
        standby.commit([Record("request", "b", {})], at=2.0)
        process.send_signal(signal.SIGCONT)
        assert asked("late") == ["False", "Deposed"]
        assert asked("later") == ["False", "Deposed"]
        assert [entry.key for entry in standby.journal(0, 10)] == ["epoch", "a", "epoch", "b"]
    finally:
        watchdog.cancel()
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def test_a_store_without_most_members_is_away_until_they_return(cluster, make):
    connections = []
    store = make("/minority/", ttl=60, connections=connections)
    store.open()
    first = cluster.leader()
    second = (first + 1) % 3
    cluster.kill(first)
    cluster.kill(second)
    connections[0].patience = SHORT
    with pytest.raises(StoreFault, match="etcd cannot be reached at"):
        store.commit([Record("request", "a", {})], at=1.0)
    cluster.start(first)
    cluster.start(second)
    connections[0].patience = PATIENCE
    store.commit([Record("request", "a", {}), Record("request", "b", {})], at=2.0)
    assert [entry.key for entry in store.journal(0, 10)] == ["epoch", "a", "b"]
