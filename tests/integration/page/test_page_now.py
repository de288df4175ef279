"""The live page in a real browser: what is, and what it does when the controller comes and goes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from blast_client.fabric_svg import fabric_svg
from blast_controller.core.model.events import (
    ElementQuarantined,
    ExtensionAsked,
    FinishAsked,
    ProgressTold,
    RequestSubmitted,
)
from blast_controller.core.model.fabric import Fabric
from blast_controller.core.model.identifiers import ElementId
from blast_controller.core.model.requests import Extension
from blast_controller.rpc.fabric_reading import FabricReading
from tests.support.core import TENANT, key_of, make_fabric, multicast, ready_world
from tests.support.live_server import live
from tests.support.page_looks import has, hidden, is_live, is_titled, number_of, request_row, says, visible

if TYPE_CHECKING:
    pass

pytestmark = pytest.mark.browser


def test_what_happens_is_seen_without_a_reload(open_page, serve, world):
    server = serve(world)
    page = open_page(server.url)
    is_live(page)
    visible(page.get_by_text("No light tree now."))
    grant = world.granted(multicast("train", "r1h1", ["r2h1", "r3h1", "r4h1"], size=1000)).grant
    server.publish()
    tree = page.locator(f"[data-tree='{grant.reservation}']")
    has(tree, "data-state", "lit")
    says(request_row(page, "train"), "active")
    world.handle(ProgressTold(key_of("train"), 0, 420))
    server.publish()
    says(request_row(page, "train"), "42 %")
    world.handle(ExtensionAsked(key_of("train"), Extension(add_receivers=("r5h1",))))
    server.publish()
    has(tree, "data-state", "changing")
    world.settle()
    world.handle(FinishAsked(key_of("train"), 0))
    world.settle()
    server.publish()
    number_of(tree, 0)
    says(request_row(page, "train"), "done")


def lights(svg: str) -> list[str]:
    """Of each tree of a picture: the paths of its light, joined."""
    groups = re.findall(r"<g><title>tree .*?</g>", svg)
    return ["".join(re.findall(r'<path class="light"[^>]* d="([^"]*)"', group)) for group in groups]


@pytest.mark.parametrize(
    "fabric",
    [make_fabric(6, [4, 2, 4]), make_fabric(40, [4] * 12), make_fabric(6, [4, 4], switches=2)],
    ids=["one row", "rows, with bends", "two switches"],
)
def test_the_picture_is_that_of_the_command_line(open_page, serve, fabric: Fabric):
    world = ready_world(fabric)
    for number, receivers in enumerate((["r2h1", "r3h1"], ["r5h1", "r6h1", "r4h2"], ["r1h1"])):
        world.submit(multicast(f"k{number}", f"r{number + 4}h2", receivers))
        world.settle()
    server = serve(world)
    svg = fabric_svg(FabricReading().read(world.core.snapshot, None))
    wanted = lights(svg)
    assert wanted and all(wanted)
    page = open_page(server.url)
    number_of(page.locator("[data-tree]"), len(wanted))
    drawn = page.locator("[data-tree] .light").evaluate_all("paths => paths.map(path => path.getAttribute('d'))")
    assert drawn == wanted
    (group,) = re.findall(r'<g class="fibre".*?</g>', svg)
    fibres = re.findall(r' d="([^"]*)"', group)
    paths = page.locator(".ground .fibre").evaluate_all("paths => paths.map(path => path.getAttribute('d'))")
    assert fibres and sorted(re.findall("M[^M]*", "".join(paths))) == sorted(fibres)


def test_choosing_anywhere_chooses_everywhere(open_page, serve, world):
    world.granted(multicast("a", "r1h1", ["r2h1"]))
    grant = world.granted(multicast("b", "r3h1", ["r4h1", "r5h1"])).grant
    page = open_page(serve(world).url)
    request_row(page, "b").click()
    has(page.locator(f"[data-tree='{grant.reservation}']"), "class", re.compile("chosen"))
    number_of(page.locator("[data-tree].chosen"), 1)
    details = page.locator("#details")
    says(details, "Request b")
    says(details, "14.172")
    details.get_by_role("button", name=str(grant.reservation), exact=True).click()
    says(details, f"Light tree {grant.reservation}")
    details.get_by_role("button", name="r4", exact=True).click()
    says(details, "Rack r4")
    page.keyboard.press("Escape")
    hidden(details)


def test_why_a_request_waits_is_told(open_page, serve, world):
    server = serve(world)
    server.explanation = {"sentence": "r2 is busy.", "smallestChange": "Without r2 it had light."}
    world.granted(multicast("a", "r1h1", ["r2h1"]))
    world.submit(multicast("b", "r3h1", ["r2h1"]))
    server.publish()
    page = open_page(server.url)
    request_row(page, "b").click()
    says(page.locator("#details"), "r2 is busy.")
    says(page.locator("#details"), "Without r2 it had light.")


def test_alarms_are_counted_in_the_title_and_said(open_page, serve, world):
    server = serve(world)
    page = open_page(server.url)
    is_live(page)
    is_titled(page, "Blast")
    world.handle(ElementQuarantined(ElementId("port:r2/50"), "dirty connector"))
    world.lose("ocs1")
    world.deliver()
    server.publish()
    is_titled(page, "(2) Blast")
    says(page.locator("#alarms-said"), "dirty connector")
    page.locator("#alarms-button").click()
    says(page.locator("#alarms"), "switch:ocs1 is disconnected: connection lost")
    page.locator("#elements-tab").click()
    page.locator("#elements-choice").select_option("trouble")
    number_of(page.locator("#elements-body").get_by_role("row"), 2)


def test_a_controller_that_does_not_decide_says_so(open_page, serve, world):
    server = serve(world)
    page = open_page(server.url)
    is_live(page)
    server.leader = {"leads": False, "epoch": 0, "leader": "ctrl-b", "staleSeconds": 0.4}
    server.store_fault = "disk full"
    server.tell_vitals()
    says(page.locator("#notice-banner"), "ctrl-b leads")
    says(page.locator("#notice-banner"), "disk full")
    says(page.locator("#leader"), "stands by")


def test_of_many_requests_only_those_in_sight_are_in_the_page(open_page, serve):
    world = ready_world(make_fabric(4))
    for number in range(900):
        world.handle(RequestSubmitted(multicast(f"k{number}", "r1h1", ["r2h1"])))
    page = open_page(serve(world).url)
    says(page.locator("#requests-count"), "900")
    assert page.locator("#requests-body [role=row]").count() < 50
    page.locator("#requests-grid").focus()
    page.keyboard.press("End")
    visible(request_row(page, "k0").first)
    page.locator("#requests-filter").fill("k77 pending")
    says(page.locator("#requests-count"), "11 of 900")


def test_what_a_newer_server_tells_is_passed_over(open_page, serve, world):
    server = serve(world)
    page = open_page(server.url)
    is_live(page)
    server.tell_raw("changes", {"clock": {"now": 0, "wall": 0}, "rows": {"comet/1": {"x": 1}, "weather": {}}})
    server.tell_raw("horoscope", {})
    world.granted(multicast("later", "r1h1", ["r2h1"]))
    server.publish()
    says(request_row(page, "later"), "active")


# ---------------------------------------------------------------------------------------------- coming and going


def test_after_a_restart_the_page_is_whole_again_without_a_reload(open_page, serve, world):
    server = serve(world)
    world.granted(multicast("before", "r1h1", ["r2h1"]))
    server.publish()
    page = open_page(server.url)
    is_live(page)
    page.evaluate("window.here = true")
    server.stop("The controller is stopped.")
    says(page.locator("#away-banner"), "The controller is stopped.")
    says(page.locator("#away-banner"), "tries again by itself")
    world.granted(multicast("meanwhile", "r3h1", ["r4h1"]))
    server.publish()
    server.start()
    is_live(page)
    hidden(page.locator("#away-banner"))
    says(request_row(page, "meanwhile"), "active")
    number_of(page.locator("[data-tree]"), 2)
    hidden(page.locator("#upgrade-banner"))
    assert page.evaluate("window.here")


def test_a_page_open_across_an_upgrade_says_what_to_do(open_page, serve, world):
    server = serve(world)
    page = open_page(server.url)
    is_live(page)
    server.stop()
    server.release = "2.0"
    server.start()
    says(page.locator("#upgrade-banner"), "release 2.0")
    page.get_by_role("button", name="Reload the page").click()
    is_live(page)
    hidden(page.locator("#upgrade-banner"))


def test_a_stream_that_ends_begins_anew(open_page, serve, world):
    server = serve(world)
    page = open_page(server.url)
    is_live(page)
    server.drop_streams()
    world.granted(multicast("meanwhile", "r3h1", ["r4h1"]))
    server.publish()
    says(request_row(page, "meanwhile"), "active")
    is_live(page)


def test_it_speaks_with_the_controllers_own_server(open_page):
    with live(make_fabric(4, [4])) as served:
        page = open_page(served.url)
        is_live(page)
        served.lab.runtime.post(RequestSubmitted(multicast("real", "r1h1", ["r2h1", "r3h1"])))
        served.lab.settle()
        says(request_row(page, "real"), "active")
        number_of(page.locator("[data-tree]"), 1)
        request_row(page, "real").click()
        says(page.locator("#details"), f"tenant {TENANT}")
        visible(page.locator("#looking"))
