"""The controller's side of the live page over real HTTP: streams, sessions and the actions of operators."""

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

from blast_controller.core.model.events import DeviceDisconnected, FinishRequested, ProgressReported
from blast_controller.core.model.identifiers import SwitchId
from blast_controller.core.model.requests import MulticastRequest
from blast_controller.ops.http.access import HttpAccess
from blast_controller.ops.live import broadcast
from blast_controller.ops.live.timeline import TimelineReader
from blast_controller.ops.page.files import page_files
from blast_controller.rpc.clients.access import OPEN_POLICY, AccessPolicy
from blast_controller.rpc.clients.identity import Identity, Role
from blast_controller.rpc.clients.tokens import digest_of
from blast_controller.rpc.connections.connection import Connection
from tests.support.controller.core import key_of, make_fabric, multicast
from tests.support.controller.live_server import LiveServer, More, live
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
    """Yield the server-sent events of these lines."""
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


def submit(
    served: LiveServer, key: str = "a", tenant: str = "default", request: MulticastRequest | None = None
) -> None:
    served.submit(replace(request or multicast(key, "r1h1", ["r2h1", "r3h1"]), tenant=tenant))


def next_of(kind: str, events: Iterator[Event]) -> Event:
    return next(event for event in events if event.kind == kind)


def rows_until(events: Iterator[Event], name: str, expected: str) -> dict:
    """Return the rows of the first changes in which the row `name` contains this text."""
    for event in events:
        if event.kind == "changes" and expected in str(event.data["rows"].get(name)):
            return event.data["rows"]
    raise AssertionError("the stream has ended")


# -------------------------------------------------------------------------------------------------- stream


def test_stream_sends_the_whole_state_and_then_changes(served):
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
            "isLeader": True,
            "epoch": 7,
            "leader": None,
            "staleSeconds": None,
        }
        assert isinstance(vitals.data["history"], list) and vitals.data["counts"] == {"rpc_calls": 3}
        served.lab.runtime.post(ProgressReported(key_of("a"), 0, 5))
        changed = rows_until(events, "request/default/a", "progressBytes")
        assert changed["request/default/a"]["parts"][0]["progressBytes"] == 5
        served.lab.runtime.post(FinishRequested(key_of("a"), 0))
        rows_until(events, "request/default/a", "'done'")
        served.lab.runtime.post(DeviceDisconnected(SwitchId("ocs1"), "cable pulled"))
        assert rows_until(events, "away/switch:ocs1", "cable pulled")


def test_stream_sends_a_point_every_second_with_its_grants(served):
    with stream_of(served) as events:
        next_of("whole", events)
        submit(served)
        point = next(
            event.data["point"]
            for event in events
            if event.kind == "vitals" and event.data.get("point", {}).get("granted")
        )
        assert point["granted"] == 1 and point["trees"] == 1 and point["grantMs"] > 0


def test_slow_page_receives_the_whole_state_again(served, monkeypatch):
    monkeypatch.setattr(broadcast, "MAX_EVENTS", 2)
    page = served.watchers.broadcast
    with stream_of(served) as events:
        next_of("whole", events)
        (listener,) = page._listeners
        for _ in range(3):
            listener.put(b"event: changes\ndata: {}\n\n")
        # The queue is full: its events are dropped, and the whole state is sent.
        assert listener.needs_whole
        assert next_of("whole", events).data["rows"]["fabric"]


def test_tenant_sees_only_its_own_requests_and_trees(guarded):
    submit(guarded, "mine", "one")
    submit(guarded, "theirs", "two", multicast("theirs", "r4h1", ["r5h1"]))
    guarded.log_in("user-token")
    with stream_of(guarded) as events:
        rows = next_of("whole", events).data["rows"]
        assert {name for name in rows if name.startswith("request/")} == {"request/one/mine"}
        assert {row["tenant"] for name, row in rows.items() if name.startswith("tree/")} == {"one"}
        assert next_of("vitals", events).data["counts"] == {}
        guarded.lab.runtime.post(FinishRequested(("two", "theirs"), 0))
        guarded.lab.runtime.post(FinishRequested(("one", "mine"), 0))
        for event in events:
            assert "theirs" not in str(event.data) and "'two'" not in str(event.data)
            if event.kind == "changes" and "'done'" in str(event.data):
                break


