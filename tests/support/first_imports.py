"""The distribution of compilation in a fresh clone: every worker starts with different files.

All workers collect all files. In the same order, each worker would compile all files and rewrite their assertions.
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
    """Return the files of one worker; the shares are disjoint and cover all files."""
    return everything[worker::workers]


def import_share(config: pytest.Config) -> None:
    """Import this worker's share, if the run has workers and selects all tests."""
    known = getattr(config, "workerinput", None)
    if known is None or config.args_source is not pytest.Config.ArgsSource.TESTPATHS:
        return
    folders = [config.rootpath / folder for folder in config.getini("testpaths")]
    files = sorted(file for folder in folders for file in folder.rglob("test_*.py"))
    for file in share_of(int(known["workerid"].removeprefix("gw")), known["workercount"], files):
        # The collection reports errors of a file, and why it is skipped.
        with suppress(Exception, pytest.skip.Exception):
            importlib.import_module(_name(file, config.rootpath))


def _name(file: Path, root: Path) -> str:
    return ".".join(file.relative_to(root).with_suffix("").parts)
