"""The random machine detects every seeded bug within a bounded number of episodes."""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Iterator

import pytest

from blast_controller.core.model.errors import CoreError
from blast_controller.store.errors import JournalError
from tests.soak.core import episode
from tests.support.seeded_bugs import SeededBug

EPISODES = 300
"""Of 60 steps each; without a bug, these and all later ones pass."""
LOOKS_AT_DEVICES = {
    "i2_marks_are_journaled",
    "i3_converges",
    "i6_granted_groups_are_served",
    "nothing_is_left_on_devices",
}
LEAKS = ("act_before_journal", "orphan_rule_left", "undo_lost_after_partial", "free_before_confirmed")
"""Bugs that clients and journals never notice: only the final state of devices shows them."""

APPLICATIONS = "blast_controller.core.applications:Applications"
DURABLE = "blast_controller.core.durable"
INVENTORY = "blast_controller.core.inventory.inventory:Inventory"
OUTBOX = "blast_controller.core.rollout.outbox:Outbox"
RECONCILIATION = "blast_controller.core.rollout.reconciliation:Reconciliation"
REQUEST_TABLE = "blast_controller.core.requests.request_table:RequestTable"
RESERVATIONS = "blast_controller.core.rollout.reservations:Reservations"

BUGS = {
    "act_before_journal": SeededBug(
        "Devices receive a command before its record is on disk.",
        {
            f"{OUTBOX}.drain": {
                "= list(self._records)": "= []",
                "commands += self._others": "commands += self._records + self._others",
            }
        },
        seed=18,
    ),
    "leaked_splitter": SeededBug(
        "Splitters stay held when their reservation is gone.",
        {f"{INVENTORY}.free": {"free, elements": 'free, [e for e in elements if not e.startswith("splitter:")]'}},
    ),
    "foreign_circuit_deleted": SeededBug(
        "An audit removes foreign circuits.",
        {
            f"{RECONCILIATION}.reconcile": {
                "different = self.differences(seen)": """\
if isinstance(seen.device, str) and (foreign := seen.circuits - self.circuits(seen.device)):
    self._outbox.step(0, UNTRACKED, Step(tuple(sorted(foreign)), (), {}, {}))
different = self.differences(seen)"""
            }
        },
    ),
    "stale_epoch_writes": SeededBug(
        "Devices obey a controller that was replaced.",
        {"tests.support.controller.fake_devices:FakeDevice.accepts": {"epoch >= self.fence": "True"}},
        seed=9,
    ),
    "grant_before_barrier": SeededBug(
        "The first device that confirms counts for all of them.",
        {
            f"{RESERVATIONS}.answered": {
                "reservation.rollout.confirmed(target, event.elapsed)": """\
is_new = reservation.state is _S.CONFIGURING
for one in reservation.rollout.waiting if is_new else [target]:
    reservation.rollout.confirmed(one, event.elapsed)
if is_new:
    reservation.rollout.links.clear()"""
            }
        },
    ),
    "double_grant_after_restart": SeededBug(
        "A restart forgets that a part was granted, and lights it again.",
        {
            f"{REQUEST_TABLE}.adopt": {
                "if part.state is PartState.CONFIGURING:": """\
if part.state is PartState.ACTIVE:
    part.state = PartState.PENDING
if part.state is PartState.CONFIGURING:"""
            }
        },
    ),
    "number_reused": SeededBug(
        "The highest number of a reservation is not kept, so that cookies on devices mean something else later.",
        {f"{DURABLE}:JournalWriter._unwritten_reservations": {'yield Record("meta", LAST_RESERVATION, last)': "pass"}},
        seed=15,
    ),
    "lease_not_rearmed": SeededBug(
        "After a restart no timer ends a lease.",
        {f"{REQUEST_TABLE}.adopt": {"part.grant is not None": "False"}},
    ),
    "orphan_rule_left": SeededBug(
        "Rules of reservations that are gone stay on a ToR that brings them back.",
        {f"{RECONCILIATION}.differences": {"if not": "if number in self._reservations.live and not"}},
        seed=21,
    ),
    "delete_all_push_all": SeededBug(
        "A ToR that reconnects receives its rules again although they are correct.",
        {
            f"{RECONCILIATION}.differences": {
                "return [": "found = dict([",
                "seen.device)]": """\
seen.device)])
for number, forwards in seen.by_reservation().items():
    reservation = self._reservations.live.get(number)
    if number not in found and reservation and not reservation.busy:
        found[number] = Step((), (), forwards, forwards)
return list(found.items())""",
            }
        },
    ),
    "delete_before_add": SeededBug(
        "A change removes the old state before it adds the new one.",
        {
            "blast_controller.core.rollout.reservation:Reservation.intended": {
                "return both(self.layout.device_state, self.change.target.device_state)": """\
kept = set(self.change.target.device_state.circuits)
return DeviceState(tuple(c for c in self.layout.circuits if c in kept), self.layout.device_state.forwards)"""
            }
        },
    ),
    "undo_lost_after_partial": SeededBug(
        "A failed step is assumed to have had no effect, and is not undone.",
        {
            f"{RESERVATIONS}.release": {
                "reservation.take(event)": """\
failed = {target.device for target in reservation.rollout.failures if event is _E.FAILURE}
reservation.take(event)""",
                "self._begin_release(reservation)": """\
self.releasing[reservation.id] = reservation
self._inventory.release(reservation.id, reservation.elements)
held = reservation.provisioned
circuits = tuple(c for c in held.circuits if c.switch not in failed)
forwards = {datapath: some for datapath, some in held.forwards.items() if datapath not in failed}
self._begin(reservation, DeviceState(circuits, forwards), "releasing")""",
            }
        },
        seed=15,
    ),
    "free_before_confirmed": SeededBug(
        "An undoing step that failed counts as done.",
        {f"{RESERVATIONS}._released": {"return ReleaseFailed(reservation)": "pass"}},
    ),
    "old_answer_accepted": SeededBug(
        "An answer confirms a step that it does not belong to.",
        {"blast_controller.core.rollout.rollout:Rollout.asked": {" and target.number == number": ""}},
        seed=11,
    ),
    "key_reuse_accepted": SeededBug(
        "A known key is answered for any content.",
        {f"{APPLICATIONS}.on_submitted": {"raise KeyReusedError(submitted.key)": "return"}},
    ),
    "repetition_admitted_twice": SeededBug(
        "A repetition of key and content starts another request.",
        {
            f"{APPLICATIONS}.on_submitted": {
                "known = self._table.requests.get(submitted.id)": """\
known = self._table.requests.get(submitted.id)
if known is not None and known.state.final and known.content == submitted:
    known = None
    del self._table.requests[submitted.id]"""
            }
        },
    ),
    "refusal_leaves_a_trace": SeededBug(
        "A rejected extension allocates and frees a group address, which changes the next address.",
        {
            f"{APPLICATIONS}.on_extension": {
                "extended = self._admission.extended(request.current, part, event.extension)": """\
addresses = self._extensions._reservations.addresses
addresses.next += 1
extended = self._admission.extended(request.current, part, event.extension)
addresses.next -= 1"""
            }
        },
    ),
    "end_not_journalled": SeededBug(
        "A part that has ended is active again after a restart.",
        {
            f"{DURABLE}:JournalWriter.unwritten": {
                'yield Record("request"': """\
if request is None or request.state.value != "done":
    yield Record("request\""""
            }
        },
    ),
    "dry_run_repairs": SeededBug(
        "A dry run of an audit changes devices.",
        {"blast_controller.core.auditor:Auditor.begin": {"_Round(dry_run,": "_Round(dry_run and not present,"}},
        seed=20,
    ),
    "removal_forgotten": SeededBug(
        "A change that was confirmed leaves the old rules and circuits where they were.",
        {
            f"{RESERVATIONS}._begin": {
                "step = step_between(present, reservation.intended)": """\
if reservation.change is not None and reservation.change.phase is ChangePhase.REMOVING:
    present = reservation.intended
step = step_between(present, reservation.intended)"""
            }
        },
    ),
    "address_given_back_early": SeededBug(
        "A group address is free while the rules for it are still being removed.",
        {
            f"{RESERVATIONS}.release": {
                "reservation.take(event)": """\
reservation.take(event)
self.addresses._used.discard(reservation.group_address)"""
            },
            "blast_controller.core.inventory.addresses:GroupAddresses.free": {"remove": "discard"},
        },
    ),
    "quota_ignored": SeededBug(
        "A tenant gets splitters beyond what it may hold.",
        {"blast_controller.core.policy.splitter_limits:SplitterLimits._without": {"return limits": "return {}"}},
        seed=15,
    ),
    "dark_counts_as_lit": SeededBug(
        "A switch that sees no light at a leaf counts as having lit it.",
        {f"{RESERVATIONS}.answered": {"confirmed_dark(target, event.outputs)": "confirmed(target, 0.0)"}},
        seed=76,
    ),
    "link_not_awaited": SeededBug(
        "A grant leaves although a leaf's port has no link.",
        {f"{RESERVATIONS}._links_awaited": {"if not (reservation.adding and self._links.down_since):": "if True:"}},
    ),
    "probes_not_journalled": SeededBug(
        "The circuits of a fiber check are made without a record.",
        {f"{OUTBOX}.record": {"self._records": 'if record.kind != "probe": self._records'}},
    ),
    "probes_left_after_restart": SeededBug(
        "A restart takes over a fiber check's circuits in its books, and does not remove them.",
        {"blast_controller.core.fibers.probe_circuits:ProbeCircuits.back": {"if bench is None:": "if True:"}},
    ),
    "static_tree_shared": SeededBug(
        "Two groups get one static tree.",
        {
            f"{INVENTORY}.available_static": {" if static_element(tree.name) not in self.holders": ""},
            f"{INVENTORY}.take": {
                "take, elements": 'take, [e for e in elements if not e.startswith("static:") or e not in self.holders]'
            },
        },
        seed=17,
    ),
    "budget_ignored": SeededBug(
        "Trees are built by the number of outputs alone, where the matching has found splitters.",
        {
            "blast_controller.core.light.light_budget:LightBudget.tree": {
                "shape = self._shape": """\
from blast_controller.core.light.light_tree import build
try:
    return BudgetedTree(build(ends.root, ends.receivers, matched, ends.loop_leaf), ())
except ValueError:
    pass
shape = self._shape"""
            }
        },
    ),
    "refused_for_ever": SeededBug(
        "A job that the power budget has refused is not looked at again when more is free.",
        {
            "algorithms.scheduling.scheduler:Scheduler._may_do": {
                " or before != self._refused(found, hold, before.tenant_stops)": ""
            }
        },
        seed=88,
    ),
    "splitter_counted_twice": SeededBug(
        "Released elements count as dark, and once more after the release.",
        {
            f"{INVENTORY}.release": {
                "self._recount(elements)": """\
self._recount(elements)
for element in (one for one in elements if one.startswith("splitter:")):
    account = self._accounts[element]
    account.counts = account.counts._replace(idle=False, dark=False)"""
            }
        },
    ),
}


def failures(first: int) -> Iterator[Exception]:
    for seed in (first, *range(EPISODES)):
        try:
            episode(seed, Counter())
        except (AssertionError, CoreError, JournalError) as error:
            yield error


def found_on_devices(error: Exception) -> bool:
    return any(frame.name in LOOKS_AT_DEVICES for frame in traceback.extract_tb(error.__traceback__))


@pytest.mark.parametrize("name", BUGS)
def test_bug_can_be_planted(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A change of the product that a bug has to follow shows here, before the long search for the bugs."""
    BUGS[name].plant(monkeypatch)


@pytest.mark.test_all
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", BUGS)
def test_bug_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A leak must be found where it is, on devices, whatever else shows it first."""
    bug = BUGS[name]
    bug.plant(monkeypatch)
    assert any(name not in LEAKS or found_on_devices(error) for error in failures(bug.seed)), (
        f"the machine has not noticed: {bug.summary}"
    )
