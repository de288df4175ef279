"""Policies and methods outside the package: lookup by name, checks and errors."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from algorithms.scheduling import POLICIES
from blast_client.cli.command import main
from blast_sim.base.report import Row
from blast_sim.base.scenario_file import ScenarioSource
from blast_sim.base.wrong_input import InputError, PluginFailedError
from blast_sim.plugins import INTERFACE_VERSION
from blast_sim.plugins.loading import (
    PluginAttributeError,
    PluginError,
    PluginMissingError,
    PluginTypeError,
    PluginVersionError,
    is_plugin,
    plugins_of,
    require_plugin,
)
from blast_sim.scenarios.loading import load
from tests.blast_sim.planning.test_plan import document
from tests.support.simulators.plugin_modules import CONTENDED, METHOD, NARROWEST, POLICY, WIDEST, write_module
from tests.support.simulators.results import results_of

EXAMPLE = Path(__file__).parents[3] / "examples" / "research" / "plugins"


@pytest.fixture(autouse=True)
def own_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Run a test in its own folder, and restore the module search path and the policies afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    before = dict(POLICIES)
    yield
    POLICIES.clear()
    POLICIES.update(before)


def flow(capsys: pytest.CaptureFixture[str], *words: str) -> list[Row]:
    assert main(["sim", "flow", "mine.toml", "--compute", "1", "--processes", "1", "--json", *words]) == 0
    rows: list[Row] = results_of(capsys.readouterr().out)["cells"]
    return rows


# ------------------------------------------------------------------------------------------------------ use


def test_flow_simulation_uses_a_policy_by_its_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.toml").write_text(CONTENDED)
    widest, narrowest = (write_module(tmp_path, POLICY.format(key=key)) for key in (WIDEST, NARROWEST))
    rows = flow(capsys, "--policy", f"paper,{widest}:Mine,{narrowest}:Mine")
    assert [row["policy"] for row in rows] == ["paper", f"{widest}:Mine", f"{narrowest}:Mine"]
    assert rows[1]["seconds"] > rows[2]["seconds"]


def test_flow_simulation_uses_a_method_by_its_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.toml").write_text(CONTENDED.replace('"blast"', '"naive"'))
    name = write_module(tmp_path, METHOD.format(factor=2))
    naive, mine = flow(capsys, "--method", f"naive,{name}:mine")
    assert mine["method"] == f"{name}:mine"
    assert mine["seconds"] == pytest.approx(2 * naive["seconds"])


def test_scenario_file_names_plugins(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    policy, method = (
        write_module(tmp_path, POLICY.format(key=NARROWEST)),
        write_module(tmp_path, METHOD.format(factor=1)),
    )
    text = CONTENDED.replace('["paper"]', f'["{policy}:Mine"]').replace('["blast"]', f'["blast", "{method}:mine"]')
    (tmp_path / "mine.toml").write_text(text)
    assert [row["method"] for row in flow(capsys)] == ["blast", f"{method}:mine"]


def test_plugin_error_names_the_line_of_the_scenario_file() -> None:
    with pytest.raises(InputError, match=r"^mine\.toml:22: run\[1\]\.policies\[1\]: the module nowhere of the policy"):
        load(ScenarioSource("mine.toml", CONTENDED.replace('["paper"]', '["nowhere:Mine"]')))


@pytest.mark.parametrize("processes", ["1", "2"])
def test_replay_uses_a_plugin_policy_and_records_its_digest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], processes: str
) -> None:
    name = write_module(tmp_path, POLICY.format(key=NARROWEST))
    words = ["--first", "12", "--splitters", "2", "--policy", f"paper,{name}:Mine", "--processes", processes, "--json"]
    assert main(["sim", "replay", "contended", *words]) == 0
    record = json.loads(capsys.readouterr().out)
    assert [row["policy"] for row in record["policies"]] == ["paper", f"{name}:Mine"]
    assert record["provenance"]["plugins"] == [
        {"kind": "policy", "name": f"{name}:Mine", "sha256": plugins_of(f"{name}:Mine")[0].sha256}
    ]


def test_plan_uses_the_order_of_a_plugin_policy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "instance.json").write_text(json.dumps(document()))
    name = write_module(tmp_path, POLICY.format(key="job.group.weight"))
    assert main(["plan", "instance.json", "--policy", f"{name}:Mine", "--json"]) == 0
    assert results_of(capsys.readouterr().out)["selected"][0]["id"] == "b"
    assert main(["plan", "instance.json", "--policy", "edf"]) == 2
    assert "--policy 'edf' does not apply to a single decision" in capsys.readouterr().err


def test_example_runs_by_names_and_by_entry_points(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Run the commands of its README; a folder with entry points stands for an installed package."""
    monkeypatch.chdir(EXAMPLE)
    (tmp_path / "mine.toml").write_text(CONTENDED.replace('["blast"]', '["naive", "blast"]'))
    example = "narrow_relay.policies:NarrowestFirst", "narrow_relay.methods:relay", "narrow_relay.methods:BinaryTree"
    words = ["sim", "flow", str(tmp_path / "mine.toml"), "--compute", "1", "--processes", "1", "--json"]
    methods = ["--method", f"naive,blast,{example[1]},{example[2]}"]
    assert main([*words, *methods, "--policy", f"paper,{example[0]}"]) == 0
    by_names = results_of(capsys.readouterr().out)["cells"]
    seconds = {(row["method"], row["policy"]): row["seconds"] for row in by_names}
    assert len(seconds) == 5 and seconds[example[1], ""] < seconds["naive", ""]

    site = tmp_path / "site"
    (site / "narrow_relay-1.0.dist-info").mkdir(parents=True)
    (site / "narrow_relay-1.0.dist-info" / "METADATA").write_text("Name: narrow-relay\nVersion: 1.0\n")
    points = "[blast.policies]\nnarrowest = {}\n[blast.methods]\nrelay = {}\nbinary-tree = {}\n".format(*example)
    (site / "narrow_relay-1.0.dist-info" / "entry_points.txt").write_text(points)
    monkeypatch.syspath_prepend(str(site))
    importlib.invalidate_caches()
    assert main([*words, "--method", "naive,blast,relay,binary-tree", "--policy", "paper,narrowest"]) == 0
    by_points = results_of(capsys.readouterr().out)["cells"]
    assert [row["seconds"] for row in by_points] == [row["seconds"] for row in by_names]
    assert {row["policy"] for row in by_points} == {"", "paper", "narrowest"}


