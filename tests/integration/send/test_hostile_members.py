"""Honest receivers beside hostile ones complete, and no file is wrong. `make soak` tries every message field."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.soak.members import CONTENT, LIMIT_SECONDS, cases, play
from tests.support.transport.hostile_members import KINDS, session

SAMPLE = 24


def test_every_message_of_a_receiver_is_listed(tmp_path: Path) -> None:
    for transport, kinds in KINDS.items():
        folder = tmp_path / transport
        folder.mkdir()
        found = session(folder, CONTENT, transport, {1: None, 4: None}, LIMIT_SECONDS)
        assert not found.lacking and not found.wrong
        assert found.seen <= kinds


@pytest.mark.parametrize("number", range(0, len(cases()), len(cases()) // SAMPLE))
def test_honest_receivers_complete_beside_hostile_ones(number: int) -> None:
    assert play(number).failure is None
