"""Replays of traces: closed forms of small traces, reproducible results and the command."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from blast_client.cli.command import main
from blast_controller.core.model.requests import RequestKey
from blast_sim.methods.optical import Blast
from blast_sim.replay.player import FALLBACKS, Player
from blast_sim.replay.result import ReplayOutcome, policy_row
from blast_sim.replay.runs import ReplayRun, play, play_all
from blast_sim.replay.seen import seen
from blast_sim.replay.setting import Setting
from blast_sim.scenarios.schema import LightSection
from blast_sim.traces.deriving import Volume, derived
from blast_sim.traces.synthetic import synthetic
from blast_sim.traces.workload import Shuffle, TraceMulticast, Workload
from tests.support.simulators.sim_output import rows_of

SWITCHING, COMPUTE = 0.025, 0.001
SERVICE = 0.24
"""300 MB at 10 Gbit/s."""


def setting(splitters: int = 4, racks: int = 6, **light: object) -> Setting:
    return Setting(racks, 4, 10.0, 40.0, LightSection(splitters=splitters, **light), "1")  # type: ignore[arg-type]


def workload(*multicasts: TraceMulticast, shuffles: tuple[Shuffle, ...] = ()) -> Workload:
    return Workload(6, multicasts, shuffles, {})


def played(work: Workload, where: Setting, policy: str = "srpt-lease") -> ReplayOutcome:
    return Player(work, where, policy, lambda: None).play()


def request(name: str, arrival: float, sender: int, *receivers: int) -> TraceMulticast:
    return TraceMulticast(name, arrival, sender, receivers, 300_000_000)


def test_single_multicast_takes_service_plus_reconfiguration() -> None:
    (one,) = played(workload(request("a", 5.0, 0, 1, 2)), setting()).multicasts
    assert one.seconds == pytest.approx(SERVICE + SWITCHING + COMPUTE, rel=1e-9)
    assert (one.compute_seconds, one.light) == (COMPUTE, True)


@pytest.mark.parametrize(("fallback", "times"), [("naive", 3.0), ("pipeline", 1.0), ("trees", 1.0)])
def test_multicast_without_a_grant_uses_the_fallback(fallback: str, times: float) -> None:
    (one,) = played(workload(request("a", 0.0, 0, 1, 2, 3)), setting(0, fallback=fallback)).multicasts
    assert not one.light
    # Chains fill block by block.
    assert one.seconds == pytest.approx(times * SERVICE, rel=0.1)


def test_command_accepts_every_fallback(capsys: pytest.CaptureFixture[str]) -> None:
    for fallback in FALLBACKS:
        words = ["sim", "replay", "sample", "--first", "3", "--splitters", "0", "--fallback", fallback, "--json"]
        assert main(words) == 0
        assert json.loads(capsys.readouterr().out)["light"]["fallback"] == fallback


def test_rack_with_one_port_serves_multicasts_in_sequence() -> None:
    outcome = played(workload(request("a", 0.0, 0, 1, 2), request("b", 0.0, 0, 3, 4)), setting(), "paper")
    first, second = sorted(one.seconds for one in outcome.multicasts)
    assert first == pytest.approx(SERVICE + SWITCHING + COMPUTE, rel=1e-9)
    assert second > 2 * SERVICE


def test_packet_network_carries_all_without_splitters() -> None:
    """Five copies of 300 MB leave the sender in parallel."""
    (one,) = played(workload(request("a", 1.0, 0, 1, 2, 3, 4, 5)), setting(splitters=0)).multicasts
    assert one.seconds == pytest.approx(5 * SERVICE, rel=1e-6)
    assert not one.light


def test_shuffles_follow_their_multicasts_over_the_uplinks() -> None:
    """Two mappers send 8 GB to one reducer at 40 Gbit/s; data that stays within a rack takes no time."""
    shuffles = (
        Shuffle("a", 0.0, (0, 1), (2,), (8_000_000_000,), after="a"),
        Shuffle("b", 3.0, (3,), (3,), (10**12,)),
        Shuffle("c", 4.0, (4, 5), (4,), (10_000_000_000,)),
    )
    outcome = played(workload(request("a", 0.0, 0, 1, 2), shuffles=shuffles), setting())
    assert outcome.shuffles == pytest.approx({"a": 1.6, "b": 0.0, "c": 1.0})


def test_replay_uses_the_core_of_the_controller(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the core refuses every request, the packet network carries all multicasts."""
    from blast_controller.core.controller import Core
    from blast_controller.core.model.errors import RequestError
    from blast_controller.core.model.events import RequestSubmitted

    taken = Core.take
    asked: list[RequestKey] = []

    def refusing(self: Core, event: object, now: float) -> None:
        if isinstance(event, RequestSubmitted):
            asked.append(event.request.id)
            raise RequestError("refused by the test")
        taken(self, event, now)  # type: ignore[arg-type]

    work = derived(synthetic(3, 6, 8), "job-broadcast", Volume(), 0)
    lit = played(work, setting())
    assert any(one.light for one in lit.multicasts)
    monkeypatch.setattr(Core, "take", refusing)
    dark = played(work, setting())
    assert len(asked) == len(work.multicasts)
    assert not any(one.light for one in dark.multicasts)
    assert [one.seconds for one in dark.multicasts] != [one.seconds for one in lit.multicasts]


