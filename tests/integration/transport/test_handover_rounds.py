"""Random hand-overs under faults: `make soak` plays 200 rounds; a few of them, and faults that they find."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path

import pytest

from blast_transport.base.engines import PYTHON
from blast_transport.store.blocks.store import SessionStore
from blast_transport.wire.transports import MULTICAST, OPTICAL
from tests.soak.episodes import Counts
from tests.soak.handovers import counts_of, play
from tests.support.transport.handover_rounds import Fate, HandoverPlan, HandoverRound, HandoverStep, StepKind, plan_of

WHOLE_SOAK = 200


def test_rounds_change_every_transport_under_every_fault() -> None:
    counts = sum((counts_of(plan_of(seed)) for seed in range(WHOLE_SOAK)), Counts())
    faults = (StepKind.LOSE, StepKind.REGAIN, StepKind.START, StepKind.KILL)
    assert all(counts[by, fault.value] > 5 for by, fault in product((MULTICAST, OPTICAL, "pipeline"), faults))
    assert counts[MULTICAST, "change to optical"] > 5 and counts[OPTICAL, "change to multicast"] > 5
    main = [MULTICAST, OPTICAL, MULTICAST]
    assert all([one for one in plan_of(seed).transports if one in main] == main for seed in range(WHOLE_SOAK))
    assert plan_of(7) == plan_of(7)


@pytest.mark.parametrize("seed", [2, 5, 15, 18])
def test_every_file_is_whole_and_no_block_is_stored_twice(seed: int) -> None:
    assert play(seed).failure is None


def test_round_finds_block_that_is_stored_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hold, forgotten = SessionStore._hold, list[SessionStore]()

    def hold_and_forget(store: SessionStore, first: int, digests: Sequence[bytes]) -> None:
        hold(store, first, digests)
        if store not in forgotten:
            forgotten.append(store)
            store.held.discard(first)
            store.position = min(store.position, first)
            store._wrong.append((first, 1))

    monkeypatch.setattr(SessionStore, "_hold", hold_and_forget)
    fates = {"steady": Fate.STEADY, "forgets": Fate.LOSSY}
    steps = (
        HandoverStep(0, StepKind.CHANGE, MULTICAST, 100e6, shown=20),
        HandoverStep(10, StepKind.CHANGE, OPTICAL, 100e6, shown=40),
    )
    (fault,) = HandoverRound(HandoverPlan(40, PYTHON, False, fates, steps), tmp_path, lambda line: None).play()
    assert fault.startswith("forgets stored twice: 1 blocks")


def test_round_finds_file_that_differs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "steady" / "content"
    faults = HandoverRound._faults

    def change_before(played: HandoverRound) -> list[str]:
        path.write_bytes(path.read_bytes()[:-1] + b"?")
        return faults(played)

    monkeypatch.setattr(HandoverRound, "_faults", change_before)
    steps = (HandoverStep(0, StepKind.CHANGE, MULTICAST, 100e6, shown=20),)
    (fault,) = HandoverRound(
        HandoverPlan(20, PYTHON, False, {"steady": Fate.STEADY}, steps), tmp_path, lambda line: None
    ).play()
    assert fault == "the file of steady differs"
