"""`blast journal at`: the past from a file, as text, as JSON, and as a list of changes."""

from __future__ import annotations

import json
import re
from datetime import datetime
from pathlib import Path

import pytest

from blast_client.cli.command import main
from blast_controller.cli.journal_at import OLDEST, moment
from blast_controller.core.model.events import DeviceDisconnected, ElementQuarantined, ElementReleased, FinishRequested
from blast_controller.core.model.identifiers import ElementId, SwitchId
from blast_controller.core.snapshot.changes import EVERYTHING
from blast_controller.history.blocks import stamp_of
from blast_controller.history.differences import differences
from blast_controller.history.encoder import Encoder, all_rows
from blast_controller.history.moment import Moment
from blast_controller.history.retention import Keep
from blast_controller.history.writer import RunFacts, Writer
from tests.support.controller.core import World, key_of, make_fabric, multicast, ready_world

BEGIN = datetime(2026, 3, 14, 15, 9, 26).timestamp()


class Recorded:
    """A world of which every stage is recorded, ten seconds apart."""

    def __init__(self, path: Path) -> None:
        self.path, self.wall = path, BEGIN
        self.world: World = ready_world(make_fabric(4, [4]))
        self.world.core.take_changes()
        self._encoder, self._writer = Encoder(), Writer(path, Keep())
        self._encoder.encode(Moment(self.world.core.snapshot, 0.0, BEGIN, EVERYTHING))
        facts = RunFacts(3, "1.0", "ctl1:9090", "the controller has started to decide")
        self._writer.begin(stamp_of(0.0, BEGIN), self._encoder.rows, facts)

    def stage(self) -> None:
        self.wall += 10
        now = self.wall - BEGIN
        self.world.now = now
        found = Moment(self.world.core.snapshot, now, self.wall, self.world.core.take_changes())
        self._writer.append(stamp_of(now, self.wall), self._encoder.encode(found))
        self._writer.flush(round(self.wall * 1e6))


@pytest.fixture
def recorded(tmp_path: Path) -> Recorded:
    found = Recorded(tmp_path / "recording.sqlite")
    world = found.world
    world.granted(multicast("k", "r1h1", ["r2h1", "r3h1"]))
    found.stage()
    world.handle(DeviceDisconnected(SwitchId("ocs1"), "cable \x1b[2Jpulled"))
    world.handle(ElementQuarantined(ElementId("port:r4/50"), "dirty"))
    found.stage()
    world.come_back("ocs1")
    world.handle(ElementReleased(ElementId("port:r4/50")))
    world.handle(FinishRequested(key_of("k"), 0))
    world.settle()
    found.stage()
    return found


def at(recorded: Recorded, seconds: float) -> str:
    return datetime.fromtimestamp(BEGIN + seconds).isoformat()


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    status = main(["journal", "at", *map(str, arguments)])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_journal_at_shows_a_past_moment(recorded, capsys):
    status, out, _ = run(capsys, at(recorded, 21), "--recording", recorded.path)
    assert status == 0
    for line in (
        "moment 3, epoch 3 of ctl1:9090, release 1.0",
        "4 racks, 1 splitter, 1 optical switch",
        "disconnected  switch:ocs1: cable \\x1b[2Jpulled",
        "unusable      port:r4/50: ",
        "requests      1 active",
        "default/k  r1h1 -> 2 receivers",
    ):
        assert line in out, out
    _, before, _ = run(capsys, at(recorded, 5), "--recording", recorded.path)
    assert "moment 1," in before and "requests      none" in before


def test_journal_at_json_contains_the_clocks_and_all_rows(recorded, capsys):
    status, out, _ = run(capsys, "now", "--json", "--recording", recorded.path)
    shown = json.loads(out)
    assert status == 0
    rows = {name: json.loads(row) for name, row in all_rows(recorded.world.core.snapshot).items()}
    assert shown["rows"] == rows and shown["moment"] == 4 and shown["run"]["epoch"] == 3
    assert shown["gap"]["until"] is None and shown["oldest"]["sequence"] == 1


