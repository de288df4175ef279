"""The live page in a real browser: its display of the current state, and its reconnection to the controller."""

from __future__ import annotations

import re

import pytest

from blast_client.fabric.svg import fabric_svg
from blast_controller.core.model.events import (
    DeviceDisconnected,
    ElementQuarantined,
    ExtendRequested,
    FinishRequested,
    ProgressReported,
)
from blast_controller.core.model.fabric import Fabric
from blast_controller.core.model.identifiers import ElementId, SwitchId
from blast_controller.core.model.requests import Extension
from blast_controller.process import http_services as http_side
from blast_controller.rpc.clients.access import OPEN_POLICY
from blast_controller.rpc.fabric_reading import FabricReading
from tests.integration.page.browser import has, has_text, hidden, is_live, is_titled, number_of, request_row, visible
from tests.support.controller.core import key_of, make_fabric, multicast
from tests.support.controller.live_server import More, live

pytestmark = pytest.mark.browser


@pytest.fixture
def served(serve):
    return serve(policy=OPEN_POLICY)


class Leader:
    """The leader beside the controller of a test, which is a standby."""

    def __init__(self, name: str) -> None:
        self._name = name

    def leader(self) -> str:
        return self._name

    def age(self) -> float:
        return 0.4


def test_page_shows_changes_without_reload(open_page, served):
    page = open_page(served)
    is_live(page)
    visible(page.get_by_text("No light trees."))
    served.submit(multicast("train", "r1h1", ["r2h1", "r3h1", "r4h1"], size=1000))
    tree = page.locator("[data-tree]")
    has(tree, "data-state", "lit")
    has_text(request_row(page, "train"), "active")
    served.handle(ProgressReported(key_of("train"), 0, 420))
    has_text(request_row(page, "train"), "42 %")
    served.lab.devices.held = []
    served.handle(ExtendRequested(key_of("train"), Extension(add_receivers=("r5h1",))))
    has(tree, "data-state", "changing")
    served.lab.devices.release()
    served.handle(FinishRequested(key_of("train"), 0))
    number_of(tree, 0)
    has_text(request_row(page, "train"), "done")


def lights(svg: str) -> list[str]:
    """Return the joined light paths of each tree of a picture."""
    groups = re.findall(r"<g><title>tree .*?</g>", svg)
    return ["".join(re.findall(r'<path class="light"[^>]* d="([^"]*)"', group)) for group in groups]


@pytest.mark.parametrize(
    "fabric",
    [make_fabric(40, [4] * 12), make_fabric(6, [4, 4], switches=2)],
    ids=["rows, with bends", "two switches"],
)
def test_picture_equals_svg_of_command_line(open_page, serve, fabric: Fabric):
    served = serve(fabric, OPEN_POLICY)
    for number, receivers in enumerate((["r2h1", "r3h1"], ["r5h1", "r6h1", "r4h2"], ["r1h1"])):
        served.submit(multicast(f"k{number}", f"r{number + 4}h2", receivers))
    svg = fabric_svg(FabricReading().read(served.lab.runtime.snapshot, None))
    expected = lights(svg)
    assert expected and all(expected)
    page = open_page(served)
    number_of(page.locator("[data-tree]"), len(expected))
    drawn = page.locator("[data-tree] .light").evaluate_all("paths => paths.map(path => path.getAttribute('d'))")
    assert drawn == expected
    (group,) = re.findall(r'<g class="fiber".*?</g>', svg)
    fibers = re.findall(r' d="([^"]*)"', group)
    paths = page.locator(".ground .fiber").evaluate_all("paths => paths.map(path => path.getAttribute('d'))")
    assert fibers and sorted(re.findall("M[^M]*", "".join(paths))) == sorted(fibers)


def test_selection_applies_to_table_picture_and_details(open_page, served):
    served.submit(multicast("a", "r1h1", ["r2h1"]), multicast("b", "r3h1", ["r4h1", "r5h1"]))
    page = open_page(served)
    request_row(page, "b").click()
    number_of(page.locator("[data-tree].chosen"), 1)
    number = page.locator("[data-tree].chosen").get_attribute("data-tree")
    details = page.locator("#details")
    has_text(details, "Request b")
    details.get_by_role("button", name=number, exact=True).click()
    has_text(details, f"Light tree {number}")
    details.get_by_role("button", name="r4", exact=True).click()
    has_text(details, "Rack r4")
    page.keyboard.press("Escape")
    hidden(details)


