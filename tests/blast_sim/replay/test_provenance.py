"""Provenance of every result, which is the only difference between two runs."""

from __future__ import annotations

import json
import os
import platform
import re
from pathlib import Path

import pytest

from blast_client.cli.command import main
from blast_sim.base.provenance import Origin, Recording, of_comment_lines
from blast_sim.base.report import as_csv, from_csv
from blast_sim.base.software import checkout, code_version
from blast_sim.fabric.simulator import VARIABLE
from tests.blast_sim.fabric import test_fabric_command
from tests.blast_sim.flow.test_flow_scenarios import SMALL
from tests.blast_sim.planning.test_balanced_command import FIGURE_2
from tests.blast_sim.planning.test_plan import document
from tests.support.simulators.fake_rack_fabric import write_fake
from tests.support.simulators.results import results_of

KEYS = [
    "blast", "command", "date", "duration", "engine", "format", "kind", "machine", "plugins", "request", "seeds",
]  # fmt: skip
COMMANDS = {
    "flow": ["sim", "flow", "flow.toml", "--methods", "naive", "--processes", "1", "--json"],
    "replay": ["sim", "replay", "sample", "--first", "3", "--processes", "1", "--json"],
    "fabric": ["sim", "fabric", "fabric.toml", "--processes", "1", "--json"],
    "plan": ["plan", "instance.json", "--json"],
    "trees": ["trees", "network.json", "--json"],
    "fabric plan": [
        "fabric", "plan", "--racks", "24", "--workload", "S-many", "--groups", "4", "--samples", "1", "--json",
    ],
}  # fmt: skip


@pytest.fixture
def inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(VARIABLE, str(write_fake(tmp_path)))
    (tmp_path / "flow.toml").write_text(SMALL)
    (tmp_path / "fabric.toml").write_text(test_fabric_command.SMALL)
    (tmp_path / "instance.json").write_text(json.dumps(document()))
    (tmp_path / "network.json").write_text(json.dumps(FIGURE_2))
    return tmp_path


@pytest.mark.usefixtures("inputs")
@pytest.mark.parametrize("kind", COMMANDS)
def test_every_json_result_has_provenance(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(COMMANDS[kind]) == 0
    out = capsys.readouterr().out
    record = json.loads(out)["provenance"]
    assert list(record) == KEYS
    assert (record["format"], record["kind"], record["plugins"]) == (1, kind, [])
    assert record["blast"]["code"] == code_version()
    assert record["engine"]["solver"] in ("numba", "numpy")
    assert {"python", "numpy", "highspy", "networkx", "pulp"} <= set(record["engine"]["versions"])
    assert (record["engine"]["rack_fabric"] is not None) is (kind == "fabric")
    assert record["machine"]["cores"] == os.cpu_count() and record["machine"]["cpu"]
    assert record["duration"]["wall_seconds"] >= 0 and record["duration"]["cpu_seconds"] >= 0
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", record["date"])
    assert f'"{platform.node()}"' not in out, "no result names the machine's host"


@pytest.mark.usefixtures("inputs")
@pytest.mark.parametrize("kind", ["flow", "replay", "fabric", "trees", "fabric plan"])
def test_results_are_reproducible_except_for_provenance(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = []
    words = [*COMMANDS[kind], "--compute", "recorded"] if kind in ("flow", "replay") else COMMANDS[kind]
    for _ in range(2):
        assert main(words) == 0
        found.append(json.dumps(results_of(capsys.readouterr().out)))
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("kind", "place", "file"),
    [("flow", "scenario", "flow.toml"), ("plan", "instance", "instance.json"), ("trees", "network", "network.json")],
)
def test_request_holds_the_whole_input_and_its_digest(
    inputs: Path, kind: str, place: str, file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from hashlib import sha256

    assert main(COMMANDS[kind]) == 0
    record = json.loads(capsys.readouterr().out)["provenance"]["request"][place]
    data = (inputs / file).read_bytes()
    assert record == {"name": file, "text": data.decode(), "sha256": sha256(data).hexdigest()}


@pytest.mark.usefixtures("inputs")
@pytest.mark.parametrize("kind", ["flow", "fabric"])
def test_csv_begins_with_provenance_and_reads_as_before(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*COMMANDS[kind][:-1], "--csv"]) == 0
    out = capsys.readouterr().out
    lines = out.splitlines()
    assert [line.partition(":")[0] for line in lines[: len(KEYS)]] == [f"# {key}" for key in KEYS]
    record, rows = from_csv(out)
    assert list(record) == KEYS and record["kind"] == kind
    assert lines[len(KEYS)].split(",") == list(rows[0]) and len(lines) == len(KEYS) + 1 + len(rows)


def test_csv_keeps_lines_and_quotes_of_a_scenario() -> None:
    text = 'title = "a \\u2028 # b"\n\n# a comment, "quoted"\u2028\u0085end'
    provenance = Recording().provenance(Origin("flow", {"scenario": {"text": text}}))
    record, rest = of_comment_lines(as_csv([{"a": 1, "b": "# no comment"}], provenance))
    assert record == json.loads(provenance.as_metadata()) and record["request"]["scenario"]["text"] == text
    assert rest == "a,b\n1,# no comment\n"


def test_kept_cell_has_provenance(inputs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*COMMANDS["flow"], "--backgrounds", "none", "--keep", "kept"]) == 0
    capsys.readouterr()
    (kept,) = (inputs / "kept").iterdir()
    content = json.loads(kept.read_text())
    assert list(content) == ["provenance", "title", "rows"]
    assert content["provenance"]["kind"] == "flow cell"
    assert content["provenance"]["request"]["method"] == "naive"
    assert content["provenance"]["request"]["scenario"]["model"]["network"]["racks"] == 6


def test_checkout_is_named_by_its_commit() -> None:
    found = checkout()
    if not (Path(__file__).parents[3] / ".git").exists():
        assert found is None
    else:
        assert found is not None and re.fullmatch(r"[0-9a-f]{40,64}", found.commit)


@pytest.mark.parametrize("kind", ["svg", "png", "pdf"])
def test_picture_metadata_is_stable_text(kind: str) -> None:
    provenance = Recording().provenance(Origin("flow", {"b": 1, "a": 2}, (1, 2)))
    found = provenance.picture_metadata(kind)
    (text,) = (value for value in found.values() if value is not None)
    assert json.loads(text) == json.loads(json.dumps(provenance.as_dict()))
    assert text == json.dumps(json.loads(text), sort_keys=True)
