"""A journal moved between SQLite and etcd: all of it, in its order, with its sequences and its epoch, or nothing."""

import json
from importlib.metadata import EntryPoint

import pytest

from blast_base.extras import how_to_install
from blast_client.cli.command import GROUP, build_parser
from blast_controller.core.model.records import Record
from blast_controller.store.contents import (
    Contents,
    JournalExistsError,
    NotAnExportError,
    Written,
    from_lines,
    to_lines,
)
from blast_controller.store.errors import DamagedJournalError, DoubleHeldError, JournalError, NotAccessibleError
from blast_controller.store.etcd import copying
from blast_controller.store.etcd.copying import contents_of_etcd, copy_into_etcd
from blast_controller.store.etcd.errors import DamagedEtcdJournalError, LeadershipLostError, StoreUnavailableError
from blast_controller.store.etcd.methods import TXN
from blast_controller.store.etcd.proto import etcd_pb2 as api
from blast_controller.store.etcd.requests import put
from blast_controller.store.etcd.values import Head
from blast_controller.store.retention import Retention
from blast_controller.store.sqlite import SqliteStore
from blast_controller.store.sqlite_copy import contents_of_file, copy_into_file
from tests.support.controller.etcd_server import Mortal

pytestmark = pytest.mark.etcd
COMMAND = EntryPoint("journal", "blast_controller.cli.journal:register", GROUP)


def live(store):
    """Fill a journal as a controller might, over three openings, and drop the oldest history."""
    store.open()
    store.commit([Record("request", "z", {"text": "é\ud800\0", "number": 1.5}, note="pending")], at=1.25)
    store.commit([Record("request", "a", {"big": 1 << 80}), Record("request", "gone", {})], at=2.0)
    store.close()
    store.open()
    store.commit([Record("reservation", "7", {"lit": True}, frozenset({"port:1", "splitter:1"}), "lit")], at=3.0)
    store.commit([Record("request", "gone", None, note="forgotten"), Record("request", "z", {"now": []})], at=4.0)
    store.close()
    store.open()
    store.commit([Record("request", f"r{n}", {"filling": "x" * 300}) for n in range(60)], at=5.0)
    while store.compact(at=5.0):
        pass
    return store


@pytest.fixture
def sqlite(tmp_path):
    store = live(SqliteStore(tmp_path / "journal.db", Retention(entries=65)))
    yield store
    store.close()


def lines_of_file(path):
    with contents_of_file(path) as contents:
        return list(to_lines(contents))


def lines_of_etcd(controllers):
    return list(to_lines(contents_of_etcd(controllers.connection(), controllers.keys)))


def seen(store):
    loaded = store.open()
    state = {kind: list(rows.items()) for kind, rows in loaded.state.items()}
    return loaded.epoch, loaded.is_new, state, store.journal(0, 1000)[:-1]


def test_journal_survives_the_copy_to_etcd_and_back(sqlite, controllers, tmp_path):
    before = lines_of_file(sqlite.path)
    copy_into_etcd(controllers.leadership(), from_lines(before))
    assert lines_of_etcd(controllers) == before
    copy_into_file(tmp_path / "back.db", from_lines(lines_of_etcd(controllers)))
    assert lines_of_file(tmp_path / "back.db") == before
    assert json.loads(before[0]) == ["blast-journal", 3, 3, 69]


def test_copied_journal_continues_the_original(sqlite, controllers):
    copy_into_etcd(controllers.leadership(), from_lines(lines_of_file(sqlite.path)))
    sqlite.close()
    stores = sqlite, controllers.store()
    in_sqlite, in_etcd = (seen(store) for store in stores)
    assert in_etcd == in_sqlite
    assert in_etcd[:2] == (4, False) and [key for key, _ in in_etcd[2]["request"]][:3] == ["z", "a", "r0"]
    for store in stores:
        with pytest.raises(DoubleHeldError, match="which reservation 7 holds"):
            store.commit([Record("reservation", "8", {}, frozenset({"port:1"}))], at=6.0)
        store.commit([Record("reservation", "7", None), Record("request", "new", {})], at=6.0)
        assert [entry.sequence for entry in store.journal(69, 10)] == [70, 71, 72]
        while store.compact(at=6.0):
            pass
    # Copied entries are trimmed by size like its own.
    assert stores[1].journal(0, 100)[0].sequence <= stores[0].journal(0, 100)[0].sequence


