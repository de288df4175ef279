"""What a test may see in the live page; it waits for it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page


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


def click_track(page: Page, share: float) -> None:
    visible(page.locator(".track"))
    box = page.locator(".track").bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + share * box["width"], box["y"] + 20)
