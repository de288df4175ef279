"""Capabilities and Get, rule by rule of the gNMI specification 0.10."""

from __future__ import annotations

import json

import grpc
import pytest

from optical_switch.sonic_ocs.proto import gnmi_pb2 as gnmi
from tests.optical_switch.gnmi_target.raw_client import (
    CONFIG,
    STATE,
    YANG,
    RawClient,
    cross_connect,
    model_path,
    path,
    refused,
    text_of,
    update,
    value_of,
    watching,
)

Code = grpc.StatusCode


async def test_capabilities_name_model_encodings_and_version(client: RawClient) -> None:
    """Section 3.2.2."""
    response = await client.capabilities()
    assert [(one.name, one.organization, one.version) for one in response.supported_models] == [
        ("sonic-ocs", "SONiC", "2024-11-21")
    ]
    # Section 2.3.1: both sides must support JSON.
    assert set(response.supported_encodings) == {gnmi.JSON, gnmi.JSON_IETF}
    assert response.gNMI_version == "0.10.0"


async def test_get_returns_one_notification_for_each_path(client: RawClient) -> None:
    """Section 3.3.2, with the timestamp of 2.2.1."""
    await client.set(cross_connect("1A-2B"))
    response = await client.get(path("OCS_CROSS_CONNECT", "1A-2B", "a_side"), path("OCS_CROSS_CONNECT"))
    leaf, table = response.notification
    assert value_of(leaf.update[0].val) == "1A"
    assert value_of(table.update[0].val) == {"1A-2B": {"a_side": "1A", "b_side": "2B"}}
    assert leaf.timestamp > 1_700_000_000_000_000_000


async def test_get_reflects_the_target_of_the_prefix(client: RawClient) -> None:
    """Section 2.2.2.1: if and only if the client has set it."""
    [with_target] = (await client.get(path("OCS_CROSS_CONNECT"))).notification
    assert with_target.prefix.target == "CONFIG_DB"
    [without] = (await client.get(path("sonic-ocs"), prefix=YANG)).notification
    assert (without.prefix.target, without.prefix.origin) == ("", "sonic-ocs")


async def test_get_joins_prefix_and_path(client: RawClient) -> None:
    """Section 2.4.1."""
    await client.set(cross_connect("1A-2B"))
    prefix = path("OCS_CROSS_CONNECT", "1A-2B", target="CONFIG_DB")
    [notification] = (await client.get(path("b_side"), prefix=prefix)).notification
    [found] = notification.update
    assert value_of(found.val) == "2B"
    # Prefix and path of the response together name the node, too.
    whole = [*notification.prefix.elem, *found.path.elem]
    assert [elem.name for elem in whole] == ["OCS_CROSS_CONNECT", "1A-2B", "b_side"]


async def test_get_uses_json_unless_asked_for_ietf(client: RawClient) -> None:
    """Sections 2.3.1, 3.3.1; RFC 7951 section 4 puts the module before outermost names, JSON does not."""
    await client.set(cross_connect("1A-2B"))
    where = model_path("OCS_CROSS_CONNECT", "1A-2B")
    for encoding, name in ((gnmi.JSON, "a_side"), (gnmi.JSON_IETF, "sonic-ocs:a_side")):
        [notification] = (await client.get(where, prefix=YANG, encoding=encoding)).notification
        value = notification.update[0].val
        assert value.WhichOneof("value") == ("json_val" if encoding == gnmi.JSON else "json_ietf_val")
        assert value_of(value)[name] == "1A"


@pytest.mark.parametrize("encoding", [gnmi.BYTES, gnmi.PROTO, gnmi.ASCII, 99])
async def test_get_refuses_other_encodings(client: RawClient, encoding: int) -> None:
    """Section 3.3.1: UNIMPLEMENTED, and the text names the encoding."""
    with refused(Code.UNIMPLEMENTED, "encoding", "JSON_IETF"):
        await client.get(path("OCS_PORT"), encoding=encoding)


@pytest.mark.parametrize(
    ("where", "prefix"),
    [
        (path("OCS_CROSS_CONNECT", "1A-2B"), CONFIG),
        (path("OCS_PORT_TABLE", "9A"), STATE),
        (path("OCS_CROSS_CONNECT", "1A-2B", "a_side"), CONFIG),
        (path("OCS_FACTORY_INSERTION_LOSS_TABLE", "1A-2B"), STATE),
        (model_path("OCS_CROSS_CONNECT", "1A-2B"), YANG),
        (model_path("OCS_CROSS_CONNECT", "1A-2B", "cross_connect_id"), YANG),
    ],
    ids=lambda one: text_of(one) or one.target or one.origin,
)
async def test_get_of_missing_node_is_not_found(client: RawClient, where: gnmi.Path, prefix: gnmi.Path) -> None:
    """Section 3.3.4."""
    with refused(Code.NOT_FOUND, text_of(where)):
        await client.get(where, prefix=prefix)