@pytest.mark.parametrize("policy", ["paper", "srpt-lease"])
def test_replay_is_reproducible(policy: str) -> None:
    work = derived(synthetic(5, 6, 15, mean_gap_ms=200.0), "job-broadcast", Volume(), 0)
    run = ReplayRun(work, setting(splitters=2, may_pause=True, may_split=True), policy)
    once, again = (json.dumps(play(run).row) for _ in range(2))
    assert once == again


def test_parallel_runs_give_the_rows_of_sequential_runs() -> None:
    work = derived(synthetic(4, 6, 6, mean_gap_ms=100.0), "job-broadcast", Volume(), 0)
    runs = [ReplayRun(work, setting(), policy) for policy in ("paper", "fair-share")]
    steps: list[int] = []
    beside = play_all(runs, 2, steps.append)
    after = play_all(runs, 1, lambda more: None)
    assert [one.row for one in beside] == [one.row for one in after]
    assert sum(steps) == 2 * (len(work.multicasts) + len(work.shuffles))


def test_replay_submits_every_multicast_of_the_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = []
    send = Blast.send
    monkeypatch.setattr(Blast, "send", lambda self, one, done: (sent.append(one), send(self, one, done)))
    work = derived(synthetic(3, 6, 8), "job-broadcast", Volume(7.0), 0)
    played(work, setting())
    assert [(one.name, one.bytes, one.sender // 4) for one in sent] == [
        (one.name, 7_000_000, one.sender) for one in work.multicasts
    ]
    assert all(server % 4 == place % 4 for place, one in enumerate(sent) for server in one.servers)


def test_policy_row_has_means_and_completions() -> None:
    outcome = played(workload(request("a", 0.0, 0, 1, 2), request("b", 9.0, 0, 3)), setting())
    row = policy_row("paper", outcome, 10e9)
    alone = SERVICE + SWITCHING + COMPUTE
    assert row["mean_seconds"] == pytest.approx(alone)
    assert row["mean_slowdown"] == pytest.approx(alone / SERVICE)
    assert (row["multicasts"], row["without_light"], row["mean_shuffle_seconds"]) == (2, 0, None)
    assert row["completions"][1] == {
        "name": "b", "arrival": 9.0, "sender": 0, "receivers": [3], "bytes": 300_000_000,
        "seconds": pytest.approx(alone), "compute_seconds": COMPUTE, "light": True,
    }  # fmt: skip


# ------------------------------------------------------------------------------------------------ the command


def test_command_prints_a_row_for_every_policy(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    command = ["sim", "replay", "sample", "--first", "8", "--policy", "paper,smith", "--processes", "1", "--shuffles"]
    assert main([*command, "--json", "--figure", str(tmp_path / "new")]) == 0
    output = json.loads(capsys.readouterr().out)
    assert [row["policy"] for row in output["policies"]] == ["paper", "smith"]
    assert [len(row["completions"]) for row in output["policies"]] == [8, 8]
    assert output["rules"] == {"rule": "job-broadcast", "volume": "300 MB", "seed": 0, "first": 8}
    assert output["network"]["racks"] == 40
    assert output["light"]["splitters"] == 13
    ElementTree.parse(tmp_path / "new" / "replay.svg")
    assert [row["policy"] for row in rows_of(tmp_path / "new" / "replay.csv")] == ["paper", "smith"]
    assert main(command) == 0
    assert "mean_shuffle_seconds" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--policy", "best"], "--policy 'best' is none: there are paper"),
        (["--policy", ","], "--policy names none"),
        (["--racks", "39"], "the trace has 40 racks, but --racks is 39"),
        (["--volume", "-3"], "--volume '-3'"),
        (["--switch", "mems"], "--switch 'mems' is unknown"),
        (["--compute", "fast"], "--compute 'fast'"),
    ],
)
def test_invalid_options_are_rejected_in_one_sentence(
    capsys: pytest.CaptureFixture[str], options: list[str], words: str
) -> None:
    assert main(["sim", "replay", "sample", *(f"{options[0]}={options[1]}",)]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1


def test_error_in_a_trace_names_its_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "trace").write_text("4 1\n1 0 1 9 1 1:1\n")
    assert main(["sim", "replay", str(tmp_path / "trace")]) == 2
    assert f"{tmp_path / 'trace'}:2: " in capsys.readouterr().err


