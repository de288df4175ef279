"""Set requests that are refused, rule by rule of the gNMI specification 0.10."""

from __future__ import annotations

import asyncio

import grpc
import pytest

from optical_switch.model import Circuit
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
)

Code = grpc.StatusCode
ROW = path("OCS_CROSS_CONNECT", "1A-2B")


async def rows(client: RawClient, table: str = "OCS_CROSS_CONNECT") -> set[str]:
    return set(await client.value(path(table)))


@pytest.mark.parametrize(
    ("where", "prefix"),
    [
        (path("OCS_PORTS", "1A"), CONFIG),
        (path("OCS_PORT", "1A", "color"), CONFIG),
        (path("sonic-ocs", "OCS_VLAN"), YANG),
        (model_path("OCS_PORT", "1A", "color"), YANG),
    ],
    ids=text_of,
)
async def test_update_of_unknown_path_is_not_found(client: RawClient, where: gnmi.Path, prefix: gnmi.Path) -> None:
    """Section 3.4.7: with the path in the text; a delete of it cannot be parsed."""
    with refused(Code.NOT_FOUND, text_of(where)):
        await client.set(update(where, "x"), prefix=prefix)
    with refused(Code.NOT_FOUND, text_of(where)):
        await client.set(prefix=prefix, replace=[update(where, "x")])
    with refused(Code.INVALID_ARGUMENT, text_of(where)):
        await client.set(prefix=prefix, delete=[where])


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("1A-2B", {"a_side": "1A"}, "b_side"),
        ("1A-2B", {"b_side": "2B"}, "a_side"),
        ("1A-2B", {"a_side": "1A", "b_side": "2B", "color": "red"}, "color"),
        ("1A-2B", {"a_side": "1A", "b_side": "3B"}, "1A-3B"),
        ("1A-5B", {"a_side": "1A", "b_side": "5B"}, "5B"),
        ("5A-1B", {"a_side": "5A", "b_side": "1B"}, "5A"),
        ("0A-1B", {"a_side": "0A", "b_side": "1B"}, "0A"),
        ("1B-2A", {"a_side": "1B", "b_side": "2A"}, "1B"),
        ("1A-2B", {"a_side": 1, "b_side": "2B"}, "a_side must be a text"),
        ("1A-2B", {"a_side": ["1A"], "b_side": "2B"}, "a_side must be a text"),
        ("1A-2B", ["1A", "2B"], "JSON object"),
        ("1A-2B", "1A", "JSON object"),
    ],
)
async def test_invalid_value_is_an_invalid_argument(client: RawClient, name: str, value: object, text: str) -> None:
    """Section 3.4.7: with the path in the text."""
    with refused(Code.INVALID_ARGUMENT, f"OCS_CROSS_CONNECT/{name}", text):
        await client.set(update(path("OCS_CROSS_CONNECT", name), value))
    assert await rows(client) == set()


@pytest.mark.parametrize(
    ("port", "value", "text"),
    [
        ("1A", {"config_status": "off"}, "force_blocked, normal, powered_off"),
        ("1A", {"label": "x" * 256}, "255"),
        ("1C", {"label": "x"}, "1C"),
        ("01A", {"label": "x"}, "01A"),
        ("5A", {"label": "x"}, "1A to 4A"),
    ],
)
async def test_invalid_port_is_an_invalid_argument(client: RawClient, port: str, value: object, text: str) -> None:
    with refused(Code.INVALID_ARGUMENT, f"OCS_PORT/{port}", text):
        await client.set(update(path("OCS_PORT", port), value))
    assert await rows(client, "OCS_PORT") == set()


async def test_mandatory_leaf_cannot_be_deleted(client: RawClient) -> None:
    await client.set(cross_connect("1A-2B"))
    with refused(Code.INVALID_ARGUMENT, "OCS_CROSS_CONNECT/1A-2B/a_side", "mandatory"):
        await client.set(delete=[path("OCS_CROSS_CONNECT", "1A-2B", "a_side")])
    with refused(Code.INVALID_ARGUMENT, "key"):
        await client.set(prefix=YANG, delete=[model_path("OCS_CROSS_CONNECT", "1A-2B", "cross_connect_id")])


