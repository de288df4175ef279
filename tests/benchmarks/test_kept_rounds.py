"""Kept results of long measurements: an interrupted measurement resumes, and files of other settings are rejected."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

SETTINGS = {"nodes": 100, "rate_mbps": 8.0}
CASES = ("no failure", "killed, 2 % at once", "frozen, 2 % at once")


class EndedError(Exception):
    """Ctrl-C."""


def measure(path: Path, rounds: int, max_results: int) -> list[str]:
    """Continue the measurement up to `max_results` results; return the measured cases."""
    from benchmarks.transfers.bed.kept_rounds import KeptRounds
    from benchmarks.transfers.bed.script import runs

    done: list[str] = []

    def one(case: str) -> dict[str, object]:
        if len(done) == max_results:
            raise EndedError
        done.append(case)
        return {"seconds": len(done), "wrong": []}

    kept = KeptRounds(path, SETTINGS)
    for number, case in runs(CASES, rounds):
        if not kept.has(number, case):
            kept.add(number, case, one(case))
    return done


@given(rounds=st.integers(1, 4), max_results=st.integers(0, 12), torn=st.integers(0, 400))
def test_measurement_resumes_after_interruption_at_any_byte(tmp_path_factory, rounds, max_results, torn):
    from benchmarks.transfers.bed.kept_rounds import KeptRounds

    path = tmp_path_factory.mktemp("kept") / "keep"
    whole = [(number, case) for number in range(rounds) for case in CASES[:: -1 if number % 2 else 1]]
    ended = max_results < len(whole)
    if ended:
        with pytest.raises(EndedError):
            measure(path, rounds, max_results)
    else:
        assert measure(path, rounds, max_results) == [case for _, case in whole]
    content = path.read_bytes()
    path.write_bytes(content[: max(0, len(content) - torn)])
    kept_lines = max(0, path.read_bytes().count(b"\n") - 1)
    assert KeptRounds(path, SETTINGS).missing(CASES, rounds) == len(whole) - kept_lines
    assert measure(path, rounds, len(whole)) == [case for _, case in whole[kept_lines:]]
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(line["round"], line["case"]) for line in lines[1:]] == whole
    kept = KeptRounds(path, SETTINGS)
    assert all(len(kept.of(case, number)) == number for case, number in itertools.product(CASES, range(rounds + 1)))
    assert [path.name for path in path.parent.iterdir()] == ["keep"]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"\xff\xfe\n", "is no file that --keep has written"),
        (b"dear diary", "is no file that --keep has written"),
        (b"[]\n", "is no file that --keep has written"),
        (b'{"settings": {"nodes": 100, "rate_mbps": 8.0}}\n{"round": 0}\n', "is no file that --keep has written"),
        (b'{"settings": {"nodes": 200, "rate_mbps": 8.0}}\n', "of other settings"),
    ],
)
def test_foreign_file_is_rejected_and_left_unchanged(tmp_path, content, sentence):
    from benchmarks.transfers.bed.failures import PrerequisiteError
    from benchmarks.transfers.bed.kept_rounds import KeptRounds

    path = tmp_path / "keep"
    path.write_bytes(content)
    with pytest.raises(PrerequisiteError, match=sentence):
        KeptRounds(path, SETTINGS)
    assert path.read_bytes() == content
