"""`blast --version` and `blast --help` load little; benchmarks/control_plane/command_start.py measures the time."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from blast_client.cli.command import _WITHOUT_SEARCH, build_parser, main
from blast_client.cli.summaries import SUMMARIES
from blast_client.cli.version import VERSION
from tests.support.declared_commands import declared_commands

ROOT = Path(__file__).resolve().parents[2]
MAX_MODULES = 43
"""Half of these come from argparse."""
ENGINES_MODULES = 8
"""Additional modules of `--version`, which lists the engines."""
HEAVY = {
    "asyncio", "blast_api", "blast_transport.blocks", "blast_transport.session", "dataclasses", "email",
    "importlib.metadata", "json", "logging", "shutil", "socket", "ssl", "subprocess", "thrift", "threading", "tqdm",
    "typing", "zipfile",
}  # fmt: skip
LOADED = """
import sys
before = set(sys.modules)
from blast_client.cli.command import main
status = main(sys.argv[1:])
loaded = sorted(set(sys.modules) - before)
sys.stderr.write("\\n".join(loaded))
sys.exit(status)
"""


@pytest.mark.parametrize("words", [("--version",), ("--help",), ("-h",), ()], ids=" ".join)
def test_version_and_help_load_few_modules(words: tuple[str, ...]) -> None:
    # Without site-packages, whose .pth files load what they like, and without an editable installation's finder.
    done = subprocess.run(
        [sys.executable, "-S", "-c", LOADED, *words], cwd=ROOT, capture_output=True, text=True, check=False
    )
    loaded = done.stderr.splitlines()
    assert HEAVY.isdisjoint(loaded), HEAVY.intersection(loaded)
    assert len(loaded) <= MAX_MODULES + ("--version" in words) * ENGINES_MODULES, loaded
    assert done.returncode == (0 if words else 2)


def test_send_without_controller_loads_neither_its_interface_nor_metadata_of_packages() -> None:
    code = (
        "import sys; before = set(sys.modules);"
        "import blast_client.cli.command, blast_client.send.command, blast_client.send.job;"
        "print(*set(sys.modules) - before)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    unneeded = {"blast_api", "blast_client.trees.guide", "blast_transport.measuring", "importlib.metadata", "tqdm"}
    assert unneeded.isdisjoint(done.stdout.split())


def test_commands_without_search_are_those_of_entry_points() -> None:
    declared = {entry_point.name: entry_point.value for entry_point in declared_commands()}
    assert {name: f"{module}:register" for name, module in _WITHOUT_SEARCH.items()}.items() <= declared.items()


def test_software_record_loads_no_numpy() -> None:
    # It was a third of the CPU time of a small run of the rack-fabric simulator, which does not calculate with it.
    code = "import sys; from blast_sim.base.software import software; software(); sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


def test_help_lists_every_command_with_summary(capsys: pytest.CaptureFixture[str], monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["--help"]) == 0
    lines = [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines() if line.startswith("    ")]
    assert lines == [[name, summary] for name, summary in SUMMARIES.items()]


def test_summaries_match_help_of_commands() -> None:
    (subparsers,) = (
        action
        for action in build_parser(declared_commands())._actions
        if isinstance(action, argparse._SubParsersAction)
    )
    assert {choice.dest: choice.help for choice in subparsers._choices_actions} == SUMMARIES
    assert list(SUMMARIES) == sorted(entry_point.name for entry_point in declared_commands())


def test_version_matches_distribution(capsys: pytest.CaptureFixture[str]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "blast_client.cli.version.VERSION"}
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == f"blast {VERSION}"


def test_package_loads_public_names_on_access() -> None:
    import blast_client
    from blast_client import public

    assert blast_client.Client is public.Client
    assert blast_client.__all__ is public.__all__
    with pytest.raises(AttributeError, match="no_such_thing"):
        _ = blast_client.no_such_thing
    functions = [name for name in public.__all__ if not name[:1].isupper()]
    assert sorted(functions) == sorted(blast_client._FUNCTIONS), "others are taken for modules"
    assert all(getattr(blast_client, name) is getattr(public, name) for name in public.__all__)
