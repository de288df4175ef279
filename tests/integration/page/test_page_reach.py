"""The live page in a real browser: markup is text, and everybody gets everywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from blast_controller.core.model.events import ElementQuarantined
from blast_controller.core.model.identifiers import ElementId
from tests.support.browser import Window
from tests.support.core import key_of, multicast
from tests.support.page_looks import click_track, hidden, is_focused, is_live, number_of, request_row, says, visible
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

pytestmark = pytest.mark.browser


MARKUP = "<img src=x onerror='window.hurt=1'><script>window.hurt=1</script>&amp;{{7*7}}"
KEY = "<img src=x onerror='window.hurt=1'>&amp;"
"""As long as a key may be, about."""


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
