"""Names, statuses and states of the model `sonic-ocs`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optical_switch.errors import ProtocolError, SwitchUsageError
from optical_switch.model import Circuit, CircuitState, Port
from optical_switch.printable import MAX_TEXT
from optical_switch.sonic_ocs import model

NUMBERS = st.integers(1, model.MAX_PORT)
CIRCUITS = st.builds(Circuit, NUMBERS, NUMBERS)
YANG = Path(__file__).resolve().parents[4] / "shared/data/yang/sonic-ocs@2024-11-21.yang"


@given(st.builds(Port, st.sampled_from(["in", "out"]), NUMBERS))
def test_port_names_are_read_as_written(port: Port) -> None:
    assert model.port_of(model.port_name(port)) == port


@given(CIRCUITS)
def test_cross_connect_ids_are_read_as_written(circuit: Circuit) -> None:
    assert model.circuit_of(model.cross_connect_id(circuit)) == circuit


def test_light_enters_at_a_side_and_leaves_at_b_side() -> None:
    assert model.cross_connect_id(Circuit(7, 9)) == "7A-9B"
    assert (model.port_of("7A"), model.port_of("9B")) == (Port("in", 7), Port("out", 9))


@pytest.mark.parametrize(
    "name", ["", "7", "A", "0A", "07A", "7C", "7a", "-7A", "7A\n", "4097A", "99999A", "７A", "7A-9B"]
)
def test_other_port_names_are_refused_with_their_text(name: str) -> None:
    with pytest.raises(ProtocolError, match="the switch names a port"):
        model.port_of(name)


@pytest.mark.parametrize("name", ["", "7A", "9B-7A", "7A-9A", "7B-9B", "7A–9B", "7A-9B ", "4097A-1B", "7A-9B-1A"])
def test_other_cross_connect_ids_are_refused(name: str) -> None:
    with pytest.raises(ProtocolError):
        model.circuit_of(name)


@given(st.text())
def test_text_of_device_is_bounded_and_printable_in_errors(text: str) -> None:
    for read in (model.port_of, model.circuit_of):
        try:
            read(text)
        except ProtocolError as error:
            assert str(error).isprintable() and len(str(error)) < MAX_TEXT + 150


@pytest.mark.parametrize("circuit", [Circuit(0, 1), Circuit(1, 0), Circuit(-1, 1), Circuit(1, model.MAX_PORT + 1)])
def test_circuits_at_impossible_ports_are_refused(circuit: Circuit) -> None:
    with pytest.raises(SwitchUsageError, match=f"input {circuit.input} to output {circuit.output}"):
        model.check_circuit(circuit)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("7A-9B conflicts with 3A-9B at 9B", [Circuit(7, 9), Circuit(3, 9), Port("out", 9)]),
        ("OCS_CROSS_CONNECT|7A-9B: failed", [Circuit(7, 9)]),
        ("9B-7A", [Port("out", 9), Port("in", 7)]),
        ("serial 17AB, 0A, 9999A, version 1.2B4", []),
        ("/OCS_CROSS_CONNECT[cross_connect_id=7A-9B]", [Circuit(7, 9)]),
    ],
)
def test_circuits_and_ports_are_found_in_text(text: str, named: list[Circuit | Port]) -> None:
    assert list(model.names_in(text)) == named


@pytest.mark.parametrize(
    ("row", "status"),
    [
        ({}, model.OcsPortStatus.BLOCKED),
        ({"oper_status": "connected"}, model.OcsPortStatus.CONNECTED),
        ({"state": "tuned"}, model.OcsPortStatus.CONNECTED),
        ({"oper_status": "failed", "state": "in use"}, model.OcsPortStatus.FAILED),
    ],
)
def test_port_status_is_read_from_model_and_drafts(row: dict[str, str], status: model.OcsPortStatus) -> None:
    assert model.port_status(row) is status


@pytest.mark.parametrize(
    ("row", "status"),
    [
        ({}, model.OcsCrossConnectStatus.DISABLED),
        ({"status": "enabled"}, model.OcsCrossConnectStatus.ENABLED),
        ({"config_status": "invalid"}, model.OcsCrossConnectStatus.INVALID),
        ({"state": "enabled", "config_status": "normal"}, model.OcsCrossConnectStatus.ENABLED),
    ],
)
def test_cross_connect_status_is_read_from_model_and_drafts(
    row: dict[str, str], status: model.OcsCrossConnectStatus
) -> None:
    assert model.cross_connect_status(row) is status


@pytest.mark.parametrize("text", ["Connected", "", "up\x1b[2J", "tuned "])
def test_unknown_port_status_is_refused_with_its_text(text: str) -> None:
    with pytest.raises(ProtocolError, match="the switch reports the port status") as caught:
        model.port_status({"oper_status": text})
    assert text.rstrip()[:2] in str(caught.value) and str(caught.value).isprintable()


def test_unknown_cross_connect_status_is_refused_with_its_text() -> None:
    with pytest.raises(ProtocolError, match="'tuned'"):
        model.cross_connect_status({"status": "tuned"})


@pytest.mark.parametrize(("text", "loss"), [("1.25", 1.25), ("-0.02", -0.02), ("2", 2.0), ("N/A", None), ("", None)])
def test_insertion_loss_is_read(text: str, loss: float | None) -> None:
    assert model.insertion_loss({model.LOSS: text}) == loss
    assert model.insertion_loss({}) is None


@pytest.mark.parametrize("text", ["low", "nan", "inf", "-1e9", "100.01", "1,5", "9" * 400])
def test_insertion_loss_that_is_no_measurement_is_refused(text: str) -> None:
    with pytest.raises(ProtocolError, match="insertion_loss_dB"):
        model.insertion_loss({model.LOSS: text})


@pytest.mark.parametrize(("text", "error"), [("0.10", 0.1), ("0", 0.0), ("N/A", None), ("", None)])
def test_accuracy_is_read(text: str, error: float | None) -> None:
    assert model.accuracy({model.ACCURACY: text}) == error


@pytest.mark.parametrize("text", ["good", "-0.1", "nan"])
def test_accuracy_that_is_no_error_of_measurement_is_refused(text: str) -> None:
    with pytest.raises(ProtocolError, match="accuracy_dB"):
        model.accuracy({model.ACCURACY: text})


PORT_ROWS = st.fixed_dictionaries(
    {},
    optional={
        "oper_status": st.sampled_from(list(model.OcsPortStatus)),
        model.TARGET: st.sampled_from(["", "7A", "8B", "9B"]),
    },
)
STATUS_ROWS = st.fixed_dictionaries({}, optional={"status": st.sampled_from(list(model.OcsCrossConnectStatus))})


@given(STATUS_ROWS, PORT_ROWS, PORT_ROWS)
def test_circuit_is_connected_only_if_enabled_and_both_ports_are_connected_to_each_other(
    row: dict[str, str], source: dict[str, str], target: dict[str, str]
) -> None:
    state, cause = model.circuit_state(Circuit(7, 9), row, {Port("in", 7): source, Port("out", 9): target})
    statuses = {source.get("oper_status"), target.get("oper_status")}
    paired = source.get(model.TARGET, "") in {"", "9B"} and target.get(model.TARGET, "") in {"", "7A"}
    if row.get("status") == "invalid" or "failed" in statuses:
        assert state is CircuitState.FAILED
    elif row.get("status") == "enabled" and statuses == {"connected"} and paired:
        assert state is CircuitState.CONNECTED
    else:
        assert state is CircuitState.TUNING
    assert bool(cause) is (state is not CircuitState.CONNECTED)


@pytest.mark.published
@pytest.mark.skipif(not YANG.exists(), reason="needs the YANG model in shared/data")
def test_names_and_values_are_those_of_yang_model() -> None:
    text = YANG.read_text()

    def enumeration(name: str) -> set[str]:
        body = text.split(f"typedef {name} ")[1].split("typedef")[0]
        return set(re.findall(r"enum (\w+)", body.split("}\n  }")[0]))

    assert {status.value for status in model.OcsPortStatus} == enumeration("port_oper_status")
    assert {status.value for status in model.OcsCrossConnectStatus} == enumeration("cross_connect_status")
    for table, key in model.KEY_LEAVES.items():
        body = text.split(f"container {table} ")[1].split("container")[0]
        assert f'key "{key}' in body
        # The first column is the one of the model, the others are those of drafts.
        for column in model.READ_COLUMNS.get(table, ())[:1]:
            assert f"leaf {column} " in body
