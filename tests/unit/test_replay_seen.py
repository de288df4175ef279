"""`blast sim replay`: what is seen is said, and the trace that comes for it is contended."""

from __future__ import annotations

import json

from blast_client.command import main
from blast_sim.replay.seen import seen


def row(policy: str, mean: float, tail: float) -> dict[str, object]:
    return {"policy": policy, "mean_seconds": mean, "p99_seconds": tail}


def test_who_is_shortest_and_longest_is_said_by_mean_and_by_tail() -> None:
    said = seen([row("paper", 6.0, 20.0), row("srpt-lease", 2.0, 25.0), row("edf", 2.0, 25.0)])
    assert said.splitlines() == [
        "mean: srpt-lease and edf shortest with 2 s, paper longest with 6 s, 3.0 times as long.",
        "99th percentile: paper shortest with 20 s, srpt-lease and edf longest with 25 s, 1.2 times as long.",
    ]


def test_policies_that_took_the_same_are_told_so_with_what_to_do() -> None:
    assert "Take fewer --splitters" in seen([row("paper", 2.0, 3.0), row("smith", 2.001, 3.0)])


def test_of_one_policy_there_is_nothing_to_compare() -> None:
    assert seen([row("paper", 2.0, 3.0)]) == ""


def test_the_contended_trace_shows_what_policies_do(capsys) -> None:
    words = ["sim", "replay", "contended", "--volume", "maximum", "--policy", "paper,srpt-lease", "--processes", "1"]
    assert main([*words, "--json"]) == 0
    paper, ours = (one["mean_seconds"] for one in json.loads(capsys.readouterr().out)["policies"])
    assert paper > 2 * ours
