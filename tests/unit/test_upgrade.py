"""From a journal that an earlier release has written to this one, without touching what is lit.

`tests/data/journal/release-0.1.0.sqlite` was written by the commit 266b6ae: a fabric of eight racks with two lit trees,
one of them changed, a request that waits, two that are over, and a splitter out of use.
"""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from blast_controller.core.controller import Core
from blast_controller.core.model.commands import SetCircuits, SetForwarding
from blast_controller.core.model.events import DeviceUp, FinishAsked
from blast_controller.core.model.settings import CoreSettings
from blast_controller.core.rollout.reservation import Reservation
from blast_controller.store.errors import NewerSchema
from blast_controller.store.schema import check_is_ours
from blast_controller.store.sqlite import SqliteStore
from tests.support.core import key_of, make_fabric

OLD = Path(__file__).parents[1] / "data" / "journal" / "release-0.1.0.sqlite"


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return Path(shutil.copy(OLD, tmp_path / "journal.sqlite"))


def taken_over(journal: Path) -> tuple[Core, SqliteStore]:
    store = SqliteStore(journal)
    loaded = store.open()
    assert (loaded.epoch, loaded.is_new) == (2, False)
    core = Core(make_fabric(8, [4, 4, 8]), CoreSettings(keep_warm=60.0))
    store.commit([c for c in core.restore(loaded.records(), 0.0) if hasattr(c, "body")], 0.0)
    return core, store


def back(core: Core, reservations: list[Reservation]) -> list[object]:
    """Every device comes with just what the lit reservations need; what the core has done about it."""
    done: list[object] = []
    for switch in core.fabric.switches:
        circuits = frozenset(c for r in reservations for c in r.wanted.on(switch).circuits)
        done += core.handle(DeviceUp(switch, circuits), 0.0)
    for rack in core.fabric.racks.values():
        rules = frozenset((r.id, f) for r in reservations for f in r.wanted.forwards.get(rack.datapath, ()))
        done += core.handle(DeviceUp(rack.datapath, rules=rules), 0.0)
    return done


def test_everything_is_as_it_was_and_nothing_that_is_lit_is_touched(journal):
    core, store = taken_over(journal)
    states = {name[1]: request.state.value for name, request in core.requests.items()}
    assert states == {"lit": "active", "changed": "active", "done": "done", "waits": "pending", "gone": "withdrawn"}
    assert core.request(key_of("changed")).parts[0].receivers == ("r5h1", "r8h1", "r6h1")
    report = core.request(key_of("done")).parts[0].report
    assert report is not None and (report.bytes_sent, report.failed_receivers) == (1000, ("r7h2",))
    assert core.view.quarantined == {"splitter:s3": "cracked"}
    done = back(core, list(core.reservations))
    assert not [command for command in done if isinstance(command, SetCircuits | SetForwarding)]
    freed = core.handle(FinishAsked(key_of("lit"), 0), 1.0)
    assert freed, "it goes on"
    store.close()


def test_a_release_without_digests_refuses_it_and_leaves_it_as_it_is(journal):
    """Schema 1, which it knows, has no digests: it would not keep them."""
    _, store = taken_over(journal)
    store.close()
    before = journal.read_bytes()
    with pytest.raises(NewerSchema), closing(sqlite3.connect(journal)) as connection:
        check_is_ours(connection, journal, known=1)
    assert journal.read_bytes() == before
