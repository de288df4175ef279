"""Faults of etcd, its operator and the network: each error states a remedy, and no record is lost."""

import base64
import random
import socket
import zlib

import pytest

from blast_controller.core.model.records import Record
from blast_controller.store.checksums import digest_of
from blast_controller.store.errors import DiskFullError, JournalError, StoreUsageError
from blast_controller.store.etcd import trimming
from blast_controller.store.etcd.access import Access, EtcdTlsFiles, User
from blast_controller.store.etcd.connection import EtcdConnection
from blast_controller.store.etcd.copying import contents_of_etcd
from blast_controller.store.etcd.errors import (
    CredentialsRefusedError,
    CredentialsUnreadableError,
    DamagedEtcdJournalError,
    EtcdFormatError,
    EtcdSpaceError,
    StoreUnavailableError,
)
from blast_controller.store.etcd.history import EtcdHistory
from blast_controller.store.etcd.keys import Keys
from blast_controller.store.etcd.methods import STATUS, TXN
from blast_controller.store.etcd.presence import Presence
from blast_controller.store.etcd.proto import etcd_pb2 as api
from blast_controller.store.etcd.requests import delete, put
from blast_controller.store.etcd.store import StorePolicy
from blast_controller.store.etcd.values import FORMAT, Head, pack, to_head, unpack
from blast_controller.store.retention import Retention
from tests.support.certificates import Authority
from tests.support.controller.etcd_server import LONG, SHORT, Controllers, EtcdServer
from tests.support.waiting import eventually

pytestmark = pytest.mark.etcd


def row(key, body=None):
    return Record("request", key, {"is": body or key})


def one_sentence(fault):
    text = str(fault)
    return "\n" not in text and ": " in text and len(text) < 700


# ---------------------------------------------------------------------------------------------- unavailable etcd


@pytest.fixture(scope="module")
def own_server(tmp_path_factory):
    with EtcdServer(tmp_path_factory.mktemp("etcd")).running() as server:
        yield server


@pytest.fixture
def mortal(own_server):
    """Yield controllers of an etcd server that tests may kill."""
    made = Controllers(own_server)
    yield made
    made.close()


def test_open_without_etcd_names_the_unreachable_endpoint(controllers):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    store = controllers.store(leadership=controllers.leadership(controllers.connection(port, timeouts=SHORT)))
    with pytest.raises(StoreUnavailableError, match=f"etcd cannot be reached at 127.0.0.1:{port}") as caught:
        store.open()
    assert one_sentence(caught.value) and not caught.value.may_be_done
    assert not isinstance(caught.value, StoreUsageError)


def test_store_continues_after_etcd_returns(mortal):
    connection = mortal.connection()
    leadership = mortal.leadership(connection, ttl=60)
    store = mortal.opened_store(leadership=leadership)
    store.commit([row("a")], at=1.0)
    mortal.server.kill()
    connection.timeouts = SHORT
    with pytest.raises(StoreUnavailableError) as caught:
        store.commit([row("b")], at=2.0)
    assert one_sentence(caught.value)
    with pytest.raises(StoreUnavailableError):
        store.journal(0, 10)
    with pytest.raises(StoreUnavailableError):
        store.compact(at=1.0)
    mortal.server.start()
    connection.timeouts = LONG
    store.commit([row("b"), row("c")], at=3.0)
    assert [entry.key for entry in store.journal(0, 10)] == ["epoch", "a", "b", "c"]
    assert leadership.holds_leadership()


def test_leadership_ends_and_store_closes_without_etcd(mortal):
    leadership = mortal.leadership(ttl=1)
    store = mortal.opened_store(leadership=leadership)
    mortal.server.kill()
    eventually(lambda: not leadership.holds_leadership(), "the leader to lose leadership")
    store.close()
    mortal.server.start()


def test_store_continues_after_the_space_quota_is_raised(mortal):
    server = mortal.server
    server.kill()
    server.quota = 1 << 20
    server.start()
    store = mortal.opened_store(leadership=mortal.leadership(ttl=60))
    written = []
    with pytest.raises(EtcdSpaceError, match="has reached its space quota: raise its --quota-backend-bytes") as caught:
        for number in range(100):
            store.commit([row(f"r{number}", random.Random(number).randbytes(30_000).hex())], at=1.0)
            written.append(f"r{number}")
    assert isinstance(caught.value, DiskFullError) and one_sentence(caught.value)
    assert [entry.key for entry in store.journal(0, 200)] == ["epoch", *written], "the journal stays readable"
    server.kill()
    server.quota = 0
    server.start()
    (alarm,) = server.post("maintenance/alarm", action="GET", alarm="NOSPACE")["alarms"]
    server.post("maintenance/alarm", action="DEACTIVATE", memberID=alarm["memberID"], alarm="NOSPACE")
    store.commit([row("other")], at=2.0)
    assert [entry.key for entry in store.journal(0, 200)] == ["epoch", *written, "other"]


