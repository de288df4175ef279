"""Notebooks of `examples/`: their cells run in order, without Jupyter, with the results that their text states."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "examples").rglob("*.ipynb"))
RESEARCH = ROOT / "examples" / "research" / "policies.ipynb"
PLAY = """
import json, sys
names = {"__name__": "__main__"}
for cell in json.load(open(sys.argv[1], encoding="utf-8"))["cells"]:
    if cell["cell_type"] == "code":
        exec("".join(cell["source"]), names)
"""


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_committed_without_results(notebook: Path) -> None:
    cells = [cell for cell in json.loads(notebook.read_text())["cells"] if cell["cell_type"] == "code"]
    assert cells
    for cell in cells:
        assert (cell["outputs"], cell["execution_count"]) == ([], None)
        ast.parse("".join(cell["source"]))


@pytest.mark.test_all
def test_policies_notebook_computes_results_of_its_text_and_figure(tmp_path: Path) -> None:
    words = [sys.executable, "-c", PLAY, str(RESEARCH)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "MPLBACKEND": "Agg", "MPLCONFIGDIR": str(tmp_path / "mpl")}
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    # As the text beside the cells states: greedy serves the wide one alone, the exact method the two others.
    assert lines[0] == "paper greedy ['wide'] 1500.0"
    assert lines[2] == "paper exact ['left', 'right'] 1600.0"
    results = {
        line.split()[0]: [float(word) for word in line.split() if word[0].isdigit() and "." in word]
        for line in lines[3:6]
    }
    assert set(results) == {"paper", "srpt-lease", "narrowest"}
    (mean, tail), (narrow_mean, narrow_tail) = results["paper"], results["narrowest"]
    assert lines[-1].startswith("The default policy, srpt-lease, is not the best here"), "and so does the text"
    assert 1 < narrow_mean / mean < narrow_tail / tail, "the text states: worse in the mean and more so in the tail"
    assert (tmp_path / "policies.svg").read_text().count("narrowest") >= 1
