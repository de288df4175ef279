"""Debian's Chromium, driven by Playwright: pages that note what goes wrong in them, and what a test may see there."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

CHROMIUM = "chromium"
TIMEOUT_MS = 30_000
"""Maximum wait for a condition; no test depends on its value."""

_NOTE_VIOLATIONS = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) => {
  window.violations.push(`${event.effectiveDirective} ${event.blockedURI} ${event.sample}`);
});
"""


@contextmanager
def chromium(*arguments: str) -> Iterator[Browser]:
    """Run a headless browser."""
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=TIMEOUT_MS)
    # Chromium's sandbox refuses root; the tests open only our own page.
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which(CHROMIUM), args=[*sandbox, "--disable-dev-shm-usage", *arguments]
        )
        try:
            yield browser
        finally:
            browser.close()


class Window:
    """A page of the browser, and what went wrong in it."""

    def __init__(self, browser: Browser, **options: Any) -> None:
        self._context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **options})
        self.page: Page = self._context.new_page()
        self.page.set_default_timeout(TIMEOUT_MS)
        self._faults: list[str] = []
        self.page.add_init_script(_NOTE_VIOLATIONS)
        self.page.on("pageerror", lambda error: self._faults.append(str(error)))
        self.page.on("console", self._note)

    def _note(self, message: Any) -> None:
        # The browser itself logs rejected requests and an unreachable server; the page reports them in a sentence.
        if message.type == "error" and not message.text.startswith("Failed to load resource"):
            self._faults.append(message.text)

    def log_in(self, url: str, token: str) -> None:
        """Begin a session of the page's server."""
        assert self._context.request.post(f"{url}/session", data={"token": token}).ok

    def faults(self) -> list[str]:
        """Errors of scripts, and what the policy of the page has forbidden (CSP level 3, section 5)."""
        return [*self._faults, *self.page.evaluate("window.violations")]

    def close(self) -> None:
        """Close the browser context and discard all that it has stored."""
        self._context.close()


def _expect(target: Any) -> Any:
    from playwright.sync_api import expect

    return expect(target)


def visible(locator: Locator) -> None:
    _expect(locator).to_be_visible()


def hidden(locator: Locator) -> None:
    _expect(locator).to_be_hidden()


def has_text(locator: Locator, text: str | re.Pattern[str]) -> None:
    _expect(locator).to_contain_text(text)


def number_of(locator: Locator, count: int) -> None:
    _expect(locator).to_have_count(count)


def has(locator: Locator, name: str, value: str | re.Pattern[str]) -> None:
    _expect(locator).to_have_attribute(name, value)


def is_focused(locator: Locator) -> None:
    _expect(locator).to_be_focused()


def is_titled(page: Page, title: str) -> None:
    _expect(page).to_have_title(title)


def is_live(page: Page) -> None:
    has_text(page.locator("#connection"), "live")


def request_row(page: Page, key: str) -> Locator:
    return page.locator("#requests-body").get_by_role("row").filter(has_text=key)


def click_track(page: Page, share: float) -> None:
    visible(page.locator(".track"))
    box = page.locator(".track").bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + share * box["width"], box["y"] + 20)
