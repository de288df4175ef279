"""The files for Prometheus and Grafana use only exported metrics, and link only existing documentation."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from functools import partial
from pathlib import Path

import pytest
import yaml

from blast_controller.core.model.settings import CoreSettings
from blast_controller.process.http_services import MetricSources
from blast_controller.rpc.clients.gate import GateCounters
from blast_controller.rpc.connections.server_state import ServerCounters
from tests.support.controller import live_server
from tests.support.controller.core import make_fabric
from tests.support.controller.live_server import LiveServer, live

ROOT = Path(__file__).resolve().parents[3]
MONITORING = ROOT / "packaging" / "monitoring"
KEPT = (("rpc", ServerCounters), ("gate", GateCounters))
LEVELS = dict.fromkeys(
    ("rpc_connections", "rpc_parked", "recording_bytes", "recording_lag_seconds", "recording_paused"), 0.0
)
NAME = re.compile(r"\b((?:blast|process)_[a-z0-9_]+)\b")


@contextmanager
def serving() -> Iterator[LiveServer]:
    """Run a controller that exports all metrics of its servers and its recorder, as the daemon does."""
    counts = {f"{name}_{field.name}": 0.0 for name, kind in KEPT for field in fields(kind)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            live_server, "MetricSources", lambda epoch, *_: MetricSources(epoch, lambda: counts, lambda: LEVELS)
        )
        patch.setattr(live_server, "CoreSettings", partial(CoreSettings, keep_warm=60.0))
        with live(make_fabric(4, [4, 4])) as served:
            yield served


def exported_names() -> set[str]:
    """Return every name that a scrape may contain, also of labeled metrics without a value yet."""
    with serving() as served:
        found: set[str] = set()
        for line in served.client.get("/metrics").text.splitlines():
            match line.split():
                case ["#", "TYPE", name, "histogram"]:
                    found |= {f"{name}_{end}" for end in ("bucket", "sum", "count")}
                case ["#", "TYPE", name, _]:
                    found.add(name)
        return found


def test_dashboard_and_alerts_use_exported_metrics():
    known = exported_names()
    for file in ("dashboard.json", "alerts.yml"):
        asked = set(NAME.findall((MONITORING / file).read_text()))
        assert asked and asked <= known, (file, asked - known)


@pytest.mark.test_all
def test_dashboard_is_generated_from_its_rows():
    made = subprocess.run([sys.executable, ROOT / "scripts" / "generate-dashboard", "--check"], check=False)
    assert made.returncode == 0
    panels = json.loads((MONITORING / "dashboard.json").read_text())["panels"]
    assert all(panel["title"] for panel in panels)


def test_every_alert_links_a_section_of_the_operators_guide():
    titles = re.findall(r"^#+ (.+)$", (ROOT / "docs" / "how-to" / "operate.md").read_text(), re.MULTILINE)
    anchors = {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
    alerts = yaml.safe_load((MONITORING / "alerts.yml").read_text())["groups"][0]["rules"]
    for alert in alerts:
        file, _, anchor = alert["annotations"]["runbook_url"].partition("#")
        assert file == "docs/how-to/operate.md" and anchor in anchors, alert["alert"]
        assert alert["labels"]["severity"] in ("page", "ticket")


def test_every_alert_is_tested():
    alerts = re.findall(r"alert: (\w+)", (MONITORING / "alerts.yml").read_text())
    tested = (MONITORING / "alerts_test.yml").read_text()
    assert [name for name in alerts if f"alertname: {name}" not in tested] == []
