"""The contents of both databases against the model, by libyang."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from optical_switch.emulator.gnmi_target.tables import TABLES, parse_row_id
from optical_switch.model import Circuit, Port
from optical_switch.sonic_ocs.proto import gnmi_pb2 as gnmi
from tests.optical_switch.gnmi_target.raw_client import (
    YANG,
    RawClient,
    StateView,
    cross_connect,
    path,
    redis_of,
    update,
    watching,
)

if TYPE_CHECKING:
    from optical_switch.emulator.gnmi_target.target import SonicOcsTarget

MODELS = Path(__file__).resolve().parents[4] / "shared" / "data" / "yang"

Validate = Callable[[str], None]

pytestmark = [
    pytest.mark.peers,
    pytest.mark.published,
    pytest.mark.skipif(not MODELS.is_dir(), reason=f"needs the YANG modules in {MODELS}"),
]


@pytest.fixture(scope="module")
def validate() -> Validate:
    """Return a function that fails unless a JSON document is valid data of the model."""
    import oopt_gnpy_libyang as libyang

    context = libyang.Context(str(MODELS), libyang.ContextOptions.NoYangLibrary)
    context.load_module("sonic-ocs", "2024-11-21")

    def check(document: str) -> None:
        strict, present = libyang.ParseOptions.Strict, libyang.ValidationOptions.Present
        assert context.parse_data(document, libyang.DataFormat.JSON, strict, present) is not None

    return check


@pytest.fixture
async def view(client: RawClient, target: SonicOcsTarget) -> AsyncIterator[StateView]:
    """Bring the switch into a state with each status of ports and cross-connects."""
    target.faults.dead_ports.add(Port("in", 4))
    target.faults.extra_loss_db[Circuit(2, 1)] = 2.0
    async with watching(client) as one:
        await client.set(
            cross_connect("1A-2B"), cross_connect("1A-3B"), cross_connect("2A-1B"), cross_connect("3A-4B"),
            update(path("OCS_PORT", "4B"), {"label": "spare", "config_status": "powered_off"}),
        )  # fmt: skip
        await one.until_port("1A", "connected")
        await one.until_port("1B", "tuning")
        await one.until_port("4A", "failed")
        await one.until_port("4B", "powered_off")
        await one.until_status("1A-3B", "invalid")
        await one.until_status("3A-4B", "disabled")
        yield one


async def test_rows_of_redis_are_valid_data_of_the_model(
    view: StateView, target: SonicOcsTarget, validate: Validate
) -> None:
    tree: dict[str, dict[str, list[object]]] = {}
    for number in (4, 6):
        async with redis_of(target, number) as redis:
            for key in await redis.keys():
                row = parse_row_id(key)
                assert row is not None, key
                table = TABLES[row.table]
                entry = entry_of(dict(zip(table.keys, row.key, strict=True)), await redis.hgetall(key))
                tree.setdefault(table.name, {}).setdefault(table.list_name, []).append(entry)
    assert set(tree) == set(TABLES)
    validate(json.dumps({"sonic-ocs:sonic-ocs": tree}))


def entry_of(keys: Mapping[str, str], fields: Mapping[str, str]) -> dict[str, Any]:
    """Return a row as an entry of the model: SONiC marks a list by @, and joins its values by commas."""
    lists = {name.removesuffix("@"): value.split(",") for name, value in fields.items() if name.endswith("@")}
    return {**keys, **{name: value for name, value in fields.items() if not name.endswith("@")}, **lists}


async def test_json_ietf_is_valid_data_of_the_model(client: RawClient, view: StateView, validate: Validate) -> None:
    [notification] = (await client.get(gnmi.Path(), prefix=YANG)).notification
    validate(notification.update[0].val.json_ietf_val.decode())


def test_data_that_violates_the_model_is_found(validate: Validate) -> None:
    entry = {"simplex_port_id": "1A", "oper_status": "tuned"}
    with pytest.raises(Exception, match="parse data"):
        validate(json.dumps({"sonic-ocs:sonic-ocs": {"OCS_PORT_TABLE": {"OCS_PORT_LIST": [entry]}}}))


def test_tables_are_those_of_the_model(validate: Validate) -> None:
    """Each leaf that the target knows is in the model; the fixture has loaded it."""
    text = (MODELS / "sonic-ocs@2024-11-21.yang").read_text()
    for table in TABLES.values():
        assert f"container {table.name} " in text
        for name in (*table.keys, *(leaf.name for leaf in table.leaves)):
            assert f" {name} {{" in text
