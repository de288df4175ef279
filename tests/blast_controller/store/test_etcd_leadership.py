"""Leadership: one leader at a time, known to the others, and only as long as its lease certainly holds."""

import threading
import time
from types import SimpleNamespace

import pytest

from blast_controller.core.model.records import Record
from blast_controller.store.etcd import leadership, lease
from blast_controller.store.etcd.connection import EtcdConnection
from blast_controller.store.etcd.errors import DeposedError, LeadershipLostError, StoreUnavailableError
from blast_controller.store.etcd.history import EtcdHistory
from blast_controller.store.etcd.keys import Keys
from blast_controller.store.etcd.methods import GRANT, RANGE, TXN
from blast_controller.store.etcd.proto import etcd_pb2 as api
from blast_controller.store.etcd.store import StorePolicy
from blast_controller.store.etcd.watching import Watching
from tests.support.waiting import eventually

pytestmark = pytest.mark.etcd


def row(key):
    return Record("request", key, {"is": key})


def test_term_has_the_revision_of_the_key_and_a_growing_epoch(controllers):
    one = controllers.leadership(address="one:1")
    term = one.campaign(0.0)
    key = controllers.leader_key()
    assert (term.revision, key.value) == (key.create_revision, b"one:1")
    assert one.term == term and one.holds_leadership() and one.leader() == "one:1"
    one.resign()
    assert controllers.leader_key() is None
    assert one.term is None and not one.holds_leadership() and one.leader() is None
    again = one.campaign(0.0)
    assert again.epoch == term.epoch + 1 and again.revision > term.revision


def test_generation_grows_even_if_the_clock_is_behind(controllers, monkeypatch):
    """ToRs refuse a smaller one: also where the journal was in a file before, or in another etcd."""
    one = controllers.leadership()
    generation = one.campaign(0.0).generation
    assert abs(generation - time.time()) < 3600
    one.resign()
    monkeypatch.setattr(leadership, "time", SimpleNamespace(time=lambda: 5.0, monotonic=time.monotonic))
    assert one.campaign(0.0).generation == generation + 1, "its clock is behind that of the leader before"


