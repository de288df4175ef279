"""`blast send` by light that our own side could not send: every receiver of the part is named, with the reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from blast_api.ttypes import PartState
from blast_client import round as whole_round
from blast_client.command import main
from blast_client.part_sending import PartSent


def test_why_nothing_was_sent_by_light_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def send(*_: object) -> list[PartSent]:
        return [PartSent(0, ("h2", "h3"), PartState.WITHDRAWN, "the interface is down", 0, None)]

    monkeypatch.setattr(whole_round, "send", send)
    file = tmp_path / "data"
    file.write_bytes(b"data")
    to = "h2=127.0.0.1:9,h3=127.0.0.1:9"
    assert main(["send", str(file), "--to", to, "--via", "optical", "--light-address", "127.0.0.1"]) == 1
    told = capsys.readouterr()
    assert "blast: h2 does not have it: the interface is down\n" in told.err
    assert "blast: h3 does not have it: the interface is down\n" in told.err
    assert told.out.startswith("0 of 2 receivers")
