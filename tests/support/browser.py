"""Debian's Chromium, driven by Playwright: pages that note whatever goes wrong in them."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHROMIUM = "chromium"
PATIENCE_MS = 30_000
"""For what is waited for: no test is about this number."""

_NOTE_VIOLATIONS = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) => {
  window.violations.push(`${event.effectiveDirective} ${event.blockedURI} ${event.sample}`);
});
"""


def lacks() -> str | None:
    """What this machine has not."""
    if shutil.which(CHROMIUM) is None:
        return "needs Chromium: scripts/setup test"
    return None if importlib.util.find_spec("playwright") else "needs Playwright: scripts/setup test"


@contextmanager
def chromium(*arguments: str) -> Iterator[Browser]:
    """A browser without a window."""
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE_MS)
    # Chromium's own sandbox refuses root; what is looked at here is our own page.
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
        self.page.set_default_timeout(PATIENCE_MS)
        self._faults: list[str] = []
        self.page.add_init_script(_NOTE_VIOLATIONS)
        self.page.on("pageerror", lambda error: self._faults.append(str(error)))
        self.page.on("console", self._note)

    def _note(self, message: Any) -> None:
        # Refusals and a server that is away are told by the browser itself, and by the page in a sentence.
        if message.type == "error" and not message.text.startswith("Failed to load resource"):
            self._faults.append(message.text)

    def faults(self) -> list[str]:
        """Errors of scripts, and what the policy of the page has forbidden (CSP level 3, section 5)."""
        return [*self._faults, *self.page.evaluate("window.violations")]

    def close(self) -> None:
        """It and all it has stored is gone."""
        self._context.close()
