"""The live page in a real browser: the timeline."""

from __future__ import annotations

import pytest

from tests.integration.page.browser import click_track, has_text, hidden, number_of, request_row
from tests.support.controller.core import multicast

pytestmark = pytest.mark.browser


def test_timeline_shows_past_state_read_only(open_page, history):
    page = open_page(history, "operator-token")
    has_text(request_row(page, "old"), "done")
    click_track(page, 0.25)
    has_text(page.locator("#past-banner"), "Past state.")
    number_of(page.locator("[data-tree]"), 1)
    has_text(page.locator("#changes-list"), "request default/old: active -> done")
    has_text(page.locator("#changes-list"), "request default/new: new, active")
    page.locator("#requests-tab").click()
    has_text(request_row(page, "old"), "active")
    number_of(request_row(page, "new"), 0)
    request_row(page, "old").click()
    has_text(page.locator("#details"), "Request old")
    number_of(page.locator("#details [data-do]"), 0)
    history.submit(multicast("newest", "r5h1", ["r6h1"]))
    page.keyboard.press("Escape")
    hidden(page.locator("#past-banner"))
    has_text(request_row(page, "old"), "done")
    has_text(request_row(page, "newest"), "active")


def test_click_on_change_shows_state_at_its_time(open_page, history):
    page = open_page(history, "operator-token")
    click_track(page, 0.1)
    entry = page.locator("#changes-list li").filter(has_text="old: active -> done")
    entry.get_by_role("button").click()
    page.locator("#requests-tab").click()
    has_text(request_row(page, "old"), "done")
    page.get_by_role("button", name="Back to now").click()
    hidden(page.locator("#past-banner"))


def test_page_reports_missing_recording(open_page, served):
    has_text(open_page(served, "operator-token").locator("#time"), "No recording")
