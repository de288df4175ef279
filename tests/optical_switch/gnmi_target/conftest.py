"""Emulated switches for the tests of this folder."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.optical_switch.gnmi_target.raw_client import RawClient, connected

if TYPE_CHECKING:
    from optical_switch.emulator.gnmi_target.target import SonicOcsTarget

    Serve = Callable[..., AbstractAsyncContextManager[SonicOcsTarget]]


@pytest.fixture
def serve(tmp_path: Path) -> Serve:
    """Return the function that runs a switch, with 4 by 4 ports that are set at once unless it is given others."""
    pytest.importorskip("redis", reason="needs redis-py: pip install '.[sonic-ocs]'")
    if shutil.which("redis-server") is None:
        pytest.skip("needs redis-server: apt-get install redis-server")
    from optical_switch.emulator.gnmi_target.target import serve_sonic_ocs

    return partial(serve_sonic_ocs, tmp_path, inputs=4, outputs=4, connect_seconds=0.0)


@pytest.fixture
async def target(serve: Serve) -> AsyncIterator[SonicOcsTarget]:
    """Run a switch."""
    async with serve() as running:
        yield running


@pytest.fixture
async def client(target: SonicOcsTarget) -> AsyncIterator[RawClient]:
    """Connect a client to `target`."""
    async with connected(target.address) as one:
        yield one
