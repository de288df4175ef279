"""Health and metrics over real HTTP: answers, access, and limits on misbehaving clients."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator
from dataclasses import replace

import httpx
import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from blast_controller.core.model.events import DeviceDisconnected, FinishRequested, RequestSubmitted
from blast_controller.core.model.requests import MulticastRequest, TransferReport
from blast_controller.ops.http import protocol as http_protocol
from blast_controller.ops.http.client_counts import (
    ACCOUNT_RATE,
    FOR_OPERATORS,
    GUEST_RATE,
    HEALTH_RATE,
    MAX_GUESTS_PER_HOST,
    MAX_KNOWN,
    MAX_PER_ACCOUNT,
    ClientCounts,
    ConnectionLimitError,
)
from blast_controller.ops.http.sessions import MAX_PER_TOKEN, MAX_SESSIONS, Sessions
from blast_controller.ops.metering import MAX_CODES, Metering
from blast_controller.ops.metrics import Metrics
from blast_controller.rpc.clients.access import AccessPolicy, CertificateRule
from blast_controller.rpc.clients.identity import Identity, Role
from blast_controller.rpc.clients.tokens import digest_of
from blast_controller.serving.tls import ServerTlsSettings
from blast_controller.store.errors import DiskFullError
from tests.support.certificates import Authority
from tests.support.controller.core import key_of, make_fabric, multicast
from tests.support.controller.live_server import LiveServer, More, live
from tests.support.controller.runtime import TIMEOUT
from tests.support.waiting import eventually

CLOSED = AccessPolicy(
    rules=(CertificateRule(frozenset({("common_name", "scraper")}), Identity("default", Role.OPERATOR)),),
    tokens={
        digest_of("operator-token"): Identity("default", Role.OPERATOR),
        digest_of("viewer-token"): Identity("one", Role.VIEWER),
    },
    tenants=frozenset({"default", "one", "two"}),
)


Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


@pytest.fixture
def served() -> Iterator[LiveServer]:
    with live(make_fabric(4, [4, 4])) as found:
        yield found


@pytest.fixture
def closed() -> Iterator[LiveServer]:
    with live(make_fabric(4, [4, 4]), CLOSED) as found:
        yield found


def get(served: LiveServer, path: str, **headers: str) -> httpx.Response:
    return served.client.get(path, headers=headers)


def metrics(served: LiveServer, **headers: str) -> Samples:
    answer = get(served, "/metrics", **headers)
    assert answer.status_code == 200, answer.text
    families = text_string_to_metric_families(answer.text)
    return {(s.name, frozenset(s.labels.items())): s.value for family in families for s in family.samples}


def connect(served: LiveServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", served.port), TIMEOUT)


def asked_by(tenant: str) -> MulticastRequest:
    return replace(multicast("a", "r1h1", ["r1h2"]), tenant=tenant)


def value(found: dict, name: str, **labels: str) -> float:
    return found[name, frozenset(labels.items())]


# ----------------------------------------------------------------------------------------------------- metrics


def test_metrics_count_grants_and_transfers(served):
    lab = served.lab
    lab.runtime.post(RequestSubmitted(multicast("a", "r1h1", ["r2h1", "r3h1"])))
    lab.settle()
    found = metrics(served)
    assert value(found, "blast_requests_total", tenant="default", outcome="granted") == 1
    assert value(found, "blast_requests", state="active") == 1
    assert value(found, "blast_splitters", state="held") == 1 and value(found, "blast_splitters", state="free") == 1
    assert value(found, "blast_grant_seconds_count") == 1
    for step in ("compute", "openflow", "optical"):
        assert value(found, "blast_grant_step_seconds_count", step=step) == 1
    assert value(found, "blast_reconfig_seconds_count", device="ocs1") == 1
    assert value(found, "blast_reconfig_seconds_count", device="tors") == 3
    assert value(found, "blast_leader") == 7 and value(found, "blast_rpc_calls_total") == 3
    assert value(found, "blast_journal_records_total") > 0 and value(found, "blast_journal_fsync_seconds_count") > 0
    report = TransferReport(bytes_sent=1000, bytes_repaired=50, failed_receivers=("r2h1",))
    lab.runtime.post(FinishRequested(key_of("a"), 0, report))
    lab.settle()
    found = metrics(served)
    assert value(found, "blast_requests_total", tenant="default", outcome="done") == 1
    assert value(found, "blast_transferred_bytes_total", tenant="default") == 1000
    assert value(found, "blast_failed_receivers_total", tenant="default") == 1
    assert value(found, "blast_requests", state="active") == 0 and value(found, "blast_requests", state="done") == 1


def test_metrics_report_failed_steps_and_disconnected_tors(served):
    lab = served.lab
    lab.devices.denied = "no"
    lab.runtime.post(RequestSubmitted(multicast("a", "r1h1", ["r2h1", "r3h1"])))
    lab.settle()
    lab.runtime.post(DeviceDisconnected(4, "gone"))
    lab.settle()
    found = metrics(served)
    assert value(found, "blast_failed_steps_total", device="ocs1") > 0
    assert value(found, "blast_of_dp_status", dpid=f"{4:016x}") == 0
    assert value(found, "blast_of_dp_status", dpid=f"{1:016x}") == 1
    assert value(found, "blast_optical_switch_up", switch="ocs1") == 1


def test_undeclared_tenants_share_the_label_other(served):
    for number in range(5):
        served.lab.runtime.post(RequestSubmitted(asked_by(f"x{number}")))
    served.lab.settle()
    tenants = {dict(labels).get("tenant") for name, labels in metrics(served) if name == "blast_requests_total"}
    assert tenants <= {"default", "one", "two", "other"}


def test_number_of_tl1_error_code_labels_is_bounded():
    found = Metrics()
    metering = Metering(found, ["default"])
    for number in range(10 * MAX_CODES):
        metering.refused("tl1", f"C{number}")
    metering.refused("tl1", "C0")
    lines = [line for line in generate_latest(found.registry).decode().splitlines() if "switch_errors_total{" in line]
    assert len(lines) == MAX_CODES + 1
    assert 'blast_switch_errors_total{code="C0",driver="tl1"} 2.0' in lines
    assert f'blast_switch_errors_total{{code="other",driver="tl1"}} {9.0 * MAX_CODES}' in lines


# ------------------------------------------------------------------------------------------------------ health


def test_connected_controller_is_ready(served):
    answer = get(served, "/readyz")
    assert answer.status_code == 200
    assert answer.json() == {
        "ready": True,
        "epoch": 7,
        "faults": [],
        "optical_switches": {"connected": 1, "declared": 1},
        "tors": {"connected": 4, "declared": 4},
    }
    assert get(served, "/livez").text == "ok\n"
    assert answer.headers["cache-control"] == "no-store" and "server" not in answer.headers


def test_unready_controller_reports_its_faults(served, monkeypatch):
    served.lab.runtime.post(DeviceDisconnected("ocs1", "the cable is out"))
    served.lab.settle()
    answer = get(served, "/readyz")
    assert answer.status_code == 503 and answer.json()["faults"] == ["ocs1 is disconnected: the cable is out"]

    def refuse(records, at):
        raise DiskFullError("journal.db")

    with monkeypatch.context() as disk:
        disk.setattr(served.lab.store, "commit", refuse)
        served.lab.runtime.post(RequestSubmitted(multicast("a", "r1h1", ["r2h1"])))
        eventually(lambda: served.lab.runtime.store_fault is not None, event="the failure to write")
        faults = get(served, "/readyz").json()["faults"]
        assert any(fault.startswith("The journal cannot be written: ") for fault in faults)
        assert value(metrics(served), "blast_journal_writable") == 0
        assert get(served, "/livez").status_code == 200, "a restart would not free the disk"
    served.lab.settle()


def test_hanging_core_fails_livez_while_metrics_are_served(served, monkeypatch):
    monkeypatch.setattr("blast_controller.ops.http.health.ANSWER_TIMEOUT", 0.2)
    hang = threading.Event()
    served.lab.runtime.call(lambda context: hang.wait(TIMEOUT))
    try:
        assert get(served, "/livez").status_code == 503
        assert value(metrics(served), "blast_leader") == 7
    finally:
        hang.set()
    eventually(lambda: get(served, "/livez").status_code == 200, event="life")


# ------------------------------------------------------------------------------------------------------ access


def test_anonymous_client_learns_readiness_only(closed):
    assert get(closed, "/livez").status_code == 200
    assert get(closed, "/readyz").json() == {"ready": True}
    answer = get(closed, "/metrics")
    assert answer.status_code == 401 and "Authorization: Bearer TOKEN" in answer.text
    assert get(closed, "/metrics", Authorization="Bearer wrong").status_code == 401
    assert get(closed, "/metrics", Authorization="Bearer operator-token").status_code == 200
    closed.gate.policy = AccessPolicy()
    assert get(closed, "/metrics", Authorization="Bearer operator-token").status_code == 401


def test_foreign_host_header_is_refused(served):
    """A page can resolve its own name to 127.0.0.1 (DNS rebinding); the browser then sends that name."""
    for host, status in (("evil.example", 421), ("localhost:9464", 200), ("[::1]:9464", 200), ("127.0.0.1", 200)):
        assert get(served, "/metrics", Host=host).status_code == status
    assert get(served, "/readyz", Host="evil.example").json() == {"ready": True}


def test_tenant_sees_only_its_own_metrics(closed):
    for tenant in ("one", "two"):
        closed.lab.runtime.post(RequestSubmitted(asked_by(tenant)))
    closed.lab.settle()
    for token, seen in (("viewer-token", {"one"}), ("operator-token", {"one", "two"})):
        found = metrics(closed, Authorization=f"Bearer {token}")
        assert {dict(labels)["tenant"] for _, labels in found if "tenant" in dict(labels)} == seen


def test_client_certificate_authenticates_a_scraper(tmp_path):
    authority = Authority(tmp_path, "clients")
    files = authority.issue("/CN=server", "DNS:localhost")
    tls = ServerTlsSettings(files.cert, files.key, authority.cert, required=False)
    with live(make_fabric(4, [4]), CLOSED, More(tls=tls)) as served:
        context = ssl.create_default_context(cafile=str(authority.cert))
        base = f"https://localhost:{served.port}"
        assert httpx.get(f"{base}/metrics", verify=context, timeout=TIMEOUT).status_code == 401
        own = authority.issue("/CN=scraper")
        context.load_cert_chain(own.cert, own.key)
        assert httpx.get(f"{base}/metrics", verify=context, timeout=TIMEOUT).status_code == 200


# ------------------------------------------------------------------------------------------------- bad clients


def test_unknown_paths_methods_and_protocols_are_refused(served):
    assert get(served, "/nothing").status_code == 404
    assert served.client.post("/metrics", content=b"x" * 10**6).status_code == 405
    with connect(served) as connection:
        connection.sendall(b"GET /metrics HTTP/1.1\r\nX: " + b"x" * 50_000)
        assert b" 400 " in connection.recv(1000).split(b"\r\n")[0] + b" "
    with connect(served) as connection:
        connection.sendall(b"\x16\x03\x01 this is no HTTP\r\n\r\n")
        assert b"400" in connection.recv(1000)
    assert get(served, "/livez").status_code == 200


def test_silent_connection_is_closed(served, monkeypatch):
    monkeypatch.setattr(http_protocol, "SECONDS_TO_ASK", 0.1)
    for sent in (b"", b"GET /livez HT", b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\nGET /li"):
        with connect(served) as connection:
            connection.sendall(sent)
            with contextlib.suppress(ConnectionResetError):
                while connection.recv(1000):
                    pass


def test_silent_connections_do_not_block_other_clients(served):
    with contextlib.ExitStack() as stack:
        for _ in range(3 * MAX_GUESTS_PER_HOST):
            stack.enter_context(connect(served))
        assert get(served, "/livez").status_code == 200


@pytest.mark.parametrize("path", ["/", "/livez"])
def test_clients_that_read_no_answer_do_not_block_others(served, path):
    request = f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
    with contextlib.ExitStack() as stack:
        crowd = [stack.enter_context(connect(served)) for _ in range(254)]
        for connection in crowd:
            with contextlib.suppress(OSError):
                connection.sendall(request * 20)
        for probe in ("/livez", "/metrics"):
            assert get(served, probe).status_code == 200
        assert len(served.server._state.connections) <= MAX_GUESTS_PER_HOST + 3


def test_connection_with_unread_answer_is_closed(served, monkeypatch):
    monkeypatch.setattr(http_protocol, "SECONDS_TO_READ", 0.1)
    request = b"GET /static/picture/geometry.js HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with connect(served) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        with contextlib.suppress(OSError):
            while True:
                connection.sendall(request)
    eventually(lambda: not served.server._state.connections, "the connection to be closed")


@pytest.mark.parametrize(
    ("head", "status"),
    [(b"Host: localhost\r\nOrigin: http://[", b"403"), (b"Host: [", b"421"), (b"Host: localhost:99999999", b"200")],
)
def test_invalid_addresses_in_headers_are_refused(served, head, status):
    method = b"DELETE" if b"Origin" in head else b"GET"
    with connect(served) as connection:
        connection.sendall(method + b" /session HTTP/1.1\r\n" + head + b"\r\n\r\n")
        assert connection.recv(1000).split(b" ")[1] == status


def test_connections_are_bounded_by_account_and_reserved_for_operators():
    crowd = ClientCounts(lambda: 0.0)
    for _ in range(MAX_PER_ACCOUNT):
        crowd.enter("viewer", is_operator=False)
    with pytest.raises(ConnectionLimitError, match=f"Your account has {MAX_PER_ACCOUNT} connections"):
        crowd.enter("viewer", is_operator=False)
    for number in range(MAX_KNOWN - FOR_OPERATORS - MAX_PER_ACCOUNT):
        crowd.enter(number, is_operator=False)
    with pytest.raises(ConnectionLimitError, match="try again later"):
        crowd.enter("another", is_operator=False)
    crowd.enter("operator", is_operator=True)
    crowd.leave("viewer")
    crowd.leave("operator")
    crowd.enter("another", is_operator=False)


def test_request_rates_are_limited_by_account_and_host():
    now = [0.0]
    crowd = ClientCounts(lambda: now[0])
    rates = ((crowd.account_wait, ACCOUNT_RATE), (crowd.guest_wait, GUEST_RATE), (crowd.health_wait, HEALTH_RATE))
    for wait, rate in rates:
        assert [wait("flood") for _ in range(rate.burst)] == [0.0] * rate.burst
        assert 0 < wait("flood") <= 1 / rate.per_second
        assert wait("another") == 0.0
        now[0] += 1.0
        assert wait("flood") == 0.0


def test_flooding_host_still_gets_health_and_authenticated_answers(closed, monkeypatch):
    """The flood comes from the host of a proxy, or of the operator."""
    monkeypatch.setattr(closed.server._crowd, "guest_wait", lambda host: 60.0)
    with connect(closed) as flood:
        flood.sendall(b"GET /session HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert get(closed, "/livez").status_code == 200
        assert get(closed, "/readyz").status_code in (200, 503)
        assert get(closed, "/metrics", Authorization="Bearer viewer-token").status_code == 200
        flood.settimeout(0.0)
        with pytest.raises(BlockingIOError):
            flood.recv(1)


def test_logins_with_one_token_end_no_session_of_another():
    sessions = Sessions(lambda: 0.0)
    operator, _ = sessions.open(b"operator")
    for number in range(2 * MAX_SESSIONS):
        newest, _ = sessions.open(b"viewer")
        sessions.open(str(number).encode())
    assert sessions.find(operator) is None, "the oldest session ends when all places are taken by different tokens"
    operator, _ = sessions.open(b"operator")
    names = [sessions.open(b"viewer")[0] for _ in range(2 * MAX_SESSIONS)]
    assert sessions.find(operator) is not None and sessions.find(names[-1]) is not None
    assert sessions.find(newest) is None
    alone = Sessions(lambda: 0.0)
    names = [alone.open(b"viewer")[0] for _ in range(MAX_PER_TOKEN + 1)]
    assert [alone.find(name) is not None for name in names] == [False] + [True] * MAX_PER_TOKEN


def test_scrape_during_shutdown_gets_status_200_or_no_answer(served):
    seen: list[int] = []

    def scrape() -> None:
        with contextlib.suppress(httpx.HTTPError):
            while True:
                seen.append(httpx.get(f"http://127.0.0.1:{served.port}/metrics", timeout=TIMEOUT).status_code)

    scraper = threading.Thread(target=scrape)
    scraper.start()
    eventually(lambda: len(seen) > 2, event="some scrapes")
    served.server.stop()
    scraper.join(TIMEOUT)
    assert set(seen) == {200}
