"""The live page's side of the controller, over real HTTP: what is sent to whom, and what operators may do by it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import pytest
from starlette.exceptions import HTTPException

from blast_controller.core.model.events import DeviceDown, FinishAsked, ProgressReported
from blast_controller.core.model.identifiers import SwitchId
from blast_controller.core.model.requests import MulticastRequest
from blast_controller.ops.http.access import HttpAccess
from blast_controller.ops.live import broadcast
from blast_controller.ops.live.timeline import LookingBack
from blast_controller.ops.page.files import page_files
from blast_controller.rpc.clients.access import OPEN_POLICY, AccessPolicy
from blast_controller.rpc.clients.identity import Identity, Role
from blast_controller.rpc.clients.tokens import digest_of
from blast_controller.rpc.connections.connection import Connection
from tests.support.core import key_of, make_fabric, multicast
from tests.support.live_server import LiveServer, More, live
from tests.support.waiting import eventually

POLICY = AccessPolicy(
    tokens={
        digest_of("operator-token"): Identity("default", Role.OPERATOR),
        digest_of("user-token"): Identity("one", Role.USER),
    },
    tenants=frozenset({"default", "one", "two"}),
    features=frozenset({"tenants", "login"}),
)


class Event(NamedTuple):
    """A server-sent event."""

    kind: str
    data: dict[str, Any]


def events_of(lines: Iterable[str]) -> Iterator[Event]:
    """Server-sent events from their lines."""
    kind, data = "", ""
    for line in lines:
        if line.startswith("event: "):
            kind = line[7:]
        elif line.startswith("data: "):
            data = line[6:]
        elif not line and kind:
            yield Event(kind, json.loads(data))
            kind = ""


@contextmanager
def stream_of(served: LiveServer) -> Iterator[Iterator[Event]]:
    """Yield the events that a page receives."""
    with served.client.stream("GET", "/stream") as answer:
        assert answer.status_code == 200, answer.read()
        yield events_of(answer.iter_lines())


@pytest.fixture
def served() -> Iterator[LiveServer]:
    with live(make_fabric(4, [4, 4])) as found:
        yield found


@pytest.fixture
def guarded() -> Iterator[LiveServer]:
    with live(make_fabric(5, [4, 4]), POLICY) as found:
        yield found


def submit(served: LiveServer, key: str = "a", tenant: str = "default", wanted: MulticastRequest | None = None) -> None:
    served.submit(replace(wanted or multicast(key, "r1h1", ["r2h1", "r3h1"]), tenant=tenant))


def next_of(kind: str, events: Iterator[Event]) -> Event:
    return next(event for event in events if event.kind == kind)


def rows_until(events: Iterator[Event], name: str, wanted: str) -> dict:
    """Return the rows of the first changes in which the row `name` contains this text."""
    for event in events:
        if event.kind == "changes" and wanted in str(event.data["rows"].get(name)):
            return event.data["rows"]
    raise AssertionError("the stream has ended")


# -------------------------------------------------------------------------------------------------- what is sent


def test_a_page_is_sent_all_and_then_what_changes(served):
    submit(served)
    with stream_of(served) as events:
        whole = next(events)
        assert whole.kind == "whole" and {"release", "clock", "rows"} <= set(whole.data)
        rows = whole.data["rows"]
        assert rows["request/default/a"]["state"] == "active" and "fabric" in rows
        (tree,) = [row for name, row in rows.items() if name.startswith("tree/")]
        assert tree["rootRack"] == "r1" and len(tree["crossConnects"]) == 3
        vitals = next(events)
        assert vitals.kind == "vitals" and vitals.data["leader"] == {
            "leads": True,
            "epoch": 7,
            "leader": None,
            "staleSeconds": None,
        }
        assert isinstance(vitals.data["history"], list) and vitals.data["counts"] == {"rpc_calls": 3}
        served.lab.runtime.post(ProgressReported(key_of("a"), 0, 5))
        changed = rows_until(events, "request/default/a", "progressBytes")
        assert changed["request/default/a"]["parts"][0]["progressBytes"] == 5
        served.lab.runtime.post(FinishAsked(key_of("a"), 0))
        rows_until(events, "request/default/a", "'done'")
        served.lab.runtime.post(DeviceDown(SwitchId("ocs1"), "cable pulled"))
        assert rows_until(events, "away/switch:ocs1", "cable pulled")


def test_points_come_every_second_and_count_grants(served):
    with stream_of(served) as events:
        next_of("whole", events)
        submit(served)
        point = next(
            event.data["point"]
            for event in events
            if event.kind == "vitals" and event.data.get("point", {}).get("granted")
        )
        assert point["granted"] == 1 and point["trees"] == 1 and point["grantMs"] > 0


def test_a_page_that_reads_slowly_is_told_anew(served, monkeypatch):
    monkeypatch.setattr(broadcast, "MAX_EVENTS", 2)
    page = served.watchers.broadcast
    with stream_of(served) as events:
        next_of("whole", events)
        (listener,) = page._listeners
        for _ in range(3):
            listener.put(b"event: changes\ndata: {}\n\n")
        # More than may wait has come: what waits is dropped, and all is told.
        assert listener.needs_whole
        assert next_of("whole", events).data["rows"]["fabric"]


def test_a_tenant_sees_its_own_things_only(guarded):
    submit(guarded, "mine", "one")
    submit(guarded, "theirs", "two", multicast("theirs", "r4h1", ["r5h1"]))
    guarded.log_in("user-token")
    with stream_of(guarded) as events:
        rows = next_of("whole", events).data["rows"]
        assert {name for name in rows if name.startswith("request/")} == {"request/one/mine"}
        assert {row["tenant"] for name, row in rows.items() if name.startswith("tree/")} == {"one"}
        assert next_of("vitals", events).data["counts"] == {}
        guarded.lab.runtime.post(FinishAsked(("two", "theirs"), 0))
        guarded.lab.runtime.post(FinishAsked(("one", "mine"), 0))
        for event in events:
            assert "theirs" not in str(event.data) and "'two'" not in str(event.data)
            if event.kind == "changes" and "'done'" in str(event.data):
                break


def test_so_many_pages_and_no_more(served, monkeypatch):
    monkeypatch.setattr(broadcast, "MAX_PAGES", 1)
    with stream_of(served) as events:
        next_of("whole", events)
        refused = served.client.get("/stream")
        assert refused.status_code == 503 and "close one" in refused.json()["message"]
    eventually(
        lambda: served.client.get("/session") and not served.watchers.broadcast.pages, what="the page to be gone"
    )


def test_pages_of_one_account_leave_room_for_others(served):
    watchers, loop = served.watchers.broadcast, asyncio.new_event_loop()

    async def fill() -> None:
        for _ in range(broadcast.MAX_PAGES_PER_ACCOUNT):
            watchers.open(None, "viewer", is_operator=False)
        with pytest.raises(broadcast.PageLimitError, match="Your account has 16 open pages"):
            watchers.open(None, "viewer", is_operator=False)
        others = broadcast.MAX_PAGES - broadcast.PAGES_FOR_OPERATORS - broadcast.MAX_PAGES_PER_ACCOUNT
        for number in range(others):
            watchers.open(None, number, is_operator=False)
        with pytest.raises(broadcast.PageLimitError, match="56 pages"):
            watchers.open(None, "another", is_operator=False)
        watchers.open(None, "operator", is_operator=True)

    try:
        loop.run_until_complete(fill())
    finally:
        loop.close()
        watchers._listeners.clear()


def test_nothing_is_encoded_while_nobody_looks(served, monkeypatch):
    submit(served)
    assert served.watchers.broadcast._changes == broadcast.NOTHING
    monkeypatch.setattr(broadcast, "LINGER", 0.0)
    with stream_of(served) as events:
        next_of("whole", events)
    eventually(lambda: not served.watchers.broadcast._watched, what="the page to be forgotten")
    assert not served.watchers.broadcast._encoder.rows


def test_a_page_hears_that_the_controller_is_stopped():
    with live(make_fabric(4, [4])) as served, stream_of(served) as events:
        next_of("whole", events)
        served.side.watchers.broadcast.end("It ends.")
        assert next_of("goodbye", events).data == {"message": "It ends."}
        assert not list(events)


# ------------------------------------------------------------------------------------------------------- sessions


def test_who_is_not_logged_in_is_told_nothing(guarded):
    told = guarded.client.get("/session").json()
    assert (told["role"], told["login"], told["csrf"]) == (None, True, None)
    for path in ("/stream", "/picture", "/explain?tenant=a&key=b", "/actions/drain/foretold"):
        answer = guarded.client.get(path)
        assert answer.status_code == 401 and "Bearer TOKEN" in answer.json()["message"], path


def test_a_session_stands_for_its_token_until_that_is_taken_away(guarded):
    assert guarded.client.post("/session", json={"token": "guess"}).status_code == 401
    answer = guarded.client.post("/session", json={"token": "operator-token"})
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=strict" in cookie and "operator-token" not in cookie
    assert answer.json()["role"] == "operator"
    with stream_of(guarded) as events:
        next_of("whole", events)
        guarded.gate.policy = replace(POLICY, tokens={})
        assert "log in again" in next_of("goodbye", events).data["message"]
    assert guarded.client.get("/session").json()["role"] is None


def test_logging_out_ends_the_session(guarded):
    guarded.log_in("operator-token")
    cookies = dict(guarded.client.cookies)
    assert guarded.client.delete("/session").json()["role"] is None
    guarded.client.cookies.update(cookies)
    assert guarded.client.get("/session").json()["role"] is None


@pytest.mark.parametrize(
    ("kind", "body", "status"),
    [
        ("text/plain", b'{"token": "operator-token"}', 415),
        ("application/json", b"[" * 10_000, 400),
        ("application/json", b'["operator-token"]', 400),
        ("application/json", b'{"token": 5}', 400),
        ("application/json", b" " * 20_000, 413),
    ],
)
def test_a_login_that_is_none_is_refused_in_a_sentence(guarded, kind, body, status):
    answer = guarded.client.post("/session", content=body, headers={"Content-Type": kind})
    assert answer.status_code == status and answer.json()["message"].endswith(".")


# ------------------------------------------------------------------------------------------------------- operators


def act(served: LiveServer, name: str, csrf: str, **given: str) -> str:
    answer = served.client.post(f"/actions/{name}", json=given, headers={"X-Blast-Csrf": csrf})
    assert answer.status_code == 200, answer.text
    return answer.json()["message"]


def foretold(served: LiveServer, name: str, **given: str) -> tuple[str, bool]:
    answer = served.client.get(f"/actions/{name}/foretold", params=given)
    assert answer.status_code == 200, answer.text
    return " ".join(answer.json()["messages"]), answer.json()["possible"]


def test_an_operator_acts_and_the_journal_says_who_has(guarded):
    submit(guarded)
    csrf = guarded.log_in("operator-token")
    (element,) = [e.name for e in guarded.handler.elements(operator()) if e.name == "port:r2/50"]
    text, possible = foretold(guarded, "quarantine", element=element)
    assert possible and "default/a uses it (tree" in text and "continues" in text
    assert act(guarded, "quarantine", csrf, element=element, reason="dirty") == "port:r2/50 is quarantined."
    assert foretold(guarded, "release", element=element)[1]
    assert act(guarded, "release", csrf, element=element)
    assert not foretold(guarded, "release", element=element)[1]
    text, possible = foretold(guarded, "withdraw", tenant="default", key="a")
    assert possible and "from r1h1 to r2h1, r3h1" in text and "light tree is released" in text
    act(guarded, "withdraw", csrf, tenant="default", key="a")
    assert not foretold(guarded, "withdraw", tenant="default", key="a")[1]
    assert foretold(guarded, "drain")[1] and not foretold(guarded, "admit")[1]
    assert act(guarded, "drain", csrf).startswith("The controller is draining")
    assert not foretold(guarded, "drain")[1]
    act(guarded, "admit", csrf)
    deeds = [
        (entry.body["did"], entry.body["by"])
        for entry in guarded.lab.store.journal(0, 1000)
        if entry.key == "latest action"
    ]
    assert [did for did, _ in deeds] == [
        "quarantine port:r2/50: dirty",
        "release port:r2/50",
        "withdraw default/a",
        "drain: admit nothing new",
        "drain over: admit again",
    ]
    token = digest_of("operator-token").hex()[:8]
    assert all(f"operator of tenant default, token sha256:{token}, from 127.0.0.1:" in by for _, by in deeds)
    (part,) = guarded.lab.runtime.snapshot.request(key_of("a")).parts
    assert part.reason == "Withdrawn by an operator."


def operator() -> Connection:
    connection = Connection(1, "127.0.0.1:1")
    connection.token = digest_of("operator-token")
    return connection


@pytest.mark.parametrize(
    ("token", "headers", "status", "words"),
    [
        ("user-token", {}, 403, "role operator"),
        ("operator-token", {"X-Blast-Csrf": "guess"}, 403, "reload the page"),
        ("operator-token", {"X-Blast-Csrf": ""}, 403, "reload the page"),
        ("operator-token", {"Origin": "https://elsewhere.example"}, 403, "Cross-site"),
        ("operator-token", {"Sec-Fetch-Site": "cross-site"}, 403, "Cross-site"),
    ],
)
def test_what_a_foreign_page_or_another_role_sends_is_refused(guarded, token, headers, status, words):
    csrf = guarded.log_in(token)
    sent = {"X-Blast-Csrf": csrf, **headers}
    answer = guarded.client.post("/actions/drain", json={}, headers=sent)
    assert answer.status_code == status and words in answer.json()["message"]
    assert not guarded.lab.look().draining


def test_without_a_proof_the_page_only_shows(served):
    assert served.client.get("/session").json()["role"] == "viewer"
    answer = served.client.post("/actions/drain", json={})
    assert answer.status_code == 403 and "read-only" in answer.json()["message"]
    assert served.client.get("/session", headers={"Host": "rebound.example"}).status_code == 421


def test_a_script_with_a_token_acts_without_a_session(guarded):
    answer = guarded.client.post("/actions/drain", json={}, headers={"Authorization": "Bearer operator-token"})
    assert answer.status_code == 200 and guarded.lab.look().draining


@pytest.mark.parametrize(
    ("name", "given", "status", "words"),
    [
        ("explode", {}, 404, "no action"),
        ("quarantine", {"element": "port:r2/50"}, 400, "reason must be"),
        ("quarantine", {"element": "x" * 400, "reason": "dirty"}, 400, "element must be"),
        ("quarantine", {"element": "port:nowhere", "reason": "dirty"}, 409, "port:nowhere"),
        ("quarantine", {"element": "port:r2/50", "reason": "half a pair: \ud800"}, 400, "printable UTF-8 text"),
        ("quarantine", {"element": "port:r2/50", "reason": "two\nlines"}, 400, "printable UTF-8 text"),
        ("withdraw", {"tenant": "default", "key": "\udfff"}, 400, "printable UTF-8 text"),
        ("withdraw", {"tenant": "default", "key": "unknown"}, 404, "unknown"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence(guarded, name, given, status, words):
    csrf = guarded.log_in("operator-token")
    headers = {"X-Blast-Csrf": csrf, "Content-Type": "application/json"}
    answer = guarded.client.post(f"/actions/{name}", content=json.dumps(given), headers=headers)
    assert answer.status_code == status and words in answer.json()["message"], answer.text


# --------------------------------------------------------------------------------------------------------- looking


def test_an_explanation_is_the_cores(served):
    submit(served, "a", wanted=replace(multicast("a", "r1h1", ["r2h1"])))
    answer = served.client.get("/explain", params={"tenant": "default", "key": "a"}).json()
    assert answer["message"].startswith("The request a")
    assert served.client.get("/explain", params={"tenant": "default", "key": "b"}).status_code == 404


def test_the_past_is_shown_as_it_was(tmp_path):
    with live(make_fabric(4, [4, 4]), more=More(recording=tmp_path / "past")) as served:
        eventually(lambda: served.client.get("/past").json()["recording"], what="recording to begin")
        with stream_of(served) as events:
            whole = next_of("whole", events).data
            begin = whole["clock"]["wall"]
            submit(served)
            tree = rows_until(events, "request/default/a", "'active'")
            assert tree
        submit(served, "b", wanted=multicast("b", "r4h1", ["r4h2"]))

        def found() -> str:
            return str(served.client.get("/past/changes", params={"from": begin, "to": time.time()}).json())

        eventually(lambda: "default/b" in found() and "default/a" in found(), what="the requests to be recorded")
        past = served.client.get("/past").json()
        assert past["recording"] and past["oldest"] <= begin <= past["newest"] and len(past["activity"]) == 300
        assert sum(past["activity"]) > 0 and past["gaps"] == []
        before = served.client.get("/past/at", params={"wall": begin}).json()
        assert before["rows"] == whole["rows"] and before["clock"]["wall"] <= begin
        now = served.client.get("/past/at", params={"wall": time.time()}).json()["rows"]
        with stream_of(served) as events:
            assert next_of("whole", events).data["rows"] == now


def test_of_a_past_that_is_not_kept_or_damaged_that_is_said(served, tmp_path):
    told = served.client.get("/past").json()
    assert not told["recording"] and "[recording]" in told["message"]
    assert served.client.get("/past/at?wall=5").status_code == 404
    damaged = tmp_path / "past"
    with live(make_fabric(4, [4]), more=More(recording=damaged)) as other:
        eventually(lambda: other.client.get("/past").json()["recording"], what="recording to begin")
        assert other.client.get("/past/at?wall=5").status_code == 404, "before the oldest moment"
        for wall in ("yesterday", "-5", "nan", "1e12", ""):
            answer = other.client.get("/past/at", params={"wall": wall})
            assert answer.status_code == 400 and "1970" in answer.json()["message"]
    damaged.write_bytes(b"no recording" * 1000)
    looking = LookingBack(damaged, HttpAccess(lambda: OPEN_POLICY))
    with pytest.raises(HTTPException, match="is damaged"):
        asyncio.run(looking._read(lambda reader: reader.span()))


def test_a_tenant_is_not_shown_the_past_of_all(tmp_path):
    with live(make_fabric(4, [4]), POLICY, more=More(recording=tmp_path / "past")) as served:
        served.log_in("user-token")
        assert "operator" in served.client.get("/past").json()["message"]
        assert served.client.get("/past/at?wall=5").status_code == 403


def test_files_are_served_with_a_strict_policy_and_tags(served):
    page = served.client.get("/")
    assert page.status_code == 200 and page.headers["content-type"].startswith("text/html")
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy
    assert page.headers["x-content-type-options"] == "nosniff"
    again = served.client.get("/", headers={"If-None-Match": page.headers["etag"]})
    assert again.status_code == 304 and not again.content
    for name in page_files():
        assert served.client.get("/" if name == "index.html" else f"/static/{name}").status_code == 200
    assert served.client.get("/static/../daemon.py").status_code == 404