async def test_get_of_empty_table_returns_an_empty_container(client: RawClient) -> None:
    """Section 3.3.4 with RFC 7950 section 7.5.1: a container without presence always exists."""
    assert await client.value(path("OCS_CROSS_CONNECT")) == {}
    assert await client.value(model_path("OCS_CROSS_CONNECT"), prefix=YANG) == {}


@pytest.mark.parametrize(
    ("where", "prefix"),
    [
        (path("OCS_PORTS"), CONFIG),
        (path("OCS_PORT_TABLE"), CONFIG),
        (path("OCS_PORT", "1A", "color"), CONFIG),
        (path("OCS_PORT", "1A", "label", "more"), CONFIG),
        (path(("OCS_PORT", {"simplex_port_id": "1A"})), CONFIG),
        (path("interfaces"), YANG),
        (path("sonic-ocs", "OCS_PORTS"), YANG),
        (path("sonic-ocs", "OCS_PORT", "OCS_CROSS_CONNECT_LIST"), YANG),
        (path("sonic-ocs", ("OCS_PORT", {"simplex_port_id": "1A"})), YANG),
        (model_path("OCS_PORT", "1A", key_name="id"), YANG),
        (model_path("OCS_PORT", "1A", "oper_status"), YANG),
        (path("OCS_PORT"), gnmi.Path()),
        (path("OCS_PORT"), gnmi.Path(target="COUNTERS_DB")),
    ],
    ids=lambda one: text_of(one) or one.target or one.origin or "none",
)
async def test_get_of_invalid_path_is_an_invalid_argument(
    client: RawClient, where: gnmi.Path, prefix: gnmi.Path
) -> None:
    """Section 3.3.1: with the path in the text."""
    with refused(Code.INVALID_ARGUMENT, text_of(where)):
        await client.get(where, prefix=prefix)


async def test_get_of_another_origin_is_unimplemented(client: RawClient) -> None:
    """Section 3.3.4: syntactically correct, but not implemented."""
    with refused(Code.UNIMPLEMENTED, "openconfig"):
        await client.get(path("interfaces", origin="openconfig"), prefix=gnmi.Path())
    with refused(Code.UNIMPLEMENTED, "..."):
        await client.get(path("..."))


async def test_target_is_allowed_in_the_prefix_only(client: RawClient) -> None:
    """Section 2.2.2.1."""
    with refused(Code.INVALID_ARGUMENT, "prefix"):
        await client.get(path("OCS_PORT", target="CONFIG_DB"), prefix=gnmi.Path())


async def test_origin_is_allowed_in_prefix_or_path_not_in_both(client: RawClient) -> None:
    """Section 2.7."""
    in_path = path("sonic-ocs", "OCS_CROSS_CONNECT", origin="sonic-ocs")
    [notification] = (await client.get(in_path, prefix=gnmi.Path())).notification
    assert (notification.prefix.origin, notification.update[0].path.origin) == ("", "sonic-ocs")
    with refused(Code.INVALID_ARGUMENT, "not in both"):
        await client.get(in_path, prefix=YANG)


async def test_wildcards_return_each_node_with_its_path(client: RawClient) -> None:
    """Section 3.3.1 and the path conventions: `*`, and a list without keys."""
    await client.set(cross_connect("1A-2B"), cross_connect("2A-1B"))
    [by_key] = (await client.get(path("OCS_CROSS_CONNECT", "*"))).notification
    assert [text_of(one.path) for one in by_key.update] == ["OCS_CROSS_CONNECT/1A-2B", "OCS_CROSS_CONNECT/2A-1B"]
    [by_leaf] = (await client.get(path("OCS_CROSS_CONNECT", "*", "b_side"))).notification
    assert [value_of(one.val) for one in by_leaf.update] == ["2B", "1B"]
    where = path("sonic-ocs", "OCS_CROSS_CONNECT", "OCS_CROSS_CONNECT_LIST")
    [whole_list] = (await client.get(where, prefix=YANG)).notification
    assert [text_of(one.path) for one in whole_list.update] == [
        f"sonic-ocs/OCS_CROSS_CONNECT/OCS_CROSS_CONNECT_LIST[cross_connect_id={name}]" for name in ("1A-2B", "2A-1B")
    ]
    # A wildcard that nothing matches is no error.
    [none] = (await client.get(path("OCS_PORT", "*", "label"))).notification
    assert list(none.update) == []


