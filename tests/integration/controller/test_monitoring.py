"""The shipped configuration in real Prometheus and Alertmanager: a scrape, every dashboard query, a page."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import httpx
import pytest

from blast_controller.core.model.events import FinishRequested
from blast_controller.core.model.requests import TransferReport
from tests.blast_controller.rpc.test_monitoring_files import serving
from tests.support.controller.core import key_of, multicast
from tests.support.controller.live_server import LiveServer
from tests.support.waiting import eventually

MONITORING = Path(__file__).resolve().parents[3] / "packaging" / "monitoring"
TIMEOUT = 60.0
pytestmark = [pytest.mark.test_all, pytest.mark.prometheus]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@contextlib.contextmanager
def process(folder: Path, *command: str) -> Iterator[None]:
    with (folder / f"{Path(command[0]).name}.log").open("w") as log:
        running = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
        try:
            yield
        finally:
            running.terminate()
            running.wait(TIMEOUT)


def answers(url: str) -> bool:
    with contextlib.suppress(httpx.HTTPError):
        return httpx.get(url, timeout=5).status_code == 200
    return False


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Return a copy of the shipped files, to be changed."""
    shutil.copytree(MONITORING, tmp_path / "monitoring")
    return tmp_path / "monitoring"


def replace_in(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def work(served: LiveServer, number: int) -> None:
    """Submit a request, which is granted, and finish it with a transfer report."""
    served.submit(multicast(f"k{number}", "r1h1", ["r2h1", "r3h1"]))
    report = TransferReport(bytes_sent=1000, bytes_repaired=10, failed_receivers=("r2h1",))
    served.handle(FinishRequested(key_of(f"k{number}"), 0, report))


def test_alert_rules_pass_their_promtool_tests(files):
    for command in (
        ["promtool", "check", "config", "prometheus.yml"],
        ["promtool", "test", "rules", "alerts_test.yml"],
        ["amtool", "check-config", "alertmanager.yml"],
    ):
        made = subprocess.run(command, cwd=files, capture_output=True, text=True, timeout=TIMEOUT, check=False)
        assert made.returncode == 0, made.stdout + made.stderr


def test_a_scrape_answers_every_query_of_the_dashboard(files):
    with serving() as served:
        port = free_port()
        replace_in(files / "prometheus.yml", "127.0.0.1:9464", f"127.0.0.1:{served.port}")
        replace_in(files / "prometheus.yml", "scrape_interval: 5s", "scrape_interval: 250ms")
        listen = f"--web.listen-address=127.0.0.1:{port}"
        with process(files, "prometheus", "--config.file=prometheus.yml", "--storage.tsdb.path=data", listen):
            base = f"http://127.0.0.1:{port}"
            eventually(lambda: answers(f"{base}/-/ready"), "Prometheus")
            number = 0

            def scraped() -> bool:
                nonlocal number
                work(served, number := number + 1)
                found = query(base, 'increase(blast_requests_total{outcome="done"}[5s])')
                return any(float(series["value"][1]) > 0 for series in found)

            eventually(scraped, "two scrapes with work between them")
            for text in queries():
                # This controller has had no errors and no reconciliation, so these series do not exist yet.
                if not re.search("failed_steps|switch_errors|drift|reconcile_runs", text):
                    # After a scrape that timed out, gauges have no value until the next scrape.
                    eventually(lambda text=text: query(base, text), text)


def queries() -> list[str]:
    panels = json.loads((MONITORING / "dashboard.json").read_text())["panels"]
    targets = [target for panel in panels for target in panel.get("targets", ())]
    return [target["expr"].replace("$__rate_interval", "5s") for target in targets]


def query(base: str, text: str) -> list:
    answer = httpx.get(f"{base}/api/v1/query", params={"query": text}, timeout=TIMEOUT).json()
    assert answer["status"] == "success", (text, answer)
    return answer["data"]["result"]


def test_alertmanager_pages_outage_and_inhibits_its_symptoms(files):
    notifications: list[tuple[str, list[str]]] = []

    class Webhook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            alerts = json.loads(self.rfile.read(int(self.headers["content-length"])))["alerts"]
            notifications.append((self.path, [alert["labels"]["alertname"] for alert in alerts]))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing."""

    webhook = HTTPServer(("127.0.0.1", 0), Webhook)
    threading.Thread(target=webhook.serve_forever, daemon=True).start()
    replace_in(files / "alertmanager.yml", "127.0.0.1:9099", f"127.0.0.1:{webhook.server_address[1]}")
    replace_in(files / "alertmanager.yml", "group_wait: 10s", "group_wait: 100ms")
    port = free_port()
    listen = [f"--web.listen-address=127.0.0.1:{port}", "--cluster.listen-address="]
    try:
        with process(files, "prometheus-alertmanager", "--config.file=alertmanager.yml", "--storage.path=am", *listen):
            base = f"http://127.0.0.1:{port}"
            eventually(lambda: answers(f"{base}/-/ready"), "Alertmanager")
            alerts = [
                {"labels": {"alertname": "BlastDown", "severity": "page", "instance": "a"}},
                {"labels": {"alertname": "BlastTorDisconnected", "severity": "ticket", "instance": "a"}},
                {"labels": {"alertname": "BlastDeviceErrors", "severity": "ticket", "instance": "a"}},
            ]
            assert httpx.post(f"{base}/api/v2/alerts", json=alerts, timeout=TIMEOUT).status_code == 200
            eventually(lambda: len(notifications) >= 2, "both receivers")
    finally:
        webhook.shutdown()
        webhook.server_close()
    # The alert of a stopped controller inhibits the alerts of its ToRs.
    assert sorted(notifications) == [("/chat", ["BlastDeviceErrors"]), ("/pager", ["BlastDown"])]
