"""The live page in a real browser: actions of operators, and the roles that may act."""

from __future__ import annotations

from dataclasses import replace

import pytest

from blast_controller.core.model.events import FinishRequested
from blast_controller.ops.live import routes
from blast_controller.ops.live.broadcast import event_of
from blast_controller.rpc.clients.access import OPEN_POLICY
from blast_controller.rpc.clients.identity import Identity, Role
from blast_controller.rpc.clients.tokens import digest_of
from tests.integration.page.browser import has_text, hidden, is_live, is_titled, number_of, request_row, visible
from tests.integration.page.conftest import POLICY
from tests.support.controller.core import key_of, multicast
from tests.support.waiting import eventually

pytestmark = pytest.mark.browser


def test_action_dialog_shows_effect_and_acts_on_confirmation(open_page, served):
    page = open_page(served, "operator-token")
    is_live(page)
    page.get_by_role("button", name="Drain…").click()
    dialog = page.locator("#action")
    has_text(dialog, "Active requests continue until they end")
    dialog.get_by_role("button", name="Cancel").click()
    hidden(dialog)
    assert not served.lab.look().draining
    page.get_by_role("button", name="Drain…").click()
    dialog.get_by_role("button", name="Drain", exact=True).click()
    has_text(dialog, "The controller is draining")
    assert served.lab.look().draining
    dialog.get_by_role("button", name="Close").click()
    has_text(page.locator("#notice-banner"), "Draining")
    visible(page.get_by_role("button", name="Admit again…"))


def test_operator_quarantines_element_with_required_reason(open_page, served):
    page = open_page(served, "operator-token")
    page.locator("#elements-tab").click()
    page.locator("#elements-body").get_by_role("row").filter(has_text="port:r2/50").click()
    page.locator("#details").get_by_role("button", name="Quarantine…").click()
    dialog = page.locator("#action")
    has_text(dialog, "No new light tree uses port:r2/50")
    dialog.get_by_role("button", name="Quarantine", exact=True).click()
    has_text(dialog, "Enter a reason")
    dialog.get_by_label("Reason").fill("dirty connector")
    dialog.get_by_role("button", name="Quarantine", exact=True).click()
    has_text(dialog, "port:r2/50 is quarantined.")
    dialog.get_by_role("button", name="Close").click()
    has_text(page.locator("#details"), "dirty connector")
    visible(page.locator("#details").get_by_role("button", name="Release…"))
    is_titled(page, "(1) Blast")


def test_dialog_shows_rejection_message_of_controller(open_page, served):
    served.submit(multicast("a", "r1h1", ["r2h1"]))
    page = open_page(served, "operator-token")
    request_row(page, "a").click()
    page.locator("#details").get_by_role("button", name="Withdraw…").click()
    dialog = page.locator("#action")
    has_text(dialog, "ends immediately")
    served.handle(FinishRequested(key_of("a"), 0))
    dialog.get_by_role("button", name="Withdraw", exact=True).click()
    has_text(dialog, "The sender has finished.")


def test_viewer_sees_no_action_buttons(open_page, serve):
    served = serve(policy=OPEN_POLICY)
    served.submit(multicast("a", "r1h1", ["r2h1"]))
    page = open_page(served)
    request_row(page, "a").click()
    has_text(page.locator("#details"), "Request a")
    visible(page.locator("#looking"))
    number_of(page.locator("[data-do]:visible"), 0)


def test_page_reports_revoked_role_and_hides_its_buttons(open_page, served):
    page = open_page(served, "operator-token")
    is_live(page)
    page.get_by_role("button", name="Drain…").click()
    dialog = page.locator("#action")
    has_text(dialog, "Active requests continue until they end")
    served.gate.policy = replace(POLICY, tokens={digest_of("operator-token"): Identity("default", Role.VIEWER)})
    dialog.get_by_role("button", name="Drain", exact=True).click()
    has_text(dialog, "This requires the role operator, but you are viewer")
    page.keyboard.press("Escape")
    hidden(page.get_by_role("button", name="Drain…"))


def test_login_shows_requests_and_logout_clears_page(open_page, served):
    served.submit(multicast("a", "r1h1", ["r2h1"]))
    page = open_page(served)
    token = page.get_by_label("Token")
    token.fill("a guess")
    page.keyboard.press("Enter")
    has_text(
        page.locator("#log-in-fault"), "Unknown token: check it, or create one with `blast controller hash-token`."
    )
    token.fill("operator-token")
    page.keyboard.press("Enter")
    is_live(page)
    has_text(request_row(page, "a"), "active")
    has_text(page.locator("#whoami"), "operator")
    assert page.evaluate("document.cookie") == ""
    page.get_by_role("button", name="Log out").click()
    visible(page.locator("#log-in-dialog"))
    assert "is over" not in page.locator("#notice-banner").inner_text()
    number_of(page.locator("[data-tree]"), 0)
    number_of(request_row(page, "a"), 0)


@pytest.mark.parametrize("goodbye", ["received", "lost"])
def test_expired_session_prompts_for_token(open_page, served, monkeypatch, goodbye):
    if goodbye == "lost":
        monkeypatch.setattr(routes, "event_of", lambda kind, value: b"" if kind == "goodbye" else event_of(kind, value))
    page = open_page(served, "operator-token")
    is_live(page)
    served.gate.policy = replace(POLICY, tokens={digest_of("another"): Identity("default", Role.OPERATOR)})
    visible(page.locator("#log-in-dialog"))
    has_text(page.locator("#notice-banner"), "Your session expired: log in again.")
    eventually(lambda: not served.watchers.broadcast.pages, "its stream to end")
