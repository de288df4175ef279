"""The journal in an etcd of three members: some killed or paused, with real processes."""

import threading
from collections.abc import Iterator

import pytest

from blast_controller.core.model.records import Record
from blast_controller.store.errors import JournalError
from blast_controller.store.etcd.access import EtcdTimeouts
from blast_controller.store.etcd.errors import StoreUnavailableError
from tests.support.controller.etcd_server import LONG, SHORT, Controllers, EtcdServer
from tests.support.waiting import eventually

pytestmark = pytest.mark.etcd


@pytest.fixture(scope="module")
def cluster(tmp_path_factory) -> Iterator[EtcdServer]:
    with EtcdServer(tmp_path_factory.mktemp("cluster"), members=3).running() as made:
        yield made


@pytest.fixture
def controllers(cluster) -> Iterator[Controllers]:
    made = Controllers(cluster)
    yield made
    made.close()


@pytest.mark.parametrize("fault", ["killed", "paused"])
def test_commits_stay_ordered_and_unique_when_etcd_leader_fails(cluster, controllers, fault):
    connection = controllers.connection(timeouts=EtcdTimeouts(10.0, 0.5))
    store = controllers.opened_store(leadership=controllers.leadership(connection))
    ended = threading.Event()
    written = []

    def commit():
        while not ended.is_set():
            key = f"r{len(written)}"
            try:
                store.commit([Record("request", key, {"n": len(written)})], at=1.0)
            except StoreUnavailableError:
                # As the runtime does: the same again.
                continue
            written.append(key)

    committing = threading.Thread(target=commit, daemon=True)
    committing.start()
    for _ in range(2):
        before = len(written)
        eventually(lambda before=before: len(written) > before + 20, "commits")
        member = cluster.leader()
        during = len(written)
        cluster.kill(member) if fault == "killed" else cluster.pause(member)
        eventually(lambda during=during: len(written) > during + 20, "commits without that member")
        cluster.start(member) if fault == "killed" else cluster.go_on(member)
    ended.set()
    committing.join(60)
    assert [entry.key for entry in store.journal(1, 100_000)] == written
    store.close()
    assert list(controllers.store().open().of("request")) == written


def test_store_is_unavailable_until_etcd_majority_returns(cluster, controllers):
    connection = controllers.connection()
    store = controllers.opened_store(leadership=controllers.leadership(connection, ttl=60))
    lost = cluster.leader(), (cluster.leader() + 1) % 3
    cluster.kill(*lost)
    connection.timeouts = SHORT
    with pytest.raises(JournalError, match="etcd cannot be reached at"):
        store.commit([Record("request", "a", {})], at=1.0)
    cluster.start(*lost)
    connection.timeouts = LONG
    store.commit([Record("request", "a", {}), Record("request", "b", {})], at=2.0)
    assert [entry.key for entry in store.journal(0, 10)] == ["epoch", "a", "b"]
