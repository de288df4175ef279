"""Declaration of every metric that counts events: name, description, unit and labels.

Labels are bounded: tenants, devices and switches come from the configuration, all others from closed lists. Metrics
computed on demand are in standing.py.
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
            "Requests by outcome: granted (each grant of each part), or the final state.",
            ("tenant", "outcome"),
            registry=registry,
        )
        self.refused = Counter(
            "blast_refused_events_total", "Events that the core rejected, by kind.", ("event",), registry=registry
        )
        self.grant_seconds = Histogram(
            "blast_grant_seconds",
            "Seconds to a grant, from the receipt of the request or, for later grants, from the decision.",
            buckets=(*MILLISECONDS, 10.0, 60.0, 600.0),
            registry=registry,
        )
        self.grant_step_seconds = Histogram(
            "blast_grant_step_seconds",
            "Seconds of each step of a grant: compute, openflow, optical (Table II of the paper).",
            ("step",),
            buckets=MILLISECONDS,
            registry=registry,
        )
        self.decision_seconds = Histogram(
            "blast_decision_seconds",
            "Seconds of one decision for a batch of events.",
            buckets=DISK,
            registry=registry,
        )
        self.reconfiguration_seconds = Histogram(
            "blast_reconfig_seconds",
            "Seconds from a command to its confirmation, for all ToRs together and for each optical switch.",
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
        self.switch_errors = Counter(
            "blast_switch_errors_total",
            "Changes and readings that an optical switch refused, by its driver and error code (TL1: IICM, SNVS, ...).",
            ("driver", "code"),
            registry=registry,
        )
        self.drift = Gauge(
            "blast_drift_objects",
            "Rules and cross-connects on devices that Blast did not create.",
            ("kind",),
            registry=registry,
        )
        self.reconcile_runs = Counter(
            "blast_reconcile_runs_total",
            "Reconciliations by result: clean, repaired, differs (dry run) or incomplete.",
            ("result",),
            registry=registry,
        )
        self.repairs = Counter(
            "blast_repair_commands_total",
            "Commands that repaired differences between devices and journal.",
            registry=registry,
        )
        self.fsync_seconds = Histogram(
            "blast_journal_fsync_seconds",
            "Seconds of a journal commit.",
            buckets=DISK,
            registry=registry,
        )
        self.journal_records = Counter(
            "blast_journal_records_total", "Records written to the journal.", registry=registry
        )
        self.transfers = Counter(
            "blast_transfers_total", "Transfers reported by their senders.", ("tenant",), registry=registry
        )
        self.transferred_bytes = Counter(
            "blast_transferred_bytes_total",
            "Bytes sent, once for all receivers, as senders report.",
            ("tenant",),
            registry=registry,
        )
        self.repaired_bytes = Counter(
            "blast_repaired_bytes_total",
            "Bytes of repairs, as senders report.",
            ("tenant",),
            registry=registry,
        )
        self.failed_receivers = Counter(
            "blast_failed_receivers_total",
            "Receivers without all data, as senders report.",
            ("tenant",),
            registry=registry,
        )