def test_etcd_journal_is_copied_consistently_during_writes(controllers, tmp_path):
    store = live(controllers.store())
    before = lines_of_etcd(controllers)
    reading = to_lines(contents_of_etcd(controllers.connection(), controllers.keys))
    head = next(reading)
    store.commit([Record("request", "later", {}), Record("request", "z", None)], at=9.0)
    assert [head, *reading] == before, "the copy is consistent"
    copy_into_file(tmp_path / "copy.db", from_lines(before))
    copied = SqliteStore(tmp_path / "copy.db")
    loaded = copied.open()
    assert loaded.epoch == 4 and list(loaded.of("request"))[:2] == ["z", "a"]
    copied.close()


def test_journal_that_was_never_opened_can_be_copied(tmp_path):
    lines = list(to_lines(Contents(0, 0, iter(()))))
    copy_into_file(tmp_path / "new.db", from_lines(lines))
    assert lines_of_file(tmp_path / "new.db") == lines
    store = SqliteStore(tmp_path / "new.db")
    assert store.open().epoch == 1
    store.close()


# ------------------------------------------------------------------------------------------------ nothing is replaced


def test_copy_does_not_replace_a_journal(sqlite, controllers, tmp_path):
    lines = lines_of_file(sqlite.path)
    with pytest.raises(JournalExistsError, match="choose another destination"):
        copy_into_file(tmp_path / "journal.db", from_lines(lines))
    store = controllers.opened_store()
    with pytest.raises(LeadershipLostError):
        copy_into_etcd(controllers.leadership(), from_lines(lines))
    store.close()
    with pytest.raises(JournalExistsError):
        copy_into_etcd(controllers.leadership(), from_lines(lines))
    assert len(lines_of_etcd(controllers)) == 3


def test_interrupted_copy_is_no_journal_and_can_be_repeated(sqlite, controllers, monkeypatch):
    monkeypatch.setattr(copying, "MAX_BYTES", 5_000)
    monkeypatch.setattr(copying, "MANY", 10)
    lines = lines_of_file(sqlite.path)
    dead_after = 1
    is_over = False
    while not is_over:
        dead_after += 1
        connection = controllers.connection(kind=Mortal)
        connection.left = dead_after
        try:
            copy_into_etcd(controllers.leadership(connection), from_lines(lines))
            is_over = True
        except StoreUnavailableError:
            with pytest.raises(DamagedEtcdJournalError, match="an import into it was not completed: repeat it"):
                controllers.store().open()
    assert dead_after > 5
    assert lines_of_etcd(controllers)[1:-1] == lines[1:-1]


def test_next_copy_contains_nothing_of_an_interrupted_one(sqlite, controllers, monkeypatch):
    monkeypatch.setattr(copying, "MAX_BYTES", 5_000)
    connection = controllers.connection(kind=Mortal)
    connection.left = 6
    with pytest.raises(StoreUnavailableError):
        copy_into_etcd(controllers.leadership(connection), from_lines(lines_of_file(sqlite.path)))
    entry = Written(1, 1.0, 1, "meta", "epoch", "opened", '{"epoch":1}')
    small = list(to_lines(Contents(9, 1, iter([entry]))))
    copy_into_etcd(controllers.leadership(), from_lines(small))
    assert lines_of_etcd(controllers)[1] == small[1]


def test_failed_copy_leaves_no_file(sqlite, tmp_path):
    lines = lines_of_file(sqlite.path)
    with pytest.raises(NotAnExportError):
        copy_into_file(tmp_path / "half.db", from_lines(lines[:-10]))
    assert not (tmp_path / "half.db").exists()
    copy_into_file(tmp_path / "half.db", from_lines(lines))


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda lines: [], "its first line is not the header of a copy"),
        (lambda lines: ["[5]"], "its first line is not the header of a copy"),
        (lambda lines: ['["blast-journal",2,1,1,7]'], "it has format 2"),
        (lambda lines: [*lines[:5], b"\xff", *lines[5:]], "line 6 is not valid JSON"),
        (lambda lines: lines[:-1], "its end is missing"),
        (lambda lines: lines[:-2] + lines[-1:], "is malformed"),
        (lambda lines: [lines[0], lines[1], *lines[1:]], "the request 'z' is at a wrong place"),
        (lambda lines: [lines[0], lines[2], lines[1], *lines[3:]], "is at a wrong place"),
        (lambda lines: [lines[0], *lines[1:9], '["end",8,""]'], "its lines do not match its digest"),
        (lambda lines: [*lines[:-3], lines[-2], f'["end",{len(lines) - 3},""]'], "entry 69 comes after entry 67"),
    ],
)
def test_incomplete_copy_is_rejected_with_its_reason(sqlite, spoil, words):
    spoilt = spoil(lines_of_file(sqlite.path))
    with pytest.raises(NotAnExportError, match=words) as caught:
        list(from_lines(spoilt).rows)
    assert "repeat `blast journal export`" in str(caught.value)


