r"""Transcripts written by hand from the grammar, each with the messages that it contains.

In the `.txt` files a line end stands for CR LF and `\xNN` for that byte.
"""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import pytest

from optical_switch.model import Circuit, Port
from tests.support.controller.tl1 import drive
from tl1_driver.dialects import Calient, Glimmerglass, Polatis
from tl1_driver.protocol.circuits import ListedCircuit
from tl1_driver.protocol.codec import Tl1Decoder
from tl1_driver.protocol.messages import Autonomous, Message, Response, Unparsed

DATA = Path(__file__).parent.parent / "data" / "tl1"
TRANSCRIPTS = sorted(path.stem for path in DATA.glob("*.txt"))


def stream(name: str) -> bytes:
    text = (DATA / f"{name}.txt").read_bytes().replace(b"\n", b"\r\n")
    return re.sub(rb"\\x([0-9a-f]{2})", lambda match: bytes([int(match[1], 16)]), text)


def plain(message: Message) -> dict[str, object]:
    if isinstance(message, Unparsed):
        return {"type": "Unparsed", "text": message.text, "error": type(message.error).__name__}
    return json.loads(json.dumps({"type": type(message).__name__, **dataclasses.asdict(message)}))


@pytest.mark.parametrize("name", TRANSCRIPTS)
@pytest.mark.parametrize("size", [0, 1, 2, 7], ids=["whole", "bytes", "pairs", "sevens"])
def test_golden_transcript(name: str, size: int) -> None:
    data = stream(name)
    decoder = Tl1Decoder()
    chunks = [data[at : at + size] for at in range(0, len(data), size)] if size else [data]
    found = [plain(message) for chunk in chunks for message in decoder.feed(chunk)]
    assert found == json.loads((DATA / f"{name}.json").read_text())


def test_there_are_transcripts() -> None:
    assert len(TRANSCRIPTS) >= 10
    for dialect in ("glimmerglass", "calient", "polatis"):
        assert any(name.startswith(dialect) for name in TRANSCRIPTS)


def answered(name: str, *ctags: str) -> list[tuple[str, ...]]:
    """Return the lines of the answers with these CTAGs."""
    messages = Tl1Decoder().feed(stream(name))
    lines = {message.ctag: message.lines for message in messages if isinstance(message, Response)}
    return [lines[ctag] for ctag in ctags]


def reported(name: str) -> Autonomous:
    return next(message for message in Tl1Decoder().feed(stream(name)) if isinstance(message, Autonomous))


def test_glimmerglass_lists_circuits_powers_and_alarms() -> None:
    found, _ = drive(Glimmerglass().circuits(), answered("glimmerglass-list", "17"))
    dark = "initial_connection_timer_expired"
    assert found == [
        ListedCircuit(42, 58, "steady", -12.618, -14.277, "none", owner="admin"),
        ListedCircuit(43, 59, "fault", -48.549, -49.354, dark),
    ]
    powers, _ = drive(Glimmerglass().powers(), answered("glimmerglass-list", "17"))
    assert powers == {
        Port("in", 1): -49.162,
        Port("in", 42): -12.618,
        Port("out", 58): -14.277,
        Port("in", 43): -48.549,
        Port("out", 59): -49.354,
    }
    [alarm] = Glimmerglass().alarms(reported("glimmerglass-session"))
    assert (alarm.port, alarm.name, alarm.condition) == (None, "CHASSIS", "PWR")


def test_calient_lists_circuits_powers_and_alarms() -> None:
    found, _ = drive(Calient().circuits(), answered("calient-list", "7", "8"))
    assert found == [
        ListedCircuit(3, 13, "steady", -1.25, -3.0, locked=True, owner="SYSTEM"),
        ListedCircuit(13, 3, "steady", -5.0, -7.0, locked=True, owner="SYSTEM"),
        ListedCircuit(1, 2, "fault", -48.5, -48.5, owner="BLAST"),
        ListedCircuit(9, 65, "entered", -2.0, None, owner="BLAST"),
    ]
    assert [state.made for state in found] == [True, True, True, False]
    assert [state.waits_for_light for state in found] == [False, False, True, False]
    powers, _ = drive(Calient().powers(), answered("calient-list", "8"))
    assert powers == {
        Port("in", 1): -48.5,
        Port("out", 2): -48.5,
        Port("in", 3): -1.25,
        Port("out", 3): -7.0,
        Port("in", 13): -5.0,
        Port("out", 13): -3.0,
        Port("in", 9): -2.0,
    }
    [alarm] = Calient().alarms(reported("calient-session"))
    assert (alarm.port, alarm.condition, alarm.severity, alarm.cleared) == (Port("in", 1), "LOS", "CR", False)


def test_calient_polls_status_of_bulk() -> None:
    answers = answered("calient-bulk", "5", "6", "7")
    _, steps = drive(Calient().connect([Circuit(1, 2), Circuit(3, 4)]), [(), (), *answers])
    assert [type(step).__name__ for step in steps] == [*["Tl1Command"] * 4, "Pause", "Tl1Command"]


def test_polatis_lists_circuits_powers_and_alarms() -> None:
    size, patches, readings = answered("polatis-session", "2", "4", "5")
    polatis, _ = drive(Polatis().introduce(), [size])
    assert isinstance(polatis, Polatis)
    assert (polatis.inputs, polatis.outputs) == (8, 8)
    found, _ = drive(polatis.circuits(), [patches])
    assert found == [ListedCircuit(1, 4, "steady"), ListedCircuit(3, 1, "steady")]
    powers, _ = drive(polatis.powers(), [readings])
    assert powers == {
        Port("in", 1): -2.53,
        Port("in", 3): -48.5,
        Port("out", 1): -48.5,
        Port("out", 4): -3.91,
    }
    [alarm] = polatis.alarms(reported("polatis-session"))
    assert (alarm.port, alarm.condition, alarm.severity) == (Port("in", 3), "LOS", "MN")