# --------------------------------------------------------------------------------------------------- faults


@pytest.mark.parametrize(
    ("text", "attribute", "error", "message"),
    [
        ("", "Mine", PluginAttributeError, "has no 'Mine'"),
        ("interface = 1\nMine = 3", "Mine", PluginTypeError, "must be a subclass of blast_sim.plugins.Policy"),
        (METHOD.format(factor=1), "mine", PluginTypeError, "is not a policy"),
        (POLICY.format(key="0").replace("interface = 1", ""), "Mine", PluginVersionError, "states no interface"),
        (
            POLICY.format(key="0").replace("interface = 1", "interface = 2"),
            "Mine",
            PluginVersionError,
            "is written for the interface 2, and this version of Blast has 1",
        ),
        ("import no_such_library", "Mine", PluginMissingError, "needs the module no_such_library"),
    ],
)
def test_unusable_policy_raises_its_error(
    tmp_path: Path, text: str, attribute: str, error: type[PluginError], message: str
) -> None:
    name = write_module(tmp_path, text)
    with pytest.raises(error, match=message) as found:
        require_plugin("policy", f"{name}:{attribute}")
    assert isinstance(found.value, InputError) and name in str(found.value)


@pytest.mark.parametrize("name", ["nowhere:Mine", "nowhere.inside:Mine", "Mine:", ":Mine", "unknown"])
def test_unknown_plugin_raises_missing_error(name: str) -> None:
    for kind in ("policy", "method"):
        with pytest.raises(PluginMissingError):
            require_plugin(kind, name)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["mine = 3", "class mine: pass", POLICY.format(key="0") + "mine = Mine"])
def test_method_of_a_wrong_type_is_rejected(tmp_path: Path, text: str) -> None:
    name = write_module(tmp_path, f"{text}\ninterface = {INTERFACE_VERSION}\n")
    with pytest.raises(PluginTypeError, match="is not a method: it must be a function"):
        require_plugin("method", f"{name}:mine")


def test_built_in_and_unknown_names_are_no_plugins() -> None:
    assert is_plugin("policy", "a:b") and is_plugin("method", "a:b")
    assert not any(is_plugin("policy", name) for name in (*POLICIES, "unknown", ""))


def test_import_error_of_a_plugin_names_it(tmp_path: Path) -> None:
    name = write_module(tmp_path, "interface = 1\n1 / 0\n")
    with pytest.raises(
        PluginFailedError, match=rf"the policy {name}:Mine raised ZeroDivisionError \({name}.py, line 2"
    ):
        require_plugin("policy", f"{name}:Mine")


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("1 / 0", "raised ZeroDivisionError ({name}.py, line 8, in key): division by zero. This is an error of the"),
        ("'soon'", "returned 'soon' from key, which must be a number"),
        ("float('nan')", "returned nan from key, which must be a number"),
    ],
)
def test_error_of_a_failing_policy_names_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], key: str, message: str
) -> None:
    (tmp_path / "mine.toml").write_text(CONTENDED)
    name = write_module(tmp_path, POLICY.format(key=key))
    expected = f"the policy {name}:Mine {message.format(name=name)}"
    assert main(["sim", "flow", "mine.toml", "--compute", "1", "--processes", "1", "--policy", f"{name}:Mine"]) == 1
    assert expected in capsys.readouterr().err
    assert main(["sim", "replay", "sample", "--first", "3", "--policy", f"paper,{name}:Mine", "--processes", "2"]) == 1
    assert expected in capsys.readouterr().err


LATE = """\
interface = 1


class mine:
    def __init__(self, world):
        self.world = world

    def send(self, multicast, done):
        self.world.simulation.clock.at(1.0, self.fail)

    def fail(self):
        raise KeyError("later")
"""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (METHOD.format(factor="'x'"), "raised TypeError"),
        ("interface = 1\ndef mine(world, multicast):\n    return 3\n", "returned 3, which must be a list of phases"),
        (LATE, "raised KeyError"),
    ],
)
def test_error_of_a_failing_method_names_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, message: str
) -> None:
    (tmp_path / "mine.toml").write_text(CONTENDED)
    name = write_module(tmp_path, text)
    assert main(["sim", "flow", "mine.toml", "--processes", "1", "--method", f"{name}:mine"]) == 1
    assert f"the method {name}:mine {message}" in capsys.readouterr().err
