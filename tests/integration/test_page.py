"""The live page in a real browser."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
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
from tests.support import browser as browsers
from tests.support.browser import Window
from tests.support.core import TENANT, World, key_of, make_fabric, multicast, ready_world
from tests.support.live_server import live
from tests.support.page_server import PageServer
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

pytestmark = pytest.mark.browser

MARKUP = "<img src=x onerror='window.hurt=1'><script>window.hurt=1</script>&amp;{{7*7}}"
KEY = "<img src=x onerror='window.hurt=1'>&amp;"
"""As long as a key may be, about."""


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


def visible(locator: Locator) -> None:
    from playwright.sync_api import expect

    expect(locator).to_be_visible()


def hidden(locator: Locator) -> None:
    from playwright.sync_api import expect

    expect(locator).to_be_hidden()


def says(locator: Locator, text: str | re.Pattern[str]) -> None:
    from playwright.sync_api import expect

    expect(locator).to_contain_text(text)


def number_of(locator: Locator, count: int) -> None:
    from playwright.sync_api import expect

    expect(locator).to_have_count(count)


def has(locator: Locator, name: str, value: str | re.Pattern[str]) -> None:
    from playwright.sync_api import expect

    expect(locator).to_have_attribute(name, value)


def is_focused(locator: Locator) -> None:
    from playwright.sync_api import expect

    expect(locator).to_be_focused()


def is_titled(page: Page, title: str) -> None:
    from playwright.sync_api import expect

    expect(page).to_have_title(title)


def is_live(page: Page) -> None:
    says(page.locator("#connection"), "live")


def request_row(page: Page, key: str) -> Locator:
    return page.locator("#requests-body").get_by_role("row").filter(has_text=key)


# ---------------------------------------------------------------------------------------------------- the present


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


# --------------------------------------------------------------------------------------------------- the past


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


def click_track(page: Page, share: float) -> None:
    visible(page.locator(".track"))
    box = page.locator(".track").bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + share * box["width"], box["y"] + 20)


def test_the_past_is_shown_and_cannot_be_taken_for_now(open_page, history):
    page = open_page(history.url)
    says(request_row(page, "old"), "done")
    click_track(page, 0.25)
    says(page.locator("#past-banner"), "This is the past.")
    number_of(page.locator("[data-tree]"), 1)
    says(page.locator("#changes-list"), "request/default/old: active became done.")
    says(page.locator("#changes-list"), "request/default/new came.")
    page.locator("#requests-tab").click()
    says(request_row(page, "old"), "active")
    number_of(request_row(page, "new"), 0)
    request_row(page, "old").click()
    says(page.locator("#details"), "Request old")
    number_of(page.locator("#details [data-do]"), 0)
    history.world.granted(multicast("newest", "r5h1", ["r6h1"]))
    history.publish()
    page.keyboard.press("Escape")
    hidden(page.locator("#past-banner"))
    says(request_row(page, "old"), "done")
    says(request_row(page, "newest"), "active")


def test_a_change_leads_to_its_moment(open_page, history):
    page = open_page(history.url)
    click_track(page, 0.1)
    entry = page.locator("#changes-list li").filter(has_text="old: active became done")
    entry.get_by_role("button").click()
    page.locator("#requests-tab").click()
    says(request_row(page, "old"), "done")
    page.get_by_role("button", name="Back to now").click()
    hidden(page.locator("#past-banner"))


def test_where_nothing_is_recorded_it_says_so(open_page, serve, world):
    server = serve(world, recording=False)
    says(open_page(server.url).locator("#time"), "Nothing is recorded")


# ------------------------------------------------------------------------------------------------------ actions


def test_a_deed_says_what_it_does_and_is_done_when_confirmed(open_page, serve, world):
    server = serve(world)
    page = open_page(server.url)
    is_live(page)
    page.get_by_role("button", name="Drain…").click()
    dialog = page.locator("#action")
    says(dialog, "drain: this controller")
    dialog.get_by_role("button", name="Cancel").click()
    assert server.posts == []
    page.get_by_role("button", name="Drain…").click()
    dialog.get_by_role("button", name="Drain", exact=True).click()
    says(dialog, "Done: drain")
    assert server.posts == [("drain", {}, server.csrf)]
    dialog.get_by_role("button", name="Close").click()
    says(page.locator("#notice-banner"), "Draining")
    visible(page.get_by_role("button", name="Admit again…"))


def test_an_element_is_taken_out_of_use_with_a_reason(open_page, serve, world):
    server = serve(world)
    page = open_page(server.url)
    page.locator("#elements-tab").click()
    page.locator("#elements-body").get_by_role("row").filter(has_text="port:r2/50").click()
    page.locator("#details").get_by_role("button", name="Quarantine…").click()
    dialog = page.locator("#action")
    says(dialog, "quarantine: port:r2/50")
    dialog.get_by_role("button", name="Quarantine", exact=True).click()
    says(dialog, "Say why")
    dialog.get_by_label("Reason").fill("dirty connector")
    dialog.get_by_role("button", name="Quarantine", exact=True).click()
    says(dialog, "Done: quarantine")
    assert server.posts == [("quarantine", {"element": "port:r2/50", "reason": "dirty connector"}, server.csrf)]
    dialog.get_by_role("button", name="Close").click()
    says(page.locator("#details"), "dirty connector")
    visible(page.locator("#details").get_by_role("button", name="Release…"))
    is_titled(page, "(1) Blast")


def test_what_the_controller_refuses_is_told_in_its_sentence(open_page, serve, world):
    server = serve(world)
    page = open_page(server.url)
    is_live(page)
    server.refuse_with = (409, "The controller is holding: blast resume.")
    page.get_by_role("button", name="Reconcile…").click()
    dialog = page.locator("#action")
    says(dialog, "reconcile: this controller")
    dialog.get_by_role("button", name="Repair").click()
    says(dialog, "The controller is holding: blast resume.")
    server.refuse_with = None
    server.csrf = "another"
    dialog.get_by_role("button", name="Repair").click()
    says(dialog, "This page is older than the controller: reload it.")


def test_who_only_looks_has_no_buttons(open_page, serve, world):
    world.granted(multicast("a", "r1h1", ["r2h1"]))
    page = open_page(serve(world, as_role="viewer").url)
    request_row(page, "a").click()
    says(page.locator("#details"), "Request a")
    visible(page.locator("#looking"))
    number_of(page.locator("[data-do]:visible"), 0)


def test_a_role_that_was_taken_away_is_told_and_seen(open_page, serve, world):
    server = serve(world)
    page = open_page(server.url)
    is_live(page)
    page.get_by_role("button", name="Drain…").click()
    dialog = page.locator("#action")
    says(dialog, "drain: this controller")
    server.as_role = "viewer"
    dialog.get_by_role("button", name="Drain", exact=True).click()
    says(dialog, "This is for the role operator, and you are viewer")
    page.keyboard.press("Escape")
    hidden(page.get_by_role("button", name="Drain…"))


def test_logging_in_and_out(open_page, serve, world):
    world.granted(multicast("a", "r1h1", ["r2h1"]))
    server = serve(world, as_role=None)
    page = open_page(server.url)
    token = page.get_by_label("Token")
    token.fill("a guess")
    page.keyboard.press("Enter")
    says(page.locator("#log-in-fault"), "This token is not known")
    token.fill("operate")
    page.keyboard.press("Enter")
    is_live(page)
    says(request_row(page, "a"), "active")
    says(page.locator("#whoami"), "operator")
    assert page.evaluate("document.cookie") == ""
    page.get_by_role("button", name="Log out").click()
    visible(page.locator("#log-in-dialog"))
    number_of(page.locator("[data-tree]"), 0)
    number_of(request_row(page, "a"), 0)


def test_a_session_that_ends_asks_for_a_token(open_page, serve, world):
    server = serve(world, as_role=None)
    page = open_page(server.url)
    page.get_by_label("Token").fill("operate")
    page.keyboard.press("Enter")
    is_live(page)
    server.sessions.clear()
    server.tell_raw("goodbye", {"sentence": "Your login is over: log in again."})
    server.drop_streams()
    visible(page.locator("#log-in-dialog"))
    says(page.locator("#notice-banner"), "Your login is over: log in again.")


# ----------------------------------------------------------------------------------------------- safe and reachable


def test_markup_from_the_controller_is_text(open_page, serve, world):
    server = serve(world)
    server.explanation = {"sentence": MARKUP, "smallestChange": MARKUP}
    world.granted(multicast("a", "r1h1", ["r2h1"]))
    world.submit(multicast(KEY, "r3h1", ["r2h1"]))
    world.handle(ElementQuarantined(ElementId("port:r4/50"), MARKUP))
    server.leader = {**server.leader, "leads": False, "leader": MARKUP}
    server.holding = server.store_fault = MARKUP
    server.publish()
    page = open_page(server.url)
    request_row(page, KEY).click()
    says(page.locator("#details"), f"Request {KEY}")
    says(page.locator("#details .sentence"), MARKUP)
    says(page.locator("#notice-banner"), MARKUP)
    page.locator("#alarms-button").click()
    says(page.locator("#alarms"), MARKUP)
    page.locator("#details").get_by_role("button", name="Withdraw…").click()
    says(page.locator("#action"), KEY)
    page.keyboard.press("Escape")
    page.locator("#elements-tab").click()
    says(page.locator("#elements-body"), MARKUP)
    click_track(page, 0.0)
    says(page.locator("#changes-list"), KEY)
    server.stop(MARKUP)
    says(page.locator("#away-banner"), MARKUP)
    assert page.evaluate("window.hurt") is None
    assert page.locator("img[src=x]").count() == page.locator("script:not([src])").count() == 0


def test_markup_in_the_page_would_be_refused(open_page, serve, world, browser):
    """That the policy bites, and that a page's faults are noted."""
    window = Window(browser)
    window.page.goto(serve(world).url)
    is_live(window.page)
    # By an event, so that what runs is the page's own world and not the debugger's.
    window.page.evaluate("setTimeout(() => { document.body.innerHTML = '<p>x</p>' }, 0)")
    eventually(lambda: any("require-trusted-types-for" in fault for fault in window.faults()))
    window.close()


