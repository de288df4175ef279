"""The live page in a real browser: what an operator does there, and who may."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.core import multicast
from tests.support.page_looks import hidden, is_live, is_titled, number_of, request_row, says, visible

if TYPE_CHECKING:
    pass

pytestmark = pytest.mark.browser


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
