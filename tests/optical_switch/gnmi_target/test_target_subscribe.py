"""Subscribe, rule by rule of the gNMI specification 0.10."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

import grpc
import pytest

from optical_switch.emulator.faults import Faults
from optical_switch.model import Circuit
from optical_switch.sonic_ocs.proto import gnmi_pb2 as gnmi
from tests.optical_switch.gnmi_target.raw_client import (
    CONFIG,
    YANG,
    RawClient,
    StateView,
    cross_connect,
    model_path,
    path,
    read_to_end,
    subscription,
    text_of,
    update,
    watching,
)

if TYPE_CHECKING:
    from optical_switch.emulator.gnmi_target.target import SonicOcsTarget
    from tests.optical_switch.gnmi_target.conftest import Serve

Code = grpc.StatusCode
PORTS = path("OCS_PORT_TABLE")
STATUS = path("OCS_PORT_TABLE", "1A", "oper_status")


async def test_once_sends_all_leaves_then_sync_and_ends(client: RawClient) -> None:
    """Sections 3.5.1.5.1, 3.5.2.3; 3.5: each update names one leaf and has its value only."""
    responses = await read_to_end(client, subscription(PORTS, mode=gnmi.SubscriptionList.ONCE))
    assert [one.sync_response for one in responses] == [False] * (len(responses) - 1) + [True]
    updates = [one for response in responses for one in response.update.update]
    assert {len(one.path.elem) for one in updates} == {3}
    names = [text_of(one.path) for one in updates]
    assert "OCS_PORT_TABLE/4B/oper_status" in names
    # Section 2.1: the paths of a notification are unique.
    assert len(set(names)) == len(names) == 8 * 3


async def test_responses_have_timestamp_target_and_encoding(client: RawClient) -> None:
    """Sections 2.1, 2.2.2.1, 2.3."""
    for encoding, field in ((gnmi.JSON, "json_val"), (gnmi.JSON_IETF, "json_ietf_val")):
        request = subscription(STATUS, mode=gnmi.SubscriptionList.ONCE, encoding=encoding)
        [response, _] = await read_to_end(client, request)
        assert response.update.timestamp > 1_700_000_000_000_000_000
        assert response.update.prefix.target == "STATE_DB"
        assert response.update.update[0].val.WhichOneof("value") == field


async def test_origin_in_a_path_is_returned_in_paths(client: RawClient) -> None:
    """Section 2.7."""
    where = path("sonic-ocs", "OCS_PORT_TABLE", origin="sonic-ocs")
    responses = await read_to_end(client, subscription(where, prefix=gnmi.Path(), mode=gnmi.SubscriptionList.ONCE))
    updates = responses[0].update.update
    assert {one.path.origin for one in updates} == {"sonic-ocs"}
    # In the notation of the model a key is a leaf, too.
    assert "sonic-ocs/OCS_PORT_TABLE/OCS_PORT_LIST[simplex_port_id=1A]/simplex_port_id" in map(
        text_of, (one.path for one in updates)
    )


async def test_poll_sends_all_leaves_for_each_poll(client: RawClient) -> None:
    """Section 3.5.1.5.3; each set of updates ends with sync_response (3.5.2.3)."""
    call = client.subscribe()
    await call.write(subscription(path("OCS_CROSS_CONNECT"), prefix=CONFIG, mode=gnmi.SubscriptionList.POLL))
    view = StateView(call)
    await view.sync()
    assert view.leaves == {}
    async with watching(client, path("OCS_CROSS_CONNECT"), prefix=CONFIG) as other:
        await client.set(cross_connect("1A-2B"))
        await other.until(lambda leaves: "OCS_CROSS_CONNECT/1A-2B/b_side" in leaves)
    for _ in range(2):
        view.leaves.clear()
        await call.write(gnmi.SubscribeRequest(poll=gnmi.Poll()))
        await view.sync()
        assert view.leaves == {"OCS_CROSS_CONNECT/1A-2B/a_side": "1A", "OCS_CROSS_CONNECT/1A-2B/b_side": "2B"}
    await call.done_writing()
    with pytest.raises(EOFError):
        await view.read()
    assert await call.code() is Code.OK


async def test_stream_sends_initial_state_then_changes_only(client: RawClient) -> None:
    """Section 3.5.1.5.2."""
    async with watching(client) as view:
        assert view.port("1A")["oper_status"] == "blocked"
        view.history.clear()
        await client.set(cross_connect("1A-2B"))
        await view.until_port("2B", "connected")
        names = {name.split("/")[1] for name, _ in view.history}
        assert names == {"1A", "2B", "1A-2B"}
        assert view.port("1A")["target_simplex_port_id"] == "2B"


async def test_target_defined_is_on_change(client: RawClient) -> None:
    """Section 3.5.1.5.2: the target chooses."""
    async with watching(client, STATUS, one_mode=gnmi.TARGET_DEFINED) as view:
        await client.set(cross_connect("1A-2B"))
        await view.until_port("1A", "connected")


async def test_removed_row_is_deleted_once_at_its_path(client: RawClient) -> None:
    """Section 3.5.2.3: a delete may be issued above the leaves."""
    await client.set(cross_connect("1A-2B"))
    async with watching(client, path("OCS_CROSS_CONNECT"), prefix=CONFIG) as view:
        await client.set(delete=[path("OCS_CROSS_CONNECT", "1A-2B")])
        await view.until(lambda leaves: not leaves)
    assert view.history[-1:] == [("OCS_CROSS_CONNECT/1A-2B", None)]


async def test_removed_leaf_is_deleted(client: RawClient) -> None:
    """Section 3.5.2.3: explicit deletion is required."""
    label = path("OCS_PORT", "1A", "label")
    await client.set(update(label, "x"), update(path("OCS_PORT", "1A", "config_status"), "normal"))
    async with watching(client, path("OCS_PORT"), prefix=CONFIG) as view:
        await client.set(delete=[label])
        await view.until(lambda leaves: len(leaves) == 1)
        assert view.history[-1] == ("OCS_PORT/1A/label", None)


async def test_subscription_to_a_leaf_sees_the_delete_of_its_row(client: RawClient) -> None:
    """Section 3.5.2.3: the removed node within the subscribed paths is the leaf."""
    await client.set(cross_connect("1A-2B"))
    async with watching(client, path("OCS_CROSS_CONNECT", "*", "a_side"), prefix=CONFIG) as view:
        await client.set(delete=[path("OCS_CROSS_CONNECT")])
        await view.until(lambda leaves: not leaves)
    assert view.history[-1] == ("OCS_CROSS_CONNECT/1A-2B/a_side", None)


async def test_path_that_does_not_exist_yet_is_accepted(client: RawClient) -> None:
    """Section 3.5.1.3."""
    where = path("OCS_CROSS_CONNECT_TABLE", "4A-4B", "status")
    async with watching(client, where) as view:
        assert view.leaves == {}
        await client.set(cross_connect("4A-4B"))
        await view.until_status("4A-4B", "enabled")


async def test_subscriptions_see_changes_of_other_writers(client: RawClient, target: SonicOcsTarget) -> None:
    async with watching(client, model_path("OCS_CROSS_CONNECT"), prefix=YANG) as view:
        await target.another_writer(Circuit(3, 4))
        entry = "sonic-ocs/OCS_CROSS_CONNECT/OCS_CROSS_CONNECT_LIST[cross_connect_id=3A-4B]"
        await view.until(lambda leaves: leaves.get(f"{entry}/b_side") == "4B")
        await target.flush_database()
        await view.until(lambda leaves: not leaves)


async def test_path_selected_twice_is_sent_once(client: RawClient) -> None:
    """Section 2.1."""
    request = subscription(PORTS, STATUS, path("OCS_PORT_TABLE", "1A"), mode=gnmi.SubscriptionList.ONCE)
    responses = await read_to_end(client, request)
    names = [text_of(one.path) for response in responses for one in response.update.update]
    assert names.count("OCS_PORT_TABLE/1A/oper_status") == 1


@pytest.mark.parametrize("mode", [gnmi.SubscriptionList.ONCE, gnmi.SubscriptionList.POLL])
async def test_updates_only_sends_no_state(client: RawClient, mode: int) -> None:
    """Sections 3.5.1.2, 3.5.2.3: sync_response only."""
    call = client.subscribe()
    await call.write(subscription(PORTS, mode=mode, updates_only=True))
    view = StateView(call)
    assert (await view.read()).sync_response
    if mode == gnmi.SubscriptionList.POLL:
        await call.write(gnmi.SubscribeRequest(poll=gnmi.Poll()))
        assert (await view.read()).sync_response
        call.cancel()
    else:
        with pytest.raises(EOFError):
            await view.read()


async def test_updates_only_stream_sends_changes(client: RawClient) -> None:
    """Section 3.5.1.2."""
    async with watching(client, STATUS, updates_only=True) as view:
        assert view.leaves == {}
        await client.set(cross_connect("1A-2B"))
        await view.until_port("1A", "connected")


async def test_subscription_begins_with_rows_written_before(client: RawClient) -> None:
    """A client that writes and then subscribes sees its own writing first."""
    for number in range(20):
        label = f"label {number}"
        await client.set(update(path("OCS_PORT", "1A", "label"), label))
        async with watching(client, path("OCS_PORT"), prefix=CONFIG) as view:
            assert view.history == [("OCS_PORT/1A/label", label)]


async def test_client_that_has_sent_all_still_receives(client: RawClient) -> None:
    call = client.subscribe()
    await call.write(subscription(STATUS))
    await call.done_writing()
    view = StateView(call)
    await view.sync()
    await client.set(cross_connect("1A-2B"))
    await view.until_port("1A", "connected")
    call.cancel()


async def test_subscription_that_ends_is_forgotten(serve: Serve) -> None:
    """Else each one that a client opens would cost memory and time for ever."""
    from optical_switch.emulator.gnmi_target.admission import RpcAdmission
    from optical_switch.emulator.gnmi_target.subscriptions import SubscriptionService

    async def refresh(_tables: object) -> None:
        pass

    mirror = SimpleNamespace(rows={}, listeners=set(), refresh=refresh)
    seen: list[int] = []

    class Context:
        """The side of the server of a call with one request."""

        def __init__(self) -> None:
            self._requests = [subscription(PORTS, mode=gnmi.SubscriptionList.ONCE)]

        def invocation_metadata(self) -> tuple[()]:
            return ()

        async def read(self) -> object:
            return self._requests.pop() if self._requests else grpc.aio.EOF

        async def write(self, _response: gnmi.SubscribeResponse) -> None:
            seen.append(len(mirror.listeners))

    async def at_once() -> None:
        pass

    service = SubscriptionService([mirror], RpcAdmission(Faults(), None), at_once)
    await service.subscribe(None, Context())
    assert (seen, mirror.listeners) == ([1], set())
