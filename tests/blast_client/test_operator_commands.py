"""Operator commands: their calls, output and exit status."""

from __future__ import annotations

import json

import pytest

from blast_api.ttypes import (
    Denied,
    DrainStatus,
    ElementStatus,
    FiberFault,
    FiberReport,
    NotCompared,
    ReconcileReport,
)
from tests.blast_client.test_command_line import blast_of
from tests.support.controller.memory_controller import MemoryController, serving


class OperatedController(MemoryController):
    """The memory controller with an operator's calls; `on` left out only asks, as the real one does."""

    draining = False
    active = 2
    pending = 0
    report = ReconcileReport(True, [], [], ["switch:ocs1", "tor:0000000000000001"], [])
    fibers = FiberReport([], [], 12)

    def drain(self, connection, on):
        self.calls.append(f"drain {on}")
        self.draining = self.draining if on is None else on
        return DrainStatus(self.draining, self.active, self.pending)

    def reconcile(self, connection, dryRun):  # noqa: N803 - the interface's names
        self.calls.append(f"reconcile {dryRun}")
        report = self.report
        return ReconcileReport(dryRun, report.commands, report.foreign, report.compared, report.notCompared)

    def verifyFabric(self, connection):  # noqa: N802 - the interface's name
        return self.fibers

    def elements(self, connection):
        return [
            ElementStatus("port:r1/49", "reserved", None, 7),
            *(self._splitter(f"splitter:s{number}") for number in (1, 2)),
            ElementStatus("switch:ocs1", "disconnected", "connection refused"),
        ]

    def quarantine(self, connection, element, reason):
        self.unusable[element] = reason

    def releaseElement(self, connection, element):  # noqa: N802 - the interface's name
        self.unusable.pop(element, None)

    def _splitter(self, name):
        reason = self.unusable.get(name)
        return ElementStatus(name, "unusable" if reason else "free", reason)


@pytest.fixture
def controller(monkeypatch):
    handler = OperatedController(splitters=2)
    with serving(handler) as (_, host, port):
        monkeypatch.setenv("BLAST_CONTROLLER", f"{host}:{port}")
        yield handler


@pytest.fixture
def blast(monkeypatch, capsys):
    modules = {"operator": "blast_client.cli.operator_commands", "fabric": "blast_client.fabric.commands"}
    return blast_of(modules, monkeypatch, capsys)


# ---------------------------------------------------------------------- drain


def test_drain_reports_state_and_remaining_requests(controller, blast):
    assert blast("drain", "status") == (0, "not draining: new requests are accepted, 2 active\n", "")
    assert blast("drain", "on") == (0, "draining: new requests are rejected, 2 active\n", "")
    controller.active = 0
    controller.pending = 1
    assert blast("drain", "status") == (0, "draining: new requests are rejected, 0 active, 1 pending\n", "")
    controller.pending = 0
    assert blast("drain", "status") == (0, "drained: new requests are rejected, none is active or pending\n", "")
    assert json.loads(blast("drain", "off", "--json")[1]) == {"draining": False, "active": 0, "pending": 0}
    assert controller.calls == ["drain None", "drain True", "drain None", "drain None", "drain False"]


@pytest.mark.parametrize("arguments", [("drain", "perhaps"), ("quarantine", "splitter:s1")])
def test_invalid_usage_exits_with_status_2(controller, blast, arguments):
    status, out, err = blast(*arguments)
    assert (status, out) == (2, "") and err.count("\n") == 1


# ---------------------------------------------------------------------- reconcile


def test_reconcile_reports_no_differences(controller, blast):
    assert blast("reconcile", "--dry-run") == (0, "2 devices compared, all devices: no differences\n", "")
    assert controller.calls == ["reconcile True"]


def test_reconcile_prints_commands_and_foreign_circuits(controller, blast):
    controller.report = ReconcileReport(False, ["ocs1: connect 1 to 2"], ["ocs1: 9 to 9"], ["switch:ocs1"], [])
    status, out, _ = blast("reconcile")
    assert status == 0 and controller.calls == ["reconcile False"]
    assert out.splitlines() == [
        "1 command sent:",
        "  ocs1: connect 1 to 2",
        "on devices, not made by Blast and not changed:",
        "  ocs1: 9 to 9",
    ]
    assert blast("reconcile", "--dry-run")[1].startswith("1 command would be sent:\n")
    assert json.loads(blast("reconcile", "--json")[1])["foreign"] == ["ocs1: 9 to 9"]


