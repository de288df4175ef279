"""Claims of the paper on rack-fabric multicast, checked against the simulator.

Its whole systems (Figures 13 to 16), four fifths of all events, are simulated for a tenth of their time; in full
length they are in benchmarks/simulators/rack_fabric_claims.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from blast_client.cli.command import main
from blast_sim.base.sweep import Kept, Workers
from blast_sim.fabric.simulator import Simulator, program
from blast_sim.fabric.trace import TraceEventKind, read_trace
from blast_sim.papers.rack_fabric import figures
from blast_sim.papers.rack_fabric.claims import (
    CLAIMS,
    EXPLAINING_EXPERIMENTS,
    CheckedClaim,
    CheckedExperiment,
    checked_claims,
    checked_experiments,
)
from blast_sim.papers.rack_fabric.evaluation import EXPERIMENTS, PANELS, Curves, evaluated
from blast_sim.papers.rack_fabric.panel import Panel, PanelCase
from blast_sim.papers.rack_fabric.with_light import rows_of, trials
from tests.blast_sim.papers.test_fabric_with_light import DATA, found_for

pytestmark = [pytest.mark.rust, pytest.mark.timeout(900)]

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
    lambda points: [(x, 10 + 0.72 * y) for x, y in points],
    lambda points: [*points[:-1], (points[-1][0], 2 * points[-1][1])],
    lambda points: [(x, 50.0 if number % 2 else 5.0) for number, (x, _) in enumerate(points)],
    lambda points: list(zip([x for x, _ in points], [y for _, y in reversed(points)], strict=True)),
)
"""Distortions that make the simulated curves wrong."""


WHOLE_SYSTEMS = ("13", "15", "16")
IN_FULL_LENGTH = {
    "_linear_while_feasible",
    "_83_at_30",
    "_delay_grows",
    "_fourteen_microseconds",
    "_slow_where_overloaded",
    "_jumbo",
    "_linear_to_99",
    "_no_pool_gives_93",
    "_flat_without_waiting",
}
"""Checks of results that appear only once the queues of a whole system are full."""
CHECKED = [claim for claim in CLAIMS if claim.check and claim.check.__name__ not in IN_FULL_LENGTH]
EXPLAINING = [one for one in EXPLAINING_EXPERIMENTS if one.check.__name__ not in IN_FULL_LENGTH]
CHECKS = [
    *((claim.sentence, claim.check) for claim in CHECKED if claim.check),
    *((one.sentence, one.check) for one in EXPLAINING),
]


def shortened(panel: Panel) -> Panel:
    if not panel.name.startswith(WHOLE_SYSTEMS):
        return panel

    def cases(seed: int) -> list[PanelCase]:
        times = ("duration_ns", "warmup_ns")
        return [
            replace(case, model=case.model | {time: case.model[time] // 10 for time in times})
            for case in panel.cases(seed)
        ]

    return replace(panel, cases=cases)


PANELS_HERE = [shortened(panel) for panel in (*PANELS, *EXPERIMENTS)]


@pytest.fixture(scope="module")
def curves() -> Curves:
    return evaluated(Simulator(program()), PANELS_HERE, 1, Workers(2), Kept(None))


def test_every_check_supports_its_verdict(curves: Curves) -> None:
    claims = [one for one in checked_claims(curves) if one.claim in CHECKED]
    assert not [f"{one.claim.figure}: {one.claim.sentence}: {one.here}" for one in claims if not one.expected]
    experiments = [one for one in checked_experiments(curves) if one.experiment in EXPLAINING]
    assert not [f"{one.experiment.sentence}: {one.here}" for one in experiments if not one.expected]


def broken(curves: Curves) -> Iterator[Curves]:
    """Curves of which all lines, or those of one place in their panel, are wrong."""
    for wrong in WRONG:
        for place in (0, 1, None):
            yield {
                name: {
                    line: wrong(points) if place in (None, number) else points
                    for number, (line, points) in enumerate(lines.items())
                }
                for name, lines in curves.items()
            }


def test_wrong_curves_change_every_verdict(curves: Curves) -> None:
    for sentence, check in CHECKS:
        _, holds = check(curves)
        assert any(check(others)[1] is not holds for others in broken(curves)), sentence


def test_command_writes_figures_tables_and_kept_cells(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    few = [panel for panel in PANELS_HERE if panel.name in ("5b", "6-priorities")]
    requested = list(trials((1,)))
    monkeypatch.setattr(figures, "PANELS", few[:1])
    monkeypatch.setattr(figures, "EXPERIMENTS", few[1:])
    monkeypatch.setattr(figures, "checked_claims", lambda curves: [CheckedClaim(CLAIMS[3], str(sorted(curves)), True)])
    explained = CheckedExperiment(EXPLAINING_EXPERIMENTS[0], "a value", True)
    monkeypatch.setattr(figures, "checked_experiments", lambda curves: [explained])
    monkeypatch.setattr(figures, "rows", lambda *_: rows_of(requested, found_for(requested), DATA))
    assert main(["figures", "fabric", "--out", str(tmp_path)]) == 0
    written = [Path(path) for path in capsys.readouterr().out.split()]
    assert all(path.stat().st_size > 100 for path in written)
    assert {path.name for path in written} == {
        *("fabric-5b.svg", "fabric-5b.csv", "fabric-claims.csv", "fabric-experiments.csv"),
        *("fabric-with-light.svg", "fabric-with-light.csv"),
    }
    for name in ("claims", "experiments"):
        lines = (tmp_path / f"fabric-{name}.csv").read_text().splitlines()
        assert len([line for line in lines if not line.startswith("#")]) == 2
    assert len(list((tmp_path / "fabric-cells").iterdir())) == sum(len(panel.cases(1)) for panel in few)


@pytest.mark.parametrize(("to", "nanoseconds"), [([0, 1], 100), ([1, 0], 1100)])
def test_grant_delay_equals_value_of_paper(to: list[int], nanoseconds: int, tmp_path: Path) -> None:
    flow = {"source": [0, 0], "to": [to], "frame_bytes": 1522, "rate_gbps": 1}
    trace = tmp_path / "events"
    Simulator(program()).run({"duration_ns": 100_000, "topology": {"leaves": 2}, "flows": [flow]}, trace=trace)
    events = np.concatenate(list(read_trace(trace)))
    asked, granted = (
        events["time_ps"][events["kind"] == kind] for kind in (TraceEventKind.REQUEST, TraceEventKind.GRANT)
    )
    assert len(granted) > 5
    assert set(granted - asked[: len(granted)]) == {1000 * nanoseconds}