def test_details_explain_pending_request(open_page, served):
    served.submit(multicast("a", "r1h1", ["r2h1"]), multicast("b", "r3h1", ["r2h1", "r4h1"]))
    page = open_page(served)
    request_row(page, "b").click()
    has_text(page.locator("#details"), "The request b waits for a free optical port of r2.")
    has_text(page.locator("#details"), "Remove the rack r2")


def test_title_counts_alarms_and_panel_lists_them(open_page, served):
    page = open_page(served)
    is_live(page)
    is_titled(page, "Blast")
    served.handle(ElementQuarantined(ElementId("port:r2/50"), "dirty connector"))
    served.handle(DeviceDisconnected(SwitchId("ocs1"), "connection lost"))
    is_titled(page, "(2) Blast")
    has_text(page.locator("#alarms-announced"), "dirty connector")
    page.locator("#alarms-button").click()
    has_text(page.locator("#alarms"), "switch:ocs1 is disconnected: connection lost")
    page.locator("#elements-tab").click()
    page.locator("#elements-choice").select_option("trouble")
    number_of(page.locator("#elements-body").get_by_role("row"), 2)


def test_page_shows_standby_role_leader_and_store_fault(open_page, served):
    page = open_page(served)
    is_live(page)
    served.epoch, served.lab.runtime.standby, served.lab.runtime.store_fault = 0, Leader("ctrl-b"), "disk full"
    has_text(page.locator("#notice-banner"), "the leader is ctrl-b")
    has_text(page.locator("#notice-banner"), "disk full")
    has_text(page.locator("#leader"), "standby")


def test_table_renders_only_visible_rows_of_many_requests(open_page, serve):
    served = serve(make_fabric(4), OPEN_POLICY)
    served.submit(*(multicast(f"k{number}", "r1h1", ["r2h1"]) for number in range(900)))
    page = open_page(served)
    has_text(page.locator("#requests-count"), "900")
    assert page.locator("#requests-body [role=row]").count() < 50
    page.locator("#requests-grid").focus()
    page.keyboard.press("End")
    visible(request_row(page, "k0").first)
    page.locator("#requests-filter").fill("k77 pending")
    has_text(page.locator("#requests-count"), "11 of 900")


def test_page_ignores_unknown_events_and_rows_of_newer_server(open_page, served):
    page = open_page(served)
    is_live(page)
    rows = b'{"clock": {"now": 0, "wall": 0}, "rows": {"comet/1": {"x": 1}, "weather": {}}}'
    served.send_raw(b"event: changes\ndata: " + rows + b"\n\nevent: horoscope\ndata: {}\n\n")
    served.submit(multicast("later", "r1h1", ["r2h1"]))
    has_text(request_row(page, "later"), "active")


def test_page_recovers_after_upgrade_and_offers_reload(open_page, monkeypatch):
    with live(make_fabric(6, [4, 2])) as first:
        first.submit(multicast("before", "r1h1", ["r2h1"]))
        page = open_page(first)
        has_text(request_row(page, "before"), "active")
        page.evaluate("window.here = true")
    has_text(page.locator("#away-banner"), "The controller is stopping.")
    has_text(page.locator("#away-banner"), "reconnects automatically")
    monkeypatch.setattr(http_side, "RELEASE", "99.0")
    with live(make_fabric(6, [4, 2]), more=More(port=first.port)) as second:
        second.submit(multicast("meanwhile", "r3h1", ["r4h1"]))
        is_live(page)
        hidden(page.locator("#away-banner"))
        has_text(request_row(page, "meanwhile"), "active")
        number_of(request_row(page, "before"), 0)
        assert page.evaluate("window.here"), "without a reload"
        has_text(page.locator("#upgrade-banner"), "release 99.0")
        page.get_by_role("button", name="Reload the page").click()
        is_live(page)
        hidden(page.locator("#upgrade-banner"))