# --------------------------------------------------------------------------------------------------------- credentials


def refused(controllers, **changes):
    store = controllers.store(leadership=controllers.leadership(controllers.connection(**changes)))
    with pytest.raises(JournalError) as caught:
        store.open()
    assert one_sentence(caught.value)
    return caught.value


def test_wrong_password_is_rejected_without_showing_it(controllers, tmp_path):
    (tmp_path / "password").write_text("guessed\n")
    fault = refused(controllers, user=User("blast", tmp_path / "password"))
    assert isinstance(fault, CredentialsRefusedError) and "check certificate, user and password" in str(fault)
    assert "guessed" not in str(fault)


def test_connection_without_a_user_is_rejected(controllers):
    assert isinstance(refused(controllers, user=None), CredentialsRefusedError)


def test_certificates_of_another_authority_are_rejected(controllers, tmp_path):
    others = Authority(tmp_path / "others", "other")
    mine = others.issue("/O=controller")
    server = controllers.server
    fault = refused(controllers, timeouts=SHORT, tls=EtcdTlsFiles(others.cert, mine.cert, mine.key))
    assert isinstance(fault, CredentialsRefusedError | StoreUnavailableError)
    strange = EtcdTlsFiles(server.authority.cert, mine.cert, mine.key)
    assert isinstance(refused(controllers, timeouts=SHORT, tls=strange), JournalError)
    assert isinstance(refused(controllers, timeouts=SHORT, tls=None), StoreUnavailableError)


def test_keys_of_a_foreign_prefix_are_rejected(controllers):
    controllers.keys = Keys("/foreign/")
    assert isinstance(refused(controllers), CredentialsRefusedError)


@pytest.mark.parametrize("content", [None, "\n"])
def test_error_names_the_unreadable_password_file(controllers, tmp_path, content):
    if content is not None:
        (tmp_path / "password").write_text(content)
    fault = refused(controllers, user=User("blast", tmp_path / "password"))
    assert isinstance(fault, CredentialsUnreadableError) and str(tmp_path / "password") in str(fault)


def test_error_names_the_unreadable_certificate(controllers, tmp_path):
    tls = EtcdTlsFiles(controllers.server.authority.cert, tmp_path / "none.pem", controllers.server.client.key)
    with pytest.raises(CredentialsUnreadableError, match=r"none\.pem"):
        EtcdConnection(controllers.server.access(tls=tls))


def test_access_requires_an_endpoint():
    with pytest.raises(ValueError, match="at least one endpoint"):
        Access(())


def test_closed_connection_is_unavailable(controllers):
    connection = controllers.connection()
    connection.close()
    with pytest.raises(StoreUnavailableError):
        connection.call(STATUS, api.StatusRequest())


# ------------------------------------------------------------------------------------------------------ damage


def spoilt(controllers, *operations):
    store = controllers.opened_store()
    store.commit([row("a"), Record("reservation", "1", {}, frozenset({"port:1"}))], at=1.0)
    store.close()
    controllers.connection().call(TXN, api.TxnRequest(success=operations))
    return store


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda keys: put(keys.head, b"nonsense"), "is damaged"),
        (lambda keys: put(keys.head, b"[3,5]"), "its head is incomplete"),
        (lambda keys: put(keys.head, b"{}"), "names no format"),
        (lambda keys: put(keys.head, b"\x78nonsense"), "is damaged"),
        (lambda keys: delete(keys.head), "its head is missing"),
        (lambda keys: put(keys.state(7), b'["request",5,[],{}]'), "a row of the state is incomplete"),
        (lambda keys: put(keys.state(7), b'["request","a",[],{}]'), "'a' is stored twice"),
        (lambda keys: put(keys.state(7), b'["reservation","2",["port:1"],{}]'), "or holds elements of another one"),
        (lambda keys: put(keys.state(2), b'["request","a",[],{"is":"other"}]'), "changed, missing or outdated"),
        (lambda keys: delete(keys.state(2)), "changed, missing or outdated"),
        (lambda keys: put(keys.state(7), b'["request","b",[],{}]'), "changed, missing or outdated"),
        (lambda keys: put(keys.epoch, b"many"), "its epoch is not a number"),
        (lambda keys: put(keys.generation, b"many"), "its generation is not a number"),
        (lambda keys: put(keys.head, Head(3, 0, 1, 2, staged=2).pack()), "part 0 of its latest commit is missing"),
    ],
)
def test_damaged_journal_is_rejected_and_left_unchanged(controllers, spoil, words):
    store = spoilt(controllers, spoil(controllers.keys))
    for _ in range(2):
        with pytest.raises(DamagedEtcdJournalError, match=words) as caught:
            store.open()
        assert one_sentence(caught.value)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (b"[[1.0]]", "not a list of entries behind their digest"),
        (f"[{digest_of(3, '[1.0]')},[1.0]]".encode(), "entry 3 of the history is incomplete"),
        (b'[7,[1.0,1,"request","a","",{"is":"a"}]]', "the entries up to 3 of the history are changed"),
    ],
)
def test_damaged_history_is_reported_when_it_is_read(controllers, value, words):
    store = controllers.opened_store()
    store.commit([row("a")], at=1.0)
    store.commit([row("b")], at=1.0)
    controllers.connection().call(TXN, api.TxnRequest(success=[put(controllers.keys.history(3), value)]))
    with pytest.raises(DamagedEtcdJournalError, match=words):
        store.journal(0, 10)
    store.close()
    with pytest.raises(DamagedEtcdJournalError, match=words):
        list(contents_of_etcd(controllers.connection(), controllers.keys).rows)


