"""Ctrl-C while `blast` is still loading: status 130, not a word, wherever it strikes."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from tests.support.interrupted import PATIENCE, ended, started
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


@pytest.mark.parametrize("what", [LOADING, TIDYING], ids=["importing", "in what Python tidies up"])
@pytest.mark.parametrize("module", ["argparse", "thrift"])
def test_an_interrupt_while_it_loads(tmp_path, what, module):
    """The first module is needed by `blast` itself, the other by the command that was asked for."""
    mark = tmp_path / "reached"
    folder = tmp_path / "path"
    folder.mkdir()
    (folder / f"{module}.py").write_text(what.format(mark=str(mark)))
    with started("status", environment={"PYTHONPATH": str(folder)}) as process:
        eventually(mark.exists, f"{module} to be loaded", within=PATIENCE)
        assert ended(process) == (130, "", "")


def test_that_is_where_the_command_starts():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["scripts"] == {"blast": "blast_client.cli.start:main"}
