"""`blast sim rerun`: reports on results that repeat, that differ, and that cannot be computed again."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from algorithms.scheduling import POLICIES
from blast_client.cli.command import main
from blast_sim.plugins.loading import PluginChangedError
from blast_sim.replay.tables import CDF, COMPLETIONS, tables
from blast_sim.rerun.comparing import ComparedPart, compared
from blast_sim.rerun.repeating import again
from blast_sim.rerun.result_file import (
    ScenarioChangedError,
    TraceChangedError,
    TraceMissingError,
    UnusableResultError,
    read_result,
)
from blast_sim.traces.coflow_file import written
from blast_sim.traces.synthetic import synthetic
from tests.blast_sim.flow.test_flow_scenarios import SMALL
from tests.support.simulators.plugin_modules import NARROWEST, POLICY, WIDEST, imported, write_module
from tests.support.simulators.results import results_of

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text(SMALL)
    (tmp_path / "trace.txt").write_text(written(synthetic(3, racks=6, coflows=5)))
    return tmp_path


def made(capsys: Capture, *words: str) -> Path:
    """Run a simulation, and return the file with its result."""
    assert main(["sim", *words, "--processes", "1"]) == 0
    path = Path("result")
    path.write_text(capsys.readouterr().out)
    return path


def flow_result(capsys: Capture, *words: str) -> Path:
    return made(capsys, "flow", "mine.toml", "--backgrounds", "none", *(words or ("--compute", "1")), "--json")


def replay_result(capsys: Capture, *words: str) -> Path:
    return made(capsys, "replay", "trace.txt", "--json", *words)


def rerun(capsys: Capture, path: Path, *words: str) -> tuple[int, str, str]:
    status = main(["sim", "rerun", str(path), "--processes", "1", *words])
    out, err = capsys.readouterr()
    return status, out, err


def edited(path: Path, *keys: str | int, value: object) -> None:
    """Set a value in a JSON file."""
    content: Any = json.loads(path.read_text())
    here = content
    for key in keys[:-1]:
        here = here[key]
    here[keys[-1]] = value
    path.write_text(json.dumps(content))


# ------------------------------------------------------------------------------------------------ comparing


def test_rerun_names_the_first_different_field_with_both_values(capsys: Capture) -> None:
    path = flow_result(capsys)
    before = json.loads(path.read_text())["cells"][1]["seconds"]
    edited(path, "cells", 1, "seconds", value=before + 1e-15)
    status, out, _ = rerun(capsys, path)
    assert status == 1
    assert out.splitlines() == [
        "naive, thin, none: identical",
        f"blast, thin, none, srpt-lease: different: seconds is {before + 1e-15!r} in the file and {before!r} now",
        "2 results: 1 identical, 1 different",
    ]
    status, out, _ = rerun(capsys, path, "--json")
    found = results_of(out)["results"][1]
    assert status == 1 and (found["verdict"], found["field"]) == ("different", "seconds")
    assert (found["in_file"], found["now"]) == (before + 1e-15, before)


@pytest.mark.parametrize(
    ("recorded", "now", "field"),
    [
        ({"a": 1}, {"a": 1.0}, "a"),
        ({"a": 0.0}, {"a": -0.0}, "a"),
        ({"a": True}, {"a": 1}, "a"),
        ({"a": {"b": [1, {"c": 2}]}}, {"a": {"b": [1, {"c": 3}]}}, "a.b.1.c"),
        ({"a": [1, 2]}, {"a": [1]}, "number of a"),
        ({"a": 1}, {"a": 1, "b": 2}, "b"),
        ({"a": 1, "b": None}, {"a": 1}, "b"),
    ],
)
def test_values_that_differ_in_one_bit_are_different(recorded: object, now: object, field: str) -> None:
    (found,) = compared([recorded], [ComparedPart("it", now)])
    assert (found.verdict, found.field) == ("different", field)


def test_not_a_number_is_identical_to_itself() -> None:
    nan = float("nan")
    assert compared([{"a": nan}], [ComparedPart("it", {"a": nan})])[0].verdict == "identical"


def test_missing_result_is_a_difference(capsys: Capture) -> None:
    path = flow_result(capsys)
    edited(path, "cells", value=json.loads(path.read_text())["cells"][:1])
    status, out, _ = rerun(capsys, path)
    assert status == 1 and "number of results is 1 in the file and 2 now" in out


def test_measured_computation_is_reported_as_not_repeatable(capsys: Capture) -> None:
    path = flow_result(capsys, "--compute", "measured")
    status, out, _ = rerun(capsys, path)
    assert status == 0
    assert out.splitlines() == [
        "naive, thin, none: identical",
        "blast, thin, none, srpt-lease: not repeatable: computation was measured",
        "2 results: 1 identical, 1 not repeatable",
    ]
    status, out, _ = rerun(capsys, replay_result(capsys, "--compute", "measured"))
    assert status == 0 and "srpt-lease: not repeatable: computation was measured" in out


def test_rerun_names_different_code_and_libraries(capsys: Capture) -> None:
    path = flow_result(capsys)
    for key, value in (("code", "0" * 64), ("commit", "c0ffee"), ("modified", True)):
        edited(path, "provenance", "blast", key, value=value)
    edited(path, "provenance", "engine", "solver", value="abacus")
    edited(path, "provenance", "engine", "versions", "numpy", value="0.1")
    status, out, _ = rerun(capsys, path)
    first, second, third = out.splitlines()[:3]
    assert status == 0 and first.startswith("the file was made by commit c0ffee with changes, and this is ")
    assert second.startswith("the file was made with the solver abacus")
    assert third.startswith("the file was made with numpy 0.1 (here ")


# --------------------------------------------------------------------------------------------------- inputs


def test_rerun_rejects_an_edited_scenario(capsys: Capture) -> None:
    path = flow_result(capsys)
    edited(path, "provenance", "request", "scenario", "text", value=SMALL.replace("30", "31"))
    with pytest.raises(ScenarioChangedError, match="the file was changed after it was written"):
        again(read_result(path), 1)
    assert rerun(capsys, path)[0] == 2


def test_rerun_rejects_an_edited_kept_scenario(capsys: Capture) -> None:
    flow_result(capsys, "--methods", "naive", "--keep", "kept")
    (path,) = Path("kept").iterdir()
    assert rerun(capsys, path)[0] == 0
    edited(path, "provenance", "request", "scenario", "model", "network", "racks", value=7)
    with pytest.raises(ScenarioChangedError):
        again(read_result(path), 1)


def test_rerun_rejects_a_changed_or_missing_trace(capsys: Capture) -> None:
    path = replay_result(capsys)
    assert rerun(capsys, path)[0] == 0
    trace = Path("trace.txt")
    trace.write_text(written(synthetic(4, racks=6, coflows=5)))
    with pytest.raises(TraceChangedError, match=r"the trace trace\.txt is not the one that result was made from"):
        again(read_result(path), 1)
    trace.unlink()
    with pytest.raises(TraceMissingError, match=r"the trace trace\.txt, which cannot be read"):
        again(read_result(path), 1)
    status, out, err = rerun(capsys, path)
    assert (status, out) == (2, "") and err.startswith("blast: result was made from the trace")


def test_rerun_rejects_a_changed_plugin(capsys: Capture, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = write_module(folder, POLICY.format(key=NARROWEST))
    monkeypatch.setitem(POLICIES, "mine", imported(monkeypatch, folder, name).Mine())
    path = replay_result(capsys, "--policy", "paper,mine")
    assert rerun(capsys, path)[0] == 0
    write_module(folder, POLICY.format(key=WIDEST), name)
    monkeypatch.setitem(POLICIES, "mine", imported(monkeypatch, folder, name).Mine())
    with pytest.raises(PluginChangedError, match="the policy mine is not the one that result was made with"):
        again(read_result(path), 1)


@pytest.mark.parametrize(
    "text",
    [
        "", "no JSON", "[]", "{}", '{"provenance": 3}', '{"provenance": {}}', '{"provenance": {"format": 2}}',
        '{"provenance": {"format": 1, "kind": "plan", "blast": {}, "request": {}, "plugins": [], '
        '"engine": {"solver": "numpy", "versions": {}, "rack_fabric": null}}}',
        '{"provenance": {"format": 1, "kind": "flow", "engine": {"solver": "numpy"}, "plugins": []}}',
        '{"provenance": {"format": 1, "kind": "flow", "engine": {"solver": "numpy"}, "plugins": [3]}}',
        "# no provenance\na,b\n1,2\n", "# format: {\na,b\n", "a,b\n1,2\n",
    ],
)  # fmt: skip
def test_rerun_rejects_a_file_that_is_no_result(capsys: Capture, text: str) -> None:
    path = Path("result")
    path.write_text(text)
    status, out, err = rerun(capsys, path)
    assert (status, out) == (2, "") and err.startswith("blast: result ") and err.count("\n") == 1


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("seeds", "0"),
        ("set", 3),
        ("set", [1]),
        ("seeds", ["1"]),
        ("set", ["network.racks"]),
        ("compute", 1),
        ("stepped", 1),
        ("methods", "naive"),
    ],
)
def test_rerun_rejects_a_recorded_option_of_a_wrong_type(capsys: Capture, option: str, value: object) -> None:
    path = flow_result(capsys)
    edited(path, "provenance", "request", option, value=value)
    with pytest.raises(UnusableResultError):
        again(read_result(path), 1)


def test_rerun_reports_a_missing_file(capsys: Capture) -> None:
    status, _, err = rerun(capsys, Path("nothing.json"))
    assert (status, err) == (2, "blast: nothing.json: No such file or directory: name another file\n")


# --------------------------------------------------------------------------------------------------- tables


@pytest.mark.parametrize("table", [CDF, COMPLETIONS])
def test_table_of_a_replay_repeats(capsys: Capture, table: str) -> None:
    content = json.loads(replay_result(capsys, "--policy", "paper,smith").read_text())
    text = io.StringIO("".join(f"# {key}: {json.dumps(value)}\n" for key, value in content["provenance"].items()))
    text.seek(0, io.SEEK_END)
    rows = tables(content["policies"])[table]
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    path = Path("table.csv")
    path.write_text(text.getvalue())
    status, out, _ = rerun(capsys, path)
    assert status == 0 and out.splitlines()[-1] == f"{len(rows)} results: {len(rows)} identical"


def test_distribution_ends_with_all_multicasts(capsys: Capture) -> None:
    policies = json.loads(replay_result(capsys).read_text())["policies"]
    rows = tables(policies)[CDF]
    assert [row["seconds"] for row in rows] == sorted(one["seconds"] for one in policies[0]["completions"])
    assert rows[0]["share"] == 1 / len(rows) and rows[-1]["share"] == 1.0
