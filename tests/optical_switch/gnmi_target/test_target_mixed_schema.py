"""The mixed schema of SONiC's design of the gNMI server (section 1.2.1.3), with a client of bare messages."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import grpc
import pytest

from optical_switch.sonic_ocs.proto import gnmi_pb2 as gnmi
from tests.optical_switch.gnmi_target.raw_client import (
    CONFIG,
    STATE,
    RawClient,
    connected,
    cross_connect,
    model_path,
    path,
    refused,
    text_of,
    update,
    value_of,
    watching,
)

if TYPE_CHECKING:
    from tests.optical_switch.gnmi_target.conftest import Serve

Code = grpc.StatusCode
ROW = {"a_side": "1A", "b_side": "2B"}


def in_config(*names: str) -> gnmi.Path:
    return path("CONFIG_DB", "localhost", *names, origin="sonic-db")


def in_state(*names: str) -> gnmi.Path:
    return path("STATE_DB", "localhost", *names, origin="sonic-db")


@pytest.fixture
async def mixed(serve: Serve) -> AsyncIterator[RawClient]:
    """Connect a client to a target with the mixed schema."""
    async with serve(mixed_schema=True) as target, connected(target.address) as client:
        yield client


async def test_mixed_schema_is_announced(mixed: RawClient, client: RawClient) -> None:
    assert {model.name for model in (await mixed.capabilities()).supported_models} == {"sonic-ocs", "sonic-db"}
    assert {model.name for model in (await client.capabilities()).supported_models} == {"sonic-ocs"}


async def test_rows_and_fields_are_set_and_deleted_by_their_database(mixed: RawClient) -> None:
    await mixed.set(
        update(in_config("OCS_CROSS_CONNECT", "1A-2B"), ROW),
        update(in_config("OCS_PORT", "1A", "label"), "rack 1"),
        prefix=None,
    )
    assert await mixed.value(in_config("OCS_CROSS_CONNECT"), prefix=None) == {"1A-2B": ROW}
    assert await mixed.value(in_config("OCS_PORT", "1A", "label"), prefix=None) == "rack 1"
    response = await mixed.set(
        update(in_config("OCS_CROSS_CONNECT", "3A-2B"), {"a_side": "3A", "b_side": "2B"}),
        delete=[in_config("OCS_CROSS_CONNECT", "1A-2B")],
        prefix=None,
    )
    assert [text_of(one.path) for one in response.response] == [
        "CONFIG_DB/localhost/OCS_CROSS_CONNECT/1A-2B",
        "CONFIG_DB/localhost/OCS_CROSS_CONNECT/3A-2B",
    ]
    assert set(await mixed.value(in_config("OCS_CROSS_CONNECT"), prefix=None)) == {"3A-2B"}


async def test_state_follows_and_is_reported_with_full_paths(mixed: RawClient) -> None:
    async with watching(mixed, in_state("OCS_CROSS_CONNECT_TABLE"), prefix=None) as view:
        await mixed.set(update(in_config("OCS_CROSS_CONNECT", "1A-2B"), ROW), prefix=None)
        row = "STATE_DB/localhost/OCS_CROSS_CONNECT_TABLE/1A-2B"
        await view.until(lambda leaves: leaves.get(f"{row}/status") == "enabled")
        assert view.leaves[f"{row}/physical_path"] == ["A-1", "B-2"]


async def test_state_of_both_schemas_is_the_same(mixed: RawClient) -> None:
    ports = await mixed.value(in_state("OCS_PORT_TABLE"), prefix=None)
    assert ports == await mixed.value(path("OCS_PORT_TABLE"), prefix=STATE)
    assert ports["1A"]["oper_status"] == "blocked"


async def test_wildcard_selects_rows_with_full_paths(mixed: RawClient) -> None:
    [found] = (await mixed.get(in_state("OCS_PORT_TABLE", "*", "oper_status"), prefix=None)).notification
    assert {text_of(one.path) for one in found.update} == {
        f"STATE_DB/localhost/OCS_PORT_TABLE/{number}{side}/oper_status" for number in range(1, 5) for side in "AB"
    }
    assert {value_of(one.val) for one in found.update} == {"blocked"}


async def test_changes_in_another_schema_are_refused(mixed: RawClient) -> None:
    with refused(Code.UNIMPLEMENTED, "sonic-db"):
        await mixed.set(cross_connect("1A-2B"), prefix=CONFIG)
    by_model = update(model_path("OCS_CROSS_CONNECT", "1A-2B"), ROW)
    by_model.path.origin = "sonic-ocs"
    with refused(Code.UNIMPLEMENTED, "sonic-db"):
        await mixed.set(update(in_config("OCS_CROSS_CONNECT", "1A-2B"), ROW), by_model, prefix=None)
    assert await mixed.value(in_config("OCS_CROSS_CONNECT"), prefix=None) == {}


async def test_changes_of_two_databases_are_refused(mixed: RawClient) -> None:
    with refused(Code.UNIMPLEMENTED, "CONFIG_DB and STATE_DB"):
        await mixed.set(
            update(in_config("OCS_CROSS_CONNECT", "1A-2B"), ROW), delete=[in_state("OCS_PORT_TABLE")], prefix=None
        )
    with refused(Code.PERMISSION_DENIED, "read-only"):
        await mixed.set(delete=[in_state("OCS_PORT_TABLE")], prefix=None)


@pytest.mark.parametrize("names", [(), ("CONFIG_DB",), ("CONFIG_DB", "asic0", "OCS_PORT"), ("APPL_DB", "localhost")])
async def test_other_databases_and_instances_are_refused(mixed: RawClient, names: tuple[str, ...]) -> None:
    with refused(Code.UNIMPLEMENTED, "begin with CONFIG_DB or STATE_DB and localhost"):
        await mixed.get(path(*names, origin="sonic-db"), prefix=None)


async def test_types_of_data_are_refused(mixed: RawClient) -> None:
    with refused(Code.UNIMPLEMENTED, "CONFIG is not supported: use ALL"):
        await mixed.get(in_config("OCS_PORT"), prefix=None, type=gnmi.GetRequest.CONFIG)
