"""An operator's commands: what each asks of the controller, prints and returns."""

from __future__ import annotations

import json
from importlib.metadata import EntryPoint

import pytest

from blast_api.ttypes import (
    Denied,
    DrainStatus,
    ElementStatus,
    FibreFault,
    FibreReport,
    ReconcileReport,
)
from blast_client import command
from blast_client.command import main
from tests.support.memory_controller import MemoryController, serving


class OperatedController(MemoryController):
    """The memory controller with an operator's calls; `on` left out only asks, as the real one does."""

    draining = False
    active = 2
    report = ReconcileReport(True, [], [])
    fibres = FibreReport([], [])

    def drain(self, connection, on):
        self.calls.append(f"drain {on}")
        self.draining = self.draining if on is None else on
        return DrainStatus(self.draining, self.active)

    def reconcile(self, connection, dryRun):  # noqa: N803 - the interface's names
        self.calls.append(f"reconcile {dryRun}")
        return ReconcileReport(dryRun, self.report.commands, self.report.foreign)

    def verifyFabric(self, connection):  # noqa: N802 - the interface's name
        return self.fibres

    def elements(self, connection):
        return [
            ElementStatus("port:r1/49", "reserved", None, 7),
            *(self._splitter(f"splitter:s{number}") for number in (1, 2)),
            ElementStatus("switch:ocs1", "away", "connection refused"),
        ]

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
    """Run `blast` with these commands only; returns (status, stdout, stderr)."""
    ours = [
        EntryPoint("operator", "blast_client.operator_commands:register", command.GROUP),
        EntryPoint("fabric", "blast_client.fabric_commands:register", command.GROUP),
    ]
    monkeypatch.setattr(command, "entry_points", lambda group: ours)

    def run(*arguments: str) -> tuple[int, str, str]:
        status = main(arguments)
        return (status, *capsys.readouterr())

    return run


# ---------------------------------------------------------------------- drain


def test_drain_on_off_and_asking(controller, blast):
    assert blast("drain", "status") == (0, "not draining: requests are taken, 2 active\n", "")
    assert blast("drain", "on") == (0, "draining: nothing new is taken, 2 still active\n", "")
    controller.active = 0
    assert blast("drain", "status") == (0, "drained: nothing new is taken, nothing is active\n", "")
    assert json.loads(blast("drain", "off", "--json")[1]) == {"draining": False, "active": 0}
    assert controller.calls == ["drain None", "drain True", "drain None", "drain False"]


@pytest.mark.parametrize("arguments", [("drain",), ("drain", "perhaps"), ("quarantine", "splitter:s1"), ("element",)])
def test_wrong_use(controller, blast, arguments):
    status, out, err = blast(*arguments)
    assert (status, out) == (2, "") and err.count("\n") == 1


# ---------------------------------------------------------------------- reconcile


def test_reconcile_with_nothing_to_do(controller, blast):
    assert blast("reconcile", "--dry-run") == (0, "devices hold exactly what they should: nothing to do\n", "")
    assert controller.calls == ["reconcile True"]


def test_reconcile_tells_what_it_did_and_what_it_left_alone(controller, blast):
    controller.report = ReconcileReport(False, ["switch:ocs1: connect 1 to 2"], ["switch:ocs1: 9 to 9"])
    status, out, _ = blast("reconcile")
    assert status == 0 and controller.calls == ["reconcile False"]
    assert out.splitlines() == [
        "1 command sent:",
        "  switch:ocs1: connect 1 to 2",
        "on devices, not made by Blast and left alone:",
        "  switch:ocs1: 9 to 9",
    ]
    assert blast("reconcile", "--dry-run")[1].startswith("1 command would be sent:\n")
    assert json.loads(blast("reconcile", "--json")[1])["foreign"] == ["switch:ocs1: 9 to 9"]


# ---------------------------------------------------------------------- fibres


def test_verify_of_a_fabric_that_is_right(controller, blast):
    assert blast("fabric", "verify") == (0, "every fibre is wired as the configuration says\n", "")


