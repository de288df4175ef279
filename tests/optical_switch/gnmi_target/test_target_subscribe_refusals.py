"""Subscriptions that are refused, rule by rule of the gNMI specification 0.10."""

from __future__ import annotations

from typing import TYPE_CHECKING

import grpc
import pytest

from optical_switch.sonic_ocs.proto import gnmi_pb2 as gnmi
from tests.optical_switch.gnmi_target.raw_client import (
    STATE,
    RawClient,
    cross_connect,
    path,
    read_to_end,
    refused,
    subscription,
    text_of,
    watching,
)

if TYPE_CHECKING:
    pass

Code = grpc.StatusCode
PORTS = path("OCS_PORT_TABLE")
STATUS = path("OCS_PORT_TABLE", "1A", "oper_status")


@pytest.mark.parametrize(
    ("where", "prefix", "code"),
    [
        (path("OCS_PORTS"), STATE, Code.INVALID_ARGUMENT),
        (path("OCS_PORT_TABLE", "1A", "color"), STATE, Code.INVALID_ARGUMENT),
        (path("OCS_PORT_TABLE"), gnmi.Path(target="COUNTERS_DB"), Code.INVALID_ARGUMENT),
        (path("interfaces"), gnmi.Path(origin="openconfig"), Code.UNIMPLEMENTED),
    ],
)
async def test_invalid_path_ends_the_call(
    client: RawClient, where: gnmi.Path, prefix: gnmi.Path, code: grpc.StatusCode
) -> None:
    """Section 3.5.2.4."""
    with refused(code, text_of(where)):
        await read_to_end(client, subscription(where, prefix=prefix))


async def test_first_request_must_have_a_list(client: RawClient) -> None:
    """Section 3.5.1.1: INVALID_ARGUMENT, an operation on a subscription that does not exist."""
    with refused(Code.INVALID_ARGUMENT, "no subscription"):
        await read_to_end(client, gnmi.SubscribeRequest(poll=gnmi.Poll()))
    with refused(Code.INVALID_ARGUMENT, "no subscription"):
        await read_to_end(client)


async def test_list_must_not_be_empty(client: RawClient) -> None:
    """Section 3.5.1.2."""
    with refused(Code.INVALID_ARGUMENT, "empty"):
        await read_to_end(client, subscription())


@pytest.mark.parametrize("mode", [gnmi.SubscriptionList.STREAM, gnmi.SubscriptionList.POLL])
async def test_second_list_ends_the_call_and_no_other(client: RawClient, mode: int) -> None:
    """Section 3.5.1.1."""
    async with watching(client) as other:
        with refused(Code.INVALID_ARGUMENT, "open another"):
            await read_to_end(client, subscription(PORTS, mode=mode), subscription(PORTS, mode=mode))
        await client.set(cross_connect("1A-2B"))
        await other.until_port("1A", "connected")


async def test_poll_of_a_stream_is_refused(client: RawClient) -> None:
    """Section 3.5.1.1."""
    with refused(Code.INVALID_ARGUMENT, "no further request"):
        await read_to_end(client, subscription(PORTS), gnmi.SubscribeRequest(poll=gnmi.Poll()))


async def test_sample_and_heartbeat_are_unimplemented(client: RawClient) -> None:
    """Section 3.5.1.5.2: this target does not offer them."""
    with refused(Code.UNIMPLEMENTED, "ON_CHANGE"):
        await read_to_end(client, subscription(PORTS, one_mode=gnmi.SAMPLE))
    request = subscription(PORTS)
    request.subscribe.subscription[0].heartbeat_interval = 1_000_000_000
    with refused(Code.UNIMPLEMENTED, "heartbeat_interval"):
        await read_to_end(client, request)
    # ONCE and POLL have no trigger: the mode of a path means nothing.
    assert await read_to_end(client, subscription(PORTS, one_mode=gnmi.SAMPLE, mode=gnmi.SubscriptionList.ONCE))


async def test_other_encodings_and_models(client: RawClient) -> None:
    """Sections 2.3, 2.6."""
    with refused(Code.UNIMPLEMENTED, "PROTO"):
        await read_to_end(client, subscription(PORTS, encoding=gnmi.PROTO))
    other = [gnmi.ModelData(name="openconfig-interfaces")]
    [only] = await read_to_end(client, subscription(PORTS, mode=gnmi.SubscriptionList.ONCE, use_models=other))
    assert only.sync_response


async def test_number_of_paths_is_limited(client: RawClient) -> None:
    with refused(Code.RESOURCE_EXHAUSTED, "256"):
        await read_to_end(client, subscription(*[STATUS] * 257))