def test_number_of_open_pages_is_limited(served, monkeypatch):
    monkeypatch.setattr(broadcast, "MAX_PAGES", 1)
    with stream_of(served) as events:
        next_of("whole", events)
        refused = served.client.get("/stream")
        assert refused.status_code == 503 and "close one" in refused.json()["message"]
    eventually(
        lambda: served.client.get("/session") and not served.watchers.broadcast.pages, event="the page to be closed"
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


def test_nothing_is_encoded_without_an_open_page(served, monkeypatch):
    submit(served)
    assert served.watchers.broadcast._changes == broadcast.NOTHING
    monkeypatch.setattr(broadcast, "LINGER", 0.0)
    with stream_of(served) as events:
        next_of("whole", events)
    eventually(lambda: not served.watchers.broadcast._watched, event="the page to be forgotten")
    assert not served.watchers.broadcast._encoder.rows


def test_page_is_notified_when_the_controller_stops():
    with live(make_fabric(4, [4])) as served, stream_of(served) as events:
        next_of("whole", events)
        served.side.watchers.broadcast.end("It ends.")
        assert next_of("goodbye", events).data == {"message": "It ends."}
        assert not list(events)


# ------------------------------------------------------------------------------------------------------- sessions


def test_anonymous_client_gets_no_data(guarded):
    session = guarded.client.get("/session").json()
    assert (session["role"], session["login"], session["csrf"]) == (None, True, None)
    for path in ("/stream", "/picture", "/explain?tenant=a&key=b", "/actions/drain/foretold"):
        answer = guarded.client.get(path)
        assert answer.status_code == 401 and "Bearer TOKEN" in answer.json()["message"], path


def test_session_ends_when_its_token_is_revoked(guarded):
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


def test_logout_ends_the_session(guarded):
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
def test_malformed_login_is_rejected_in_a_sentence(guarded, kind, body, status):
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


def test_journal_records_the_actions_of_an_operator(guarded):
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
    actions = [
        (entry.body["did"], entry.body["by"])
        for entry in guarded.lab.store.journal(0, 1000)
        if entry.key == "latest action"
    ]
    assert [action for action, _ in actions] == [
        "quarantine port:r2/50: dirty",
        "release port:r2/50",
        "withdraw default/a",
        "drain: admit nothing new",
        "drain over: admit again",
    ]
    token = digest_of("operator-token").hex()[:8]
    assert all(f"operator of tenant default, token sha256:{token}, from 127.0.0.1:" in by for _, by in actions)
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
def test_actions_of_other_roles_or_foreign_pages_are_denied(guarded, token, headers, status, words):
    csrf = guarded.log_in(token)
    sent = {"X-Blast-Csrf": csrf, **headers}
    answer = guarded.client.post("/actions/drain", json={}, headers=sent)
    assert answer.status_code == status and words in answer.json()["message"]
    assert not guarded.lab.look().draining


def test_page_is_read_only_without_authentication(served):
    assert served.client.get("/session").json()["role"] == "viewer"
    answer = served.client.post("/actions/drain", json={})
    assert answer.status_code == 403 and "read-only" in answer.json()["message"]
    assert served.client.get("/session", headers={"Host": "rebound.example"}).status_code == 421


def test_script_with_a_token_acts_without_a_session(guarded):
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
def test_invalid_action_is_rejected_in_a_sentence(guarded, name, given, status, words):
    csrf = guarded.log_in("operator-token")
    headers = {"X-Blast-Csrf": csrf, "Content-Type": "application/json"}
    answer = guarded.client.post(f"/actions/{name}", content=json.dumps(given), headers=headers)
    assert answer.status_code == status and words in answer.json()["message"], answer.text


# --------------------------------------------------------------------------------------------------------- reading


def test_explain_returns_the_explanation_of_the_core(served):
    submit(served, "a", request=replace(multicast("a", "r1h1", ["r2h1"])))
    answer = served.client.get("/explain", params={"tenant": "default", "key": "a"}).json()
    assert answer["message"].startswith("The request a")
    assert served.client.get("/explain", params={"tenant": "default", "key": "b"}).status_code == 404


def test_recorded_state_equals_the_streamed_state(tmp_path):
    with live(make_fabric(4, [4, 4]), more=More(recording=tmp_path / "past")) as served:
        eventually(lambda: served.client.get("/past").json()["recording"], event="recording to begin")
        with stream_of(served) as events:
            whole = next_of("whole", events).data
            begin = whole["clock"]["wall"]
            submit(served)
            tree = rows_until(events, "request/default/a", "'active'")
            assert tree
        submit(served, "b", request=multicast("b", "r4h1", ["r4h2"]))

        def found() -> str:
            return str(served.client.get("/past/changes", params={"from": begin, "to": time.time()}).json())

        eventually(lambda: "default/b" in found() and "default/a" in found(), event="the requests to be recorded")
        past = served.client.get("/past").json()
        assert past["recording"] and past["oldest"] <= begin <= past["newest"] and len(past["activity"]) == 300
        assert sum(past["activity"]) > 0 and past["gaps"] == []
        before = served.client.get("/past/at", params={"wall": begin}).json()
        assert before["rows"] == whole["rows"] and before["clock"]["wall"] <= begin
        now = served.client.get("/past/at", params={"wall": time.time()}).json()["rows"]
        with stream_of(served) as events:
            assert next_of("whole", events).data["rows"] == now


def test_missing_or_damaged_recording_is_reported(served, tmp_path):
    past = served.client.get("/past").json()
    assert not past["recording"] and "[recording]" in past["message"]
    assert served.client.get("/past/at?wall=5").status_code == 404
    damaged = tmp_path / "past"
    with live(make_fabric(4, [4]), more=More(recording=damaged)) as other:
        eventually(lambda: other.client.get("/past").json()["recording"], event="recording to begin")
        assert other.client.get("/past/at?wall=5").status_code == 404, "before the oldest moment"
        for wall in ("yesterday", "-5", "nan", "1e12", ""):
            answer = other.client.get("/past/at", params={"wall": wall})
            assert answer.status_code == 400 and "1970" in answer.json()["message"]
    damaged.write_bytes(b"no recording" * 1000)
    timeline = TimelineReader(damaged, HttpAccess(lambda: OPEN_POLICY))
    with pytest.raises(HTTPException, match="is damaged"):
        asyncio.run(timeline._read(lambda reader: reader.span()))


def test_recording_is_denied_to_tenants(tmp_path):
    with live(make_fabric(4, [4]), POLICY, more=More(recording=tmp_path / "past")) as served:
        served.log_in("user-token")
        assert "operator" in served.client.get("/past").json()["message"]
        assert served.client.get("/past/at?wall=5").status_code == 403


def test_page_files_are_served_with_strict_policy_and_etags(served):
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