# ------------------------------------------------------------------------------------------------ summary


def row(policy: str, mean: float, tail: float, longest: float = 30.0) -> dict[str, object]:
    return {"policy": policy, "mean_seconds": mean, "p99_seconds": tail, "longest_seconds": longest}


def test_summary_names_shortest_and_longest_policies() -> None:
    summary = seen([row("paper", 6.0, 20.0), row("srpt-lease", 2.0, 25.0, 50.0), row("edf", 2.0, 25.0)])
    assert summary.splitlines() == [
        "mean: srpt-lease and edf shortest with 2 s, paper longest with 6 s, ratio 3.0.",
        "99th percentile: paper shortest with 20 s, srpt-lease and edf longest with 25 s, ratio 1.2.",
        "longest: paper and edf shortest with 30 s, srpt-lease longest with 50 s, ratio 1.7.",
        "The default policy, srpt-lease, is not the best here: 99th percentile 25 s against 20 s of paper; "
        "longest 50 s against 30 s of paper and edf.",
    ]


def test_summary_omits_the_default_policy_when_it_is_best() -> None:
    assert "default" not in seen([row("paper", 6.0, 20.0), row("srpt-lease", 2.0, 20.0)])


def test_summary_of_equal_policies_suggests_fewer_splitters() -> None:
    assert "Use fewer --splitters" in seen([row("paper", 2.0, 3.0), row("smith", 2.001, 3.0)])


def test_summary_of_one_policy_is_empty() -> None:
    assert seen([row("paper", 2.0, 3.0)]) == ""


@pytest.mark.test_all
def test_policies_differ_on_the_contended_trace(capsys) -> None:
    words = ["sim", "replay", "contended", "--volume", "maximum", "--policy", "paper,srpt-lease", "--processes", "1"]
    assert main([*words, "--json"]) == 0
    paper, ours = (one["mean_seconds"] for one in json.loads(capsys.readouterr().out)["policies"])
    assert paper > 2 * ours
