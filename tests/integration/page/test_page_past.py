"""The live page in a real browser: the way back."""

from __future__ import annotations

import pytest

from tests.integration.page.browser import click_track, hidden, number_of, request_row, says
from tests.support.core import multicast

pytestmark = pytest.mark.browser


def test_the_past_is_shown_and_cannot_be_taken_for_now(open_page, history):
    page = open_page(history, "operator-token")
    says(request_row(page, "old"), "done")
    click_track(page, 0.25)
    says(page.locator("#past-banner"), "Past state.")
    number_of(page.locator("[data-tree]"), 1)
    says(page.locator("#changes-list"), "request default/old: active -> done")
    says(page.locator("#changes-list"), "request default/new: new, active")
    page.locator("#requests-tab").click()
    says(request_row(page, "old"), "active")
    number_of(request_row(page, "new"), 0)
    request_row(page, "old").click()
    says(page.locator("#details"), "Request old")
    number_of(page.locator("#details [data-do]"), 0)
    history.submit(multicast("newest", "r5h1", ["r6h1"]))
    page.keyboard.press("Escape")
    hidden(page.locator("#past-banner"))
    says(request_row(page, "old"), "done")
    says(request_row(page, "newest"), "active")


def test_a_change_leads_to_its_moment(open_page, history):
    page = open_page(history, "operator-token")
    click_track(page, 0.1)
    entry = page.locator("#changes-list li").filter(has_text="old: active -> done")
    entry.get_by_role("button").click()
    page.locator("#requests-tab").click()
    says(request_row(page, "old"), "done")
    page.get_by_role("button", name="Back to now").click()
    hidden(page.locator("#past-banner"))


def test_page_says_that_nothing_is_recorded(open_page, served):
    says(open_page(served, "operator-token").locator("#time"), "No recording")
