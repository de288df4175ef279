"""`blast journal show`, from a file and from a controller."""

import json
import re
import subprocess
import sys
import threading
import time
from importlib.metadata import EntryPoint

import pytest

from blast_api import BlastOperator, ttypes
from blast_client.cli.command import GROUP, build_parser, main
from blast_controller.cli import journal as journal_command
from blast_controller.core.model.records import Record
from blast_controller.rpc.connections.framed_server import FramedServer, ServerLimits
from blast_controller.rpc.convert import REFUSALS
from blast_controller.store.details import InvalidEntryError, read_page
from blast_controller.store.interface import Entry
from blast_controller.store.sqlite import SqliteStore

COMMAND = EntryPoint("journal", "blast_controller.cli.journal:register", GROUP)


@pytest.fixture
def store(tmp_path):
    store = SqliteStore(tmp_path / "journal.db")
    store.open()
    store.commit(
        [
            Record("request", "default/job-1", {"bytes": 5}, note="pending"),
            Record("reservation", "7", {"state": "configuring"}, frozenset({"port:r1/1"}), "configuring"),
        ],
        at=1_795_000_000.25,
    )
    store.commit([Record("reservation", "7", None)], at=1_795_000_001.5)
    yield store
    store.close()


class JournalHandler:
    """Serves the journal of a store as the controller's handler does, in answers of three entries at most."""

    def __init__(self, store):
        self.store = store

    def journal(self, connection, after_sequence, limit):
        return [ttypes.JournalEntry(*fields) for fields in read_page(self.store.journal, after_sequence, min(limit, 3))]

    def disconnected(self, connection):
        pass

    def __getattr__(self, name):
        if not hasattr(BlastOperator.Iface, name):
            raise AttributeError(name)
        return lambda connection, *arguments: None


def run(*arguments):
    parsed = build_parser([COMMAND]).parse_args(["journal", "show", *map(str, arguments)])
    return parsed.run(parsed)


def test_show_prints_the_file_while_its_controller_runs(store, capsys):
    assert run("--file", store.path) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [re.split(r"  +", line)[1:] for line in lines] == [
        ["1", "meta", "epoch", "opened"],
        ["2", "request", "default/job-1", "pending"],
        ["3", "reservation", "7", "configuring"],
        ["4", "reservation", "7", "forgotten"],
    ]
    # Midday and time zone depend on where the test runs, the fraction does not.
    assert re.match(r"2026-11-1\d \d\d:\d\d:\d\d\.250[+-]\d\d:\d\d  ", lines[1])


def test_show_json_prints_one_object_per_line(store, capsys):
    assert run("--file", store.path, "--after", 1, "--limit", 2, "--json") == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert found == [
        {
            "sequence": 2,
            "at": 1_795_000_000.25,
            "epoch": 1,
            "kind": "request",
            "key": "default/job-1",
            "note": "pending",
            "body": {"bytes": 5},
        },
        {
            "sequence": 3,
            "at": 1_795_000_000.25,
            "epoch": 1,
            "kind": "reservation",
            "key": "7",
            "note": "configuring",
            "body": {"state": "configuring"},
        },
    ]


@pytest.mark.parametrize(
    ("report", "ending"),
    [
        (
            {"bytes_sent": 10**9, "duration": 1.5, "bytes_repaired": 7, "failed_receivers": ["h1", "h2"]},
            "done (1000000000 bytes sent, 1.5 s, 7 bytes retransmitted, failed receivers: h1 h2)",
        ),
        ({"bytes_sent": 5, "duration": None, "bytes_repaired": None, "failed_receivers": []}, "done (5 bytes sent)"),
        (None, "done"),
        ([1], "done"),
    ],
)
def test_show_appends_the_report_of_the_sender(store, capsys, report, ending):
    store.commit([Record("request", "default/j", {"parts": [{"report": report}]}, note="done")], at=0.0)
    run("--file", store.path, "--after", 4)
    (line,) = capsys.readouterr().out.splitlines()
    assert line.endswith(f"default/j  {ending}")


def test_show_escapes_control_characters_of_keys(store, capsys):
    store.commit([Record("request", "default/\x1b[2Ja\nb\u202e", {}, note="é")], at=0.0)
    run("--file", store.path, "--after", 4)
    (line,) = capsys.readouterr().out.splitlines()
    assert line.endswith(r"default/\x1b[2Ja\nb\u202e  é")