def test_journal_at_lists_changes_as_sentences(recorded, capsys):
    args = ("--recording", recorded.path, "--changes-since")
    _, out, _ = run(capsys, at(recorded, 20), *args, at(recorded, 10))
    assert re.findall(r"switch:ocs1 is disconnected: cable|port:r4/50 is unusable: .*dirty", out)[0]
    status, out, _ = run(capsys, "now", *args, "oldest", "--json")
    shown = json.loads(out)
    assert status == 0 and (shown["from"]["moment"], shown["to"]["moment"]) == (1, 4)
    assert "request default/k: new, done (The sender has finished.)" in [one["sentence"] for one in shown["changes"]]
    _, out, _ = run(capsys, "now", *args, at(recorded, 20), "--limit", 1)
    assert "switch:ocs1 is connected" in out and "more rows differ" in out
    _, out, _ = run(capsys, "now", *args, "now")
    assert "no changes" in out


def test_journal_at_rejects_invalid_use_with_its_reason(recorded, capsys, tmp_path):
    status, _, error = run(capsys, at(recorded, -60), "--recording", recorded.path)
    assert status == 1 and "no recording of" in error and "recorded from" in error
    for arguments in (["yesterday", "--recording", recorded.path], ["-10x", "--recording", recorded.path], ["now"]):
        assert run(capsys, *arguments)[0] == 2
    config = tmp_path / "blast.toml"
    config.write_text("[journal]\n")
    status, _, error = run(capsys, "now", "--config", config)
    assert status == 2 and "configures no recording" in error
    config.write_text(f"[recording]\nfile = {json.dumps(str(recorded.path))}\n")
    assert run(capsys, "-1m", "--config", config)[0] == 0
    config.write_text(f"[recording]\nfile = {json.dumps(str(config))}\n")
    status, _, error = run(capsys, "now", "--config", config)
    assert status == 1 and "is damaged" in error


def test_moment_parses_absolute_and_relative_times():
    now = datetime.now().timestamp()
    assert now - 601 < moment("-10m") < now - 598
    assert moment("-2d") < moment("-3h") < moment("-5s") < moment("now")
    assert moment("oldest") == OLDEST
    assert moment("2026-03-14T15:09:26+00:00") == 1773500966.0


def test_differences_describe_requests_trees_and_warm_counts():
    def request(**more: object) -> str:
        row = {"state": "pending", "receivers": ["a"], "parts": [{"part": 0, "state": "pending"}], "receivedAt": 1.0}
        return json.dumps({**row, **more})

    before = {
        "request/t/same": request(),
        "request/t/gone": request(state="done"),
        "request/t/more": request(),
        "request/t/why": request(),
        "tree/9": json.dumps({"state": "lit", "tenant": "t", "key": "k", "leafRacks": ["r1"]}),
        "tree/10": json.dumps({"state": "lit", "tenant": "t", "key": "k", "leafRacks": ["r1"]}),
        "warm": json.dumps({"trees": 1}),
        "unit/r1": json.dumps({"port:r1/5": {"holder": 9}}),
    }
    after = {
        # Every run starts its times again.
        "request/t/same": request(receivedAt=5.0),
        "request/t/more": request(receivers=["a", "b"]),
        "request/t/why": request(parts=[{"part": 0, "state": "pending", "reason": "no light"}]),
        "tree/9": json.dumps({"state": "idle", "tenant": "t", "key": "k", "leafRacks": ["r1"]}),
        "warm": json.dumps({"trees": 2}),
    }
    found = differences(before, after)
    assert [difference.sentence for difference in found.found] == [
        "warm trees: 1 -> 2",
        "tree 9 of t/k: lit -> idle",
        "tree 10 of t/k: removed, was lit",
        "request t/gone: forgotten, was done",
        "request t/more: now with b",
        "request t/why: pending (no light)",
    ]
    few = differences(before, after, limit=2)
    assert len(few.found) == 2 and few.left_off == 5
    assert differences(before, before) == ([], 0)
