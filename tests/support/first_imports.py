"""Who compiles what in a fresh clone: every worker begins with files of its own, and finds the others' bytecode after.

All workers collect all files, in one order, so that each would compile, and rewrite the assertions of, all of them.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import pytest

T = TypeVar("T")


def share_of(worker: int, workers: int, everything: Sequence[T]) -> Sequence[T]:
    """Those of one worker; together they have all, and nothing twice."""
    return everything[worker::workers]


def import_share(config: pytest.Config) -> None:
    """Import what falls to this worker, where it is one and all tests are asked for."""
    known = getattr(config, "workerinput", None)
    if known is None or config.args_source is not pytest.Config.ArgsSource.TESTPATHS:
        return
    folders = [config.rootpath / folder for folder in config.getini("testpaths")]
    files = sorted(file for folder in folders for file in folder.rglob("test_*.py"))
    for file in share_of(int(known["workerid"].removeprefix("gw")), known["workercount"], files):
        # What is wrong with a file, or why it is left out, is told when it is collected.
        with suppress(Exception, pytest.skip.Exception):
            importlib.import_module(_name(file, config.rootpath))


def _name(file: Path, root: Path) -> str:
    return ".".join(file.relative_to(root).with_suffix("").parts)