def test_copy_of_a_missing_journal_is_rejected(controllers, tmp_path):
    with pytest.raises(DamagedEtcdJournalError, match="there is none"):
        contents_of_etcd(controllers.connection(), controllers.keys)
    for path, fault in ((tmp_path / "nowhere.db", NotAccessibleError), (tmp_path / "prose", DamagedJournalError)):
        (tmp_path / "prose").write_text("once upon a time " * 400)
        with pytest.raises(fault):
            lines_of_file(path)
    assert not (tmp_path / "nowhere.db").exists()


def test_journal_with_a_staged_commit_is_not_copied(controllers):
    store = controllers.opened_store()
    store.close()
    put_head = put(controllers.keys.head, Head(1, 100, 1, 2, staged=2).pack())
    controllers.connection().call(TXN, api.TxnRequest(success=[put_head]))
    with pytest.raises(JournalError, match="is not yet applied"):
        contents_of_etcd(controllers.connection(), controllers.keys)


# -------------------------------------------------------------------------------------------------------- the commands


def run(*arguments):
    parsed = build_parser([COMMAND]).parse_args(["journal", *map(str, arguments)])
    return parsed.run(parsed)


def test_export_and_import_commands_round_trip_a_journal(sqlite, controllers, tmp_path, capsys):
    assert run("export", "--file", sqlite.path, "--output", tmp_path / "copy") == 0
    assert run("import", *controllers.options(), "--input", tmp_path / "copy") == 0
    assert run("export", *controllers.options()) == 0
    exported = capsys.readouterr().out
    assert exported == (tmp_path / "copy").read_text()
    assert run("import", "--file", tmp_path / "back.db", "--input", tmp_path / "copy") == 0
    assert lines_of_file(tmp_path / "back.db") == exported.splitlines()


@pytest.mark.parametrize(
    ("changes", "status", "words"),
    [
        ({"etcd-ca": None}, 2, "--etcd-ca, --etcd-cert and --etcd-key must be given together"),
        ({"etcd-user": None}, 2, "--etcd-user and --etcd-password-file must be given together: give both or none"),
        ({"etcd-prefix": "/"}, 2, "must not be empty"),
        ({"etcd-prefix": "/other/"}, 1, "refuses the controller"),
        ({"etcd-password-file": "/nowhere"}, 1, "/nowhere, a credential for etcd, cannot be read"),
    ],
)
def test_export_reports_errors_in_one_line(controllers, capsys, changes, status, words):
    assert run("export", *controllers.options(**changes)) == status
    output = capsys.readouterr()
    assert words in output.err and output.err.count("\n") == 1 and output.err.startswith("blast: ")
    assert not output.out


def test_export_without_grpc_names_the_install_command(capsys, monkeypatch):
    monkeypatch.setattr("blast_base.extras.find_spec", lambda name: None)
    assert run("export", "--etcd", "here:1") == 1
    assert capsys.readouterr().err == f"blast: grpc not installed: {how_to_install('etcd')}\n"


def test_commands_keep_existing_files_and_report_missing_ones(sqlite, tmp_path, capsys):
    assert run("export", "--file", sqlite.path, "--output", sqlite.path) == 2
    assert "exists already: use another file name" in capsys.readouterr().err
    assert run("import", "--file", tmp_path / "new.db", "--input", tmp_path / "nowhere") == 1
    assert "No such file" in capsys.readouterr().err
    assert run("export", "--file", tmp_path / "nowhere.db") == 1
    assert "cannot be opened" in capsys.readouterr().err


@pytest.mark.parametrize("place", ["", "--etcd nonsense", "--etcd a:1,b:99999", "--file a --etcd b:1"])
def test_export_rejects_a_missing_or_invalid_location(place, capsys):
    with pytest.raises(SystemExit) as end:
        run("export", *place.split())
    assert end.value.code == 2
