"""The core: takes events and a time, returns commands. Opens no socket, reads no clock, starts no thread.

Every arrival, completion, lease end and device event is a decision point at which all pending parts are considered.
An application event that is refused raises a RequestError and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from algorithms.power_budget import ElementLoss
from blast_controller.core.assembly import CoreAssembly
from blast_controller.core.deadlines import Deadlines, Handlers
from blast_controller.core.explanation import Explanation
from blast_controller.core.fibers import probe_circuits
from blast_controller.core.inventory.holders import PROBER
from blast_controller.core.light.fault_localizer import CIRCUIT_FAILED, TOO_MUCH_LOSS
from blast_controller.core.model.commands import Command
from blast_controller.core.model.errors import RejectedError
from blast_controller.core.model.events import (
    AuditRequested,
    CircuitFailed,
    CircuitsObserved,
    ClientsVanished,
    DecisionTimed,
    DeviceConnected,
    DeviceDisconnected,
    DrainRequested,
    ElementQuarantined,
    ElementReleased,
    Event,
    ExtendRequested,
    FinishRequested,
    LightAlarmRaised,
    LightNotDetected,
    LossMeasured,
    OperatorActed,
    Optimized,
    PortChanged,
    ProbeReceived,
    ProgressReported,
    RequestSubmitted,
    SettingsChanged,
    StepConfirmed,
    StepFailed,
    TableObserved,
    TimePassed,
    VerifyRequested,
    WithdrawRequested,
)
from blast_controller.core.model.fabric import CrossConnect, Fabric
from blast_controller.core.model.identifiers import ElementId, SwitchId
from blast_controller.core.model.part_states import PartState
from blast_controller.core.model.records import Record
from blast_controller.core.model.requests import MulticastRequest, Part, Request, RequestKey
from blast_controller.core.model.settings import CoreSettings
from blast_controller.core.model.timers import (
    AuditDue,
    OptimizerTimedOut,
    ProbeClearRetryDue,
    ProbeDue,
    QuotaReviewDue,
    WarmTimeExpired,
)
from blast_controller.core.policy.splitter_limits import NO_LIGHT
from blast_controller.core.rollout import late_writes
from blast_controller.core.rollout.reconciliation import DeviceReading
from blast_controller.core.rollout.reservation import Reservation
from blast_controller.core.rollout.reservation_states import ReservationState
from blast_controller.core.snapshot.changes import Changes
from blast_controller.core.snapshot.facts import PartFacts
from blast_controller.core.snapshot.publisher import Known, Publisher
from blast_controller.core.snapshot.snapshot import Snapshot
from blast_controller.core.view import View

_ANSWERS = frozenset((StepConfirmed, StepFailed, LightNotDetected, DecisionTimed, OperatorActed))
"""Answers of devices. Most do not affect a decision because other answers are outstanding; the others request one.
"""
LATEST_ACTION = "latest action"


class Core:
    """The controller's decisions. `handle` is the only way to change it; everything else only looks."""

    def __init__(self, fabric: Fabric, settings: CoreSettings) -> None:
        self.fabric = fabric
        self._parts = CoreAssembly(fabric, settings)
        self._table, self._reservations = self._parts.table, self._parts.reservations
        self._outbox, self._timers = self._parts.outbox, self._parts.timers
        self._auditor, self._fibers = self._parts.auditor, self._parts.fibers
        self._lifecycle, self._writer = self._parts.lifecycle, self._parts.writer
        known = Known(self._table, self._reservations, self._parts.inventory, self._parts.warm)
        self._publisher = Publisher(fabric, known)
        self._publisher.publish((), (), settings)
        self._decision_due = True
        self._touched: tuple[int, ...] = ()
        """Reservations that the latest batch has changed."""
        checks: Handlers = {
            AuditDue: self._on_audit_due,
            QuotaReviewDue: self._parts.scheduled_checks.on_quota_look,
            ProbeDue: self._fibers.on_due,
            ProbeClearRetryDue: self._fibers.on_clear_again,
            WarmTimeExpired: self._parts.warm.on_cool,
            OptimizerTimedOut: self._parts.optimizing.on_late,
        }
        requests, light = self._parts.request_deadlines, self._parts.light_deadlines
        self._deadlines = Deadlines(self._timers, requests.handlers, light.handlers, checks)
        applications = self._parts.applications
        self._handlers: dict[type, Callable[..., None]] = {
            RequestSubmitted: applications.on_submitted,
            ExtendRequested: applications.on_extension,
            ProgressReported: applications.on_progress,
            FinishRequested: applications.on_finish,
            WithdrawRequested: applications.on_withdraw,
            ClientsVanished: applications.on_vanished,
            ElementQuarantined: self._on_quarantined,
            ElementReleased: self._on_element_released,
            DrainRequested: self._on_drain,
            AuditRequested: self._on_audit,
            VerifyRequested: self._fibers.on_asked,
            SettingsChanged: self._on_settings,
            OperatorActed: self._on_operator_acted,
            DeviceConnected: self._on_device_up,
            DeviceDisconnected: self._on_device_down,
            StepConfirmed: self._on_answer,
            StepFailed: self._on_answer,
            LightNotDetected: self._on_answer,
            LightAlarmRaised: self._on_alarm,
            CircuitFailed: self._on_circuit_failed,
            LossMeasured: self._on_loss,
            CircuitsObserved: self._on_observed,
            TableObserved: self._on_observed,
            PortChanged: self._on_port_changed,
            ProbeReceived: self._fibers.on_seen,
            Optimized: self._parts.optimizing.on_answered,
            DecisionTimed: self._on_timed,
            TimePassed: self._on_tick,
        }

    def handle(self, event: Event, now: float) -> list[Command]:
        """Process one event at time `now` (seconds on any steady clock) and return the resulting commands.

        Records come first: they must be on disk before any other command is executed. Raises RequestError when an event
        of an application or operator is rejected; nothing has changed then.
        """
        self.take(event, now)
        return self.conclude(now)

    def take(self, event: Event, now: float) -> None:
        """Process one event of a batch; `conclude` returns the resulting commands. Raises RequestError."""
        self._handlers[type(event)](event, now)
        self._decision_due |= type(event) not in _ANSWERS
        self._auditor.note_work()

    def restore(self, records: Iterable[Record], now: float) -> list[Command]:
        """Take over what an earlier run has left on disk, before any event. Raises FabricError when it does not fit."""
        self.load(records, now)
        return self.begin(now)

    def begin(self, now: float) -> list[Command]:
        """Return the commands that follow from the loaded state."""
        # The previous leader may have sent these commands to switches, some of them only just now.
        self._note_late([c for r in self.reservations for layout in r.layouts for c in layout.circuits], now)
        self._note_late([c for circuits in self._parts.probes.present.values() for c in circuits], now)
        for reservation in [r for r in self.reservations if r.state is not ReservationState.LIT]:
            self._lifecycle.act_on(self._reservations.completed(reservation), now)
        return self.conclude(now)

    def load(self, records: Iterable[Record], now: float) -> None:
        """Load the state of an earlier run for display only. Raises FabricError if it does not fit the fabric."""
        kept = list(records)
        self._parts.reader.read(kept, now)
        for record in kept:
            if record.kind == probe_circuits.KIND and record.body is not None:
                switch = SwitchId(record.key)
                self._parts.probes.adopt(switch, record.body, self._parts.reconciliation.circuits(switch))
            elif record.kind == late_writes.KIND and record.body is not None:
                self._parts.late.adopt(SwitchId(record.key), record.body, now)
        self._parts.resumption.resume(now)
        self._parts.scheduled_checks.audit(now)
        self._publisher.publish(self.requests, self._reservations.live, self.settings)
        self._decision_due = True

    def conclude(self, now: float) -> list[Command]:
        """Decide once for all events taken, and return the resulting commands."""
        while self._decision_due:
            self._decision_due = False
            self._decide(now)
        self._parts.warm.give_way(now)
        self._auditor.note_work()
        touched = tuple(self._table.touched), tuple(self._reservations.touched)
        for record in self._writer.unwritten():
            self._outbox.record(record)
        self._touched = touched[1]
        self._publisher.publish(*touched, self.settings)
        return self._outbox.drain()

    def next_timer(self) -> float | None:
        """Return the latest time of the next `TimePassed`."""
        return self._timers.next()

    # ------------------------------------------------------------------------------------------- looking

    @property
    def settings(self) -> CoreSettings:
        """Return the operator's settings."""
        return self._parts.orders.settings

    @property
    def snapshot(self) -> Snapshot:
        """Return the snapshot for readers. Show it only when all records of the latest conclusion are on disk."""
        return self._publisher.latest

    def take_changes(self) -> Changes:
        """Return the differences between this snapshot and the one at the previous call."""
        return self._publisher.take_changes()

    @property
    def view(self) -> View:
        """Return a read-only view of reservations, pending parts, unusable elements and warm trees."""
        return self._parts.view

    @property
    def draining(self) -> bool:
        """Return true while the controller admits no new requests."""
        return self._parts.orders.draining

    @property
    def requests(self) -> Mapping[RequestKey, Request]:
        """Return all requests that are known, in order of arrival."""
        return self._table.requests

    def request(self, key: RequestKey) -> Request:
        """Return the request with this key. Raises UnknownRequestError."""
        return self._table.get(key)

    def reason(self, request: MulticastRequest, part: Part | PartFacts, now: float) -> str | None:
        """Return why a part waits or how it ended, as one sentence."""
        if part.state is PartState.PENDING:
            waits = self._parts.layouts.waits_for(request, part.receivers, self._parts.limits.left(now))
            return f"{waits} The last attempt failed: {part.reason}." if part.reason else waits
        return part.reason

    def explain(self, key: RequestKey, viewer: str | None, now: float) -> Explanation:
        """Explain a request to a client of the tenant `viewer`, or (None) to an operator.

        Raises UnknownRequestError.
        """
        return self._parts.explainer.explain(self._table.get(key), now, viewer)

    @property
    def reservations(self) -> Iterable[Reservation]:
        """Return all live reservations."""
        return self._reservations.live.values()

    @property
    def pending_count(self) -> int:
        """Return the number of pending parts."""
        return len(self._table.pending)

    def pending_count_of(self, tenant: str) -> int:
        """Return the number of pending parts of a tenant."""
        return self._table.pending_of(tenant)

    @property
    def active_count(self) -> int:
        """Return the number of parts that are active or being set up."""
        busy = (PartState.CONFIGURING, PartState.ACTIVE)
        return sum(part.state in busy for request in self.requests.values() for part in request.parts)

    @property
    def audit_number(self) -> int:
        """Return the topic of the running audit's report."""
        return self._auditor.number

    @property
    def audit_waits_for(self) -> list[str]:
        """Return the devices that the running audit has not read yet."""
        return self._auditor.unread

    @property
    def fiber_topic(self) -> str:
        """Return the topic of the latest fiber check's report."""
        return self._fibers.topic

    # ------------------------------------------------------------------------------------------ deciding

    def _decide(self, now: float) -> None:
        """Serve parts that need no policy, update the policy with all other changes, and apply its decision."""
        parts = self._parts
        views, limits = parts.views.take_changed(), parts.limits.in_all(now)
        self._look_again_at_quota(limits, now)
        lit = parts.aside.serve(views, limits, now)
        # Parts served meanwhile hold resources; the policy must not count on serving them as well.
        concerned = {view.name: view for view in (*views, *lit)}
        views = [parts.views.of(view.request, view.part) for view in concerned.values()]
        leases = parts.leases.take(now)
        decision = parts.dispatcher.decide(views, leases, limits, now)
        parts.leases.end_again(leases, decision.again)
        parts.leases.pause(decision.paused, now)
        for start in decision.starts:
            parts.placements.start(start, now)
        # An ended request triggers at most one more scheduling pass.
        self._decision_due = parts.refusals.publish(now)

    def _look_again_at_quota(self, limits: Mapping[str, int], now: float) -> None:
        if any(limit == NO_LIGHT and self._table.pending_of(tenant) for tenant, limit in limits.items()):
            self._parts.scheduled_checks.quota_look(now)

    # ------------------------------------------------------------------------------------------ operator

    def _on_quarantined(self, event: ElementQuarantined, now: float) -> None:
        self._check_element(event.element)
        self._parts.quarantine.impose(event.element, event.reason or "quarantined")

    def _on_element_released(self, event: ElementReleased, now: float) -> None:
        self._check_element(event.element)
        if event.element not in self._parts.inventory.quarantined:
            raise RejectedError("not_quarantined", f"{event.element} is not quarantined.")
        self._parts.quarantine.lift(event.element)

    def _check_element(self, element: ElementId) -> None:
        if element not in self._parts.inventory.elements:
            raise RejectedError(
                "unknown_element", f"The fabric has no element {element!r}; run `blast element list` for all names."
            )

    def _on_drain(self, event: DrainRequested, now: float) -> None:
        self._parts.orders.draining = event.on

    def _on_operator_acted(self, event: OperatorActed, now: float) -> None:
        # One row for the latest; the journal's history has every one.
        self._outbox.record(Record("meta", LATEST_ACTION, {"by": event.by, "did": event.did}, note=event.did))

    def _on_settings(self, event: SettingsChanged, now: float) -> None:
        every_before, self._parts.orders.settings = self.settings.reconcile_every, event.settings
        self._parts.dispatcher.start_over()
        self._parts.inventory.unsettle()
        self._parts.agenda.look_again(self._table.requests)
        if event.settings.reconcile_every != every_before:
            self._parts.scheduled_checks.audit(now)

    def _on_audit(self, event: AuditRequested, now: float) -> None:
        self._auditor.begin(event.dry_run)

    def _on_audit_due(self, deadline: AuditDue, now: float) -> None:
        if self._parts.scheduled_checks.is_kept(deadline):
            self._parts.scheduled_checks.audit(now)
            if not self._auditor.busy:
                self._auditor.begin(dry_run=False)

    # ------------------------------------------------------------------------------------------- devices

    def _on_device_up(self, event: DeviceConnected, now: float) -> None:
        self._parts.inventory.note_back(event.device)
        self._parts.reconciliation.begin_session(event.device)
        self._take_reading(DeviceReading(event.device, event.circuits, event.rules), now)
        self._fibers.on_device_up(event, now)

    def _on_device_down(self, event: DeviceDisconnected, now: float) -> None:
        self._parts.inventory.note_away(event.device, event.reason)
        self._auditor.lost(event.device, event.reason)
        self._fibers.on_device_down(event, now)

    def _on_observed(self, event: CircuitsObserved | TableObserved, now: float) -> None:
        seen = self._auditor.observed(event)
        if seen is not None:
            self._take_reading(seen, now)

    def _take_reading(self, seen: DeviceReading, now: float) -> None:
        """Plan around what is not ours, and repair what differs from what is wanted."""
        if isinstance(seen.device, str):
            self._parts.late.take_reading(seen.device, seen.circuits, now)
        self._auditor.note_foreign(seen)
        self._lifecycle.act_on(self._parts.reconciliation.reconcile(seen), now)

    def _on_answer(self, event: StepConfirmed | StepFailed | LightNotDetected, now: float) -> None:
        if isinstance(event, StepFailed) and isinstance(event.device, str):
            # It is unknown whether the device executed the step or still will.
            self._note_late(self._circuits_of(event.reservation, event.device), now)
        if event.reservation == PROBER:
            self._fibers.on_answer(event, now)
            self._decision_due = True
        elif outcomes := self._reservations.answered(event):
            self._lifecycle.act_on(outcomes, now)
            self._decision_due = True

    def _circuits_of(self, number: int, switch: SwitchId) -> list[CrossConnect]:
        if number == PROBER:
            return list(self._parts.probes.circuits(switch))
        reservation = self._reservations.live.get(number)
        layouts = reservation.layouts if reservation is not None else ()
        return [circuit for layout in layouts for circuit in layout.circuits if circuit.switch == switch]

    def _note_late(self, circuits: Sequence[CrossConnect], now: float) -> None:
        if circuits:
            self._parts.late.note(circuits, now)
            self._parts.scheduled_checks.audit_soon(now)

    def _on_port_changed(self, event: PortChanged, now: float) -> None:
        self._lifecycle.act_on(self._parts.watch.on_port_changed(event, now), now)

    def _on_alarm(self, event: LightAlarmRaised, now: float) -> None:
        self._lifecycle.act_on(self._parts.watch.on_alarm(event, now), now)

    def _on_circuit_failed(self, event: CircuitFailed, now: float) -> None:
        fault = f"{CIRCUIT_FAILED} ({event.reason})"
        self._lifecycle.act_on(self._parts.watch.on_circuit_fault(event.circuit, fault, now), now)

    def _on_loss(self, event: LossMeasured, now: float) -> None:
        loss = ElementLoss(max(0.0, event.loss - event.accuracy), event.loss, event.loss + event.accuracy)
        planned = self._parts.budget.note_loss(event.circuit, loss)
        if planned is not None:
            fault = f"{TOO_MUCH_LOSS} ({event.loss:.1f} dB, planned at most {planned:.1f} dB)"
            self._lifecycle.act_on(self._parts.watch.on_circuit_fault(event.circuit, fault, now), now)

    def _on_timed(self, event: DecisionTimed, now: float) -> None:
        live = self._reservations.live
        for reservation in [live[number] for number in self._touched if number in live]:
            if reservation.state is ReservationState.CONFIGURING and reservation.rollout.compute is None:
                reservation.rollout.compute = event.elapsed

    def _on_tick(self, event: TimePassed, now: float) -> None:
        self._deadlines.handle_due(now)
