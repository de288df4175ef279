"""Set, rule by rule of the gNMI specification 0.10."""

from __future__ import annotations

import grpc
import pytest

from optical_switch.sonic_ocs.proto import gnmi_pb2 as gnmi
from tests.optical_switch.gnmi_target.raw_client import (
    CONFIG,
    YANG,
    RawClient,
    cross_connect,
    model_path,
    path,
    refused,
    text_of,
    update,
    watching,
)

Code = grpc.StatusCode
ROW = path("OCS_CROSS_CONNECT", "1A-2B")


async def rows(client: RawClient, table: str = "OCS_CROSS_CONNECT") -> set[str]:
    return set(await client.value(path(table)))


async def test_empty_request_is_no_error(client: RawClient) -> None:
    """Section 3.4."""
    assert list((await client.set()).response) == []


async def test_result_of_each_operation_in_order(client: RawClient) -> None:
    """Sections 3.4, 3.4.2: deletes, replaces, updates; with the target of the request (2.2.2.1)."""
    response = await client.set(
        cross_connect("3A-3B"),
        cross_connect("4A-4B"),
        replace=[cross_connect("2A-2B")],
        delete=[path("OCS_CROSS_CONNECT", "1A-1B")],
    )
    assert [(one.op, one.path.elem[1].name) for one in response.response] == [
        (gnmi.UpdateResult.DELETE, "1A-1B"),
        (gnmi.UpdateResult.REPLACE, "2A-2B"),
        (gnmi.UpdateResult.UPDATE, "3A-3B"),
        (gnmi.UpdateResult.UPDATE, "4A-4B"),
    ]
    assert response.prefix.target == "CONFIG_DB"
    assert response.timestamp > 1_700_000_000_000_000_000


async def test_deletes_come_before_replaces_and_updates(client: RawClient) -> None:
    """Section 3.4.3: a port may change from one circuit to another in one request."""
    await client.set(cross_connect("1A-2B"))
    await client.set(
        update(path("OCS_PORT", "1A", "label"), "updated"),
        cross_connect("1A-3B"),
        replace=[update(path("OCS_PORT", "1A", "label"), "replaced")],
        delete=[ROW, path("OCS_PORT", "1A")],
    )
    assert await rows(client) == {"1A-3B"}
    assert await client.value(path("OCS_PORT", "1A", "label")) == "updated"


async def test_several_updates_of_one_path_apply_in_order(client: RawClient) -> None:
    """Section 3.4."""
    label = path("OCS_PORT", "1A", "label")
    await client.set(update(label, "first"), update(label, "second"))
    assert await client.value(label) == "second"


async def test_request_with_one_invalid_operation_changes_nothing(client: RawClient) -> None:
    """Section 3.4.3: no operation is done, and no subscriber sees one."""
    await client.set(cross_connect("1A-2B"))
    async with watching(client, path("OCS_CROSS_CONNECT"), prefix=CONFIG) as view:
        with refused(Code.INVALID_ARGUMENT, "OCS_CROSS_CONNECT/9A-9B"):
            await client.set(cross_connect("2A-3B"), cross_connect("9A-9B"), delete=[ROW])
        await client.set(cross_connect("4A-4B"))
        await view.until(lambda leaves: "OCS_CROSS_CONNECT/4A-4B/b_side" in leaves)
    assert {name.split("/")[1] for name in view.leaves} == {"1A-2B", "4A-4B"}
    assert all("2A-3B" not in name for name, _ in view.history)
    assert await rows(client) == {"1A-2B", "4A-4B"}


async def test_update_changes_named_leaves_only(client: RawClient) -> None:
    """Section 3.4.4."""
    where = path("OCS_PORT", "1A")
    await client.set(update(where, {"label": "one", "config_status": "normal"}))
    await client.set(update(where, {"label": "two"}))
    assert await client.value(where) == {"label": "two", "config_status": "normal"}


async def test_replace_deletes_nodes_that_are_not_named(client: RawClient) -> None:
    """Section 3.4.4: of a row its leaves, of a table its rows, of the database its tables."""
    where = path("OCS_PORT", "1A")
    await client.set(update(where, {"label": "one", "config_status": "normal"}), cross_connect("1A-2B"))
    await client.set(replace=[update(where, {"label": "two"})])
    assert await client.value(where) == {"label": "two"}
    new = {"2A-1B": {"a_side": "2A", "b_side": "1B"}}
    await client.set(replace=[update(path("OCS_CROSS_CONNECT"), new)])
    assert await rows(client) == {"2A-1B"}
    await client.set(replace=[update(gnmi.Path(), {"OCS_CROSS_CONNECT": {}})])
    assert await client.value(gnmi.Path()) == {"OCS_PORT": {}, "OCS_CROSS_CONNECT": {}}


