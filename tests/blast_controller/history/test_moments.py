"""Moments: published state on its way to readers that may be slow."""

from __future__ import annotations

import json

import pytest

from blast_controller.core.model.events import ProgressReported
from blast_controller.core.snapshot.changes import EVERYTHING, MAX_NAMED, NOTHING, ChangeCollector, Changes
from blast_controller.history.encoder import Encoder, all_rows
from blast_controller.history.mailbox import Mailbox
from blast_controller.history.moment import Moment
from tests.support.controller.core import TENANT, World, key_of, make_fabric, multicast, ready_world

REQUEST = f"request/{TENANT}/k"


@pytest.fixture
def world() -> World:
    world = ready_world(make_fabric(4, [4]))
    world.core.take_changes()
    return world


def moment(world: World, changes: Changes | None = None) -> Moment:
    now = world.now
    return Moment(world.core.snapshot, now, now, world.core.take_changes() if changes is None else changes)


def test_encoder_encodes_changed_rows_only(world):
    encoder = Encoder()
    assert set(encoder.encode(moment(world, EVERYTHING))) == {"fabric"}
    grant = world.granted(multicast("k", "r1h1", ["r2h1", "r3h1"]))
    tree = f"tree/{grant.reservation}"
    assert set(encoder.encode(moment(world))) == {REQUEST, tree, "unit/r1", "unit/r2", "unit/r3", "unit/splitter:s1"}
    world.handle(ProgressReported(key_of("k"), 0, 5))
    (changed,) = encoder.encode(moment(world)).items()
    assert changed[0] == REQUEST and json.loads(changed[1])["parts"][0]["progressBytes"] == 5
    assert not encoder.encode(moment(world, NOTHING))
    world.finish("k")
    assert encoder.encode(moment(world))[tree] is None
    assert encoder.rows == all_rows(world.core.snapshot)


@pytest.mark.parametrize("known_before", [True, False])
def test_encoder_keeps_row_owner_until_its_removal_is_encoded(world, known_before):
    encoder = Encoder()
    if known_before:
        encoder.encode(moment(world, EVERYTHING))
    grant = world.granted(multicast("k", "r1h1", ["r2h1"]))
    tree = f"tree/{grant.reservation}"
    encoder.encode(moment(world, None if known_before else EVERYTHING))
    assert encoder.owners == {REQUEST: TENANT, tree: TENANT}
    world.finish("k")
    assert encoder.encode(moment(world))[tree] is None and encoder.owners[tree] == TENANT
    encoder.encode(moment(world))
    assert encoder.owners == {REQUEST: TENANT}


def test_mailbox_merges_changes_for_a_slow_reader(world):
    wakes: list[int] = []
    box = Mailbox(2, lambda: wakes.append(len(box)))
    first, names = moment(world, NOTHING), [("t", f"{number}") for number in range(4)]
    for name in names:
        box.put(first._replace(changes=Changes(requests=frozenset({name}))))
    assert wakes == [1] and box.merged == 2
    found = box.take()
    assert [m.changes.requests for m in found] == [{names[0]}, set(names[1:])]
    assert not box.take()
    box.put(first)
    assert wakes == [1, 1]


def test_untaken_changes_stay_bounded():
    noted = ChangeCollector()
    for number in range(3 * MAX_NAMED):
        noted.note([("t", f"{number}")], [], [])
    found = noted.take()
    assert found.everything and len(found.requests) <= MAX_NAMED
    assert noted.take() == NOTHING