def test_race_elects_one_leader_that_the_others_know(controllers):
    crowd = [controllers.leadership(address=f"c{number}:1") for number in range(4)]
    epochs = []
    for _ in range(3):
        outcomes = {}
        start = threading.Barrier(len(crowd))

        def race(one, number, start=start, outcomes=outcomes):
            start.wait()
            try:
                outcomes[number] = one.campaign(0.0)
            except LeadershipLostError as fault:
                outcomes[number] = fault

        threads = [threading.Thread(target=race, args=(one, number)) for number, one in enumerate(crowd)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        (leader,) = [number for number in outcomes if not isinstance(outcomes[number], LeadershipLostError)]
        assert {outcomes[number].address for number in outcomes if number != leader} == {f"c{leader}:1"}
        epochs.append(outcomes[leader].epoch)
        crowd[leader].resign()
    assert epochs == [1, 2, 3]


class Interrupted(EtcdConnection):
    """A connection that calls `before` ahead of its next conditional transaction."""

    before = None

    def call(self, method, request, seconds=None):
        if method is TXN and request.compare and self.before:
            act, self.before = self.before, None
            act()
        return super().call(method, request, seconds)


@pytest.mark.parametrize("resigns", [True, False])
def test_overtaken_candidate_gets_its_own_epoch_or_none(controllers, resigns):
    connection = controllers.connection(kind=Interrupted)
    slow, fast = controllers.leadership(connection), controllers.leadership(address="fast:1")

    def overtake():
        fast.campaign(0.0)
        if resigns:
            fast.resign()

    connection.before = overtake
    if resigns:
        assert slow.campaign(0.0).epoch == 2
        return
    with pytest.raises(LeadershipLostError, match="fast:1"):
        slow.campaign(0.0)


class InterruptedReading(EtcdConnection):
    """A connection that calls `before` ahead of reading the state."""

    before = None

    def call(self, method, request, seconds=None):
        if method is RANGE and not request.count_only and self.before:
            act, self.before = self.before, None
            act()
        return super().call(method, request, seconds)


def test_journal_changed_while_it_is_opened_is_not_reported_damaged(controllers):
    controllers.opened_store().close()
    connection = controllers.connection(kind=InterruptedReading)
    slow = controllers.store(leadership=controllers.leadership(connection))

    def overtake():
        controllers.depose()
        fast = controllers.opened_store(leadership=controllers.leadership(address="fast:1"))
        fast.commit([Record("element", "x", {"reason": "broken"})], 0.0)

    connection.before = overtake
    with pytest.raises(DeposedError, match="fast:1"):
        slow.open()


def test_lease_counts_from_the_time_of_its_request(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(lease, "now", lambda: clock[0])
    was_kept, may_end = threading.Event(), threading.Event()

    class Slow:
        is_closed = False

        def call(self, method, request, seconds=None):
            if method is GRANT:
                clock[0] += 0.5
            return api.LeaseGrantResponse(ID=1, TTL=1)

        def first(self, method, request, seconds):
            if was_kept.is_set():
                may_end.wait(30)
                raise StoreUnavailableError("nowhere", "over")
            clock[0] += 0.7
            was_kept.set()
            return api.LeaseKeepAliveResponse(ID=1, TTL=1)

    one = lease.Lease(Slow(), 1)
    try:
        assert one.holds(), "at 0.5, asked for at 0"
        clock[0] = 0.9
        assert not one.holds()
        assert was_kept.wait(30)
        eventually(one.holds, "it to hold at 1.6, asked for at 0.9")
        clock[0] = 1.8
        assert not one.holds()
    finally:
        may_end.set()
        one.revoke()


def test_standby_takes_over_when_the_leader_resigns(controllers):
    leader, standby = controllers.leadership(), controllers.leadership(address="standby:1")
    leader.campaign()
    terms = []
    waiting = threading.Thread(target=lambda: terms.append(standby.campaign()))
    waiting.start()
    eventually(lambda: standby._lease is not None, "the standby to wait")
    leader.resign()
    waiting.join(30)
    assert standby.holds_leadership() and [term.epoch for term in terms] == [2]


def test_standby_takes_over_when_the_leader_vanishes(controllers):
    connection = controllers.connection()
    leader, standby = controllers.leadership(connection, ttl=1), controllers.leadership(address="standby:1")
    leader.campaign()
    connection.close()
    assert standby.campaign(30.0).epoch == 2
    assert not leader.holds_leadership(), "before the standby takes over"


def test_standby_can_give_up_waiting(controllers):
    leader, standby = controllers.leadership(address="leader:1"), controllers.leadership()
    leader.campaign()
    faults = []

    def wait():
        try:
            standby.campaign()
        except LeadershipLostError as fault:
            faults.append(fault)

    waiting = threading.Thread(target=wait)
    waiting.start()
    standby.give_up()
    waiting.join(30)
    (fault,) = faults
    assert fault.address == "leader:1" and "another controller at leader:1 is the leader" in str(fault)


def test_lease_is_renewed_while_its_holder_lives(controllers):
    one = controllers.leadership(ttl=1)
    term = one.campaign()
    time.sleep(2.2)  # a lease of a second would have run out twice
    assert one.holds_leadership() and controllers.leader_key().create_revision == term.revision


def test_suspended_leader_loses_leadership_before_its_lease_ends(controllers, monkeypatch):
    one = controllers.leadership(ttl=100)
    one.campaign()
    awake = lease.now
    monkeypatch.setattr(lease, "now", lambda: awake() + 50.0)
    assert one.holds_leadership()
    monkeypatch.setattr(lease, "now", lambda: awake() + 90.0)
    assert not one.holds_leadership(), "before etcd ends the lease"


def test_leader_without_its_lease_loses_leadership(controllers):
    one = controllers.leadership(ttl=1)
    one.campaign()
    controllers.depose()
    eventually(lambda: not one.holds_leadership(), "its thread to notice it")


# ---------------------------------------------------------------------------------------------------------- fencing


def test_deposed_leader_writes_nothing_and_names_the_new_leader(controllers):
    old_leadership = controllers.leadership(address="old:1", ttl=60)
    old = controllers.store(leadership=old_leadership)
    old.open()
    old.commit([row("before")], at=1.0)
    controllers.depose()
    new = controllers.store(leadership=controllers.leadership(address="new:1"))
    assert list(new.open().of("request")) == ["before"]
    for _ in range(2):
        with pytest.raises(DeposedError, match="lost leadership to the one at new:1") as caught:
            old.commit([row("late")], at=2.0)
        assert caught.value.address == "new:1"
        assert not old_leadership.holds_leadership()
    with pytest.raises(DeposedError):
        old.compact(at=2e9)
    new.commit([row("after")], at=3.0)
    assert [entry.key for entry in new.journal(0, 10)] == ["epoch", "before", "epoch", "after"]
    assert old.journal(3, 10) == new.journal(3, 10), "it may still read"


def test_deposed_leader_reopens_with_the_records_written_since(controllers):
    old, new = controllers.store(), controllers.store()
    old.open()
    controllers.depose()
    new.open()
    new.commit([row("since")], at=1.0)
    with pytest.raises(DeposedError):
        old.commit([row("late")], at=1.0)
    old.close()
    with pytest.raises(LeadershipLostError):
        old.open()
    new.close()
    loaded = old.open()
    assert (loaded.epoch, list(loaded.of("request"))) == (3, ["since"])
    old.commit([row("on")], at=1.0)


def test_deposed_leader_cannot_write_even_without_a_new_leader(controllers):
    old = controllers.store()
    old.open()
    controllers.depose()
    with pytest.raises(DeposedError, match="lost leadership and writes nothing"):
        old.commit([row("late")], at=1.0)


def test_follower_reads_the_history(controllers):
    store = controllers.store()
    follower = EtcdHistory(controllers.connection(), controllers.keys)
    assert follower.head() is None and follower.read(0, 10) == []
    store.open()
    store.commit([row("a"), row("b")], at=1.0)
    head, revision = follower.head()
    assert head.sequence == 3 and revision > 0
    assert follower.read(0, 10) == store.journal(0, 10)


def test_follower_is_notified_of_commits(controllers):
    store = controllers.opened_store()
    follower = EtcdHistory(controllers.connection(), controllers.keys)
    watching = Watching(controllers.connection())
    head, revision = follower.head()
    assert not watching.wait(controllers.keys.head, revision, 0.05)
    notified = []
    waiting = threading.Thread(target=lambda: notified.append(watching.wait(controllers.keys.head, revision, 30.0)))
    waiting.start()
    store.commit([row("a")], at=1.0)
    waiting.join(30)
    assert notified == [True] and [entry.key for entry in follower.read(head.sequence, 10)] == ["a"]


def test_open_waits_for_leadership_until_its_timeout(controllers):
    controllers.store().open()
    with pytest.raises(LeadershipLostError):
        controllers.store(StorePolicy(wait=0.2)).open()


@pytest.mark.parametrize("prefix", ["", "/"])
def test_empty_key_prefix_is_rejected(prefix):
    with pytest.raises(ValueError, match="must not be empty"):
        Keys(prefix)
