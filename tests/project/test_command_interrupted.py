"""Ctrl-C while `blast` is still loading: status 130 and no output, at any time."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from tests.support.interrupted import TIMEOUT, ended, started
from tests.support.waiting import eventually

LOADING = """
import pathlib, time
pathlib.Path({mark!r}).touch()
time.sleep(600)
"""
TIDYING = """
import pathlib, time

class Dropped:
    def __del__(self):
        pathlib.Path({mark!r}).touch()
        time.sleep(600)

Dropped()
time.sleep(600)
"""


@pytest.mark.parametrize("code", [LOADING, TIDYING], ids=["importing", "in a finalizer"])
@pytest.mark.parametrize("module", ["argparse", "thrift"])
def test_interrupt_during_import_exits_silently_with_130(tmp_path, code, module):
    """The first module is needed by `blast` itself, the other by the command that was asked for."""
    mark = tmp_path / "reached"
    folder = tmp_path / "path"
    folder.mkdir()
    (folder / f"{module}.py").write_text(code.format(mark=str(mark)))
    with started("status", environment={"PYTHONPATH": str(folder)}) as process:
        eventually(mark.exists, f"{module} to be loaded", within=TIMEOUT)
        assert ended(process) == (130, "", "")


def test_blast_command_starts_in_start_module():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["scripts"] == {"blast": "blast_client.cli.start:main"}