@pytest.mark.parametrize(("where", "value"), [(ROW, {}), (ROW, None), (path("OCS_PORT", "1A", "label"), None)])
async def test_replace_is_no_delete(client: RawClient, where: gnmi.Path, value: object) -> None:
    """Section 3.4.4: neither with an empty value nor with null."""
    with refused(Code.INVALID_ARGUMENT, text_of(where)):
        await client.set(replace=[update(where, value)])


async def test_notation_of_the_model_writes_the_same_rows(client: RawClient) -> None:
    """RFC 7951: with or without the module before a name."""
    entry = {"sonic-ocs:cross_connect_id": "1A-2B", "a_side": "1A", "b_side": "2B"}
    whole = {"OCS_CROSS_CONNECT_LIST": [entry, {"cross_connect_id": "2A-1B", "a_side": "2A", "b_side": "1B"}]}
    await client.set(update(model_path("OCS_CROSS_CONNECT"), whole), prefix=YANG)
    assert await rows(client) == {"1A-2B", "2A-1B"}
    await client.set(
        update(model_path("OCS_PORT", "1A", "label"), "a"), prefix=YANG, delete=[model_path("OCS_CROSS_CONNECT")]
    )
    assert await client.value(gnmi.Path()) == {"OCS_PORT": {"1A": {"label": "a"}}, "OCS_CROSS_CONNECT": {}}
    top = {"sonic-ocs:sonic-ocs": {"OCS_CROSS_CONNECT": {"OCS_CROSS_CONNECT_LIST": [entry]}}}
    await client.set(prefix=YANG, replace=[update(gnmi.Path(), top)])
    assert await client.value(gnmi.Path()) == {
        "OCS_PORT": {},
        "OCS_CROSS_CONNECT": {"1A-2B": {"a_side": "1A", "b_side": "2B"}},
    }


async def test_key_leaf_must_agree_with_the_path(client: RawClient) -> None:
    """Section 3.4.5."""
    entry = {"cross_connect_id": "1A-3B", "a_side": "1A", "b_side": "2B"}
    with refused(Code.INVALID_ARGUMENT, "cross_connect_id", "1A-2B"):
        await client.set(update(model_path("OCS_CROSS_CONNECT", "1A-2B"), entry), prefix=YANG)
    with refused(Code.INVALID_ARGUMENT, "key"):
        await client.set(update(model_path("OCS_PORT", "1A", "simplex_port_id"), "2A"), prefix=YANG)


@pytest.mark.parametrize(
    ("where", "prefix"),
    [
        (path("OCS_CROSS_CONNECT", "*"), CONFIG),
        (path("*"), CONFIG),
        (path("sonic-ocs", "OCS_CROSS_CONNECT", "OCS_CROSS_CONNECT_LIST"), YANG),
        (path("OCS_CROSS_CONNECT", "1A|2B"), CONFIG),
    ],
    ids=text_of,
)
async def test_update_and_replace_need_each_key(client: RawClient, where: gnmi.Path, prefix: gnmi.Path) -> None:
    """Section 3.4.5."""
    value = update(where, {"a_side": "1A", "b_side": "2B"})
    with refused(Code.INVALID_ARGUMENT, text_of(where)):
        await client.set(value, prefix=prefix)
    with refused(Code.INVALID_ARGUMENT, text_of(where)):
        await client.set(prefix=prefix, replace=[value])


async def test_delete_of_missing_node_is_accepted(client: RawClient) -> None:
    """Section 3.4.6."""
    response = await client.set(delete=[ROW, path("OCS_PORT", "77A", "label")])
    assert len(response.response) == 2


async def test_delete_expands_wildcards_and_partial_keys(client: RawClient) -> None:
    """Section 3.4.6."""
    await client.set(cross_connect("1A-2B"), cross_connect("2A-1B"), update(path("OCS_PORT", "1A", "label"), "x"))
    await client.set(delete=[path("OCS_CROSS_CONNECT", "*")])
    assert await client.value(gnmi.Path()) == {"OCS_PORT": {"1A": {"label": "x"}}, "OCS_CROSS_CONNECT": {}}
    await client.set(cross_connect("1A-2B"))
    await client.set(prefix=YANG, delete=[path("sonic-ocs", "OCS_CROSS_CONNECT", "OCS_CROSS_CONNECT_LIST")])
    assert await rows(client) == set()


async def test_delete_of_container_deletes_all_below(client: RawClient) -> None:
    """Section 3.4.6."""
    await client.set(cross_connect("1A-2B"), update(path("OCS_PORT", "1A", "label"), "x"))
    await client.set(prefix=YANG, delete=[path("sonic-ocs")])
    assert await client.value(gnmi.Path()) == {"OCS_PORT": {}, "OCS_CROSS_CONNECT": {}}


async def test_row_without_leaves_exists(client: RawClient) -> None:
    await client.set(update(path("OCS_PORT", "1A", "label"), "x"))
    await client.set(delete=[path("OCS_PORT", "1A", "label")])
    assert await client.value(path("OCS_PORT")) == {"1A": {}}
