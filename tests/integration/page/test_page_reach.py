"""The live page in a real browser: markup stays text, and the page is accessible."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from blast_controller.core.model.events import ElementQuarantined
from blast_controller.core.model.identifiers import ElementId
from blast_controller.rpc.clients.access import OPEN_POLICY
from tests.integration.page.browser import (
    Window,
    click_track,
    has_text,
    hidden,
    is_focused,
    is_live,
    number_of,
    request_row,
    visible,
)
from tests.support.controller.core import key_of, multicast
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

pytestmark = pytest.mark.browser


MARKUP = "<img src=x onerror='window.hurt=1'><script>window.hurt=1</script>&amp;{{7*7}}"
KEY = "<img src=x onerror='window.hurt=1'>&amp;"
"""A key of about the maximum length."""


def test_page_renders_markup_from_controller_as_text(open_page, history):
    history.submit(multicast("a", "r1h1", ["r2h1"]), multicast(KEY, "r5h1", ["r2h1"]))
    history.handle(ElementQuarantined(ElementId("port:r4/50"), MARKUP))
    runtime = history.lab.runtime
    runtime.safe_mode = runtime.store_fault = MARKUP
    page = open_page(history, "operator-token")
    request_row(page, KEY).click()
    has_text(page.locator("#details"), f"Request {KEY}")
    has_text(page.locator("#details .message"), KEY)
    has_text(page.locator("#notice-banner"), MARKUP)
    page.locator("#alarms-button").click()
    has_text(page.locator("#alarms"), MARKUP)
    page.locator("#details").get_by_role("button", name="Withdraw…").click()
    has_text(page.locator("#action"), KEY)
    page.keyboard.press("Escape")
    page.locator("#elements-tab").click()
    has_text(page.locator("#elements-body"), MARKUP)
    click_track(page, 0.0)
    has_text(page.locator("#changes-list"), KEY)
    history.watchers.broadcast.end(MARKUP)
    has_text(page.locator("#away-banner"), MARKUP)
    assert page.evaluate("window.hurt") is None
    assert page.locator("img[src=x]").count() == page.locator("script:not([src])").count() == 0


def test_content_security_policy_blocks_injected_markup(serve, browser):
    window = Window(browser)
    window.page.goto(serve(policy=OPEN_POLICY).url)
    is_live(window.page)
    # By an event, so that the script runs in the page's own world and not in the debugger's.
    window.page.evaluate("setTimeout(() => { document.body.innerHTML = '<p>x</p>' }, 0)")
    eventually(lambda: any("require-trusted-types-for" in fault for fault in window.faults()))
    window.close()


def tab_to(page: Page, target: Locator) -> None:
    """Press Tab until the target has the focus."""
    element = target.element_handle()
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("node => document.activeElement === node", element):
            return
    raise AssertionError(f"Tab does not lead to {target}")


def test_keyboard_operates_the_whole_page(open_page, history):
    page = open_page(history, "operator-token")
    has_text(request_row(page, "new"), "active")
    tab_to(page, page.locator("#requests-grid"))
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    has_text(page.locator("#details"), "Request new")
    tab_to(page, page.locator("#details [data-do=withdraw]"))
    page.keyboard.press("Enter")
    has_text(page.locator("#action"), "The request default/new")
    tab_to(page, page.locator("#action-do"))
    page.keyboard.press("Enter")
    has_text(page.locator("#action"), "is withdrawn.")
    is_focused(page.locator("#action-cancel"))
    page.keyboard.press("Enter")
    assert history.lab.look().request(key_of("new")).state.value == "withdrawn"
    has_text(request_row(page, "new"), "withdrawn")
    tab_to(page, page.get_by_role("slider", name="Displayed moment"))
    page.keyboard.press("Home")
    visible(page.locator("#past-banner"))
    page.keyboard.press("Shift+ArrowRight")
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
def test_page_has_no_wcag_violations(open_page, history, scheme):
    from axe_playwright_python.sync_playwright import Axe

    # The rules that are run come in as a script of their own, which the page's policy would refuse.
    page = open_page(history, "operator-token", color_scheme=scheme, bypass_csp=True, reduced_motion="reduce")
    history.handle(ElementQuarantined(ElementId("port:r2/50"), "dirty connector"))
    request_row(page, "new").click()
    page.locator("#alarms-button").click()
    has_text(page.locator("#details"), "Request new")

    def look(state: str) -> None:
        found = Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21aa"]})
        assert found.violations_count == 0, f"{state}: {found.generate_report()}"

    look("live")
    page.locator("#elements-tab").click()
    look("elements")
    page.get_by_role("button", name="Drain…").click()
    has_text(page.locator("#action"), "Active requests continue")
    look("dialog")
    page.keyboard.press("Escape")
    click_track(page, 0.3)
    visible(page.locator("#past-banner"))
    has_text(page.locator("#changes-list"), "default/old")
    look("past")


def test_page_does_not_overflow_window(open_page, history):
    page = open_page(history, "operator-token")
    request_row(page, "new").click()
    has_text(page.locator("#details"), "Request new")
    for width in (1920, 1280):
        page.set_viewport_size({"width": width, "height": 800})
        wide, high = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.scrollHeight]")
        assert wide <= width and high <= 800