async def test_part_of_a_key_may_be_a_wildcard(client: RawClient) -> None:
    where = path("OCS_FACTORY_INSERTION_LOSS_TABLE", "1A-2B|*|*", "loss_dB")
    [notification] = (await client.get(where, prefix=STATE)).notification
    assert [(text_of(one.path), value_of(one.val)) for one in notification.update] == [
        ("OCS_FACTORY_INSERTION_LOSS_TABLE/1A-2B|229.100|25.00/loss_dB", "1.50")
    ]


async def test_type_selects_configuration_or_state(client: RawClient) -> None:
    """Section 3.3.1: `config true` for CONFIG, `config false` for STATE."""

    async def tables(kind: int) -> set[str]:
        return set((await client.value(path("sonic-ocs"), prefix=YANG, encoding=gnmi.JSON, type=kind)).keys())

    config = {"OCS_PORT", "OCS_CROSS_CONNECT"}
    state = {"OCS_PORT_TABLE", "OCS_CROSS_CONNECT_TABLE", "OCS_FACTORY_INSERTION_LOSS_TABLE"}
    assert await tables(gnmi.GetRequest.CONFIG) == config
    assert await tables(gnmi.GetRequest.STATE) == state
    assert await tables(gnmi.GetRequest.OPERATIONAL) == set()
    assert await tables(gnmi.GetRequest.ALL) == config | state
    with refused(Code.NOT_FOUND):
        await client.get(path("OCS_PORT_TABLE"), prefix=STATE, type=gnmi.GetRequest.CONFIG)


async def test_other_models_have_no_data(client: RawClient) -> None:
    """Section 2.6."""
    ours, other = gnmi.ModelData(name="sonic-ocs"), gnmi.ModelData(name="openconfig-interfaces")
    assert await client.value(path("OCS_PORT_TABLE", "1A", "oper_status"), prefix=STATE, use_models=[other, ours])
    with refused(Code.NOT_FOUND):
        await client.get(path("OCS_PORT_TABLE", "1A", "oper_status"), prefix=STATE, use_models=[other])


async def test_values_have_the_form_of_the_model(client: RawClient) -> None:
    """RFC 7951: lists are arrays, decimal64 is a string (6.1); gNMI 2.3.1: leaves are bare values."""
    async with watching(client) as view:
        await client.set(cross_connect("1A-2B"))
        await view.until_port("1A", "connected")
    top = await client.value(gnmi.Path(), prefix=YANG)
    [entry] = top["sonic-ocs:sonic-ocs"]["OCS_CROSS_CONNECT_TABLE"]["OCS_CROSS_CONNECT_LIST"]
    assert entry == {
        "cross_connect_id": "1A-2B",
        "status": "enabled",
        "physical_path": ["A-1", "B-2"],
        "insertion_loss_dB": "1.50",
    }
    assert await client.value(model_path("OCS_CROSS_CONNECT_TABLE", "1A-2B", "physical_path"), prefix=YANG) == [
        "A-1",
        "B-2",
    ]
    # SONiC's databases have texts only, and mark a list by @.
    assert await client.value(path("OCS_CROSS_CONNECT_TABLE", "1A-2B", "physical_path@"), prefix=STATE) == "A-1,B-2"


async def test_number_of_paths_is_limited(client: RawClient) -> None:
    with refused(Code.RESOURCE_EXHAUSTED, "256"):
        await client.get(*[path("OCS_PORT")] * 257)


async def test_long_text_of_a_client_is_cut_in_refusals(client: RawClient) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await client.get(path("OCS_PORT", "\x1b[2J" + "x" * 100_000))
    details = raised.value.details() or ""
    assert len(details) < 400
    assert "\x1b" not in details


async def test_set_of_a_port_is_read_back(client: RawClient) -> None:
    await client.set(update(path("OCS_PORT", "1A"), {"label": "rack 7 — uplink", "config_status": "normal"}))
    [notification] = (await client.get(path("OCS_PORT", "1A"))).notification
    assert json.loads(notification.update[0].val.json_ietf_val) == {
        "label": "rack 7 — uplink",
        "config_status": "normal",
    }
