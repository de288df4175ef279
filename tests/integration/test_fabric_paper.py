"""What the paper on rack-fabric multicast says, against the simulator."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from blast_client.command import main
from blast_sim.base.sweep import Kept, Workers
from blast_sim.fabric.paper.claims import CLAIMS, Claim, verdicts
from blast_sim.fabric.paper.evaluation import EXPERIMENTS, PANELS, Curves, evaluated
from blast_sim.fabric.simulator import Simulator, program
from blast_sim.fabric.trace import Kind, read_trace

pytestmark = [pytest.mark.rust, pytest.mark.test_all, pytest.mark.timeout(900)]

Points = Sequence[tuple[float, float]]


def both(share: float) -> Callable[[Points], Points]:
    return lambda points: [(x, share * y) for x, y in points]


WRONG: Sequence[Callable[[Points], Points]] = (
    both(0.3),
    both(0.8),
    both(1.3),
    both(0.94),
    both(3.0),
    lambda points: [(x, y - 0.08) for x, y in points],
    lambda points: [*points[:-1], (points[-1][0], 2 * points[-1][1])],
    lambda points: [(x, 50.0 if number % 2 else 5.0) for number, (x, _) in enumerate(points)],
    lambda points: list(zip([x for x, _ in points], [y for _, y in reversed(points)], strict=True)),
)
"""What curves may look like that are not these."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("figures")


@pytest.fixture(scope="module")
def curves(folder: Path) -> Curves:
    workers = Workers(os.cpu_count() or 1)
    return evaluated(Simulator(program()), [*PANELS, *EXPERIMENTS], 1, workers, Kept(folder / "fabric-cells"))


def test_every_claim_comes_out_as_told(curves: Curves) -> None:
    wrong = [f"{one.claim.figure}: {one.claim.sentence}: {one.value}" for one in verdicts(curves) if not one.expected]
    assert not wrong


def broken(curves: Curves) -> Iterator[Curves]:
    """Curves of which all lines, or those of one place in their panel, are wrong."""
    for wrong in WRONG:
        yield {name: {line: wrong(points) for line, points in lines.items()} for name, lines in curves.items()}
        for place in range(2):
            yield {
                name: {line: wrong(points) if number == place else points for number, (line, points) in _places(lines)}
                for name, lines in curves.items()
            }


def _places(lines: object) -> list[tuple[int, tuple[str, Points]]]:
    assert isinstance(lines, dict)
    return list(enumerate(lines.items()))


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: f"{claim.figure} {claim.sentence}"[:60])
def test_other_curves_would_change_the_verdict(curves: Curves, claim: Claim) -> None:
    _, holds = claim.check(curves)
    assert any(claim.check(others)[1] is not holds for others in broken(curves))


def test_the_command_draws_all_from_what_is_kept(
    folder: Path, curves: Curves, capsys: pytest.CaptureFixture[str]
) -> None:
    assert curves
    assert main(["figures", "fabric", "--out", str(folder)]) == 0
    written = capsys.readouterr().out.split()
    assert all(Path(path).stat().st_size > 100 for path in written)
    assert {Path(path).name for path in written} >= {f"fabric-{panel.name}.svg" for panel in PANELS}
    assert folder / "fabric-with-light.svg" in map(Path, written)
    assert len((folder / "fabric-claims.csv").read_text().splitlines()) == len(CLAIMS) + 1


@pytest.mark.parametrize(("to", "nanoseconds"), [([0, 1], 100), ([1, 0], 1100)])
def test_a_grant_takes_exactly_as_long_as_the_paper_says(to: list[int], nanoseconds: int, tmp_path: Path) -> None:
    flow = {"source": [0, 0], "to": [to], "frame_bytes": 1522, "rate_gbps": 1}
    trace = tmp_path / "events"
    Simulator(program()).run({"duration_ns": 100_000, "topology": {"leaves": 2}, "flows": [flow]}, trace=trace)
    events = np.concatenate(list(read_trace(trace)))
    asked, granted = (events["time_ps"][events["kind"] == kind] for kind in (Kind.REQUEST, Kind.GRANT))
    assert len(granted) > 5
    assert set(granted - asked[: len(granted)]) == {1000 * nanoseconds}