def test_new_leader_reports_a_missing_history_key(controllers):
    store = controllers.opened_store()
    store.commit([row("a")], at=1.0)
    store.close()
    controllers.connection().call(TXN, api.TxnRequest(success=[delete(controllers.keys.history(2))]))
    with pytest.raises(DamagedEtcdJournalError, match="its history has 1 keys, and 2 were written"):
        store.open()


def test_open_reports_an_incomplete_import(controllers):
    controllers.connection().call(TXN, api.TxnRequest(success=[put(controllers.keys.importing, b"")]))
    with pytest.raises(DamagedEtcdJournalError, match="an import into it was not completed"):
        controllers.store().open()


@pytest.mark.parametrize("other", [FORMAT - 1, FORMAT + 1])
def test_journal_of_another_format_is_rejected(controllers, other):
    store = spoilt(controllers, put(controllers.keys.head, f"[{other},5,0,1,1,0,0,0]".encode()))
    with pytest.raises(EtcdFormatError, match=f"has format {other} and this release reads format {FORMAT}"):
        store.open()


def test_commit_detects_writes_of_a_non_leader(controllers):
    store = controllers.opened_store()
    controllers.connection().call(TXN, api.TxnRequest(success=[put(controllers.keys.head, Head(9, 0, 1, 9).pack())]))
    with pytest.raises(DamagedEtcdJournalError, match="a controller that is not the leader writes to it"):
        store.commit([row("a")], at=1.0)


# ------------------------------------------------------------------------------------------------- compaction


def test_compaction_removes_old_etcd_revisions(controllers, monkeypatch):
    monkeypatch.setattr(trimming, "FORGETTING", 0.0)
    # Later etcd releases allow compaction for administrators only.
    root = controllers.connection(user=User("root", controllers.server.password_file))
    store = controllers.opened_store(
        StorePolicy(wait=0.0, retention=Retention(entries=2)), controllers.leadership(root)
    )
    for number in range(5):
        store.commit([row("a", f"{number}")], at=1.0)
        store.compact(at=1.0)
    first = base64.b64encode(controllers.keys.head).decode()
    with pytest.raises(AssertionError, match="compacted"):
        controllers.server.post("kv/range", key=first, revision=2)
    head, _ = EtcdHistory(controllers.connection(), controllers.keys).head()
    kept = store.journal(0, 10)
    assert [entry.sequence for entry in kept] == [5, 6]
    assert head.history_bytes == sum(100 + len('{"is":"0"}') for _ in kept)


def test_denied_etcd_compaction_is_logged_once(caplog):
    asked = []

    class Strict:
        def call(self, method, request, seconds=None):
            asked.append(request.revision)
            raise CredentialsRefusedError("here", "permission denied")

    forgetting = trimming.RevisionCompaction(Strict())
    for minute in range(5):
        forgetting.forget(100 + minute, 60.0 * minute)
    assert asked == [100]
    assert [record.message[:25] for record in caplog.records] == ["this controller cannot co"[:25]]


def test_large_values_are_compressed():
    short, long = '["a"]', f'["{"a" * 100_000}"]'
    assert pack(short) == short.encode() and len(pack(long)) < 1_000
    assert unpack(pack(short)) == ["a"] and unpack(pack(long)) == ["a" * 100_000]
    with pytest.raises(ValueError, match="incomplete"):
        unpack(zlib.compress(b"[]" * 1000)[:10])
    assert to_head(Head(1, 2, 3, 4, 5, 6).pack()) == Head(1, 2, 3, 4, 5, 6)


def test_candidate_without_a_lease_is_ignored(controllers):
    controllers.connection().call(TXN, api.TxnRequest(success=[put(controllers.keys.candidate("forged:1"), b"999")]))
    presence, other = (Presence(controllers.connection(), controllers.keys, f"here:{n}") for n in (1, 2))
    other.publish(3)
    assert presence.others() == {"here:2": 3}
    other.leave()
