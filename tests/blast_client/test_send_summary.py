"""The summary and the progress bar of `blast send`."""

from __future__ import annotations

from pathlib import Path

import pytest

from blast_api.ttypes import PartState
from blast_client.cli.command import main
from blast_client.send import sending
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
def summarize(capsys):
    def run(results: list[TransferResult], receivers: int) -> tuple[str, str]:
        with bar(100 * MB, "f", receivers) as view:
            view.done(results, {}, "")
        read = capsys.readouterr()
        return read.out, read.err

    return run


def test_summary_reports_time_and_rate(summarize):
    output, _ = summarize([result(outcome("a"), outcome("b"))], 2)
    assert output == "2 of 2 receivers have it, verified: 100000000 bytes in 2.00 s, 400 Mbit/s, via pipeline\n"


def test_summary_without_success_has_no_rate(summarize):
    output, errors = summarize([result(outcome("a", complete=False))], 1)
    assert output == "0 of 1 receivers have it\n"
    assert errors == "blast: a does not have it: went away\n"
    assert result(outcome("a", complete=False)).payload_rate == 0


def test_rate_excludes_resumed_bytes(summarize):
    output, _ = summarize([result(outcome("a", resumed=75 * MB), outcome("b", resumed=80 * MB))], 2)
    assert output.endswith("in 2.00 s, 100 Mbit/s, via pipeline; 75000000 of them present before\n")
    # The rate ignores receivers without the data.
    assert result(outcome("a", resumed=75 * MB), outcome("b", False)).payload_rate == 25 * MB * 8 / 2


def test_rate_excludes_holes_and_summary_reports_them(summarize):
    sent = result(outcome("a", resumed=25 * MB)).replace(hole_bytes=50 * MB)
    output, _ = summarize([sent], 1)
    assert "in 2.00 s, 100 Mbit/s, via pipeline; 25000000 of them present before; " in output
    assert output.endswith("; 50000000 of them holes, not sent\n")
    assert sent.payload_rate == 25 * MB * 8 / 2
    assert sent.replace(hole_bytes=100 * MB).payload_rate == 0


def test_summary_of_fully_resumed_transfer_has_no_rate(summarize):
    output, _ = summarize([result(outcome("a", resumed=100 * MB))], 1)
    assert output == "1 of 1 receivers have it, verified: 100000000 bytes in 2.00 s, all present before\n"


def test_failed_transfer_does_not_affect_rate_of_another(summarize):
    output, _ = summarize([result(outcome("a")), result(outcome("b", False), seconds=90.0, transports=("optical",))], 2)
    assert output == "1 of 2 receivers have it, verified: 100000000 bytes in 2.00 s, 400 Mbit/s, via pipeline\n"


@pytest.mark.parametrize(("repairs", "shown"), [(0, False), (7, True)])
def test_progress_bar_shows_repairs_if_any(monkeypatch, repairs, shown):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    view = bar(100, "f", 1)
    seen = {}
    monkeypatch.setattr(view._bar, "set_postfix", seen.update)
    view.report(Progress(100, 50, 50, 50, repairs, "pipeline", (), 0, 0))
    assert ("repairs" in seen) is shown and seen["via"] == "pipeline"


def test_messages_group_receivers_with_same_state(summarize):
    apart = [ReceiverOutcome(f"n{n}", True, "", 0, None, demoted="slow", durable=False) for n in range(1, 7)]
    _, errors = summarize([result(*apart)], 6)
    assert errors.count("were demoted: slow\n") == errors.count("have it, but not on disk yet") == 1
    _, errors = summarize([result(apart[0])], 1)
    assert "n1 was demoted: slow\n" in errors and "n1 has it, but not on disk yet" in errors


def test_failed_optical_send_reports_reason_per_receiver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def send(*_: object) -> list[PartSent]:
        return [PartSent(0, ("h2", "h3"), PartState.WITHDRAWN, "the interface is down", 0, None)]

    monkeypatch.setattr(sending, "send", send)
    file = tmp_path / "data"
    file.write_bytes(b"data")
    to = "h2=127.0.0.1:9,h3=127.0.0.1:9"
    assert main(["send", str(file), "--to", to, "--via", "optical", "--optical-address", "127.0.0.1"]) == 1
    captured = capsys.readouterr()
    assert "blast: h2 does not have it: the interface is down\n" in captured.err
    assert "blast: h3 does not have it: the interface is down\n" in captured.err
    assert captured.out.startswith("0 of 2 receivers")
