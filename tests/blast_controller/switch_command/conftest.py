"""Certificates and files for tests of `blast switch probe`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.certificates import Authority


@pytest.fixture(scope="module")
def authority(tmp_path_factory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"), "ca")


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Return a folder with the files `password` and `wrong`, which only their owner may read."""
    for name, text in (("password", "open sesame"), ("wrong", "guess")):
        (tmp_path / name).write_text(f"{text}\n")
        (tmp_path / name).chmod(0o600)
    return tmp_path
