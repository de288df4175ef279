"""Optional parts: the contents of each extra, and messages with the install command for missing ones."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from blast_base.extras import CONSTRAINTS, NotInstalledError, how_to_install, require
from tests.support.declared_commands import declared_commands

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXTRAS: dict[str, list[str]] = PROJECT["project"]["optional-dependencies"]
PACKAGES = [name.rstrip("*") for name in PROJECT["tool"]["setuptools"]["packages"]["find"]["include"]]
ONE_PLACE = ROOT / "blast_base" / "extras.py"
PRODUCTION = re.compile(
    r"pip install (--require-hashes -r requirements/(agent|controller)\.txt"
    r"|--no-deps --force-reinstall dist/blast_(controller|engine)-\*(_\"\$\(uname -m\)\")?\.whl)"
)
"""The commands of the guides for services: libraries by hash, then the wheel, then the compiled engine."""
IN_THE_BASE = {"blast_base", "blast_client", "blast_transport", "tl1_driver"}
INSTANCE = {
    "racks": 4,
    "ports_per_rack": 1,
    "splitters": [{"fan_out": 4, "count": 1}],
    "requests": [{"id": "a", "sender": 0, "receivers": [1, 2], "weight": 9}],
}
WITHOUT_MATPLOTLIB = """
import sys
class Nowhere:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "matplotlib":
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Nowhere())
import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "matplotlib" else found(name, *rest)
from blast_client.cli.command import main
raise SystemExit(main(sys.argv[1:]))
"""


def sources() -> Iterator[Path]:
    for package in PACKAGES:
        yield from (ROOT / package).rglob("*.py")


def guides() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def calls_of(file: Path, *names: str) -> Iterator[ast.Call]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names:
            yield node


# ------------------------------------------------------------------------------------------------------ messages


def test_only_one_file_states_how_to_install_an_extra() -> None:
    guilty = [str(file.relative_to(ROOT)) for file in sources() if re.search(r"pip install.*\[", file.read_text())]
    assert guilty == [str(ONE_PLACE.relative_to(ROOT))]


def test_no_text_suggests_installing_the_unpublished_package() -> None:
    name = PROJECT["project"]["name"]
    command = re.compile(rf"pip install[^\n]*{re.escape(name)}")
    everything = [*sources(), *guides(), *(ROOT / "clients").rglob("*.md"), *(ROOT / "packaging").rglob("*")]
    assert [
        str(file) for file in everything if file.is_file() and command.search(file.read_text(errors="replace"))
    ] == []


def test_every_extra_that_code_names_is_declared() -> None:
    calls = [call for file in sources() if file != ONE_PLACE for call in calls_of(file, "how_to_install", "require")]
    named = {call.args[0].value for call in calls if isinstance(call.args[0], ast.Constant)}
    assert {"cluster", "fast", "figures", "sealed", "sim", "ssh", "ssh-switches"} <= named <= set(EXTRAS)


@pytest.mark.parametrize("command", declared_commands(), ids=lambda command: command.name)
def test_uninstalled_command_names_a_declared_extra(command) -> None:
    if command.module.partition(".")[0] not in IN_THE_BASE:
        assert next(iter(command.extras), command.name) in EXTRAS


@pytest.mark.parametrize("guide", guides(), ids=lambda guide: guide.name)
def test_guides_install_from_the_checkout_with_tested_versions(guide: Path) -> None:
    for words in re.findall(r"pip install[^`\n]*", guide.read_text()):
        if PRODUCTION.match(words):
            continue
        assert f"-c {CONSTRAINTS} " in words, words
        extras = re.findall(r"'\.\[([a-z,-]+)\]'", words)
        assert extras or words.endswith(" ."), words
        assert {extra for found in extras for extra in found.split(",")} <= set(EXTRAS)


def test_missing_libraries_are_reported_in_one_sentence() -> None:
    require("sim", "json")
    with pytest.raises(NotInstalledError) as refusal:
        require("sim", "json", "no_such_library", "nor_this_one")
    assert str(refusal.value) == f"no_such_library, nor_this_one not installed: {how_to_install('sim')}"


# ------------------------------------------------------------------------------------------------- the tested versions


def pins(file: str) -> list[str]:
    lines = (ROOT / "requirements" / file).read_text().splitlines()
    return [line.removesuffix("\\").strip() for line in lines if re.match(r"[A-Za-z0-9._-]+==", line)]


def test_constraints_equal_tested_versions() -> None:
    text = (ROOT / CONSTRAINTS).read_text()
    names = {pin.partition("==")[0] for pin in pins("dev.txt")}
    of_spark = [pin for pin in pins("spark.txt") if pin.partition("==")[0] not in names]
    assert text.splitlines() == pins("dev.txt") + of_spark, "run scripts/pin-constraints"
    assert "--hash" not in text and "://" not in text


def test_the_constraints_cover_every_extra() -> None:
    required = {*PROJECT["project"]["dependencies"]}
    required |= {one for extra, ones in EXTRAS.items() if extra not in {"ryu", "dev"} for one in ones}
    names = {re.split(r"[\[<>=!~ ]", one)[0].lower() for one in required} - {PROJECT["project"]["name"]}
    assert names <= {pin.partition("==")[0].lower() for pin in pins("constraints.txt")}


@pytest.mark.parametrize("file", ["agent.txt", "controller.txt", "build.txt"])
def test_production_requirements_are_tested_and_pinned_by_hash(file: str) -> None:
    text = (ROOT / "requirements" / file).read_text()
    tested = {pin.partition(" ")[0] for pin in pins("dev.txt")}
    assert set(pins(file)) <= tested and pins(file)
    assert text.count("==") == len(re.findall(r"==.* \\\n    --hash=sha256:", text))
    assert "://" not in text


# ------------------------------------------------------------------------------------------------ what needs matplotlib


def without_matplotlib(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", WITHOUT_MATPLOTLIB, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("how", [(), ("--exact",)])
def test_plan_needs_no_drawing_library(tmp_path: Path, how: tuple[str, ...]) -> None:
    (tmp_path / "instance.json").write_text(json.dumps(INSTANCE))
    done = without_matplotlib("plan", "instance.json", "--json", *how, folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert [one["id"] for one in json.loads(done.stdout)["selected"]] == ["a"]


@pytest.mark.parametrize(
    "words",
    [
        ("figures", "allocation", "--quick"),
        ("figures", "blast", "--quick"),
        ("figures", "pipeline", "--quick"),
        ("figures", "balanced"),
        ("sim", "replay", "sample", "--figure", "out"),
    ],
    ids=" ".join,
)
def test_missing_matplotlib_is_reported_before_calculation(tmp_path: Path, words: tuple[str, ...]) -> None:
    done = without_matplotlib(*words, folder=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"blast: matplotlib not installed: {how_to_install('figures')}\n"
    assert list(tmp_path.iterdir()) == []
