"""The check of the fiber map: probe frames through every free optical port and splitter output, one switch at a time.

`fiber_survey.py` chooses the circuits to probe and `fiber_judge.py` finds the faults; this module reserves free
elements, waits for devices and probes, and publishes the report. Elements in use are not touched.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from blast_controller.core.fibers.fiber_judge import FiberFault, judge
from blast_controller.core.fibers.fiber_survey import FiberMap, Pair, Survey, SurveyRound, survey
from blast_controller.core.fibers.probe_circuits import ProbeCircuits
from blast_controller.core.inventory.inventory import Inventory
from blast_controller.core.lifecycle.scheduled_checks import ScheduledChecks
from blast_controller.core.model.commands import Announce, SendProbe
from blast_controller.core.model.events import (
    DeviceConnected,
    DeviceDisconnected,
    LightNotDetected,
    ProbeReceived,
    StepConfirmed,
    StepFailed,
    VerifyRequested,
)
from blast_controller.core.model.fabric import Fabric, OpticalPort, Splitter
from blast_controller.core.model.identifiers import DatapathId, ElementId, SwitchId, static_element
from blast_controller.core.model.timers import ProbeClearRetryDue, ProbeDue
from blast_controller.core.rollout.outbox import Outbox

TIMES_SENT = 4
"""Transmissions of each probe within a round: a receiver may need time to lock."""
MAX_TRIES = 3
"""Surveys of a switch before it is given up because ToRs keep disconnecting."""


@dataclass(frozen=True, slots=True)
class FiberReport:
    """Result of a fiber check.

    `faults` are the elements that are not wired as configured, `skipped` the elements that were not probed, each with
    its reason, and `probed` is the number of probed elements.
    """

    faults: tuple[FiberFault, ...]
    skipped: tuple[str, ...]
    probed: int = 0


class CheckStage(NamedTuple):
    """The switch that a check is at, and how far that is: setting, probing or clearing."""

    switch: str
    phase: str


class _SurveyPhase(Enum):
    """Where the survey of a switch stands: circuits are being set, probes are on their way, all is being removed."""

    SETTING = "setting"
    PROBING = "probing"
    CLEARING = "clearing"


@dataclass(slots=True)
class _SurveyedSwitch:
    """The switch being surveyed. `payloads` maps each probe of the current round to its sender."""

    switch: SwitchId
    ports: tuple[OpticalPort, ...]
    splitters: tuple[Splitter, ...]
    rounds: Survey
    phase: _SurveyPhase = _SurveyPhase.SETTING
    round: SurveyRound = field(default_factory=lambda: SurveyRound((), (), frozenset()))
    payloads: dict[bytes, OpticalPort] = field(default_factory=dict)
    seen: set[Pair] = field(default_factory=set)
    serial: int = 0
    times_sent: int = 0

    @property
    def elements(self) -> list[ElementId]:
        return [*(port.element for port in self.ports), *(splitter.element for splitter in self.splitters)]


@dataclass(slots=True)
class _CheckRun:
    """One check: `switches` are still to come; `begin_by` is how long devices are waited for, None once begun."""

    nonce: bytes
    switches: list[SwitchId]
    begin_by: float | None
    bench: _SurveyedSwitch | None = None
    faults: list[FiberFault] = field(default_factory=list)
    probed: set[ElementId] = field(default_factory=set)
    skipped: dict[ElementId, str] = field(default_factory=dict)

    def report(self) -> FiberReport:
        skipped = tuple(f"{element}: {reason}" for element, reason in self.skipped.items())
        return FiberReport(tuple(self.faults), skipped, len(self.probed))

    tries: Counter[str] = field(default_factory=Counter)


class FiberCheck:
    """One check at a time; its report is announced under `topic`."""

    def __init__(
        self,
        fabric: Fabric,
        inventory: Inventory,
        probes: ProbeCircuits,
        outbox: Outbox,
        scheduled_checks: ScheduledChecks,
    ) -> None:
        self._fabric, self._inventory, self._probes = fabric, inventory, probes
        self._outbox, self._scheduled_checks = outbox, scheduled_checks
        self._run: _CheckRun | None = None
        self._number = 0
        self._serial = 0
        self._port_at = {
            (fabric.racks[port.rack].datapath, port.port): port
            for switch in fabric.switches
            for port in fabric.whole_ports_on(switch)
        }

    @property
    def topic(self) -> str:
        """Return the topic of the latest check's report."""
        return f"fibers {self._number}"

    @property
    def busy(self) -> bool:
        """Return true while a check runs."""
        return self._run is not None

    @property
    def stage(self) -> CheckStage | None:
        """Return the state of the running check; None between two switches."""
        bench = self._run.bench if self._run else None
        return None if bench is None else CheckStage(bench.switch, bench.phase.value)

    # ---------------------------------------------------------------------------------------------- events

    def on_asked(self, event: VerifyRequested, now: float) -> None:
        """Begin a check, or join the running one."""
        if self._run is None:
            self._number += 1
            self._run = _CheckRun(event.nonce, list(self._fabric.switches), now + event.seconds)
            if event.seconds:
                self._scheduled_checks.devices(self._serial, now + event.seconds)
            self._go_on(now)

    def on_answer(self, event: StepConfirmed | StepFailed | LightNotDetected, now: float) -> None:
        """Handle the answer of a switch to a change of probe circuits."""
        switch = event.device
        if not isinstance(switch, str) or not self._probes.answered(event):
            return
        refused = isinstance(event, StepFailed)
        bench = self._bench_of(switch)
        if bench is not None and bench.phase is _SurveyPhase.SETTING:
            if isinstance(event, StepFailed):
                self._abandon(bench, event.reason, now)
            else:
                self._shine(bench, now)
            return
        if refused and self._probes.has(switch):
            self._scheduled_checks.clear_again(switch, now)
        self._over(bench, now)

    def on_seen(self, event: ProbeReceived, now: float) -> None:
        """Record a received probe; probes of earlier rounds are ignored."""
        bench = self._run.bench if self._run else None
        if bench is None or bench.phase is not _SurveyPhase.PROBING:
            return
        sender, receiver = bench.payloads.get(event.payload), self._port_at.get((event.datapath, event.port))
        if sender is not None and receiver is not None:
            bench.seen.add((sender, receiver))
            if bench.round.complete(bench.seen):
                self._advance(bench, now)

    def on_due(self, deadline: ProbeDue, now: float) -> None:
        """End the wait for devices or probes, or send the probes again."""
        bench = self._run.bench if self._run else None
        if bench is None:
            self._go_on(now)
        elif bench.phase is _SurveyPhase.PROBING and bench.serial == deadline.serial:
            if bench.times_sent < TIMES_SENT:
                self._send(bench, now)
            else:
                self._advance(bench, now)

    def on_clear_again(self, deadline: ProbeClearRetryDue, now: float) -> None:
        """Retry the removal of probe circuits from a switch."""
        self._probes.try_again(deadline.switch)

    def on_device_down(self, event: DeviceDisconnected, now: float) -> None:
        """Handle a disconnected device: elements that need it cannot be surveyed."""
        bench = self._run.bench if self._run else None
        if isinstance(event.device, str):
            if bench is not None and bench.switch == event.device:
                if bench.phase is not _SurveyPhase.CLEARING:
                    self._skip(bench.elements, f"{event.device} disconnected: {event.reason}")
                self._over(bench, now)
        elif bench is not None and bench.phase is not _SurveyPhase.CLEARING and self._needs(bench, event.device):
            self._restart_survey(bench, now)

    def on_device_up(self, event: DeviceConnected, now: float) -> None:
        """Handle a connected device: remove circuits that an earlier check left on a switch."""
        if isinstance(event.device, str):
            self._probes.back(event.device, event.circuits)
        self._go_on(now)

    # ------------------------------------------------------------------------------------------ one switch

    def _go_on(self, now: float) -> None:
        run = self._run
        if run is None or run.bench is not None:
            return
        if run.begin_by is not None and now < run.begin_by and self._inventory.away:
            return
        run.begin_by = None
        while run.switches and run.bench is None:
            self._begin(run, run.switches.pop(0), now)
        if run.bench is None:
            fixed = self._fabric.static_trees
            self._skip(map(static_element, fixed), "its fibers are fixed and pass no optical switch")
            self._outbox.issue(Announce(self.topic, run.report()))
            self._run = None

    def _begin(self, run: _CheckRun, switch: SwitchId, now: float) -> None:
        free = [] if self._probes.has(switch) else self._inventory.untouched(switch)
        ports = tuple(piece for piece in free if isinstance(piece, OpticalPort))
        splitters = tuple(piece for piece in free if isinstance(piece, Splitter))
        probed = {piece.element for piece in free}
        probed |= {splitter.output_element(output) for splitter in splitters for output in splitter.outputs}
        run.skipped = {element: reason for element, reason in run.skipped.items() if element not in probed}
        self._skip_but(switch, probed)
        if not ports:
            self._skip((splitter.element for splitter in splitters), "no free port for the probe")
            return
        bench = run.bench = _SurveyedSwitch(switch, ports, splitters, survey(switch, ports, splitters))
        self._probes.take(switch, bench.elements)
        self._next_round(bench, next(bench.rounds), now)

    def _advance(self, bench: _SurveyedSwitch, now: float) -> None:
        try:
            following = bench.rounds.send(frozenset(bench.seen))
        except StopIteration as end:
            self._conclude(bench, end.value, now)
        else:
            self._next_round(bench, following, now)

    def _next_round(self, bench: _SurveyedSwitch, following: SurveyRound, now: float) -> None:
        bench.round, bench.seen = following, set()
        bench.phase = _SurveyPhase.SETTING
        if self._probes.lay(bench.switch, following.circuits, following.done):
            self._shine(bench, now)

    def _shine(self, bench: _SurveyedSwitch, now: float) -> None:
        """Send probes with new payloads through the connected circuits, and free the elements that are done."""
        self._serial += 1
        bench.phase, bench.serial, bench.times_sent = _SurveyPhase.PROBING, self._serial, 0
        bench.payloads = {self._payload(number): sender for number, sender in enumerate(bench.round.senders)}
        self._send(bench, now)

    def _send(self, bench: _SurveyedSwitch, now: float) -> None:
        bench.times_sent += 1
        for payload, sender in bench.payloads.items():
            self._outbox.issue(SendProbe(self._fabric.datapath_of(sender.rack), sender.port, payload))
        self._scheduled_checks.probes(bench.serial, TIMES_SENT, now)

    def _payload(self, number: int) -> bytes:
        """Return a payload that is not predictable without the nonce, even from other probes."""
        nonce = self._run.nonce if self._run else b""
        return hashlib.blake2b(f"{self._serial}/{number}".encode(), key=nonce, digest_size=16).digest()

    # -------------------------------------------------------------------------------------------- its end

    def _conclude(self, bench: _SurveyedSwitch, found: FiberMap, now: float) -> None:
        if self._run is not None:
            self._run.faults += judge(found)
            self._run.probed |= {port.element for port in found.ports}
            self._run.probed |= {splitter.element for splitter in found.probed_splitters}
        if not found.probed_splitters:
            self._skip((splitter.element for splitter in bench.splitters), "no port with a working fiber for the probe")
        self._clear(bench, now)

    def _abandon(self, bench: _SurveyedSwitch, reason: str, now: float) -> None:
        """End the survey of a switch that does not execute its commands."""
        self._skip(bench.elements, reason)
        self._clear(bench, now)

    def _restart_survey(self, bench: _SurveyedSwitch, now: float) -> None:
        """Restart the survey: a disconnected ToR looks like a dead fiber, so all earlier results are void."""
        if self._run is None:
            return
        self._run.tries[bench.switch] += 1
        if self._run.tries[bench.switch] < MAX_TRIES:
            self._run.switches.insert(0, bench.switch)
        else:
            self._skip(bench.elements, "ToRs disconnected during the probe")
        self._clear(bench, now)

    def _clear(self, bench: _SurveyedSwitch, now: float) -> None:
        bench.phase = _SurveyPhase.CLEARING
        if self._probes.clear(bench.switch):
            self._over(bench, now)

    def _over(self, bench: _SurveyedSwitch | None, now: float) -> None:
        if bench is not None and self._run is not None:
            self._run.bench = None
            self._go_on(now)

    def _needs(self, bench: _SurveyedSwitch, datapath: DatapathId) -> bool:
        return any(self._fabric.datapath_of(port.rack) == datapath for port in bench.ports)

    def _bench_of(self, switch: SwitchId) -> _SurveyedSwitch | None:
        bench = self._run.bench if self._run else None
        return bench if bench is not None and bench.switch == switch else None

    def _skip(self, elements: Iterable[ElementId], reason: str) -> None:
        if self._run is not None:
            self._run.skipped |= dict.fromkeys(elements, reason)

    def _skip_but(self, switch: SwitchId, probed: Collection[ElementId]) -> None:
        """List what of a switch cannot be probed; of a splitter that cannot, its outputs are not listed."""
        splitters = [s for s in self._fabric.splitters.values() if s.switch == switch]
        whole = [*(p.element for p in self._fabric.whole_ports_on(switch)), *(s.element for s in splitters)]
        outputs = [s.output_element(output) for s in splitters if s.element in probed for output in s.outputs]
        for element in (*whole, *outputs):
            if element not in probed:
                reason = self._inventory.hindrance(element) or "fewer than two of its outputs are usable"
                self._skip([element], reason)