def test_verify_of_a_fabric_in_use(controller, blast):
    controller.fibres = FibreReport([], ["port:r1/49"])
    status, out, _ = blast("fabric", "verify")
    assert status == 0 and "what was probed" in out and "not probed, because in use or away (1): port:r1/49" in out


def test_verify_names_each_difference_and_fails(controller, blast):
    controller.fibres = FibreReport([FibreFault("port:r1/49", "its light arrives at port:r2/49")], [])
    status, out, err = blast("fabric", "verify")
    assert (status, err) == (1, "")
    assert out.splitlines()[0] == "1 difference from the configuration:"
    assert out.splitlines()[2].split("  ") == ["port:r1/49", "its light arrives at port:r2/49"]
    status, out, _ = blast("fabric", "verify", "--json")
    assert status == 1 and json.loads(out)["faults"][0]["element"] == "port:r1/49"


# ---------------------------------------------------------------------- elements


def test_elements(controller, blast):
    status, out, _ = blast("element", "list")
    lines = out.splitlines()
    assert status == 0 and lines[0].split() == ["ELEMENT", "STATE", "RESERVATION", "REASON"]
    assert lines[1].split() == ["port:r1/49", "reserved", "7"]
    assert lines[4].split("  ")[-1].strip() == "connection refused"
    assert [line.split()[0] for line in blast("element", "list", "--state", "away")[1].splitlines()[1:]] == [
        "switch:ocs1"
    ]
    assert [e["name"] for e in json.loads(blast("element", "list", "--state", "free", "--json")[1])] == [
        "splitter:s1", "splitter:s2",
    ]  # fmt: skip


@pytest.mark.parametrize("prefix", [("element",), ()])
def test_quarantine_and_release_in_both_forms(controller, blast, prefix):
    status, out, _ = blast(*prefix, "quarantine", "splitter:s1", "--reason", "dirty connector")
    assert status == 0 and out.splitlines()[1].split(maxsplit=2) == ["splitter:s1", "unusable", "dirty connector"]
    assert controller.unusable == {"splitter:s1": "dirty connector"}
    status, out, _ = blast(*prefix, "release", "splitter:s1", "--json")
    assert status == 0 and json.loads(out) == [{"name": "splitter:s1", "state": "free"}]
    assert controller.unusable == {}


def test_an_unknown_element_is_the_user_s_mistake(controller, blast):
    status, out, err = blast("quarantine", "splitter:s9", "--reason", "x")
    assert (status, out, err) == (2, "", "blast: no element is named splitter:s9\n")


# ---------------------------------------------------------------------- refusals


@pytest.mark.parametrize("arguments", [("reconcile",), ("fabric", "verify")])
def test_what_is_not_served_is_one_sentence_and_status_1(monkeypatch, blast, arguments):
    with serving(MemoryController()) as (_, host, port):
        status, out, err = blast(*arguments, "--controller", f"{host}:{port}")
    assert (status, out) == (1, "") and err.startswith("blast: this controller does not serve")
    assert err.count("\n") == 1


@pytest.mark.parametrize("arguments", [("drain", "on"), ("reconcile",), ("element", "list"), ("fabric", "verify")])
def test_nobody_there(blast, arguments):
    status, out, err = blast(*arguments, "--controller", "127.0.0.1:1")
    assert (status, out) == (1, "") and err.count("\n") == 1 and "127.0.0.1:1" in err


def test_denied(controller, blast, monkeypatch):
    def denied(connection, on):
        raise Denied("This needs the role operator.")

    monkeypatch.setattr(controller, "drain", denied)
    assert blast("drain", "on") == (2, "", "blast: denied: This needs the role operator.\n")


@pytest.mark.parametrize(
    "name",
    [("drain",), ("reconcile",), ("element", "list"), ("quarantine",), ("element", "release"), ("fabric", "verify")],
)
def test_every_help_has_an_example(blast, name):
    status, out, _ = blast(*name, "--help")
    assert status == 0 and f"\n  blast {' '.join(name)}" in out
