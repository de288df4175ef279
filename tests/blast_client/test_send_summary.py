"""What `blast send` says in the end, and shows meanwhile: only what is so."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from blast_api.ttypes import PartState
from blast_client.cli.command import main
from blast_client.send import round as whole_round
from blast_client.send.part_sending import PartSent
from blast_client.send.progress import bar
from blast_transport.base.report import Progress, ReceiverOutcome, TransferResult

MB = 10**6


def outcome(name: str, complete: bool = True, resumed: int = 0) -> ReceiverOutcome:
    reason = "" if complete else "went away"
    return ReceiverOutcome(name, complete, reason, 0, None, resumed_bytes=resumed)


def result(*outcomes: ReceiverOutcome, seconds: float = 2.0, transports: tuple[str, ...] = ("pipeline",)):
    return TransferResult("f", 1, 100 * MB, "", seconds, 0, 0, outcomes, transports=transports)


@pytest.fixture
def told(capsys):
    def tell(results: list[TransferResult], receivers: int) -> tuple[str, str]:
        with bar(100 * MB, "f", receivers) as view:
            view.done(results, {}, "")
        read = capsys.readouterr()
        return read.out, read.err

    return tell


def test_what_arrived_is_told_with_its_time_and_its_speed(told):
    said, _ = told([result(outcome("a"), outcome("b"))], 2)
    assert said == "2 of 2 receivers have it, verified: 100000000 bytes in 2.00 s, 400 Mbit/s, via pipeline\n"


def test_of_what_nobody_has_no_speed_is_told_and_nothing_was_verified(told):
    said, errors = told([result(outcome("a", complete=False))], 1)
    assert said == "0 of 1 receivers have it\n"
    assert errors == "blast: a does not have it: went away\n"
    assert result(outcome("a", complete=False)).payload_rate == 0


def test_what_was_there_before_is_no_speed(told):
    said, _ = told([result(outcome("a", resumed=75 * MB), outcome("b", resumed=80 * MB))], 2)
    assert said.endswith("in 2.00 s, 100 Mbit/s, via pipeline; 75000000 of them present before\n")
    # Who has nothing in the end says nothing of what was brought.
    assert result(outcome("a", resumed=75 * MB), outcome("b", False)).payload_rate == 25 * MB * 8 / 2


def test_holes_are_no_speed_and_are_told(told):
    sent = replace(result(outcome("a", resumed=25 * MB)), hole_bytes=50 * MB)
    said, _ = told([sent], 1)
    assert "in 2.00 s, 100 Mbit/s, via pipeline; 25000000 of them present before; " in said
    assert said.endswith("; 50000000 of them holes, not sent\n")
    assert sent.payload_rate == 25 * MB * 8 / 2
    assert replace(sent, hole_bytes=100 * MB).payload_rate == 0


def test_where_all_was_there_before_there_is_no_speed_at_all(told):
    said, _ = told([result(outcome("a", resumed=100 * MB))], 1)
    assert said == "1 of 1 receivers have it, verified: 100000000 bytes in 2.00 s, all present before\n"


def test_a_transfer_that_failed_beside_another_does_not_slow_it_down(told):
    said, _ = told([result(outcome("a")), result(outcome("b", False), seconds=90.0, transports=("optical",))], 2)
    assert said == "1 of 2 receivers have it, verified: 100000000 bytes in 2.00 s, 400 Mbit/s, via pipeline\n"


@pytest.mark.parametrize(("repairs", "shown"), [(0, False), (7, True)])
def test_repairs_are_shown_where_there_are_some(monkeypatch, repairs, shown):
    view = bar(100, "f", 1)
    seen = {}
    monkeypatch.setattr(view._bar, "set_postfix", seen.update)
    view.report(Progress(100, 50, 50, 50, repairs, "pipeline", (), 0, 0))
    assert ("repairs" in seen) is shown and seen["via"] == "pipeline"


def test_receivers_of_which_the_same_is_to_be_known_are_told_together(told):
    apart = [ReceiverOutcome(f"n{n}", True, "", 0, None, demoted="slow", durable=False) for n in range(1, 7)]
    _, errors = told([result(*apart)], 6)
    assert errors.count("were demoted: slow\n") == errors.count("have it, but not on disk yet") == 1
    _, errors = told([result(apart[0])], 1)
    assert "n1 was demoted: slow\n" in errors and "n1 has it, but not on disk yet" in errors


def test_why_nothing_was_sent_by_light_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def send(*_: object) -> list[PartSent]:
        return [PartSent(0, ("h2", "h3"), PartState.WITHDRAWN, "the interface is down", 0, None)]

    monkeypatch.setattr(whole_round, "send", send)
    file = tmp_path / "data"
    file.write_bytes(b"data")
    to = "h2=127.0.0.1:9,h3=127.0.0.1:9"
    assert main(["send", str(file), "--to", to, "--via", "optical", "--optical-address", "127.0.0.1"]) == 1
    told = capsys.readouterr()
    assert "blast: h2 does not have it: the interface is down\n" in told.err
    assert "blast: h3 does not have it: the interface is down\n" in told.err
    assert told.out.startswith("0 of 2 receivers")