@pytest.mark.parametrize("text", [b"", b"{", b"1A", b"[" * 100_000, b'"\xff"'])
async def test_value_that_is_no_json_is_an_invalid_argument(client: RawClient, text: bytes) -> None:
    """Section 2.3.1."""
    one = gnmi.Update(path=ROW, val=gnmi.TypedValue(json_ietf_val=text))
    with refused(Code.INVALID_ARGUMENT, "OCS_CROSS_CONNECT/1A-2B", "JSON"):
        await client.set(one)
    with refused(Code.INVALID_ARGUMENT, "missing"):
        await client.set(gnmi.Update(path=ROW))


async def test_json_is_accepted_like_json_ietf(client: RawClient) -> None:
    """Section 2.3.1: both sides must support JSON."""
    await client.set(gnmi.Update(path=path("OCS_PORT", "1A", "label"), val=gnmi.TypedValue(json_val=b'"x"')))
    assert await client.value(path("OCS_PORT", "1A", "label")) == "x"


async def test_other_encodings_are_unimplemented(client: RawClient) -> None:
    """Section 3.4.7."""
    for value in (gnmi.TypedValue(string_val="x"), gnmi.TypedValue(ascii_val="x"), gnmi.TypedValue(bytes_val=b"x")):
        with refused(Code.UNIMPLEMENTED, "json_ietf_val"):
            await client.set(gnmi.Update(path=path("OCS_PORT", "1A", "label"), val=value))


async def test_state_is_read_only(client: RawClient) -> None:
    """Section 3.4.7: PERMISSION_DENIED."""
    where = path("OCS_PORT_TABLE", "1A", "oper_status")
    for change in ({"update": [update(where, "connected")]}, {"delete": [where]}, {"delete": [gnmi.Path()]}):
        with refused(Code.PERMISSION_DENIED, "read-only"):
            await client.set(prefix=STATE, **change)
    with refused(Code.PERMISSION_DENIED, "read-only"):
        await client.set(prefix=YANG, delete=[model_path("OCS_PORT_TABLE")])


async def test_union_replace_is_unimplemented(client: RawClient) -> None:
    """Section 3.4.4: an optional operation of another specification."""
    with refused(Code.UNIMPLEMENTED, "union_replace"):
        await client.set(union_replace=[cross_connect("1A-2B")])


async def test_requests_at_the_same_time_are_done_one_after_the_other(client: RawClient) -> None:
    labels = [f"label {number}" for number in range(20)]
    await asyncio.gather(*(client.set(update(path("OCS_PORT", "1A", "label"), label)) for label in labels))
    assert await client.value(path("OCS_PORT", "1A", "label")) in labels


async def test_limits_of_a_request(client: RawClient) -> None:
    with refused(Code.RESOURCE_EXHAUSTED, "4096"):
        await client.set(delete=[ROW] * 4097)
    with refused(Code.RESOURCE_EXHAUSTED):
        await client.set(update(path("OCS_PORT", "1A", "label"), "x" * (1 << 20)))


async def test_limit_of_rows(client: RawClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("optical_switch.emulator.gnmi_target.edits.MAX_ROWS", 1)
    await client.set(cross_connect("1A-2B"))
    with refused(Code.RESOURCE_EXHAUSTED, "rows"):
        await client.set(cross_connect("2A-1B"))
    # A request that frees a row is accepted.
    await client.set(cross_connect("2A-1B"), delete=[ROW])
    assert await rows(client) == {"2A-1B"}


def test_a_circuit_is_named_by_its_ports() -> None:
    from optical_switch.emulator.gnmi_target.ports import PortLayout, cross_connect_row

    row, fields = cross_connect_row(Circuit(7, 9))
    assert (str(row), fields) == ("OCS_CROSS_CONNECT|7A-9B", {"a_side": "7A", "b_side": "9B"})
    assert PortLayout(8, 9).circuit(row, fields) == Circuit(7, 9)
    assert PortLayout(8, 8).circuit(row, fields) is None
