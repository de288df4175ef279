"""Metrics of events: an observer of the runtime. A count takes about a microsecond of the deciding thread."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from blast_controller.core.auditor import AuditReport
from blast_controller.core.controller import Core
from blast_controller.core.model.commands import Announce, Command, Publish
from blast_controller.core.model.events import (
    CircuitsObserved,
    DeviceConnected,
    Event,
    FinishRequested,
    StepConfirmed,
    StepFailed,
    TableObserved,
)
from blast_controller.core.model.identifiers import Device
from blast_controller.core.model.requests import EventKind, RequestEvent, TransferReport
from blast_controller.core.observer import Observer
from blast_controller.ops.drift import Drift
from blast_controller.ops.metrics import Metrics

TORS = "tors"
"""All ToRs together: a fabric may have a thousand."""
MAX_CODES = 64
"""The limit of pairs of driver and error code with separate labels: switches choose the codes."""


class Metering(Observer):
    """An observer of the runtime. `tenants` have labels of their own; all others share one."""

    def __init__(self, metrics: Metrics, tenants: Iterable[str]) -> None:
        self._metrics = metrics
        # `labels` validates its arguments and takes a lock at each call, but always returns the same child for them.
        self._requests = cache(metrics.requests.labels)
        self._grant_step_seconds = cache(metrics.grant_step_seconds.labels)
        self._reconfiguration_seconds = cache(metrics.reconfiguration_seconds.labels)
        self._tenants = frozenset(tenants)
        self.drift = Drift()
        self._codes: set[tuple[str, str]] = set()

    def refused(self, driver: str, code: str) -> None:
        """Count a refusal of an optical switch. From any thread."""
        if len(self._codes) < MAX_CODES:
            self._codes.add((driver, code))
        label = code if (driver, code) in self._codes else "other"
        self._metrics.switch_errors.labels(driver, label).inc()

    def on_event(self, event: Event, core: Core) -> None:
        """Count reports of devices and senders."""
        metrics = self._metrics
        match event:
            case StepConfirmed(device=device, elapsed=elapsed):
                self._reconfiguration_seconds(_label(device)).observe(elapsed)
            case StepFailed(device=device):
                metrics.failed_steps.labels(_label(device)).inc()
            case FinishRequested(request=(tenant, _), report=TransferReport() as report):
                self._transfer(self._tenant(tenant), report)
            case TableObserved(datapath=datapath, foreign=foreign):
                self.drift.note_table(datapath, foreign)
                metrics.drift.labels("rules").set(self.drift.rules)
            case CircuitsObserved() | DeviceConnected(device=str()):
                self.drift.note_circuits(core)
                metrics.drift.labels("elements").set(self.drift.elements)

    def on_command(self, command: Command) -> None:
        """Count commands that left the core."""
        match command:
            case Publish(request=(tenant, _), event=event):
                self._happened(self._tenant(tenant), event)
            case Announce(content=AuditReport() as report):
                self._metrics.reconcile_runs.labels(_result(report)).inc()
                if not report.dry_run:
                    self._metrics.repairs.inc(len(report.commands))

    def on_decision(self, seconds: float) -> None:
        """Record the duration of a decision."""
        self._metrics.decision_seconds.observe(seconds)

    def on_commit(self, records: int, seconds: float) -> None:
        """Count a commit with its records and its wait."""
        self._metrics.journal_records.inc(records)
        self._metrics.fsync_seconds.observe(seconds)

    def _happened(self, tenant: str, event: RequestEvent) -> None:
        metrics = self._metrics
        if event.grant is not None and event.kind is EventKind.GRANTED:
            self._requests(tenant, "granted").inc()
            timings = event.grant.timings
            metrics.grant_seconds.observe(timings.total)
            for step in ("compute", "openflow", "optical"):
                if (seconds := getattr(timings, step)) is not None:
                    self._grant_step_seconds(step).observe(seconds)
        elif event.kind is EventKind.ENDED and event.state is not None:
            self._requests(tenant, event.state.value).inc()
        elif event.kind in (EventKind.REVOKED, EventKind.PAUSED):
            self._requests(tenant, event.kind.value).inc()

    def _transfer(self, tenant: str, report: TransferReport) -> None:
        metrics = self._metrics
        metrics.transfers.labels(tenant).inc()
        metrics.transferred_bytes.labels(tenant).inc(report.bytes_sent or 0)
        metrics.repaired_bytes.labels(tenant).inc(report.bytes_repaired or 0)
        metrics.failed_receivers.labels(tenant).inc(len(report.failed_receivers))

    def _tenant(self, name: str) -> str:
        return name if name in self._tenants else "other"


def _label(device: Device) -> str:
    return device if isinstance(device, str) else TORS


def _result(report: AuditReport) -> str:
    if report.not_compared:
        return "incomplete"
    if report.commands:
        return "differs" if report.dry_run else "repaired"
    return "clean"
