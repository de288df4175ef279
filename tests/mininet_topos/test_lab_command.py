"""`blast lab`: options to plan, and errors as one sentence with the right status."""

import argparse
import json
import os

import pytest

from mininet_topos import command
from mininet_topos.kernel.errors import HostError, PlanError
from mininet_topos.lab import cleanup, listing, registry


@pytest.fixture
def parse():
    parser = argparse.ArgumentParser(prog="blast")
    command.register(parser.add_subparsers(required=True))
    return parser.parse_args


@pytest.fixture
def as_root(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)


def test_options_override_preset(parse):
    options = parse(
        ["lab", "up", "--preset", "paper-testbed", "--hosts", "3", "--splitters", "4x1,8x1", "--light-rate", "50"]
    )
    plan = command.plan_from(options)
    assert (plan.racks, plan.hosts_per_rack, plan.shared_datapath) == (4, 3, True)
    assert plan.splitters == {4: 1, 8: 1}
    assert plan.rate_factor == 200


def test_switch_is_one_of_the_kinds(parse, capsys):
    assert parse(["lab", "up"]).switch == "tl1"
    assert parse(["lab", "up", "--switch", "netconf"]).switch == "netconf"
    with pytest.raises(SystemExit):
        parse(["lab", "up", "--switch", "tl2"])
    assert "'tl1', 'sonic-ocs', 'netconf'" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--racks", "1"], ["--splitters", "four"]])
def test_invalid_option_exits_with_status_2_and_one_sentence(parse, capsys, arguments):
    options = parse(["lab", "up", *arguments])
    assert options.run(options) == 2
    message = capsys.readouterr().err
    assert message.startswith("blast lab: ")
    assert message.count("\n") == 1


def test_list_shows_owner_of_each_lab_and_orphaned_labs(parse, capsys, monkeypatch, as_root, tmp_path):
    monkeypatch.setattr(registry, "ROOT", tmp_path)
    monkeypatch.setattr(listing, "found_labs", lambda: ["b111", "b222"])
    (tmp_path / "b111").mkdir()
    registry.write_state("b111", {"thrift": "127.0.0.1:9", "summary": "4 racks of 2"})
    options = parse(["lab", "list"])
    assert options.run(options) == 0
    header, held, left = capsys.readouterr().out.splitlines()
    assert header.split() == ["LAB", "AGE", "OWNER", "CONTROLLER", "SUMMARY"]
    assert held.startswith("b111 ") and f" {os.getpid()} " in held and "127.0.0.1:9" in held
    assert left.startswith("b222 ") and "blast lab down b222" in left and "none" in left
    options = parse(["lab", "list", "--json"])
    assert options.run(options) == 0
    first, second = json.loads(capsys.readouterr().out)["labs"]
    assert (first["pid"], first["controller"], first["summary"]) == (os.getpid(), "127.0.0.1:9", "4 racks of 2")
    assert first["seconds"] > 0
    assert (second["lab"], second["pid"], second["seconds"]) == ("b222", None, None)


def test_commands_require_root(parse, capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.chdir(tmp_path)
    for arguments in (["lab", "up"], ["lab", "down"], ["lab", "list"], ["lab", "demo"]):
        options = parse(arguments)
        assert options.run(options) == 1
        assert "root" in capsys.readouterr().err


def test_down_of_unknown_lab_lists_existing_labs(parse, capsys, monkeypatch, as_root):
    monkeypatch.setattr(command, "found_labs", lambda: ["b111", "b222"])
    options = parse(["lab", "down", "b333"])
    assert options.run(options) == 2
    assert "b111, b222" in capsys.readouterr().err


def test_down_reports_removed_resources(parse, capsys, monkeypatch, as_root):
    monkeypatch.setattr(command, "found_labs", lambda: ["b111", "b222"])
    monkeypatch.setattr(command, "down", lambda lab: cleanup.Removed(lab, 5, 2, 9))
    options = parse(["lab", "down"])
    assert options.run(options) == 0
    removed = "removed: 5 processes, 2 bridges, 9 interfaces\n"
    assert capsys.readouterr().out == f"lab b111 {removed}lab b222 {removed}"


def test_down_without_open_vswitch_reports_bridges_as_unknown(parse, capsys, monkeypatch, as_root):
    monkeypatch.setattr(command, "found_labs", lambda: ["b111"])
    monkeypatch.setattr(command, "down", lambda lab: cleanup.Removed(lab, 5, None, 9))
    options = parse(["lab", "down"])
    assert options.run(options) == 3
    assert capsys.readouterr().out == (
        "lab b111 removed: 5 processes, no bridges (Open vSwitch is not running), 9 interfaces; "
        "to remove them, start Open vSwitch and run `blast lab down b111` again\n"
    )
    options = parse(["lab", "down", "--json"])
    assert options.run(options) == 3
    assert json.loads(capsys.readouterr().out)["removed"][0]["bridges"] is None


def test_down_by_owner_removes_only_labs_of_that_process(parse, capsys, monkeypatch, as_root, tmp_path):
    monkeypatch.setattr(registry, "ROOT", tmp_path)
    monkeypatch.setattr(command, "down", lambda lab: cleanup.Removed(lab, 5, 2, 9))
    for lab, pid in (("b111", 4711), ("b222", 4712), ("b333", 4711)):
        (tmp_path / lab).mkdir()
        (tmp_path / lab / "lab.json").write_text(json.dumps({"lab": lab, "owner": {"pid": pid, "started": 1}}))
    (tmp_path / "b444").mkdir()
    options = parse(["lab", "down", "--owner", "4711", "--json"])
    assert options.run(options) == 0
    assert [entry["lab"] for entry in json.loads(capsys.readouterr().out)["removed"]] == ["b111", "b333"]
    options = parse(["lab", "down", "--owner", "4713"])
    assert options.run(options) == 0
    assert capsys.readouterr().out == "no lab found of process 4713\n"


@pytest.mark.parametrize(("error", "status"), [(PlanError("no"), 2), (HostError("no"), 1)])
def test_exit_status_separates_usage_errors_from_host_errors(error, status, capsys):
    def fail(_options):
        raise error

    assert command.guarded(fail)(argparse.Namespace()) == status
    assert capsys.readouterr().err == "blast lab: no\n"


def test_down_rejects_invalid_lab_id(monkeypatch):
    monkeypatch.setattr(cleanup, "found_labs", list)
    with pytest.raises(PlanError, match="no lab's id"):
        cleanup.down("../etc")
