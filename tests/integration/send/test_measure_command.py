"""`blast measure` against agents in processes of their own: the file, the table, what fails, and Ctrl-C."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from blast_client.capacities.capacities import read_capacities
from blast_client.cli.command import main
from blast_transport.credentials.admission import dialer
from blast_transport.credentials.material import SharedSecret, read_secret
from blast_transport.measuring.flows import HERE, SHORT, measure_flows
from tests.support.interrupted import ended, members, started
from tests.support.transport.measured_hosts import host_process
from tests.support.transport.transport_hosts import BLAST, Process
from tests.support.waiting import HANGING, eventually

QUICK = ("--root", "here", "--bytes", "1MiB")


def blast(*words: object, given: str = "") -> tuple[int, str, str]:
    done = subprocess.run(
        [*BLAST, *map(str, words)], input=given, capture_output=True, text=True, timeout=4 * HANGING, check=False
    )
    return done.returncode, done.stdout, done.stderr


def named(*hosts: Process) -> str:
    return ",".join(f"{one.name}=127.0.0.1:{one.port}" for one in hosts)


def write_secret(path: Path, secret: str) -> Path:
    path.touch(mode=0o600)
    path.write_text(secret)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hosts")


@pytest.fixture(scope="module")
def secret(folder: Path) -> Path:
    return write_secret(folder / "secret", "0123456789abcdef" * 2)


@pytest.fixture(scope="module")
def hosts(folder: Path, secret: Path) -> Iterator[list[Process]]:
    """Agents that know the secret."""
    access = f'[access]\nsecret_file = "{secret}"'
    with ExitStack() as stack:
        yield [stack.enter_context(host_process(folder, f"h{number}", access)) for number in range(3)]


def test_blast_trees_accepts_measured_network_file(hosts, secret, tmp_path):
    output = tmp_path / "network.json"
    words = ("measure", "--hosts", named(*hosts), "--secret-file", secret, "--output", output, *QUICK)
    status, table, errors = blast(*words)
    assert (status, errors) == (0, "")
    assert [line.split("  ")[0] for line in table.splitlines()] == [
        "from \\ to", "here (root)", "h0", "h1", "h2", "takes in all"
    ]  # fmt: skip
    found = read_capacities(output.read_bytes())
    assert found.hosts == ("here", "h0", "h1", "h2") and len(found.links) == 9 and min(found.links.values()) > 0
    status, plan, errors = blast("trees", output, "--json")
    assert (status, errors) == (0, "") and json.loads(plan)["rate"] > 0


def test_measure_pipes_network_with_chosen_root(hosts, secret):
    words = ("measure", "--hosts", named(*hosts), "--secret-file", secret, "--root", "h1", "--bytes", "1MiB")
    status, network, errors = blast(*words, "--json", "--streams", "2")
    assert (status, errors) == (0, "") and json.loads(network)["root"] == "h1"
    status, plan, errors = blast("trees", "-", "--json", given=network)
    assert (status, errors) == (0, "") and json.loads(plan)["rate"] > 0


def test_measure_reports_frozen_host_and_measures_others(hosts, secret):
    hosts[1].freeze()
    try:
        status, network, errors = blast("measure", "--hosts", named(*hosts), "--secret-file", secret, "--json", *QUICK)
    finally:
        hosts[1].thaw()
    found = read_capacities(network.encode())
    assert status == 3 and found.receivers == ("h0", "h2")
    assert {link for link, rate in found.links.items() if rate == 0} == {link for link in found.links if "h1" in link}
    note, error = map(json.loads, errors.splitlines())
    assert note["note"].startswith("h1 does not answer: ")
    assert error["error"].startswith("removed from the receivers") and error["status"] == 3
    status, plan, _ = blast("trees", "-", "--json", given=network)
    assert status == 0 and json.loads(plan)["rate"] > 0


def test_measure_writes_no_file_if_no_host_is_reachable(tmp_path):
    output = tmp_path / "network.json"
    status, out, errors = blast("measure", "--hosts", "h1=127.0.0.1:1", "--output", output, *QUICK)
    assert (status, out) == (1, "") and not output.exists()
    assert errors.startswith("blast: no data reaches any host from here: ") and errors.count("\n") == 1


def test_measure_reports_wrong_secret(hosts, tmp_path):
    other = write_secret(tmp_path / "other", "fedcba9876543210" * 2)
    status, _, errors = blast("measure", "--hosts", named(*hosts), "--secret-file", other, *QUICK)
    assert status == 1 and "the secret is not this agent's" in errors


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--hosts", "h1", "--root", "h1"), "h1 is the only host"),
        (("--hosts", "h1", "--seconds", "0.001"), "lasts 0.01 to 10 s"),
        (("--hosts", "h1", "--streams", "0"), "1 to 16 connections"),
        (("--hosts", "h1", "--output", "/no/such/folder/file"), "cannot write"),
        (("--hosts", "h1", "--file", "/no/such/file"), "cannot read"),
        (("--hosts", "h1", "--monitor", ""), "command is empty"),
        (("--hosts", "h1", "--secret-file", "/no/such/file"), "cannot be read"),
    ],
)
def test_measure_rejects_invalid_options(capsys, words, sentence):
    assert main(["measure", *words]) == 2
    out, errors = capsys.readouterr()
    assert out == "" and sentence in errors and errors.count("\n") == 1


@pytest.fixture
def answering(tmp_path: Path) -> Path:
    program = tmp_path / "monitor"
    answer = {"hosts": ["here", "h1"], "root": "here", "receivers": ["h1"], "links": [["here", "h1", 5]]}
    program.write_text(f"#!/bin/sh\ncat > {tmp_path}/asked\necho '{json.dumps(answer)}'\n")
    program.chmod(0o755)
    return program


def test_measure_queries_monitor_instead_of_agents(answering, tmp_path):
    words = ("measure", "--hosts", "h1", "--root", "here", "--monitor", answering, "--json")
    status, out, errors = blast(*words)
    assert (status, errors) == (0, "") and json.loads(out)["links"] == [["here", "h1", 5.0]]
    assert json.loads((tmp_path / "asked").read_text()) == {"root": "here", "receivers": ["h1"]}


def test_measure_prints_result_if_file_cannot_be_written(answering):
    words = ("measure", "--hosts", "h1", "--root", "here", "--monitor", answering, "--json", "--output", "/dev/full")
    status, out, errors = blast(*words)
    assert status == 1 and json.loads(out)["links"] == [["here", "h1", 5.0]]
    assert json.loads(errors) == {"error": "cannot write /dev/full: No space left on device", "status": 1}


def test_measure_replaces_existing_file_atomically(tmp_path):
    known, output = tmp_path / "known", tmp_path / "network.json"
    known.write_text('{"hosts": ["here", "h1"], "root": "here", "receivers": ["h1"], "links": [["here", "h1", 5]]}')
    words = ("measure", "--hosts", "h1", "--root", "here", "--file", str(known), "--output", str(output))
    output.write_text("an earlier one")
    # As a disk that is full: not a byte of a file is left room for.
    limited = subprocess.run(
        ["prlimit", "--fsize=0", *BLAST, *words], capture_output=True, text=True, timeout=4 * HANGING, check=False
    )
    assert limited.returncode == 1 and "network.json: File too large" in limited.stderr
    assert output.read_text() == "an earlier one"
    assert blast(*words)[0] == 0 and read_capacities(output.read_bytes()).root == "here"
    assert [path.name for path in tmp_path.iterdir() if "network" in path.name] == ["network.json"]


def test_monitor_process_ends_with_measure_command(tmp_path):
    program, group = tmp_path / "monitor", tmp_path / "group"
    program.write_text(f"#!/bin/sh\necho $$ > {group}\nexec sleep 600\n")
    program.chmod(0o755)
    with started("measure", "--hosts", "h1", "--root", "here", "--monitor", str(program)) as process:
        eventually(lambda: group.exists() and group.read_text(), "the monitor to begin")
        status, out, _ = ended(process, signal.SIGTERM)
        assert (status, out) == (128 + signal.SIGTERM, "")
        eventually(lambda: not members(int(group.read_text())), "the monitor to end")


def test_ctrl_c_stops_measurement_on_all_hosts(hosts, secret, tmp_path):
    output = tmp_path / "network.json"
    slow = ("--root", "here", "--seconds", "10", "--bytes", "1GiB")
    words = ("measure", "--hosts", named(*hosts), "--secret-file", str(secret), "--output", str(output), *slow)
    with started(*words) as process:
        # A short measurement finds all hosts busy once the long one has begun.
        eventually(lambda: _busy(hosts[0], secret), "the measuring to begin")
        status, out, errors = ended(process)
    assert (status, out) == (130, "") and not output.exists()
    assert errors == "blast: stopped: the measurement ended and no file was written\n"
    status, _, errors = blast("measure", "--hosts", named(*hosts), "--secret-file", secret, *QUICK)
    assert (status, errors) == (0, ""), "they are free for others"


def _busy(one: Process, secret: Path) -> bool:
    found = measure_flows([(HERE, one.address)], dialer(SharedSecret(read_secret(secret))), SHORT, busy_timeout=0.0)
    return "another measurement" in found.failed.get(one.name, "")
