"""The `blast` command: discovery of subcommands, their output and their exit status."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import threading
from importlib.metadata import EntryPoint

import pytest

from blast_api.ttypes import Rejected
from blast_base.extras import how_to_install
from blast_client.cli import command, request_commands
from blast_client.cli.command import main
from blast_client.cli.terminal import width


def blast_of(modules, monkeypatch, capsys):
    """Run `blast` with the commands of these modules only; returns (status, stdout, stderr)."""
    ours = [EntryPoint(name, f"{module}:register", command.GROUP) for name, module in modules.items()]
    monkeypatch.setattr(command, "entry_points", lambda group: ours)

    def run(*arguments: str) -> tuple[int, str, str]:
        status = main(arguments)
        return (status, *capsys.readouterr())

    return run


@pytest.fixture
def blast(monkeypatch, capsys):
    modules = dict.fromkeys(("request", "status"), "blast_client.cli.request_commands")
    modules |= {"fabric": "blast_client.fabric.commands", "lab": "no_such_package.command"}
    return blast_of(modules, monkeypatch, capsys)


REQUEST = ("request", "--from", "h11", "--to", "h21,h31", "--bytes", "300MB")


def one_sentence(text: str) -> bool:
    return text.startswith("blast: ") and text.count("\n") == 1


# ---------------------------------------------------------------------- the command itself


def test_help_lists_commands_and_examples(blast):
    status, out, _ = blast("--help")
    assert status == 0
    assert "examples:\n  blast controller run --config fabric.toml\n" in out
    for name in ("request", "extend", "withdraw", "finish", "status", "explain", "top", "fabric"):
        assert name in out
        status, text, _ = blast(name, "--help")
        assert status == 0 and f"\n  blast {name}" in text


@pytest.mark.parametrize("arguments", [(), ("frobnicate",), ("request",), ("status", "--frob")])
def test_invalid_usage_exits_with_status_2(blast, arguments):
    status, out, err = blast(*arguments)
    assert (status, out) == (2, "") and err.startswith("blast") and err.count("\n") == 1


def test_missing_command_names_package_to_install(blast):
    for arguments in (("lab",), ("lab", "up", "--preset", "small"), ("lab", "--help")):
        status, out, err = blast(*arguments)
        assert (status, out) == (1, "") and one_sentence(err)
        assert "no_such_package" in err and how_to_install("lab") in err


@pytest.mark.parametrize(("words", "loaded"), [(("status", "--help"), {"status"}), (("--help",), set())])
def test_main_loads_only_requested_command(monkeypatch, words, loaded):
    """Loading everything takes longer than most commands do."""
    seen, load = set(), EntryPoint.load
    status = EntryPoint("status", "blast_client.cli.request_commands:register", command.GROUP)
    drain = EntryPoint("drain", "blast_client.cli.operator_commands:register", command.GROUP)
    monkeypatch.setattr(command, "entry_points", lambda group: [status, drain])
    monkeypatch.setattr(EntryPoint, "load", lambda self: (seen.add(self.name), load(self))[1])
    assert main(words) == 0
    assert seen == loaded


def test_installed_command_finds_subcommands_by_entry_point(controller):
    run = subprocess.run(
        [sys.executable, "-m", "blast_client.cli.command", "status", "--json"],
        capture_output=True, text=True, check=False, env=os.environ,
    )  # fmt: skip
    assert (run.returncode, run.stdout, run.stderr) == (0, "[]\n", "")


def test_closed_output_pipe_causes_no_traceback(controller):
    read_end, write_end = os.pipe()
    os.close(read_end)
    try:
        command_line = [sys.executable, "-m", "blast_client.cli.command", "fabric", "show"]
        run = subprocess.run(
            command_line, stdout=write_end, stderr=subprocess.PIPE, text=True, check=False, env=os.environ
        )
    finally:
        os.close(write_end)
    assert (run.returncode, run.stderr) == (1, "")


def test_interrupt_exits_with_status_130(monkeypatch):
    parser = argparse.ArgumentParser()

    def interrupted(_):
        raise KeyboardInterrupt

    parser.set_defaults(run=interrupted)
    monkeypatch.setattr(command, "_parser_for", lambda _: parser)
    assert main([]) == 130


# ---------------------------------------------------------------------- requests


def test_request_prints_the_grant(controller, blast):
    status, out, err = blast(*REQUEST, "--key", "k")
    assert (status, err) == (0, "")
    assert "granted k, part 0" in out
    assert "239.1.0.1:5007 (UDP), at most 100 Mbit/s" in out
    assert "h21, h31" in out and "transfer   24 s (300 MB at 100 Mbit/s); lease 1 min 0 s" in out
    assert "16 ms (computation 0.4 ms, OpenFlow 3.25 ms, optical switch 14.2 ms)" in out
    assert "blast finish k" in out


def test_request_with_same_key_returns_same_request(controller, blast):
    first, second = blast(*REQUEST, "--key", "k"), blast(*REQUEST, "--key", "k")
    assert first == second and first[0] == 0
    assert len(controller.requests) == 1
    status, _, err = blast("request", "--from", "h11", "--to", "h21", "--bytes", "1", "--key", "k")
    assert status == 2 and one_sentence(err) and "--key" in err


def test_request_times_out_then_succeeds_after_release(controller, blast):
    blast(*REQUEST, "--key", "first")
    status, out, err = blast(*REQUEST, "--key", "second", "--timeout", "50ms")
    assert (status, out) == (1, "") and one_sentence(err)
    assert "no splitter is free" in err and "blast withdraw second" in err
    threading.Timer(0.2, controller.finish, [None, "first", 0, None]).start()
    status, out, _ = blast(*REQUEST, "--key", "second", "--timeout", "20")
    assert status == 0 and "granted second" in out
    assert "done" in blast(*REQUEST, "--key", "first")[2]


def test_request_no_wait_returns_pending_request(controller, blast):
    blast(*REQUEST, "--key", "first")
    status, out, _ = blast(*REQUEST, "--key", "second", "--no-wait", "--pending-timeout", "90s")
    assert status == 0 and "second: pending" in out and "no splitter is free" in out
    assert controller.requests["second"].content.pendingTimeoutMs == 90_000


@pytest.mark.parametrize(
    ("option", "value", "sentence"),
    [
        ("--bytes", "lots", "is not a size: write for example 300MB"),
        ("--bytes", "0", "at least one byte"),
        ("--bytes", "99999999999GB", "less than 2^63 bytes"),
        ("--timeout", "soon", "is not a time"),
        ("--to", "h1,,h2", "is not a list of names"),
    ],
)
def test_request_rejects_invalid_options_before_any_call(blast, option, value, sentence):
    status, out, err = blast(*REQUEST, option, value)
    assert (status, out) == (2, "") and sentence in err and err.count("\n") == 1


def test_extend_finish_and_withdraw_print_new_state(controller, blast):
    blast(*REQUEST, "--key", "k")
    status, out, _ = blast("extend", "k", "--add", "h41", "--remove", "h21", "--time", "5s", "--bytes", "1GB")
    assert status == 0 and "to h31, h41" in out
    status, out, _ = blast("finish", "k", "--bytes-sent", "300MB", "--duration", "24s", "--json")
    assert status == 0 and json.loads(out)["state"] == "DONE"
    status, out, err = blast("withdraw", "k")
    assert (status, out) == (1, "") and one_sentence(err) and "done" in err
    blast(*REQUEST, "--key", "k2")
    assert "k2: withdrawn" in blast("withdraw", "k2")[1]


def test_explain_prints_blockers_and_advice(controller, blast):
    for key in ("a", "late"):
        blast(*REQUEST, "--key", key, "--no-wait")
    status, out, err = blast("explain", "late")
    assert (status, err) == (0, "")
    assert out.splitlines() == [
        "The request late waits: no splitter is free.",
        "  blocked by  splitter:s1 is held by a",
        "  to start    Wait a minute.",
    ]
    answer = json.loads(blast("explain", "late", "--json")[1])
    assert answer["estimatedStartMs"] == 60_000 and len(answer["blockers"]) == 1
    assert blast("explain", "a")[1] == "The request a does not wait.\n"
    status, _, err = blast("explain", "other")
    assert status == 2 and one_sentence(err) and "'other'" in err


def test_status_shows_one_request_or_all_live_ones(controller, blast):
    assert blast("status") == (0, "no live requests (`blast status --all` also shows ended requests)\n", "")
    assert blast("status", "--all") == (0, "no requests\n", "")
    blast(*REQUEST, "--key", "k")
    blast(*REQUEST, "--key", "waits", "--no-wait")
    status, out, _ = blast("status", "k")
    assert status == 0 and "k: active, 300 MB from h11 to h21, h31" in out and "lease ends in 1 min 0 s" in out
    status, out, _ = blast("status")
    assert out.splitlines()[0].split() == ["KEY", "STATE", "AGE", "SIZE", "FROM", "TO", "NOTE"]
    assert [line.split()[:2] for line in out.splitlines()[1:]] == [["k", "active"], ["waits", "pending"]]
    assert [r["state"] for r in json.loads(blast("status", "--json")[1])] == ["ACTIVE", "PENDING"]
    status, _, err = blast("status", "other")
    assert status == 2 and one_sentence(err) and "'other'" in err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((*REQUEST, "--key", ""), "the key is empty"),
        (("extend", "k"), "no change requested: give --add, --remove, --time or --bytes"),
    ],
)
def test_commands_reject_empty_key_and_empty_extension(controller, blast, words, sentence):
    status, _, err = blast(*words)
    assert status == 2 and sentence in err


def keys_of(answer: tuple[int, str, str]) -> list[str]:
    return [line.split()[0] for line in answer[1].splitlines()[1:]]


def test_status_filters_by_state_and_includes_ended_on_demand(controller, blast):
    for key in ("a", "b", "c"):
        blast(*REQUEST, "--key", key, "--no-wait")
    blast("withdraw", "a")
    assert keys_of(blast("status")) == ["b", "c"]
    assert keys_of(blast("status", "--all")) == ["a", "b", "c"]
    assert keys_of(blast("status", "--state", "withdrawn,Active")) == ["a", "b"]
    assert blast("status", "--state", "failed")[1] == "no requests in state failed\n"


def test_status_limit_shows_newest_and_counts_hidden_requests(controller, blast):
    for key in ("a", "b", "c"):
        blast(*REQUEST, "--key", key, "--no-wait")
    answer = blast("status", "--limit", "2")
    assert keys_of(answer) == ["b", "c"]
    assert answer[2] == "blast: 1 earlier requests are not shown: raise --limit\n"
    status, out, err = blast("status", "--limit", "3", "--json")
    assert (status, len(json.loads(out)), err) == (0, 3, "")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--state", "activ"), "did you mean active?"),
        (("--limit", "0"), "from 1 to"),
        (("--all", "--state", "done"), "not allowed with"),
        (("k", "--limit", "3"), "cannot be combined with the key k"),
    ],
)
def test_status_rejects_conflicting_options(controller, blast, options, words):
    status, out, err = blast("status", *options)
    assert (status, out) == (2, "") and err.count("\n") == 1 and words in err


def test_request_table_fits_in_100_columns(controller, blast, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    hosts = ",".join(host for host in controller.hosts if host != "h11")
    blast("request", "--from", "h11", "--to", hosts, "--bytes", "300MB", "--no-wait", "--key", "k" * 59 + "-last")
    blast("request", "--from", "h11", "--to", hosts, "--bytes", "300MB", "--no-wait", "--key", "列" * 20)
    lines = blast("status")[1].splitlines()
    assert max(map(width, lines)) <= 100
    assert "-last  active" in lines[1] and "…" in lines[1]


def test_status_escapes_terminal_control_sequences(controller, blast):
    blast(*REQUEST, "--key", "\x1b[2Jk", "--no-wait")
    assert "\x1b" not in blast("status")[1] + blast("status", "\x1b[2Jk")[1]


def test_top_prints_requests_and_free_resources(controller, blast):
    blast(*REQUEST, "--key", "k")
    blast(*REQUEST, "--key", "waits", "--no-wait")
    status, out, _ = blast("top", "--once")
    assert status == 0 and "\x1b" not in out
    assert "1 active, 1 pending" in out and "0 of 1 free" in out and "1 of 4 optical ports free" in out
    assert "rack2, rack3" in out and "waits" in out
    view = json.loads(blast("top", "--once", "--json")[1])
    assert [r["state"] for r in view["requests"]] == ["ACTIVE", "PENDING"]


def test_top_redraws_until_interrupted(controller, blast, monkeypatch):
    naps = []

    def nap(seconds):
        naps.append(seconds)
        if len(naps) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(request_commands.time, "sleep", nap)
    status, out, _ = blast("top", "--interval", "2s")
    assert (status, naps) == (130, [2, 2, 2])
    assert out.count("\x1b[H\x1b[2J") == 3
    assert "the interval must be above 0" in blast("top", "--interval", "0s")[2]


# ---------------------------------------------------------------------- the fabric


def test_fabric_show_prints_switches_splitters_and_trees(controller, blast):
    controller.unusable["port:rack4/1"] = "no light"
    blast(*REQUEST, "--key", "k")
    status, out, _ = blast("fabric", "show")
    assert status == 0
    assert "ocs             connected" in out
    assert "s1        1:4      ocs output 101  104-107  tree 0" in out
    assert "rack4" in out and "unusable: no light" in out and "rack2, rack3" in out
    assert json.loads(blast("fabric", "show", "--json")[1])["lightTrees"][0]["splitters"] == ["s1"]


def test_empty_controller_address_is_rejected(blast, monkeypatch):
    monkeypatch.setenv("BLAST_CONTROLLER", "")
    for arguments in (("status",), REQUEST, ("fabric", "show"), ("status", "--controller", "")):
        status, out, err = blast(*arguments)
        assert (status, out) == (2, "") and one_sentence(err) and "is empty" in err


def test_fabric_svg_writes_file_or_standard_output(controller, blast, tmp_path):
    file, picture = tmp_path / "fabric.svg", blast("fabric", "svg")[1]
    assert json.loads(blast("fabric", "svg", "--json")[1]) == {"svg": picture}
    assert blast("fabric", "svg", "--output", str(file)) == (0, "", "")
    assert file.read_text() == picture
    status, out, _ = blast("fabric", "svg", "--json", "--output", str(file))
    assert (status, json.loads(out)) == (0, {"file": str(file)})
    for nowhere in (tmp_path, tmp_path / "no" / "fabric.svg"):
        status, _, err = blast("fabric", "svg", "--output", str(nowhere))
        assert status == 2 and one_sentence(err) and "--output" in err


def test_refusal_by_device_state_exits_with_status_1(controller, blast, monkeypatch):
    def refuse(*_):
        raise Rejected("device_disconnected", "ocs1 is away.")

    monkeypatch.setattr(controller, "extend", refuse)
    assert blast("extend", "k", "--add", "h41") == (1, "", "blast: ocs1 is away.\n")
