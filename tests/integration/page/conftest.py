"""A browser, a page in it, and what serves it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

from blast_controller.core.model.events import FinishAsked
from tests.support import browser as browsers
from tests.support.browser import Window
from tests.support.core import World, key_of, make_fabric, multicast, ready_world
from tests.support.page_server import PageServer

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsers.chromium() as found:
        yield found


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Opens an address; whatever has gone wrong in a page fails the test."""
    windows: list[Window] = []

    def opened(url: str, **options: object) -> Page:
        windows.append(Window(browser, **options))
        windows[-1].page.goto(url)
        return windows[-1].page

    yield opened
    faults = [fault for window in windows for fault in window.faults()]
    for window in windows:
        window.close()
    assert not faults


@pytest.fixture
def serve() -> Iterator[Callable[..., PageServer]]:
    servers: list[PageServer] = []

    def served(world: World, **options: object) -> PageServer:
        servers.append(PageServer(world, **options))
        servers[-1].start()
        return servers[-1]

    yield served
    for server in servers:
        server.stop()


@pytest.fixture
def world() -> World:
    return ready_world(make_fabric(6, [4, 2]))


@pytest.fixture
def history(world: World, serve) -> PageServer:
    """A minute ago `old` had light, half a minute ago it ended, and now `new` has light."""
    server = serve(world)
    now = time.time()
    server.recorded.clear()
    for wall, deed in (
        (now - 60, lambda: world.granted(multicast("old", "r1h1", ["r2h1"]))),
        (now - 30, lambda: world.handle(FinishAsked(key_of("old"), 0))),
        (now - 5, lambda: world.granted(multicast("new", "r3h1", ["r4h1"]))),
    ):
        server.wall = lambda wall=wall: wall
        deed()
        world.settle()
        server.publish()
    server.wall = time.time
    return server