def test_reconcile_fails_if_no_device_was_compared(controller, blast):
    away = [NotCompared("switch:ocs1", "away: refused"), NotCompared("tor:0000000000000001", "away: silent")]
    controller.report = ReconcileReport(True, [], [], [], away)
    status, out, _ = blast("reconcile", "--dry-run")
    assert status == 1
    assert out.splitlines() == [
        "no device was compared: differences are unknown",
        "not compared (2):",
        "  switch:ocs1: away: refused",
        "  tor:0000000000000001: away: silent",
    ]


def test_reconcile_lists_devices_that_were_not_compared(controller, blast):
    controller.report = ReconcileReport(True, [], [], ["switch:ocs1"], [NotCompared("tor:0000000000000001", "away")])
    status, out, _ = blast("reconcile", "--dry-run")
    assert status == 3
    assert out.splitlines() == [
        "1 device compared: no differences on these",
        "not compared (1):",
        "  tor:0000000000000001: away",
    ]
    status, out, _ = blast("reconcile", "--json")
    assert status == 3 and json.loads(out)["notCompared"] == [{"element": "tor:0000000000000001", "reason": "away"}]


def test_reconcile_with_older_controller_warns_of_missing_list(controller, blast):
    controller.report = ReconcileReport(True, [], [])
    status, out, _ = blast("reconcile", "--dry-run")
    assert status == 3 and "this controller does not report which devices it compared" in out


# ---------------------------------------------------------------------- fibers


def test_verify_reports_matching_fabric(controller, blast):
    assert blast("fabric", "verify") == (0, "every fiber matches the configuration\n", "")


def test_verify_lists_fibers_in_use(controller, blast):
    controller.fibers = FiberReport([], ["port:r1/49: held by reservation 7"], 3)
    status, out, _ = blast("fabric", "verify")
    assert status == 3
    assert out.splitlines() == [
        "every probed fiber matches the configuration",
        "not probed (1):",
        "  port:r1/49: held by reservation 7",
    ]


def test_verify_fails_if_no_fiber_was_probed(controller, blast):
    controller.fibers = FiberReport([], [f"port:r{rack}/49: ocs1 is away" for rack in range(1, 10)], 0)
    status, out, _ = blast("fabric", "verify")
    assert status == 1 and "differences from the configuration are unknown" in out.splitlines()[0]
    assert all(f"  port:r{rack}/49: ocs1 is away" in out.splitlines() for rack in range(1, 10)), "each is named"


def test_verify_lists_differences_and_fails(controller, blast):
    controller.fibers = FiberReport([FiberFault("port:r1/49", "it is connected to port:r2/49")], [], 12)
    status, out, err = blast("fabric", "verify")
    assert (status, err) == (1, "")
    assert out.splitlines()[0] == "1 difference from the configuration:"
    assert out.splitlines()[2].split("  ") == ["port:r1/49", "it is connected to port:r2/49"]
    status, out, _ = blast("fabric", "verify", "--json")
    assert status == 1 and json.loads(out)["faults"][0]["element"] == "port:r1/49"


# ---------------------------------------------------------------------- elements


def test_element_list_filters_by_state(controller, blast):
    status, out, _ = blast("element", "list")
    lines = out.splitlines()
    assert status == 0 and lines[0].split() == ["ELEMENT", "STATE", "RESERVATION", "REASON"]
    assert lines[1].split() == ["port:r1/49", "reserved", "7"]
    assert lines[4].split("  ")[-1].strip() == "connection refused"
    assert [line.split()[0] for line in blast("element", "list", "--state", "disconnected")[1].splitlines()[1:]] == [
        "switch:ocs1"
    ]
    assert [e["name"] for e in json.loads(blast("element", "list", "--state", "free", "--json")[1])] == [
        "splitter:s1", "splitter:s2",
    ]  # fmt: skip


@pytest.mark.parametrize("prefix", [("element",), ()])
def test_quarantine_and_release_work_in_both_forms(controller, blast, prefix):
    status, out, _ = blast(*prefix, "quarantine", "splitter:s1", "--reason", "dirty connector")
    assert status == 0 and out.splitlines()[1].split(maxsplit=2) == ["splitter:s1", "unusable", "dirty connector"]
    assert controller.unusable == {"splitter:s1": "dirty connector"}
    status, out, _ = blast(*prefix, "release", "splitter:s1", "--json")
    assert status == 0 and json.loads(out) == [{"name": "splitter:s1", "state": "free"}]
    assert controller.unusable == {}


# ---------------------------------------------------------------------- refusals


def test_denied_call_exits_with_status_2(controller, blast, monkeypatch):
    def denied(connection, on):
        raise Denied("This needs the role operator.")

    monkeypatch.setattr(controller, "drain", denied)
    assert blast("drain", "on") == (2, "", "blast: denied: This needs the role operator.\n")
