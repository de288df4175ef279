"""`benchmarks/README.md`: every benchmark has a row, and every script that a document names exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BENCHMARKS = ROOT / "benchmarks"
PAGE = BENCHMARKS / "README.md"
AREAS = ("control_plane", "transfers", "simulators")
PARTS = {"load.py", "concurrent_jobs_load.py", "emulated_switch.py", "emulated_tors.py", "step_clock.py"}
"""Processes that other scripts of the control plane start."""


def rows() -> list[list[str]]:
    table = [line.strip("|").split("|") for line in PAGE.read_text().splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in cells] for cells in table if cells[0].strip() not in {"claim", "---"}]


def test_every_benchmark_has_a_row_with_all_columns():
    paths = [path for area in AREAS for path in (BENCHMARKS / area).glob("*.py") if path.name not in PARTS]
    scripts = [f"{path.parent.name}/{path.name}" for path in paths if '__name__ == "__main__"' in path.read_text()]
    assert sorted(cells[1].strip("`").split()[0] for cells in rows()) == sorted(scripts)
    assert all(len(cells) == 7 and all(cells) for cells in rows())


@pytest.mark.parametrize("page", [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])
def test_scripts_that_a_document_names_exist(page):
    for name in re.findall(r"benchmarks/([\w/]+\.py)", page.read_text()):
        assert (BENCHMARKS / name).exists(), name
