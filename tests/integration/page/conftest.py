"""A browser, pages in it, and the controller's own HTTP server behind them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from blast_controller.core.model.events import FinishRequested, RequestSubmitted
from blast_controller.core.model.fabric import Fabric
from blast_controller.rpc.clients.access import AccessPolicy
from blast_controller.rpc.clients.identity import Identity, Role
from blast_controller.rpc.clients.tokens import digest_of
from tests.integration.page.browser import Window, chromium
from tests.support.controller.core import key_of, make_fabric, multicast
from tests.support.controller.live_server import LiveServer, More, live
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

POLICY = AccessPolicy(
    tokens={digest_of("operator-token"): Identity("default", Role.OPERATOR)}, features=frozenset({"login"})
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Yield a function that opens a server's page, logged in if a token is passed; errors in a page fail the test."""
    windows: list[Window] = []

    def opened(served: LiveServer, token: str = "", **options: object) -> Page:
        windows.append(Window(browser, **options))
        if token:
            windows[-1].log_in(served.url, token)
        windows[-1].page.goto(served.url)
        return windows[-1].page

    yield opened
    faults = [fault for window in windows for fault in window.faults()]
    for window in windows:
        window.close()
    assert not faults


@pytest.fixture
def serve() -> Iterator[Callable[..., LiveServer]]:
    with ExitStack() as stack:

        def served(fabric: Fabric | None = None, policy: AccessPolicy = POLICY, more: More | None = None) -> LiveServer:
            return stack.enter_context(live(fabric or make_fabric(6, [4, 2]), policy, more))

        yield served


@pytest.fixture
def served(serve: Callable[..., LiveServer]) -> LiveServer:
    return serve()


@pytest.fixture
def history(serve: Callable[..., LiveServer], tmp_path) -> LiveServer:
    """Return a server on which `old` was granted 60 s ago and ended 30 s ago, and `new` was granted 5 s ago."""
    served = serve(more=More(recording=tmp_path / "past", ago=60.0))
    served.log_in("operator-token")
    eventually(lambda: served.client.get("/past").json()["recording"], "the recording to begin")
    for ago, event in (
        (60.0, RequestSubmitted(multicast("old", "r1h1", ["r2h1"]))),
        (30.0, FinishRequested(key_of("old"), 0)),
        (5.0, RequestSubmitted(multicast("new", "r3h1", ["r4h1"]))),
    ):
        served.recorder.ago = ago
        served.handle(event)
    served.recorder.ago = 0.0

    def recorded() -> str:
        times = {"from": served.client.get("/past").json()["oldest"], "to": time.time()}
        return str(served.client.get("/past/changes", params=times).json())

    eventually(lambda: "default/new" in recorded(), "both requests to be recorded")
    return served
