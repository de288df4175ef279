"""The model of Polatis switches: port numbers, edits, readings, refusals, alarms, and the YANG modules themselves."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree.ElementTree import Element, fromstring

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optical_switch.errors import ProtocolError, RefusedError
from optical_switch.model import (
    Alarm,
    Circuit,
    CircuitReading,
    CircuitState,
    Port,
    PortDescription,
    PowerReading,
)
from optical_switch.netconf.messages import RpcError
from optical_switch.netconf.polatis import (
    FIRST_REVISION,
    MAX_PORT,
    OPTICAL_SWITCH,
    POLATIS_SWITCH,
    PortNumbering,
    check_model,
    circuit_reading,
    circuits_edit,
    other_outputs,
    read_circuits,
    read_status,
    refusal,
    refused_batch,
)
from optical_switch.netconf.polatis_ports import (
    STREAM,
    Attenuation,
    AttenuationMode,
    attenuators_edit,
    limits,
    read_alarm,
    read_attenuators,
    read_ports,
    read_powers,
)
from tests.support.needs import ROOT

NUMBERING = PortNumbering(17)
NC = "{urn:ietf:params:xml:ns:netconf:base:1.0}"
YANG = ROOT.parent / "shared" / "data" / "yang"


def data(container: str, content: str) -> Element:
    return fromstring(f'<data><{container} xmlns="{OPTICAL_SWITCH}">{content}</{container}></data>')


def ports(**leaves: str) -> str:
    return (
        "<port>"
        + "".join(f"<{name.replace('_', '-')}>{leaf}</{name.replace('_', '-')}>" for name, leaf in leaves.items())
        + "</port>"
    )


def pairs(*found: tuple[int, int]) -> Element:
    listed = "".join(f"<pair><ingress>{i}</ingress><egress>{e}</egress></pair>" for i, e in found)
    return data("cross-connects", listed)


def edits(edit: str) -> list[tuple[str | None, list[str]]]:
    """Return operation and numbers of each pair, in order."""
    return [(pair.get(f"{NC}operation"), [leaf.text or "" for leaf in pair]) for pair in fromstring(edit)]


# ---------------------------------------------------------------------------------------------------------- ports


@given(st.integers(2, MAX_PORT), st.integers(1, MAX_PORT))
def test_numbers_of_ports_are_read_as_they_are_written(first_output: int, number: int) -> None:
    numbering = PortNumbering(first_output)
    port = numbering.port(number)
    assert numbering.number(port) == number and port.number >= 1
    assert port.side == ("in" if number < first_output else "out")


@pytest.mark.parametrize("number", ["", "0", "65536", "-1", "1.0", "seven", "1" * 5000, "٣"])
def test_number_outside_the_model_is_rejected(number: str) -> None:
    with pytest.raises(ProtocolError, match="is no port"):
        read_powers(data("opm-power", ports(port_id=number, power="1.00")), NUMBERING)


def test_labels_are_read_and_made_printable() -> None:
    listed = ports(port_id="1", label="rack 1") + ports(port_id="17", label="a\nb") + ports(port_id="18")
    assert read_ports(data("port-config", listed), NUMBERING) == [
        PortDescription(Port("in", 1), "1", "rack 1"),
        PortDescription(Port("out", 1), "17", "a?b"),
        PortDescription(Port("out", 2), "18"),
    ]


def test_powers_are_read_where_they_are_measured() -> None:
    listed = ports(port_id="2", power="-48.51") + ports(port_id="3") + ports(port_id="20", power="3")
    expected = [PowerReading(Port("in", 2), -48.51), PowerReading(Port("out", 4), 3.0)]
    assert read_powers(data("opm-power", listed), NUMBERING) == expected
    assert read_powers(Element("data"), NUMBERING) == []


@pytest.mark.parametrize("power", ["nan", "inf", "1e3", "1,5", "0x1"])
def test_power_that_is_no_decimal_is_rejected(power: str) -> None:
    with pytest.raises(ProtocolError, match="no number"):
        read_powers(data("opm-power", ports(port_id="2", power=power)), NUMBERING)


# ------------------------------------------------------------------------------------------------------- circuits


def test_edit_creates_new_pairs_and_removes_old_ones_first() -> None:
    edit = circuits_edit([Circuit(3, 4)], [Circuit(2, 5), Circuit(1, 1)], NUMBERING)
    assert edits(edit) == [("remove", ["3"]), ("create", ["2", "21"]), ("create", ["1", "17"])]


def test_circuit_that_moves_is_one_replaced_pair() -> None:
    edit = circuits_edit([Circuit(1, 1), Circuit(2, 2)], [Circuit(1, 2)], NUMBERING)
    assert edits(edit) == [("remove", ["2"]), ("replace", ["1", "18"])]


@given(st.sets(st.integers(1, 16)), st.sets(st.integers(1, 16)))
def test_edit_has_each_input_once(removed: set[int], added: set[int]) -> None:
    edit = circuits_edit([Circuit(i, i) for i in removed], [Circuit(i, 17 - i) for i in added], NUMBERING)
    inputs = [int(leaves[0]) for _, leaves in edits(edit)]
    assert sorted(inputs) == sorted(removed | added)
    operations = [operation for operation, _ in edits(edit)]
    assert operations == sorted(operations, key=lambda operation: operation != "remove"), "removals come first"


def test_circuits_are_read_with_the_state_of_their_ports() -> None:
    status = read_status(
        data(
            "port-config",
            ports(port_id="1", status="ENABLED")
            + ports(port_id="2", status="FAILED")
            + ports(port_id="19", status="DISABLED")
            + ports(port_id="4", status="UNSUPPORTED"),
        ),
        NUMBERING,
    )
    found = read_circuits(pairs((1, 17), (2, 18), (3, 19), (4, 20)), NUMBERING)
    assert [circuit_reading(circuit, status, NUMBERING) for circuit in found] == [
        CircuitReading(Circuit(1, 1), CircuitState.CONNECTED),
        CircuitReading(Circuit(2, 2), CircuitState.FAILED, "port 2 is FAILED"),
        CircuitReading(Circuit(3, 3), CircuitState.ABSENT, "port 19 is DISABLED"),
        CircuitReading(Circuit(4, 4), CircuitState.CONNECTED),
    ]
    assert read_circuits(Element("data"), NUMBERING) == []


@pytest.mark.parametrize("pair", [(1, 2), (17, 18), (18, 1)])
def test_connection_between_two_inputs_names_the_setting_to_correct(pair: tuple[int, int]) -> None:
    with pytest.raises(ProtocolError, match=rf"port {pair[0]} to port {pair[1]}.* 17: correct first_output"):
        read_circuits(pairs(pair), NUMBERING)


def test_circuit_whose_input_has_another_output_is_found() -> None:
    present = [Circuit(1, 1), Circuit(2, 3)]
    assert other_outputs([Circuit(1, 1), Circuit(2, 2), Circuit(4, 4)], present) == {Circuit(2, 2): 3}


# ------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("error", "blamed"),
    [
        (RpcError("t", path="/o:cross-connects/o:pair[o:ingress='7']/o:egress"), {Port("in", 7)}),
        (RpcError("t", path='/cross-connects/pair[ingress="7"][egress="20"]'), {Port("in", 7), Port("out", 4)}),
        (RpcError("t", path="/voa/port[port-id = 18]/atten-level"), {Port("out", 2)}),
        (RpcError("t", bad_element="20"), {Port("out", 4)}),
        (RpcError("t", bad_element="egress", path="/o:cross-connects/o:pair"), set()),
        (RpcError("t", path="/pair[ingress='0'][egress='65536'][ingress='123456']", bad_element="9" * 99), set()),
    ],
)
def test_error_blames_the_ports_that_it_names(error: RpcError, blamed: set[Port]) -> None:
    assert refusal(error, NUMBERING).ports == blamed


def test_batch_is_refused_by_the_error_of_each_circuit() -> None:
    errors = [RpcError("data-exists", path="/pair[ingress='2']"), RpcError("in-use", bad_element="20")]
    circuits = [Circuit(1, 1), Circuit(2, 2), Circuit(3, 4)]
    result = refused_batch(errors, circuits, NUMBERING)
    assert {circuit: error.code for circuit, error in result.refused.items()} == {
        Circuit(2, 2): "data-exists",
        Circuit(3, 4): "in-use",
    }
    assert isinstance(result.error, RefusedError) and result.error.code == "data-exists"


# --------------------------------------------------------------------------------------------- attenuators, alarms


@given(
    st.lists(
        st.builds(
            Attenuation,
            st.integers(1, 40).map(NUMBERING.port),
            st.sampled_from(AttenuationMode),
            st.integers(-6000, 2500).map(lambda cents: cents / 100),
        )
    )
)
def test_attenuators_are_read_as_they_are_written(settings: list[Attenuation]) -> None:
    found = read_attenuators(fromstring(f"<data>{attenuators_edit(settings, NUMBERING)}</data>"), NUMBERING)
    leveled = {AttenuationMode.RELATIVE, AttenuationMode.ABSOLUTE, AttenuationMode.CONVERGED}
    assert found == [one if one.mode in leveled else one._replace(level=0.0) for one in settings]


def test_limit_is_absolute_power_at_the_output() -> None:
    edit = attenuators_edit(limits({2: -3.5, 3: None}), NUMBERING)
    assert [[leaf.text for leaf in port] for port in fromstring(edit)] == [
        ["18", "VOA_MODE_ABSOLUTE", "-3.50"],
        ["19", "VOA_MODE_NONE"],
    ]


def test_unknown_attenuation_mode_is_rejected() -> None:
    with pytest.raises(ProtocolError, match="VOA_MODE_NEW"):
        read_attenuators(data("voa", ports(port_id="18", atten_mode="VOA_MODE_NEW")), NUMBERING)


@pytest.mark.parametrize(
    ("event", "alarm"),
    [
        ("port-power-alarm", Alarm(Port("in", 3), "3", "port-power-alarm", "alarm")),
        ("port-power-clear", Alarm(Port("in", 3), "3", "port-power-alarm", "alarm", cleared=True)),
        ("port-power-warn-alarm", Alarm(Port("in", 3), "3", "port-power-warn-alarm", "warn")),
        ("port-power-warn-clear", Alarm(Port("in", 3), "3", "port-power-warn-alarm", "warn", cleared=True)),
        ("activity-log-notification", None),
    ],
)
def test_power_notifications_become_alarms(event: str, alarm: Alarm | None) -> None:
    found = fromstring(f'<{event} xmlns="{POLATIS_SWITCH}"><port-id>3</port-id><port-label>x</port-label></{event}>')
    assert read_alarm(found, NUMBERING) == alarm


def test_alarms_without_a_port_are_limited_and_printable() -> None:
    error = fromstring(
        f'<system-error xmlns="{POLATIS_SWITCH}"><error-code>7</error-code><switch-status>REQUEST_SERVICE'
        f"</switch-status><message>{'fan&#10;' * 200}</message></system-error>"
    )
    found = read_alarm(error, NUMBERING)
    assert found is not None and found.port is None and found.severity == "REQUEST_SERVICE"
    assert found.condition.startswith("7: fan?fan") and found.condition.isprintable() and len(found.condition) < 220
    protection = fromstring(f'<aps-notification xmlns="{OPTICAL_SWITCH}"/>')
    assert read_alarm(protection, NUMBERING) == Alarm(None, "aps", "aps-notification")


# --------------------------------------------------------------------------------------------------- the YANG modules


def test_model_must_be_announced_in_a_usable_revision() -> None:
    check_model(["urn:x", f"{OPTICAL_SWITCH}?module=optical-switch&revision=2018-03-22"])
    check_model([OPTICAL_SWITCH])
    for announced, message in (
        ([f"{OPTICAL_SWITCH}-2"], "does not announce the model"),
        ([f"{OPTICAL_SWITCH}?module=optical-switch&revision=2017-02-09"], "update its software"),
    ):
        with pytest.raises(ProtocolError, match=message):
            check_model(announced)


@pytest.mark.published
@pytest.mark.skipif(not YANG.is_dir(), reason="needs the YANG modules in ../shared/data/yang")
def test_names_are_those_of_the_yang_modules() -> None:
    model = "\n".join(path.read_text() for path in sorted(YANG.glob("*switch*.yang")))
    package = Path(read_powers.__code__.co_filename).parent
    sources = "".join((package / name).read_text() for name in ("polatis.py", "polatis_ports.py"))
    leaves = set(re.findall(r'element\(\s*"([a-z-]+)"|value\(\w+, [\'"]([a-z-]+)|_decimal\(\w+, "([a-z-]+)"', sources))
    names = {name for found in leaves for name in found if name}
    assert {"cross-connects", "pair", "ingress", "egress", "opm-power", "atten-level", "error-code"} <= names
    for name in names | {"port-power-alarm", "port-power-clear", "port-power-warn-alarm", "port-power-warn-clear"}:
        assert re.search(rf"\b(?:container|list|leaf|notification) \"?{name}\b", model), name
    for mode in AttenuationMode:
        assert f"enum {mode.value} " in model
    assert f'namespace "{OPTICAL_SWITCH}"' in model and f'namespace "{POLATIS_SWITCH}"' in model
    assert f"notification stream '{STREAM}'" in model and f'revision "{FIRST_REVISION}"' in model
