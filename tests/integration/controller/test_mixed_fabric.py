"""One controller with three optical switches of different drivers, over their real protocols.

A part of a request has its tree on one switch. A request that may be split starts on a switch with free ports for at
least three quarters of its receivers; the others form a part of their own, which may start on another switch.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Iterator, Sequence

import pytest

from blast_api.ttypes import FabricStatus, LightTreeStatus, MulticastRequest
from blast_client import Rejected
from blast_client.api.states import PartState
from optical_switch.model import Circuit, Port
from tests.support.controller.mixed_fabric import (
    BLAST,
    DRIVERS,
    OWN_RACK,
    RECEIVERS,
    ROOT,
    SPLITTERS,
    MixedFabric,
    host,
    mixed_fabric,
)
from tests.support.waiting import eventually

pytestmark = [pytest.mark.redis, pytest.mark.timeout(300)]

FIRST, REST = RECEIVERS[:6], RECEIVERS[6:]
ORDERS = [("ocs1", "ocs2", "ocs3"), ("ocs2", "ocs3", "ocs1"), ("ocs3", "ocs1", "ocs2")]
"""The switch with free ports for the first receivers, the one for the rest, and one without free ports for the rest."""
EACH_ORDER = pytest.mark.parametrize("order", ORDERS, ids=["-".join(DRIVERS[name] for name in o) for o in ORDERS])


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MixedFabric]:
    with mixed_fabric(tmp_path_factory.mktemp("mixed")) as found:
        yield found


def request(key: str, sender: str, receivers: Sequence[str], *, may_split: bool = False) -> MulticastRequest:
    return MulticastRequest(key, host(sender), [host(rack) for rack in receivers], 10**9, maySplit=may_split)


@contextlib.contextmanager
def lit_until_withdrawn(mixed: MixedFabric, requests: Sequence[MulticastRequest]) -> Iterator[None]:
    """Have requests granted one after the other, all parts of each; withdraw them at the end."""
    with contextlib.ExitStack() as undo:
        for one in requests:
            mixed.client.submit(one)
            undo.callback(mixed.client.withdraw, one.key)
            eventually(lambda one=one: served(mixed, one.key), "all parts to be active")
        yield


def bystanders(order: Sequence[str], key: str) -> list[MulticastRequest]:
    """Return requests that leave the ports free which `order` describes."""
    held = (REST, RECEIVERS[:3], RECEIVERS[-3:])
    return [request(f"{key}-{name}", OWN_RACK[name], racks) for name, racks in zip(order, held, strict=True)]


def trees(mixed: MixedFabric, key: str) -> dict[str, LightTreeStatus]:
    """Return the light trees of a request by switch."""
    return {tree.crossConnects[0].opticalSwitch: tree for tree in mixed.client.fabric().lightTrees if tree.key == key}


def served(mixed: MixedFabric, key: str) -> bool:
    """Return true if each receiver of a request is in an active part."""
    status = mixed.client.status(key)
    active = [name for part in status.parts if part.state == PartState.ACTIVE for name in part.receivers]
    return sorted(active) == sorted(status.receivers)


def agree(mixed: MixedFabric, names: Sequence[str] = tuple(DRIVERS)) -> bool:
    """Return true if these switches have exactly the circuits of the journal."""
    return all(mixed.held(name) == mixed.journaled(name) for name in names)


def await_dark(mixed: MixedFabric) -> None:
    """Wait until no switch has a circuit, and the journal has none."""
    eventually(lambda: not any(mixed.held(name) for name in DRIVERS) and agree(mixed), "dark switches")


def shown(mixed: MixedFabric) -> dict[str, tuple[bool, str | None]]:
    """Return what `blast fabric show` prints about each switch: whether it is connected, and the reason if not."""
    command = [*BLAST, "fabric", "show", "--json", "--controller", mixed.thrift]
    fabric = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return {one["name"]: (one["connected"], one.get("reason")) for one in fabric["opticalSwitches"]}


@EACH_ORDER
def test_request_over_two_kinds_of_switches_is_served_by_a_tree_on_each(
    mixed: MixedFabric, order: tuple[str, str, str]
) -> None:
    first, rest, other = order
    key, errors = f"two-{first}", mixed.errors()
    with lit_until_withdrawn(mixed, bystanders(order, key)):
        before = {name: mixed.held(name) for name in DRIVERS}
        with lit_until_withdrawn(mixed, [request(key, ROOT, RECEIVERS, may_split=True)]):
            found = trees(mixed, key)
            assert {name: set(tree.leafRacks) for name, tree in found.items()} == {first: {*FIRST}, rest: {*REST}}
            eventually(lambda: agree(mixed), "the circuits of the journal on all switches")
            for name, tree in found.items():
                circuits = {Circuit(one.switchInput, one.switchOutput) for one in tree.crossConnects}
                assert mixed.held(name) == before[name] | circuits
            assert mixed.held(other) == before[other]
        eventually(lambda: {name: mixed.held(name) for name in DRIVERS} == before, "the end of both trees")
    await_dark(mixed)
    assert mixed.errors() == errors
    assert shown(mixed) == dict.fromkeys(DRIVERS, (True, None))


@EACH_ORDER
def test_dead_port_of_one_kind_moves_its_part_and_leaves_other_trees(
    mixed: MixedFabric, order: tuple[str, str, str]
) -> None:
    """Only the third switch has a splitter and ports for five of the six receivers; a lightpath serves the sixth."""
    broken, rest, other = order
    key, errors = f"dead-{broken}", mixed.errors()
    outputs = SPLITTERS[8][1]
    with lit_until_withdrawn(mixed, bystanders(order, key)):
        untouched = mixed.client.fabric().lightTrees
        before = {name: mixed.held(name) for name in DRIVERS}
        with (
            mixed.dead_port(broken, Port("in", outputs[0])),
            lit_until_withdrawn(mixed, [request(key, ROOT, RECEIVERS, may_split=True)]),
        ):
            eventually(lambda: agree(mixed), "the circuits of the journal on all switches")
            assert {name for name, tree in trees(mixed, key).items() if tree.splitters} == {rest, other}
            assert not any(circuit.input in outputs for circuit in mixed.held(broken)), "nothing is left half made"
            lit = mixed.client.fabric().lightTrees
            assert all(tree in lit for tree in untouched)
            assert all(before[name] <= mixed.held(name) for name in DRIVERS)
            raised = {driver for driver, count in mixed.errors().items() if count > errors.get(driver, 0.0)}
            assert raised == {DRIVERS[broken]}
            assert shown(mixed) == dict.fromkeys(DRIVERS, (True, None))
        eventually(lambda: {name: mixed.held(name) for name in DRIVERS} == before, "the end of its trees")
    await_dark(mixed)


@pytest.mark.parametrize("name", DRIVERS, ids=DRIVERS.values())
def test_silent_switch_is_disconnected_and_the_others_serve(mixed: MixedFabric, name: str) -> None:
    others = [one for one in DRIVERS if one != name]
    with lit_until_withdrawn(mixed, bystanders(ORDERS[0], f"silent-{name}")):
        before = mixed.held(name)
        with mixed.silent(name):
            mixed.client.reconcile()
            connected = eventually(lambda: (seen := shown(mixed))[name][0] is False and seen, "the loss of the switch")
            assert connected[name][1] and {one: connected[one] for one in others} == dict.fromkeys(others, (True, None))
            with lit_until_withdrawn(mixed, [request(f"served-{name}", ROOT, RECEIVERS[4:6])]):
                assert set(trees(mixed, f"served-{name}")) <= {*others}
                assert mixed.held(name) == before and agree(mixed, others)
        eventually(lambda: shown(mixed)[name] == (True, None), "the return of the switch")
        assert mixed.held(name) == before and agree(mixed)
    await_dark(mixed)


@pytest.mark.parametrize("name", DRIVERS, ids=DRIVERS.values())
def test_circuit_of_another_client_is_reported_with_its_remedy(mixed: MixedFabric, name: str) -> None:
    foreign = Circuit(4, 5)

    def after_reading() -> FabricStatus:
        mixed.client.reconcile(dry_run=False)
        return mixed.client.fabric()

    mixed.write_by_another_client(name, [], [foreign])
    try:
        (warning,) = eventually(lambda: after_reading().warnings, "the warning")
        place = f"{name} has circuits that this controller did not set: 4 to 5 (port:r4/"
        assert place in warning and "end any other controller that uses these ports" in warning
        command = [*BLAST, "status", "--controller", mixed.thrift]
        assert place in subprocess.run(command, capture_output=True, text=True, check=True).stderr
        assert mixed.held(name) == {foreign}, "it stays"
    finally:
        mixed.write_by_another_client(name, [foreign], [])
    eventually(lambda: after_reading().warnings is None, "no warning")


def test_receivers_that_share_no_switch_are_refused_with_the_switch_of_each(mixed: MixedFabric) -> None:
    racks = [OWN_RACK["ocs1"], OWN_RACK["ocs2"]]
    with pytest.raises(
        Rejected, match=r"r1: usable on ocs1, ocs2, ocs3; r10: usable on ocs1; r11: usable on ocs2"
    ) as refusal:
        mixed.client.submit(request("apart", ROOT, racks, may_split=True))
    assert "a request for each switch" in str(refusal.value)
