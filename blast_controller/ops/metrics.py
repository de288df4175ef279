"""Every metric that is counted as things happen: its name, what it says, its unit and its labels, each declared once.

Labels are bounded: tenants, devices and switches are those of the configuration, everything else is a closed list. What
is not counted but looked at when somebody asks (standing.py) has its names there.
"""

from __future__ import annotations

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
)

MILLISECONDS = (0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.025, 0.03, 0.04, 0.05, 0.075, 0.1, 0.25, 1.0)
"""Seconds: steps of a grant take 1 to 100 ms, and what takes more is a fault."""
DISK = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 2.5)
"""Seconds that a commit waits for its disk."""


class Metrics:
    """The metrics of one controller, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=registry)

        self.requests = Counter(
            "blast_requests_total",
            "What became of requests: granted (each part's first and later grants), or how they ended.",
            ("tenant", "outcome"),
            registry=registry,
        )
        self.refused = Counter(
            "blast_refused_events_total", "Events that the core refused, by kind.", ("event",), registry=registry
        )
        self.grant_seconds = Histogram(
            "blast_grant_seconds",
            "Seconds from a request's receipt, or from the decision to light it, to the grant.",
            buckets=(*MILLISECONDS, 10.0, 60.0, 600.0),
            registry=registry,
        )
        self.grant_step_seconds = Histogram(
            "blast_grant_step_seconds",
            "Seconds of the steps of a grant: compute, openflow and optical (Table II of the paper).",
            ("step",),
            buckets=MILLISECONDS,
            registry=registry,
        )
        self.decision_seconds = Histogram(
            "blast_decision_seconds",
            "Seconds of a decision for all events that came together.",
            buckets=DISK,
            registry=registry,
        )
        self.reconfiguration_seconds = Histogram(
            "blast_reconfig_seconds",
            "Seconds from a command to a device to its confirmation; of all ToRs together, of each optical switch.",
            ("device",),
            buckets=MILLISECONDS,
            registry=registry,
        )
        self.failed_steps = Counter(
            "blast_failed_steps_total",
            "Commands that a device refused or did not confirm in time.",
            ("device",),
            registry=registry,
        )
        self.tl1_errors = Counter(
            "blast_tl1_errors_total",
            "Commands that an optical switch refused, by its dialect and error code (GR-831: IICM, SNVS, ...).",
            ("dialect", "code"),
            registry=registry,
        )
        self.drift = Gauge(
            "blast_drift_objects",
            "Rules and cross-connects on devices that are not of Blast's making.",
            ("kind",),
            registry=registry,
        )
        self.reconcile_runs = Counter(
            "blast_reconcile_runs_total",
            "Rounds of reading all devices and comparing: clean, repaired, differs (a dry run), or incomplete.",
            ("result",),
            registry=registry,
        )
        self.repairs = Counter(
            "blast_repair_commands_total",
            "Commands that mended what devices held otherwise than wanted.",
            registry=registry,
        )
        self.fsync_seconds = Histogram(
            "blast_journal_fsync_seconds",
            "Seconds that a commit of the journal waited.",
            buckets=DISK,
            registry=registry,
        )
        self.journal_records = Counter(
            "blast_journal_records_total", "Records written to the journal.", registry=registry
        )
        self.transfers = Counter(
            "blast_transfers_total", "Transfers whose senders have told how they went.", ("tenant",), registry=registry
        )
        self.transferred_bytes = Counter(
            "blast_transferred_bytes_total",
            "Bytes that senders say they have sent, once for all receivers.",
            ("tenant",),
            registry=registry,
        )
        self.repaired_bytes = Counter(
            "blast_repaired_bytes_total",
            "Bytes that senders say they had to send again.",
            ("tenant",),
            registry=registry,
        )
        self.failed_receivers = Counter(
            "blast_failed_receivers_total",
            "Receivers that senders say have not got everything.",
            ("tenant",),
            registry=registry,
        )
