"""A stored journal of the current schema opens; a change of its content must raise `SCHEMA`.

`write` made it: a fabric of eight racks with two lit trees, one of them changed, a request that waits, two that are
over, and a quarantined splitter.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from blast_controller.core.controller import Core
from blast_controller.core.model.commands import SetCircuits, SetForwarding
from blast_controller.core.model.events import DeviceConnected, ElementQuarantined, FinishRequested
from blast_controller.core.model.identifiers import ElementId
from blast_controller.core.model.requests import TransferReport
from blast_controller.core.model.settings import CoreSettings
from blast_controller.core.rollout.reservation import Reservation
from blast_controller.store.schema import SCHEMA
from blast_controller.store.sqlite import SqliteStore
from tests.support.controller.core import World, key_of, make_fabric, multicast

OLD = Path(__file__).parents[2] / "data" / "journal" / f"schema-{SCHEMA}.sqlite"


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
    """Connect every device with the state of the lit reservations, and return the commands of the core."""
    done: list[object] = []
    for switch in core.fabric.switches:
        circuits = frozenset(c for r in reservations for c in r.intended.on(switch).circuits)
        done += core.handle(DeviceConnected(switch, circuits), 0.0)
    for rack in core.fabric.racks.values():
        rules = frozenset((r.id, f) for r in reservations for f in r.intended.forwards.get(rack.datapath, ()))
        done += core.handle(DeviceConnected(rack.datapath, rules=rules), 0.0)
    return done


def test_stored_journal_restores_its_state_without_touching_lit_trees(journal):
    core, store = taken_over(journal)
    states = {name[1]: request.state.value for name, request in core.requests.items()}
    assert states == {"lit": "active", "changed": "active", "done": "done", "waits": "pending", "gone": "withdrawn"}
    assert core.request(key_of("changed")).parts[0].receivers == ("r5h1", "r6h1", "r8h1")
    report = core.request(key_of("done")).parts[0].report
    assert report is not None and (report.bytes_sent, report.failed_receivers) == (1000, ("r7h2",))
    assert core.view.quarantined == {"splitter:s3": "cracked"}
    done = back(core, list(core.reservations))
    assert not [command for command in done if isinstance(command, SetCircuits | SetForwarding)]
    freed = core.handle(FinishRequested(key_of("lit"), 0), 1.0)
    assert freed, "the core continues"
    store.close()


def write(path: Path) -> None:
    """Write the journal of `tests/data` after `SCHEMA` was raised.

    `python -m tests.blast_controller.store.test_journal_format` calls it.
    """
    path.unlink(missing_ok=True)
    world = World(make_fabric(8, [4, 4, 8]), CoreSettings(keep_warm=60.0))
    world.store = SqliteStore(path)
    world.store.open()
    world.connect_all()
    world.granted(multicast("lit", "r1h1", ["r2h1", "r3h1"]))
    world.granted(multicast("changed", "r4h1", ["r5h1", "r6h1"]))
    world.extend("changed", add_receivers=("r8h1",))
    world.settle()
    world.handle(ElementQuarantined(ElementId("splitter:s3"), "cracked"))
    world.granted(multicast("done", "r7h1", ["r7h2"], size=1000))
    world.handle(FinishRequested(key_of("done"), 0, TransferReport(bytes_sent=1000, failed_receivers=("r7h2",))))
    world.submit(multicast("waits", "r1h2", ["r4h2", "r7h1"]))
    world.submit(multicast("gone", "r2h2", ["r5h2", "r6h2"]))
    world.withdraw("gone")
    world.settle()
    world.store.close()


if __name__ == "__main__":
    write(OLD)