def tab_to(page: Page, target: Locator) -> None:
    """Press Tab until the target has the focus."""
    wanted = target.element_handle()
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("node => document.activeElement === node", wanted):
            return
    raise AssertionError(f"Tab does not lead to {target}")


def test_all_of_it_is_done_by_keys(open_page, history):
    world = history.world
    page = open_page(history.url)
    says(request_row(page, "new"), "active")
    tab_to(page, page.locator("#requests-grid"))
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    says(page.locator("#details"), "Request new")
    tab_to(page, page.locator("#details [data-do=withdraw]"))
    page.keyboard.press("Enter")
    says(page.locator("#action"), "withdraw: default new")
    tab_to(page, page.locator("#action-do"))
    page.keyboard.press("Enter")
    says(page.locator("#action"), "Done: withdraw")
    is_focused(page.locator("#action-cancel"))
    page.keyboard.press("Enter")
    assert world.core.request(key_of("new")).state.value == "withdrawn"
    says(request_row(page, "new"), "withdrawn")
    tab_to(page, page.get_by_role("slider", name="Moment that is shown"))
    page.keyboard.press("Home")
    visible(page.locator("#past-banner"))
    page.keyboard.press("ArrowRight")
    number_of(page.locator("[data-tree]"), 1)
    page.keyboard.press("Escape")
    hidden(page.locator("#past-banner"))
    page.keyboard.press("Escape")
    hidden(page.locator("#details"))
    tab_to(page, page.locator("#changes-tab"))
    page.keyboard.press("ArrowLeft")
    visible(page.locator("#elements"))
    tab_to(page, page.locator("#picture"))
    before = page.locator(".world").get_attribute("style")
    page.keyboard.press("+")
    assert page.locator(".world").get_attribute("style") != before


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_stands_in_the_way_of_who_sees_or_points_otherwise(open_page, history, scheme):
    from axe_playwright_python.sync_playwright import Axe

    # The rules that are run come in as a script of their own, which the page's policy would refuse.
    page = open_page(history.url, color_scheme=scheme, bypass_csp=True, reduced_motion="reduce")
    history.world.handle(ElementQuarantined(ElementId("port:r2/50"), "dirty connector"))
    history.publish()
    request_row(page, "new").click()
    page.locator("#alarms-button").click()
    says(page.locator("#details"), "Request new")

    def look(state: str) -> None:
        found = Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21aa"]})
        assert found.violations_count == 0, f"{state}: {found.generate_report()}"

    look("live")
    page.locator("#elements-tab").click()
    look("elements")
    page.get_by_role("button", name="Drain…").click()
    says(page.locator("#action"), "drain")
    look("dialog")
    page.keyboard.press("Escape")
    click_track(page, 0.3)
    visible(page.locator("#past-banner"))
    says(page.locator("#changes-list"), "default/old")
    look("past")


@pytest.mark.parametrize("width", [1280, 1920])
def test_nothing_of_it_is_beyond_the_window(open_page, history, width):
    page = open_page(history.url, viewport={"width": width, "height": 800})
    request_row(page, "new").click()
    says(page.locator("#details"), "Request new")
    wide, high = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.scrollHeight]")
    assert wide <= width and high <= 800


# --------------------------------------------------------------------------------------------- the controller's server


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
