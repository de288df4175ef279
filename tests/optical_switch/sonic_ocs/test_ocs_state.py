"""The tables of a device, and the notices that follow from changes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optical_switch.errors import ProtocolError
from optical_switch.model import Alarm, Circuit, CircuitReading, CircuitState, LossReading, Port, PortDescription
from optical_switch.session import Notice
from optical_switch.sonic_ocs.model import (
    CROSS_CONNECT_TABLE,
    FACTORY_TABLE,
    MAX_CROSS_CONNECTS,
    MAX_VALUE_CHARACTERS,
    PORT_TABLE,
)
from optical_switch.sonic_ocs.state import DeviceTables, RowsDeleted, RowUpdated, TableChange, accuracies_in

CIRCUIT = Circuit(7, 9)
INPUT, OUTPUT = Port("in", 7), Port("out", 9)


def port(name: str, status: str, target: str = "") -> RowUpdated:
    return RowUpdated(PORT_TABLE, name, {"oper_status": status, "target_simplex_port_id": target})


def cross_connect(name: str, **columns: str) -> RowUpdated:
    return RowUpdated(CROSS_CONNECT_TABLE, name, columns)


CONNECTED = [port("7A", "connected", "9B"), port("9B", "connected", "7A"), cross_connect("7A-9B", status="enabled")]


def connected(**columns: str) -> DeviceTables:
    tables = DeviceTables()
    tables.apply([*CONNECTED, cross_connect("7A-9B", **columns)])
    return tables


def factory(key: str, accuracy: str) -> RowUpdated:
    return RowUpdated(FACTORY_TABLE, key, {"accuracy_dB": accuracy})


def test_largest_error_of_a_circuit_is_its_accuracy() -> None:
    rows = [
        factory("7A-9B|229.100|25.00", "0.10"),
        factory("7A-9B|193.100|25.00", "0.20"),
        factory("7A-9B|193.100|50.00", "0.15"),
        factory("1A-2B", "N/A"),
        cross_connect("1A-2B", status="enabled"),
    ]
    assert accuracies_in(rows) == {CIRCUIT: 0.2}


@pytest.mark.parametrize("row", [factory("7|9", "0.1"), factory("7A-9B|1|2", "fine")])
def test_factory_row_outside_model_is_refused(row: RowUpdated) -> None:
    with pytest.raises(ProtocolError, match="the switch"):
        accuracies_in([row])


def test_losses_have_accuracy_of_their_circuit() -> None:
    tables = connected(insertion_loss_dB="1.25")
    assert tables.losses() == [LossReading(CIRCUIT, 1.25, 0.5)]
    assert tables.set_accuracies({CIRCUIT: 0.1, Circuit(1, 2): 0.2}) == [LossReading(CIRCUIT, 1.25, 0.1)]
    assert tables.set_accuracies({CIRCUIT: 0.1}) == []
    notices = tables.apply([cross_connect("7A-9B", insertion_loss_dB="1.5")])
    assert notices == [LossReading(CIRCUIT, 1.5, 0.1)]


def states(notices: list[Notice]) -> list[tuple[Circuit, CircuitState]]:
    return [(one.circuit, one.state) for one in notices if isinstance(one, CircuitReading)]


def test_setting_circuit_is_followed_from_table_to_light() -> None:
    tables = DeviceTables()
    tables.apply([port("7A", "blocked"), port("9B", "blocked")])
    steps = [
        [cross_connect("7A-9B", status="disabled")],
        [cross_connect("7A-9B", status="enabled"), port("7A", "tuning", "9B"), port("9B", "tuning", "7A")],
        [port("7A", "connected", "9B")],
        [port("9B", "connected", "7A"), cross_connect("7A-9B", insertion_loss_dB="1.50")],
    ]
    seen = [tables.apply(step) for step in steps]
    assert [states(notices) for notices in seen] == [
        [(CIRCUIT, CircuitState.TUNING)],
        [(CIRCUIT, CircuitState.TUNING)],
        [(CIRCUIT, CircuitState.TUNING)],
        [(CIRCUIT, CircuitState.CONNECTED)],
    ]
    assert seen[-1][-1] == LossReading(CIRCUIT, 1.5)
    causes = [notices[0].cause for notices in seen if isinstance(notices[0], CircuitReading)]
    assert causes[:2] == ["the switch reports 7A-9B as disabled", "the switch reports 7A as tuning"]


def test_port_that_is_still_connected_to_previous_peer_does_not_count_as_connected() -> None:
    tables = DeviceTables()
    tables.apply([port("7A", "connected", "8B"), port("9B", "connected", "3A")])
    notices = tables.apply([cross_connect("7A-9B", status="enabled")])
    assert states(notices) == [(CIRCUIT, CircuitState.TUNING)]
    tables.apply([port("9B", "connected", "7A")])
    assert states(tables.apply([port("7A", "connected", "9B")])) == [(CIRCUIT, CircuitState.CONNECTED)]


def test_unchanged_rows_cause_no_notice() -> None:
    tables = connected(insertion_loss_dB="1.50")
    assert tables.apply([*CONNECTED, cross_connect("7A-9B", insertion_loss_dB="1.50")]) == []


def test_rows_replaced_in_one_notification_cause_no_notice() -> None:
    tables = connected()
    assert tables.apply([RowsDeleted(), *CONNECTED]) == []


@pytest.mark.parametrize("path", [(), (CROSS_CONNECT_TABLE,), (CROSS_CONNECT_TABLE, "7A-9B")])
def test_deleted_circuit_is_absent(path: tuple[str, ...]) -> None:
    tables = connected(insertion_loss_dB="1.50")
    assert states(tables.apply([RowsDeleted(path)])) == [(CIRCUIT, CircuitState.ABSENT)]
    assert tables.circuits() == [] and tables.losses() == []
    assert tables.apply([RowsDeleted(path)]) == []


def test_deleted_column_has_its_default_again() -> None:
    tables = connected()
    notices = tables.apply([RowsDeleted((PORT_TABLE, "9B", "oper_status"))])
    assert states(notices) == [(CIRCUIT, CircuitState.TUNING)]
    notices = tables.apply([port("9B", "connected"), RowsDeleted((CROSS_CONNECT_TABLE, "7A-9B", "status"))])
    assert tables.circuits()[0].cause == "the switch reports 7A-9B as disabled"


def test_deleting_missing_rows_and_columns_is_ignored() -> None:
    paths = [(), (PORT_TABLE,), (PORT_TABLE, "1A"), (PORT_TABLE, "1A", "oper_status"), ("OCS_OTHER", "x", "y", "z")]
    paths += [(CROSS_CONNECT_TABLE, "1A-1B"), (CROSS_CONNECT_TABLE, "1A-1B", "physical_path", "0")]
    assert DeviceTables().apply([RowsDeleted(path) for path in paths]) == []


def test_failed_port_raises_alarm_and_fails_its_circuit() -> None:
    tables = connected()
    notices = tables.apply([port("9B", "failed")])
    assert notices == [
        Alarm(OUTPUT, "9B", "failed"),
        CircuitReading(CIRCUIT, CircuitState.FAILED, "the switch reports 9B as failed"),
    ]
    assert tables.alarms() == [Alarm(OUTPUT, "9B", "failed")]
    notices = tables.apply([port("9B", "connected")])
    assert notices == [Alarm(OUTPUT, "9B", "failed", cleared=True), CircuitReading(CIRCUIT, CircuitState.CONNECTED)]
    assert tables.alarms() == []


def test_alarm_is_cleared_when_port_disappears() -> None:
    tables = DeviceTables()
    tables.apply([port("9B", "failed")])
    assert tables.apply([RowsDeleted((PORT_TABLE,))]) == [Alarm(OUTPUT, "9B", "failed", cleared=True)]


def test_invalid_cross_connects_at_same_port_are_all_reported() -> None:
    tables = connected()
    assert states(tables.apply([cross_connect("3A-9B", status="invalid")])) == [(Circuit(3, 9), CircuitState.FAILED)]
    # The other one fails for its own reason already.
    assert states(tables.apply([port("9B", "failed")])) == [(CIRCUIT, CircuitState.FAILED)]


def test_loss_counts_from_first_connection() -> None:
    tables = DeviceTables()
    tables.apply([port("7A", "tuning", "9B"), port("9B", "connected", "7A")])
    tables.apply([cross_connect("7A-9B", status="enabled")])
    assert tables.apply([cross_connect("7A-9B", insertion_loss_dB="30.00")]) == []
    assert tables.losses() == []
    notices = tables.apply([port("7A", "connected", "9B"), cross_connect("7A-9B", insertion_loss_dB="1.60")])
    assert notices == [CircuitReading(CIRCUIT, CircuitState.CONNECTED), LossReading(CIRCUIT, 1.6)]
    assert tables.losses() == [LossReading(CIRCUIT, 1.6)]


def test_loss_of_connected_circuit_that_degrades_is_reported() -> None:
    tables = connected(insertion_loss_dB="1.50")
    assert tables.apply([cross_connect("7A-9B", insertion_loss_dB="1.70")]) == [LossReading(CIRCUIT, 1.7)]
    notices = tables.apply([cross_connect("7A-9B", insertion_loss_dB="7.50"), port("7A", "tuning", "9B")])
    assert states(notices) == [(CIRCUIT, CircuitState.TUNING)] and notices[1] == LossReading(CIRCUIT, 7.5)
    assert tables.losses() == [LossReading(CIRCUIT, 7.5)]


def test_loss_of_replaced_circuit_waits_for_its_connection() -> None:
    tables = connected(insertion_loss_dB="1.50")
    tables.apply([RowsDeleted((CROSS_CONNECT_TABLE, "7A-9B")), port("7A", "tuning", "9B")])
    notices = tables.apply([cross_connect("7A-9B", status="enabled", insertion_loss_dB="30.00")])
    assert states(notices) == [(CIRCUIT, CircuitState.TUNING)] and len(notices) == 1


def test_ports_are_listed_with_labels() -> None:
    assert connected().ports({INPUT: "rack 1"}) == [
        PortDescription(INPUT, "7A", "rack 1"),
        PortDescription(OUTPUT, "9B"),
    ]


@pytest.mark.parametrize(
    "change",
    [
        port("7X", "connected"),
        port("7A", "lost"),
        cross_connect("7A", status="enabled"),
        cross_connect("7A-9B", status="on"),
        cross_connect("7A-9B", insertion_loss_dB="much"),
        RowUpdated(PORT_TABLE, "7A", {"oper_status": "x" * (MAX_VALUE_CHARACTERS + 1)}),
        RowsDeleted((PORT_TABLE, "*")),
    ],
)
def test_names_and_values_outside_model_are_refused(change: TableChange) -> None:
    with pytest.raises(ProtocolError):
        DeviceTables().apply([change])


def test_number_of_cross_connects_is_bounded() -> None:
    rows = [cross_connect(f"{1 + n // 3}A-{1 + n % 3}B", status="enabled") for n in range(MAX_CROSS_CONNECTS)]
    tables = DeviceTables()
    tables.apply(rows)
    with pytest.raises(ProtocolError, match="more than 8192"):
        tables.apply([cross_connect("4000A-4000B", status="enabled")])


PORTS = st.builds(
    port, st.sampled_from(["1A", "2A", "1B", "2B"]), st.sampled_from(["blocked", "tuning", "connected", "failed"])
)
CROSS_CONNECTS = st.builds(
    lambda name, status, loss: cross_connect(name, status=status, insertion_loss_dB=loss),
    st.sampled_from(["1A-1B", "1A-2B", "2A-1B", "2A-2B"]),
    st.sampled_from(["disabled", "enabled", "invalid"]),
    st.sampled_from(["1.00", "2.00", "N/A"]),
)
PATHS = st.sampled_from(
    [
        (),
        (PORT_TABLE,),
        (PORT_TABLE, "1A"),
        (PORT_TABLE, "2B", "oper_status"),
        (CROSS_CONNECT_TABLE,),
        (CROSS_CONNECT_TABLE, "1A-1B"),
        (CROSS_CONNECT_TABLE, "2A-1B", "status"),
    ]
)
CHANGES = st.lists(st.lists(st.one_of(PORTS, CROSS_CONNECTS, st.builds(RowsDeleted, PATHS)), max_size=4), max_size=12)


@given(CHANGES)
def test_notices_lead_to_same_state_as_tables(steps: list[list[TableChange]]) -> None:
    """A listener that keeps the last notice of each circuit, loss and port knows what a reading returns."""
    tables = DeviceTables()
    readings, losses, failed = dict[Circuit, CircuitReading](), dict[Circuit, LossReading](), set[Port]()
    connected_once = set[Circuit]()
    for step in steps:
        for notice in tables.apply(step):
            match notice:
                case CircuitReading(circuit=circuit):
                    assert readings.get(circuit) != notice, "the notice reports no change"
                    readings[circuit] = notice
                    if notice.state is CircuitState.CONNECTED:
                        connected_once.add(circuit)
                    elif notice.state is CircuitState.ABSENT:
                        connected_once.discard(circuit)
                case LossReading(circuit=circuit):
                    losses[circuit] = notice
                case Alarm(port=at, cleared=cleared):
                    assert at is not None and (at in failed) is cleared
                    failed ^= {at}
        present = {c: reading for c, reading in readings.items() if reading.state is not CircuitState.ABSENT}
        assert [present[circuit] for circuit in sorted(present)] == tables.circuits()
        assert {alarm.port for alarm in tables.alarms()} == failed
        for loss in tables.losses():
            assert losses[loss.circuit] == loss
            assert loss.circuit in connected_once


@given(CHANGES)
def test_order_within_notification_decides_and_its_division_does_not(steps: list[list[TableChange]]) -> None:
    whole, parts = DeviceTables(), DeviceTables()
    whole.apply([change for step in steps for change in step])
    for step in steps:
        parts.apply(step)
    assert (whole.circuits(), whole.ports({})) == (parts.circuits(), parts.ports({}))
