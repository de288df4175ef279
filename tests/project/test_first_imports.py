"""The files that each worker of a test run imports and compiles first."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.first_imports import import_share, share_of

WORKERS = 3


@pytest.fixture
def imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., set[str]]:
    """Return a function that imports a worker's share of eight files, and returns the names of the imported ones.

    Two of the files fail to import.
    """
    folder = tmp_path / "some_tests"
    folder.mkdir()
    for number in range(8):
        (folder / f"test_{number}.py").write_text("")
    (folder / "test_3.py").write_text("raise RuntimeError('wrong')\n")
    (folder / "test_4.py").write_text("import pytest\npytest.skip('not here', allow_module_level=True)\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    def ask(source: pytest.Config.ArgsSource = pytest.Config.ArgsSource.TESTPATHS, **known: Any) -> set[str]:
        config: Any = SimpleNamespace(
            rootpath=tmp_path, args_source=source, getini=lambda name: {"testpaths": ["some_tests"]}[name], **known
        )
        try:
            import_share(config)
            return {name.partition(".")[2] for name in sys.modules if name.startswith("some_tests.")}
        finally:
            for name in [name for name in sys.modules if name.partition(".")[0] == "some_tests"]:
                del sys.modules[name]

    return ask


def of(worker: int) -> dict[str, Any]:
    return {"workerid": f"gw{worker}", "workercount": WORKERS}


@pytest.mark.parametrize("files", [0, 1, 2, 3, 10])
def test_each_file_belongs_to_one_worker(files: int) -> None:
    shares = [share_of(worker, WORKERS, range(files)) for worker in range(WORKERS)]
    assert sorted(file for share in shares for file in share) == list(range(files))


def test_worker_imports_its_share_despite_failing_files(imported: Callable[..., set[str]]) -> None:
    assert [imported(workerinput=of(worker)) for worker in range(WORKERS)] == [
        {"test_0", "test_6"},
        {"test_1", "test_7"},
        {"test_2", "test_5"},
    ]


def test_single_process_or_named_tests_import_no_share(imported: Callable[..., set[str]]) -> None:
    assert imported() == set()
    assert imported(pytest.Config.ArgsSource.ARGS, workerinput=of(0)) == set()