def test_show_reads_the_file_name_from_the_configuration(store, tmp_path, capsys):
    config = tmp_path / "blast.toml"
    config.write_text(f'rack = "nonsense that no controller starts with"\n[journal]\nfile = "{store.path}"\n')
    assert run("--config", config, "--limit", 1) == 0
    assert "opened" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (None, "cannot be read"),
        ("[journal", "is not TOML"),
        ("[journal]\nin_memory = true", "keeps the journal in memory"),
        ("[journal]\nfile = 5", "configures no journal file"),
        ('[journal.etcd]\nendpoints = ["e:2379"]', "has its journal in etcd"),
        ("journal = 1", "configures no journal file"),
    ],
)
def test_show_rejects_a_configuration_without_a_journal_file(tmp_path, capsys, text, sentence):
    config = tmp_path / "blast.toml"
    if text is not None:
        config.write_text(text)
    assert run("--config", config) == 2
    assert sentence in capsys.readouterr().err


def test_show_rejects_other_files_in_one_line(tmp_path, capsys):
    (tmp_path / "prose").write_text("once upon a time " * 400)
    for name in ("prose", "nowhere"):
        assert run("--file", tmp_path / name) == 1
        output = capsys.readouterr()
        assert output.err.startswith("blast: ") and output.err.count("\n") == 1
        assert not output.out
    assert not (tmp_path / "nowhere").exists()


def test_show_reads_from_a_controller_page_by_page(store, capsys):
    server = FramedServer(BlastOperator, JournalHandler(store), ServerLimits(workers=1), refusals=REFUSALS)
    host, port = server.start("127.0.0.1", 0)
    try:
        assert run("--controller", f"{host}:{port}") == 0
        by_thrift = capsys.readouterr().out
        run("--file", store.path)
        assert by_thrift == capsys.readouterr().out
        assert len(by_thrift.splitlines()) == 4
    finally:
        server.stop()


def test_show_reports_an_unreachable_controller(capsys):
    assert run("--controller", "127.0.0.1:1") == 1
    assert "no answer from a controller" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--limit", "0"], ["--after", "-1"], ["--limit", "many"], ["--after", 1 << 63]])
def test_show_rejects_invalid_numbers(arguments, capsys):
    with pytest.raises(SystemExit) as end:
        run(*arguments)
    assert end.value.code == 2
    assert "is not a" in capsys.readouterr().err


def test_show_follow_prints_new_entries(store):
    code = (
        "import sys\nfrom importlib.metadata import EntryPoint\nfrom blast_client.cli.command import build_parser\n"
        f"p = build_parser([EntryPoint('journal', {COMMAND.value!r}, {GROUP!r})]).parse_args(sys.argv[1:])\n"
        "sys.exit(p.run(p))"
    )
    arguments = ["journal", "show", "--file", str(store.path), "--follow", "--after", "4", "--limit", "2"]
    process = subprocess.Popen([sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, text=True)
    watchdog = threading.Timer(30, process.kill)
    watchdog.start()
    try:
        for key in ("first", "second"):
            store.commit([Record("request", key, {})], at=0.0)
            assert f"  {key}" in process.stdout.readline()
        assert process.wait(timeout=30) == 0
    finally:
        watchdog.cancel()
        process.kill()
        process.wait()
        process.stdout.close()


def test_entries_rejects_repeated_sequences():
    entry = Entry(5, 0.0, 1, "request", "a", "", {})
    with pytest.raises(InvalidEntryError, match="entry 5 of the journal comes after entry 5"):
        list(journal_command.entries(lambda after, limit: [entry], 0, 100, None))


def test_entries_waits_only_without_new_entries():
    waits = []

    def read(after, limit):
        ready = len(waits) * 2
        return [Entry(n, 0.0, 1, "request", "a", "", {}) for n in range(after + 1, min(ready, after + limit) + 1)]

    found = journal_command.entries(read, 0, 5, lambda: waits.append(None))
    assert [entry.sequence for entry in found] == [1, 2, 3, 4, 5]
    assert len(waits) == 3


@pytest.mark.etcd
def test_show_reads_an_etcd_journal_without_a_leader(controllers, capsys):
    store = controllers.opened_store()
    store.commit([Record("element", "splitter:s1", {"reason": "dust"}, note="quarantined")], 1.0)
    store.close()
    assert run(*controllers.options()) == 0
    assert "splitter:s1  quarantined" in capsys.readouterr().out


def test_taken_over_journal_has_an_epoch_that_tors_obey(tmp_path, capsys):
    path = tmp_path / "journal.db"
    take_over = ["journal", "take-over", "--file", str(path)]
    assert main(take_over) == 1 and "there is no journal yet" in capsys.readouterr().err
    store = SqliteStore(path)
    assert store.open().epoch == 1
    assert main(take_over) == 1 and "in use by" in capsys.readouterr().err
    store.close()
    assert main(take_over) == 0
    epoch = int(re.search(r"is at epoch (\d+):", capsys.readouterr().out)[1])
    assert abs(epoch - time.time()) < 3600
    assert SqliteStore(path).open().epoch == epoch + 1
