"""A request to etcd may arrive again at any later time: it changes nothing then."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from blast_controller.core.model.records import Record
from blast_controller.store.errors import JournalError
from blast_controller.store.etcd import ledger
from blast_controller.store.etcd.followed import FollowedJournal
from blast_controller.store.etcd.keys import Keys
from blast_controller.store.etcd.leadership import Leadership
from blast_controller.store.etcd.store import EtcdStore, StorePolicy
from tests.support.controller.modeled_etcd import ModeledConnection, ModeledEtcd

KEYS = Keys("/late/")


class Remembering:
    """A network without delays that keeps the requests it has carried."""

    def __init__(self) -> None:
        self.carried: list[Callable[[], Any]] = []

    def now(self) -> float:
        return 0.0

    def pause(self, seconds: float) -> None:
        """No time passes."""

    def carry(self, act: Callable[[], Any], seconds: float) -> Any:
        self.carried.append(act)
        return act()

    def wait_for_change(self, until: float) -> None:
        raise AssertionError("there is nothing to wait for")


COMMITS = st.lists(
    st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 3) | st.none()), min_size=1, max_size=8),
    min_size=1,
    max_size=6,
)


@pytest.fixture(params=[1 << 20, 200], ids=["one transaction", "in parts"])
def max_bytes(request, monkeypatch):
    monkeypatch.setattr(ledger, "MAX_BYTES", request.param)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(commits=COMMITS, data=st.data())
def test_request_that_arrives_again_changes_nothing(max_bytes, commits, data):
    etcd, network = ModeledEtcd(lambda: 0.0), Remembering()
    connection = ModeledConnection(etcd, network)
    leadership = Leadership(connection, KEYS, "here:1", ttl=60)
    store = EtcdStore(leadership, StorePolicy(wait=0.0))
    store.open()
    try:
        for commit in commits:
            store.commit([Record("request", key, None if n is None else {"is": n}) for key, n in commit], at=1.0)
            before = FollowedJournal(ModeledConnection(etcd, Remembering()), KEYS).state(), journal(store)
            for act in data.draw(st.lists(st.sampled_from(network.carried[3:]), max_size=6)):
                with_no_effect(act)
            assert (FollowedJournal(ModeledConnection(etcd, Remembering()), KEYS).state(), journal(store)) == before
    finally:
        leadership.lost()
        store.close()


def journal(store: EtcdStore) -> list:
    return store.journal(0, 1_000)


def with_no_effect(act: Callable[[], Any]) -> None:
    try:
        act()
    except JournalError:
        # It is refused.
        return
