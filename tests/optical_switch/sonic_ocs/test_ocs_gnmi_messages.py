"""Requests by gNMI, and what notifications change."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optical_switch.errors import ProtocolError
from optical_switch.model import Circuit, Port
from optical_switch.sonic_ocs.gnmi_messages import OcsRequests, changes_in, requests_for, rows_in
from optical_switch.sonic_ocs.model import CROSS_CONNECT_TABLE, FACTORY_TABLE, PORT_CONFIG, PORT_TABLE, Origin
from optical_switch.sonic_ocs.proto import gnmi_pb2 as api
from optical_switch.sonic_ocs.state import DeviceTables, RowsDeleted, RowUpdated, accuracies_in, labels_in
from tests.optical_switch.sonic_ocs.scripted_gnmi import SUPPORTED, path


def elements(found: api.Path) -> list[tuple[str, dict[str, str]]]:
    return [(element.name, dict(element.key)) for element in found.elem]


def notification(
    *updates: api.Update, prefix: api.Path | None = None, delete: tuple[api.Path, ...] = ()
) -> api.Notification:
    return api.Notification(prefix=prefix, update=updates, delete=delete)


def update(at: api.Path, value: object) -> api.Update:
    return api.Update(path=at, val=api.TypedValue(json_ietf_val=json.dumps(value).encode()))


def list_row(table: str, name: str, **keys: str) -> api.Path:
    return api.Path(elem=[api.PathElem(name="sonic-ocs"), api.PathElem(name=table), api.PathElem(name=name, key=keys)])


# ---------------------------------------------------------------------------------------------------------- requests


def test_change_is_one_set_with_deletes_and_updates_of_config_db() -> None:
    request = OcsRequests("databases").change([Circuit(1, 2)], [Circuit(7, 9)])
    assert (request.prefix.target, request.prefix.origin) == ("CONFIG_DB", "")
    assert [elements(one) for one in request.delete] == [[("OCS_CROSS_CONNECT", {}), ("1A-2B", {})]]
    assert [elements(one.path) for one in request.update] == [[("OCS_CROSS_CONNECT", {}), ("7A-9B", {})]]
    assert json.loads(request.update[0].val.json_ietf_val) == {"a_side": "7A", "b_side": "9B"}
    assert not request.replace


def test_change_names_rows_by_lists_of_yang_module() -> None:
    request = OcsRequests("yang").change([], [Circuit(7, 9)])
    assert (request.prefix.target, request.prefix.origin) == ("", "sonic-ocs")
    key = {"cross_connect_id": "7A-9B"}
    assert elements(request.update[0].path) == [
        ("sonic-ocs", {}),
        ("OCS_CROSS_CONNECT", {}),
        ("OCS_CROSS_CONNECT_LIST", key),
    ]
    qualified = {"sonic-ocs:cross_connect_id": "7A-9B", "sonic-ocs:a_side": "7A", "sonic-ocs:b_side": "9B"}
    assert json.loads(request.update[0].val.json_ietf_val) == qualified


def test_mixed_schema_names_database_and_instance_of_configuration_in_each_path() -> None:
    requests = OcsRequests("databases", mixed_schema=True)
    changed = requests.change([Circuit(1, 2)], [Circuit(7, 9)])
    assert not changed.HasField("prefix")
    for at, key in ((changed.delete[0], "1A-2B"), (changed.update[0].path, "7A-9B")):
        assert (at.origin, at.target) == ("sonic-db", "")
        assert [name for name, _ in elements(at)] == ["CONFIG_DB", "localhost", "OCS_CROSS_CONNECT", key]
    asked = requests.rows(PORT_CONFIG)
    assert not asked.HasField("prefix") and asked.type == api.GetRequest.ALL
    assert [name for name, _ in elements(asked.path[0])] == ["CONFIG_DB", "localhost", "OCS_PORT"]


def test_mixed_schema_leaves_addresses_of_state_as_they_are() -> None:
    requests, older = OcsRequests("databases", mixed_schema=True), OcsRequests("databases")
    assert requests.subscribe() == older.subscribe()
    assert requests.rows(FACTORY_TABLE) == older.rows(FACTORY_TABLE)
    assert older.rows(FACTORY_TABLE).prefix.target == "STATE_DB"


def test_yang_does_not_use_mixed_schema() -> None:
    assert OcsRequests("yang", mixed_schema=True).change([], [Circuit(1, 2)]) == OcsRequests("yang").change(
        [], [Circuit(1, 2)]
    )


@pytest.mark.parametrize(("origin", "prefix"), [("databases", ("STATE_DB", "")), ("yang", ("", "sonic-ocs"))])
def test_subscription_streams_changes_of_both_state_tables(origin: Origin, prefix: tuple[str, str]) -> None:
    subscribed = OcsRequests(origin).subscribe().subscribe
    assert (subscribed.prefix.target, subscribed.prefix.origin) == prefix
    assert subscribed.mode == api.SubscriptionList.STREAM and subscribed.encoding == api.JSON_IETF
    assert {one.mode for one in subscribed.subscription} == {api.ON_CHANGE}
    assert [elements(one.path)[-1][0] for one in subscribed.subscription] == [PORT_TABLE, CROSS_CONNECT_TABLE]


# ------------------------------------------------------------------------------------------------------ capabilities


def capable(*models: str) -> api.CapabilityResponse:
    found = [api.ModelData(name=name) for name in models]
    return api.CapabilityResponse(supported_models=found, supported_encodings=[api.JSON_IETF])


def test_device_with_model_and_encoding_is_accepted() -> None:
    requests = requests_for("databases", SUPPORTED)
    assert requests.change([], [Circuit(1, 2)]).prefix.target == "CONFIG_DB"


@pytest.mark.parametrize("models", [["sonic-db"], ["sonic-ocs", "sonic-db"]])
def test_announced_mixed_schema_is_used(models: list[str]) -> None:
    assert requests_for("databases", capable(*models)).change([], [Circuit(1, 2)]).update[0].path.origin == "sonic-db"


def test_yang_needs_its_module() -> None:
    assert requests_for("yang", capable("sonic-ocs", "sonic-db")).rows(PORT_TABLE).prefix.origin == "sonic-ocs"
    with pytest.raises(ProtocolError, match="the model sonic-ocs"):
        requests_for("yang", capable("sonic-db"))


@pytest.mark.parametrize(
    ("response", "text"),
    [
        (api.CapabilityResponse(supported_encodings=[api.JSON_IETF], gNMI_version="0.8\n"), "the model sonic-ocs"),
        (
            api.CapabilityResponse(supported_models=[api.ModelData(name="openconfig-interfaces")]),
            "the model sonic-ocs",
        ),
        (
            api.CapabilityResponse(supported_models=SUPPORTED.supported_models, supported_encodings=[api.PROTO]),
            "the encoding JSON_IETF",
        ),
    ],
)
def test_device_without_model_or_encoding_is_refused(response: api.CapabilityResponse, text: str) -> None:
    with pytest.raises(ProtocolError, match=text) as caught:
        requests_for("databases", response)
    assert str(caught.value).isprintable()


# ----------------------------------------------------------------------------------------------------- notifications

PORT_ROW = {"oper_status": "connected", "target_simplex_port_id": "9B"}
CROSS_CONNECT_ROW = {"status": "enabled", "insertion_loss_dB": "1.25"}
FORMS = {
    "row": [update(path(PORT_TABLE, "7A"), PORT_ROW), update(path(CROSS_CONNECT_TABLE, "7A-9B"), CROSS_CONNECT_ROW)],
    "table": [
        update(path(PORT_TABLE), {"7A": PORT_ROW}),
        update(path(CROSS_CONNECT_TABLE), {"7A-9B": CROSS_CONNECT_ROW}),
    ],
    "database": [update(path(), {PORT_TABLE: {"7A": PORT_ROW}, CROSS_CONNECT_TABLE: {"7A-9B": CROSS_CONNECT_ROW}})],
    "column": [
        *[update(path(PORT_TABLE, "7A", name), value) for name, value in PORT_ROW.items()],
        *[update(path(CROSS_CONNECT_TABLE, "7A-9B", name), value) for name, value in CROSS_CONNECT_ROW.items()],
    ],
    "list entry": [
        update(
            list_row(PORT_TABLE, "OCS_PORT_LIST", simplex_port_id="7A"),
            {f"sonic-ocs:{name}": value for name, value in {"simplex_port_id": "7A", **PORT_ROW}.items()},
        ),
        update(list_row(CROSS_CONNECT_TABLE, "OCS_CROSS_CONNECT_LIST", cross_connect_id="7A-9B"), CROSS_CONNECT_ROW),
    ],
    "container": [
        update(
            path("sonic-ocs:sonic-ocs"),
            {
                f"sonic-ocs:{PORT_TABLE}": {"OCS_PORT_LIST": [{"simplex_port_id": "7A", **PORT_ROW}]},
                CROSS_CONNECT_TABLE: {"OCS_CROSS_CONNECT_LIST": [{"cross_connect_id": "7A-9B", **CROSS_CONNECT_ROW}]},
            },
        )
    ],
    "module": [
        update(
            path(),
            {
                "sonic-ocs:sonic-ocs": {
                    PORT_TABLE: {"OCS_PORT_LIST": [{"simplex_port_id": "7A", **PORT_ROW}]},
                    CROSS_CONNECT_TABLE: {
                        "OCS_CROSS_CONNECT_LIST": [{"cross_connect_id": "7A-9B", **CROSS_CONNECT_ROW}]
                    },
                }
            },
        )
    ],
}


@pytest.mark.parametrize("form", FORMS)
def test_rows_are_read_in_every_form(form: str) -> None:
    found: dict[tuple[str, str], dict[str, str]] = {}
    for change in changes_in(notification(*FORMS[form])):
        assert isinstance(change, RowUpdated)
        found.setdefault((change.table, change.key), {}).update(change.columns)
    assert found == {(PORT_TABLE, "7A"): PORT_ROW, (CROSS_CONNECT_TABLE, "7A-9B"): CROSS_CONNECT_ROW}


def test_prefix_and_path_are_joined() -> None:
    changes = changes_in(
        notification(update(path("7A", "oper_status"), "failed"), prefix=path(PORT_TABLE), delete=(path("9B"),))
    )
    assert changes == [RowsDeleted((PORT_TABLE, "9B")), RowUpdated(PORT_TABLE, "7A", {"oper_status": "failed"})]


def test_deletes_come_before_updates_and_atomic_notification_replaces_all_below_prefix() -> None:
    message = notification(update(path("7A"), {}), prefix=path(PORT_TABLE), delete=(path("7A"),))
    assert changes_in(message)[0] == RowsDeleted((PORT_TABLE, "7A"))
    message.atomic = True
    assert changes_in(message)[0] == RowsDeleted((PORT_TABLE,))


@pytest.mark.parametrize(
    "value",
    [
        api.TypedValue(string_val="1.25"),
        api.TypedValue(ascii_val="1.25"),
        api.TypedValue(double_val=1.25),
        api.TypedValue(float_val=1.25),
        api.TypedValue(json_val=b"1.25"),
        api.TypedValue(json_ietf_val=b'"1.25"'),
        api.TypedValue(decimal_val=api.Decimal64(digits=125, precision=2)),
    ],
)
def test_column_is_read_from_every_scalar_type(value: api.TypedValue) -> None:
    at = path(CROSS_CONNECT_TABLE, "7A-9B", "insertion_loss_dB")
    assert changes_in(notification(api.Update(path=at, val=value))) == [
        RowUpdated(CROSS_CONNECT_TABLE, "7A-9B", {"insertion_loss_dB": "1.25"})
    ]


def test_columns_and_tables_that_are_not_read_are_ignored_whatever_they_hold() -> None:
    message = notification(
        update(path(CROSS_CONNECT_TABLE, "7A-9B"), {"status": "enabled", "physical_path": [1, {"a": None}]}),
        update(path(CROSS_CONNECT_TABLE, "7A-9B", "physical_path"), [[]]),
        update(path("OCS_OTHER_TABLE"), [1]),
        update(path("PORT_TABLE", "Ethernet0"), None),
        api.Update(
            path=path(CROSS_CONNECT_TABLE, "7A-9B", "physical_path"),
            val=api.TypedValue(leaflist_val=api.ScalarArray(element=[api.TypedValue(string_val="x")])),
        ),
    )
    assert changes_in(message) == [RowUpdated(CROSS_CONNECT_TABLE, "7A-9B", {"status": "enabled"})]


@pytest.mark.parametrize(
    ("at", "value"),
    [
        (path(PORT_TABLE, "7A"), api.TypedValue(json_ietf_val=b"{")),
        (path(PORT_TABLE, "7A"), api.TypedValue(json_ietf_val=b"\xff")),
        (path(PORT_TABLE, "7A"), api.TypedValue(json_ietf_val=b"[" * 100_000)),
        (path(PORT_TABLE, "7A"), api.TypedValue(json_ietf_val=b"9" * 10_000)),
        (path(PORT_TABLE, "7A"), api.TypedValue(json_ietf_val=b'"connected"')),
        (path(PORT_TABLE, "7A"), api.TypedValue(json_ietf_val=b'{"oper_status": true}')),
        (path(PORT_TABLE, "7A"), api.TypedValue(json_ietf_val=b'{"oper_status": null}')),
        (path(PORT_TABLE), api.TypedValue(json_ietf_val=b'{"OCS_PORT_LIST": [{}]}')),
        (path(PORT_TABLE), api.TypedValue(json_ietf_val=b'{"OCS_PORT_LIST": ["7A"]}')),
        (path(), api.TypedValue(string_val="x")),
        (path(PORT_TABLE, "7A", "oper_status"), api.TypedValue(bytes_val=b"x")),
        (path(PORT_TABLE, "7A", "oper_status"), api.TypedValue()),
        (path(PORT_TABLE, "*", "oper_status"), api.TypedValue(string_val="failed")),
    ],
)
def test_values_outside_model_are_refused(at: api.Path, value: api.TypedValue) -> None:
    with pytest.raises(ProtocolError, match="the switch reports") as caught:
        changes_in(notification(api.Update(path=at, val=value)))
    assert str(caught.value).isprintable() and len(str(caught.value)) < 500


def test_deleting_by_wildcard_is_refused() -> None:
    with pytest.raises(ProtocolError, match="wildcard"):
        changes_in(notification(delete=(list_row(PORT_TABLE, "OCS_PORT_LIST", simplex_port_id="*"),)))


def test_labels_are_read_from_configuration() -> None:
    value = {"7A": {"label": "rack 1\n", "config_status": "normal"}, "9B": {"config_status": "normal"}}
    answer = api.GetResponse(notification=[notification(update(path("OCS_PORT"), value))])
    assert labels_in(rows_in(answer)) == {Port("in", 7): "rack 1?"}


@pytest.mark.parametrize("split", [0, 1, 2, 3])
def test_database_and_instance_of_mixed_schema_are_no_table(split: int) -> None:
    names = ("CONFIG_DB", "localhost", "OCS_PORT", "7A")
    prefix, at = path(*names[:split]), path(*names[split:])
    (prefix if split else at).origin = "sonic-db"
    answer = api.GetResponse(notification=[notification(update(at, {"label": "rack 1"}), prefix=prefix)])
    assert labels_in(rows_in(answer)) == {Port("in", 7): "rack 1"}


@pytest.mark.parametrize(
    ("at", "value"),
    [
        (path(FACTORY_TABLE), {"7A-9B|229.100|25.00": {"loss_dB": "1.00", "accuracy_dB": "0.10"}}),
        (path(FACTORY_TABLE, "7A-9B|229.100|25.00", "accuracy_dB"), "0.10"),
        (
            path("sonic-ocs", FACTORY_TABLE),
            {
                "sonic-ocs:OCS_FACTORY_INSERTION_LOSS_LIST": [
                    {"cross_connect_id": "7A-9B", "frequency_THz": "229.100", "accuracy_dB": "0.10"}
                ]
            },
        ),
        (
            list_row(
                FACTORY_TABLE,
                "OCS_FACTORY_INSERTION_LOSS_LIST",
                cross_connect_id="7A-9B",
                frequency_THz="229.100",
                temperature_C="25.00",
            ),
            {"accuracy_dB": "0.10"},
        ),
    ],
)
def test_accuracies_of_the_factory_are_read_in_each_form(at: api.Path, value: object) -> None:
    answer = api.GetResponse(notification=[notification(update(at, value))])
    assert accuracies_in(rows_in(answer)) == {Circuit(7, 9): 0.1}


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5) | st.sampled_from(["connected", "enabled", "1.5"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [PORT_TABLE, CROSS_CONNECT_TABLE, "7A", "7A-9B", "oper_status", "status", "x:OCS_PORT_LIST", "x"]
            ),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)
NAMES = st.lists(
    st.sampled_from(["sonic-ocs", PORT_TABLE, CROSS_CONNECT_TABLE, "7A", "7A-9B", "status", ""]), max_size=4
)


@given(NAMES, JSON)
def test_any_value_is_read_or_refused_with_typed_error(names: list[str], value: object) -> None:
    try:
        DeviceTables().apply(changes_in(notification(update(path(*names), value))))
    except ProtocolError as error:
        assert str(error).isprintable()


@given(st.binary(max_size=200))
def test_any_bytes_that_are_a_notification_are_read_or_refused(data: bytes) -> None:
    try:
        message = api.Notification.FromString(data)
    except ValueError:
        return
    except Exception as error:  # noqa: BLE001 - protocol buffers raise an error of their own
        assert type(error).__name__ == "DecodeError"
        return
    try:
        DeviceTables().apply(changes_in(message))
    except ProtocolError as error:
        assert str(error).isprintable()
