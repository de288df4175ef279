"""Fixtures that several files of unit tests share; the integration tests use `benchmarks_on_path` as well."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from blast_client import Client
from tests.support.memory_controller import MemoryController, serving

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def benchmarks_on_path() -> Iterator[None]:
    """Let a module's tests import the benchmark scripts and their packages."""
    sys.path.insert(0, str(BENCHMARKS))
    yield
    sys.path.remove(str(BENCHMARKS))


@pytest.fixture
def controller(monkeypatch: pytest.MonkeyPatch) -> Iterator[MemoryController]:
    """Serve a controller in memory that has one splitter; its `address` is where, and where commands look for it."""
    handler = MemoryController(splitters=1)
    with serving(handler) as (_, host, port):
        handler.address = f"{host}:{port}"
        monkeypatch.setenv("BLAST_CONTROLLER", handler.address)
        yield handler


@pytest.fixture
def client(controller: MemoryController) -> Iterator[Client]:
    """Connect a client to `controller`."""
    with Client(controller.address) as client:
        yield client
