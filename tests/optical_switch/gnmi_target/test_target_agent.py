"""The agent: from CONFIG_DB, by any writer, to the hardware, and from the hardware to STATE_DB."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any

import grpc
import pytest

from optical_switch.model import Circuit, Port
from tests.optical_switch.gnmi_target.raw_client import (
    CONFIG,
    STATE,
    RawClient,
    StateView,
    connected,
    cross_connect,
    path,
    redis_of,
    refused,
    update,
    watching,
)
from tests.support.waiting import eventually_async

if TYPE_CHECKING:
    from optical_switch.emulator.gnmi_target.target import SonicOcsTarget
    from tests.optical_switch.gnmi_target.conftest import Serve


@pytest.fixture
async def view(client: RawClient) -> AsyncIterator[StateView]:
    async with watching(client) as one:
        yield one


async def test_databases_have_the_tables_of_sonic(client: RawClient, target: SonicOcsTarget, view: StateView) -> None:
    await client.set(cross_connect("1A-2B"), update(path("OCS_PORT", "1A", "label"), "uplink"))
    await view.until_port("1A", "connected")
    async with redis_of(target, 4) as config, redis_of(target, 6) as state:
        assert set(await config.keys()) == {"OCS_CROSS_CONNECT|1A-2B", "OCS_PORT|1A"}
        assert await config.hgetall("OCS_CROSS_CONNECT|1A-2B") == {"a_side": "1A", "b_side": "2B"}
        assert await config.hgetall("OCS_PORT|1A") == {"label": "uplink"}
        assert await state.hgetall("OCS_PORT_TABLE|1A") == {
            "connector_type": "LC UPC",
            "connector_pin": "2",
            "target_simplex_port_id": "2B",
            "oper_status": "connected",
        }
        assert await state.hgetall("OCS_CROSS_CONNECT_TABLE|1A-2B") == {
            "status": "enabled",
            "physical_path@": "A-1,B-2",
            "insertion_loss_dB": "1.50",
        }
        assert await state.hgetall("OCS_FACTORY_INSERTION_LOSS_TABLE|4A-4B|229.100|25.00") == {
            "loss_dB": "1.50",
            "accuracy_dB": "0.10",
        }
        assert len(await state.keys("OCS_FACTORY_INSERTION_LOSS_TABLE|*")) == 16
        assert len(await state.keys("OCS_PORT_TABLE|*")) == 8


async def test_circuit_tunes_then_connects(serve: Serve) -> None:
    set_up = asyncio.Event()
    applied: list[tuple[Sequence[Circuit], Sequence[Circuit]]] = []

    async def apply(removed: Sequence[Circuit], added: Sequence[Circuit]) -> None:
        applied.append((tuple(removed), tuple(added)))
        await set_up.wait()

    async with serve(apply=apply) as target, connected(target.address) as client, watching(client) as view:
        await client.set(cross_connect("1A-2B"))
        await view.until_port("1A", "tuning")
        assert view.cross_connect("1A-2B")["status"] == "enabled"
        # The target port is there as soon as the cross-connect is applied.
        assert view.port("2B")["target_simplex_port_id"] == "1A"
        assert "insertion_loss_dB" not in view.cross_connect("1A-2B")
        set_up.set()
        await view.until_port("1A", "connected")
        assert view.cross_connect("1A-2B")["insertion_loss_dB"] == "1.50"
        assert target.hardware.circuits == (Circuit(1, 2),)
    assert applied == [((), (Circuit(1, 2),))]


async def test_removed_circuit_leaves_no_trace(client: RawClient, target: SonicOcsTarget, view: StateView) -> None:
    await client.set(cross_connect("1A-2B"))
    await view.until_port("1A", "connected")
    await client.set(delete=[path("OCS_CROSS_CONNECT", "1A-2B")])
    await view.until_port("2B", "blocked")
    assert view.cross_connect("1A-2B") == {}
    assert view.port("1A") == {"connector_type": "LC UPC", "connector_pin": "2", "oper_status": "blocked"}
    assert target.hardware.circuits == ()


async def test_one_request_is_one_change_of_the_hardware(serve: Serve) -> None:
    applied: list[Any] = []

    async def apply(removed: Sequence[Circuit], added: Sequence[Circuit]) -> None:
        applied.append((list(removed), list(added)))

    async with serve(apply=apply) as target, connected(target.address) as client, watching(client) as view:
        await client.set(cross_connect("1A-2B"), cross_connect("2A-1B"))
        await view.until_port("2A", "connected")
        await client.set(cross_connect("1A-1B"), cross_connect("2A-2B"), delete=[path("OCS_CROSS_CONNECT")])
        await view.until_status("1A-1B", "enabled")
        await view.until_port("2B", "connected")
    assert applied == [
        ([], [Circuit(1, 2), Circuit(2, 1)]),
        ([Circuit(1, 2), Circuit(2, 1)], [Circuit(1, 1), Circuit(2, 2)]),
    ]


async def test_conflict_is_invalid_until_the_port_is_free(
    client: RawClient, target: SonicOcsTarget, view: StateView
) -> None:
    """The model: a cross-connect with a port of another one has the status `invalid`."""
    await client.set(cross_connect("1A-2B"))
    await view.until_port("1A", "connected")
    await client.set(cross_connect("1A-1B"), cross_connect("2A-2B"))
    await view.until_status("1A-1B", "invalid")
    await view.until_status("2A-2B", "invalid")
    # The circuit that is there keeps its ports, although 1A-1B comes first.
    assert view.cross_connect("1A-2B")["status"] == "enabled"
    assert target.hardware.circuits == (Circuit(1, 2),)
    assert view.cross_connect("1A-1B") == {"status": "invalid"}
    await client.set(delete=[path("OCS_CROSS_CONNECT", "1A-2B")])
    await view.until_status("1A-1B", "enabled")
    await view.until_status("2A-2B", "enabled")
    await eventually_async(lambda: target.hardware.circuits == (Circuit(1, 1), Circuit(2, 2)), "both circuits")


async def test_new_conflict_is_decided_by_port(client: RawClient, view: StateView) -> None:
    await client.set(cross_connect("2A-1B"), cross_connect("1A-1B"), cross_connect("3A-3B"))
    await view.until_status("2A-1B", "invalid")
    await view.until_port("3B", "connected")
    assert view.cross_connect("1A-1B")["status"] == "enabled"


async def test_rows_of_other_writers_are_followed(target: SonicOcsTarget, view: StateView) -> None:
    await target.another_writer(Circuit(3, 4))
    await view.until_port("4B", "connected")
    async with redis_of(target, 4) as config:
        await config.delete("OCS_CROSS_CONNECT|3A-4B")
    await view.until_port("4B", "blocked")


@pytest.mark.parametrize(
    ("key", "fields"),
    [
        ("1A-9B", {"a_side": "1A", "b_side": "9B"}),
        ("1A-2B", {"a_side": "1A", "b_side": "3B"}),
        ("1A-2B", {"a_side": "1A"}),
        ("\x00\x1b", {"a_side": "1A", "b_side": "2B"}),
    ],
)
async def test_row_that_violates_the_model_is_invalid(
    target: SonicOcsTarget, view: StateView, key: str, fields: dict[str, str]
) -> None:
    """An operator writes to Redis what gNMI would refuse."""
    async with redis_of(target, 4) as config:
        await config.hset(f"OCS_CROSS_CONNECT|{key}", mapping=fields)
    await view.until_status(key, "invalid")
    await target.another_writer(Circuit(4, 4))
    await view.until_port("4A", "connected")


async def test_keys_that_the_model_lacks_are_ignored(
    client: RawClient, target: SonicOcsTarget, view: StateView
) -> None:
    async with redis_of(target, 4) as config:
        await config.hset("DEVICE_METADATA|localhost", mapping={"switch_type": "ocs"})
        await config.set("OCS_CROSS_CONNECT|4A-4B", "no hash")
        await config.hset("OCS_PORT|1A|more", mapping={"label": "x"})
        await config.execute_command("HSET", b"OCS_PORT|2A", b"label", b"\xff")
        await config.hset("OCS_PORT|3A", mapping={"color": "red"})
    await client.set(cross_connect("1A-2B"))
    await view.until_port("1A", "connected")
    assert await client.value(path("OCS_PORT")) == {"2A": {"label": "\ufffd"}, "3A": {}}


@pytest.mark.parametrize(("override", "status"), [("powered_off", "powered_off"), ("force_blocked", "blocked")])
async def test_port_out_of_service_disables_its_circuit(
    client: RawClient, target: SonicOcsTarget, view: StateView, override: str, status: str
) -> None:
    await client.set(cross_connect("1A-2B"))
    await view.until_port("1A", "connected")
    await client.set(update(path("OCS_PORT", "2B", "config_status"), override))
    await view.until_status("1A-2B", "disabled")
    await view.until_port("2B", status)
    await eventually_async(lambda: target.hardware.circuits == (), "no circuit")
    await client.set(update(path("OCS_PORT", "2B", "config_status"), "normal"))
    await view.until_port("2B", "connected")


async def test_flushed_database_removes_all_circuits(
    client: RawClient, target: SonicOcsTarget, view: StateView
) -> None:
    await client.set(cross_connect("1A-2B"), cross_connect("2A-1B"))
    await view.until_port("2A", "connected")
    await target.flush_database()
    await view.until_port("2A", "blocked")
    assert await client.value(path("OCS_CROSS_CONNECT")) == {}


async def test_reboot_keeps_configuration_and_sets_it_again(serve: Serve) -> None:
    applied: list[Any] = []

    async def apply(removed: Sequence[Circuit], added: Sequence[Circuit]) -> None:
        applied.append((list(removed), list(added)))

    circuit = [Circuit(1, 2)]
    async with serve(apply=apply) as target, connected(target.address) as client:
        async with watching(client) as view:
            await client.set(cross_connect("1A-2B"), update(path("OCS_PORT", "1A", "label"), "uplink"))
            await view.until_port("1A", "connected")
            address, socket = target.address, target.redis_socket
            await target.reboot()
            assert (target.address, target.redis_socket) == (address, socket)
            with refused(grpc.StatusCode.UNAVAILABLE):
                await view.read()
        assert await client.value(path("OCS_PORT", "1A", "label")) == "uplink"
        async with watching(client) as view:
            await view.until_port("1A", "connected")
        await target.reboot()
        await target.flush_database()
    assert applied[:3] == [([], circuit), (circuit, []), ([], circuit)]


async def test_reboot_cuts_clients_of_redis(target: SonicOcsTarget) -> None:
    reader, writer = await asyncio.open_unix_connection(target.redis_socket)
    writer.write(b"PING\r\n")
    assert await reader.readline() == b"+PONG\r\n"
    await target.reboot()
    assert await reader.read() == b""
    writer.close()
    await writer.wait_closed()


async def test_state_is_stored_under_the_port_that_moves(client: RawClient, view: StateView) -> None:
    await client.set(cross_connect("1A-2B"))
    await view.until_port("1A", "connected")
    await client.set(cross_connect("1A-3B"), delete=[path("OCS_CROSS_CONNECT", "1A-2B")])
    await view.until_port("3B", "connected")
    await view.until_port("2B", "blocked")
    assert view.port("1A")["target_simplex_port_id"] == "3B"
    assert "target_simplex_port_id" not in view.port("2B")


async def test_port_that_moves_shows_the_new_circuit_while_it_tunes(serve: Serve) -> None:
    may_finish = asyncio.Event()

    async def apply(removed: Sequence[Circuit], _added: Sequence[Circuit]) -> None:
        if removed:
            await may_finish.wait()

    async with serve(apply=apply) as target, connected(target.address) as client, watching(client) as view:
        await client.set(cross_connect("1A-2B"))
        await view.until_port("1A", "connected")
        await client.set(cross_connect("1A-3B"), delete=[path("OCS_CROSS_CONNECT", "1A-2B")])
        await view.until_port("3B", "tuning")
        assert view.port("1A") | {"oper_status": "tuning", "target_simplex_port_id": "3B"} == view.port("1A")
        # The old circuit has its row until the hardware has removed it.
        assert view.cross_connect("1A-2B")["status"] == "enabled"
        may_finish.set()
        await view.until(lambda _: not view.cross_connect("1A-2B"))


async def test_state_of_an_earlier_run_is_removed(target: SonicOcsTarget) -> None:
    async with redis_of(target, 6) as state:
        await state.hset("OCS_CROSS_CONNECT_TABLE|4A-4B", mapping={"status": "enabled"})
    await target.reboot()
    async with redis_of(target, 6) as state:
        assert not await state.exists("OCS_CROSS_CONNECT_TABLE|4A-4B")
        assert await state.exists("OCS_PORT_TABLE|4A")


async def test_dead_port_is_failed_without_a_circuit(
    client: RawClient, target: SonicOcsTarget, view: StateView
) -> None:
    target.faults.dead_ports.add(Port("out", 3))
    target.hardware.changed()
    await view.until_port("3B", "failed")
    assert await client.value(path("OCS_PORT_TABLE", "3A", "oper_status"), prefix=STATE) == "blocked"
    assert await client.value(path("OCS_PORT"), prefix=CONFIG) == {}
