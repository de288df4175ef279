"""`blast figures balanced`: what is planned, what a file of measurements may say, and where points lie."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from algorithms.balanced.testbeds import SITES
from blast_sim.base.wrong_input import WrongInput
from blast_sim.figures.balanced.drawings import for_each_root, with_clusters
from blast_sim.figures.balanced.figures import METHODS, NODES, OF_CLUSTERS, OF_SITES, PAPER, joined, planned, read
from tests.support.sim_output import rows_of, run, texts

PLANNED = planned()
SITES_FILE = "root,method,planned,measured\nberlin,exact,45e6,42e6\nberlin,exact,45000000,44e6\n"
CLUSTERS_FILE = "clusters,nodes,planned,measured\n3,6,45.6e6,43e6\n"


@pytest.fixture
def figures(tmp_path, capsys):
    """The command, which writes into a folder of its own."""
    return partial(run, capsys, "figures", "balanced", "--out", tmp_path / "figures")


def test_every_root_and_method_and_every_number_of_nodes_is_planned():
    assert {(row["root"], row["method"]) for row in PLANNED[OF_SITES]} == {(s, m) for s in SITES for m in METHODS}
    assert [(row["clusters"], row["nodes"]) for row in PLANNED[OF_CLUSTERS]] == [(c, n) for c in (2, 3) for n in NODES]


def test_pictures_and_figures_without_measurements(figures, tmp_path):
    status, out, _ = figures()
    names = [Path(line).name for line in out.split()]
    assert status == 0
    assert names == ["balanced-sites.svg", "balanced-sites.csv", "balanced-clusters.svg", "balanced-clusters.csv"]
    assert {*SITES, "FPFR, not shaped"} <= texts(tmp_path / "figures" / "balanced-sites.svg")
    assert "measured" not in texts(tmp_path / "figures" / "balanced-sites.svg")
    rows = rows_of(tmp_path / "figures" / "balanced-clusters.csv")
    assert [row["from"] != "" for row in rows] == [False] * 16 + [True] * len(PAPER)


def test_measurements_are_drawn_beside_the_plan(figures, tmp_path):
    for name, text in (("sites.csv", SITES_FILE), ("clusters.csv", CLUSTERS_FILE)):
        (tmp_path / name).write_text(text)
    assert figures("--measured", tmp_path / "sites.csv", "--measured", tmp_path / "clusters.csv")[0] == 0
    (row,) = [row for row in rows_of(tmp_path / "figures" / "balanced-sites.csv") if row["measured"]]
    assert (row["root"], row["method"], row["runs"]) == ("berlin", "exact", "2")
    assert [float(row[name]) for name in ("measured", "least", "most")] == [43e6, 42e6, 44e6]
    assert "3 clusters, measured" in texts(tmp_path / "figures" / "balanced-clusters.svg")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "lacks columns: it has to have root, method, planned, measured or clusters, nodes"),
        ("root,planned,measured\nberlin,1,1\n", "lacks columns"),
        ("root,method,planned,measured\n", "has no measurement in it"),
        ("root,method,planned,measured\nberlin,exact,45e6,fast\n", "2: measured is 'fast', which is no number"),
        ("root,method,planned,measured\nberlin,exact,45e6,nan\n", "measured is 'nan'"),
        ("root,method,planned,measured\nberlin,exact,45e6\n", "measured is None"),
        ("root,method,planned,measured\nparis,exact,45e6,1\n", "nothing is planned for 'paris, exact': known are amst"),
        ("clusters,nodes,planned,measured\n2,9,52e6,1\n", "nothing is planned for '2, 9'"),
        ("root,method,planned,measured\nberlin,exact,9e6,8e6\n", "another network, with a plan of 9e+06 bit/s instead"),
        ("root,method,planned,measured\n\xff\n", "is no CSV"),
        ("root,method,planned,measured\nberlin,exact,45e6,1e308\nberlin,exact,45e6,1e308\n", "measured is '1e308'"),
        ('root,method,planned,measured\n"ber\nlin",exact,45e6,1\n', "nothing is planned for 'ber\\nlin, exact'"),
        (f"root,method,planned,measured\n{'berlin' * 1000},exact,45e6,1\n", "nothing is planned for 'berlinberlin"),
    ],
)
def test_a_file_that_says_something_else_is_refused_in_a_sentence(figures, tmp_path, text, says):
    path = tmp_path / "measured.csv"
    path.write_bytes(text.encode("latin-1"))
    status, out, err = figures("--measured", path)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert says in err
    assert not (tmp_path / "figures").exists()


def test_a_file_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("blast_sim.figures.balanced.figures.MOST_ROWS", 1)
    (tmp_path / "sites.csv").write_text(SITES_FILE)
    with pytest.raises(WrongInput, match="more than 1 rows"):
        read(tmp_path / "sites.csv")


def test_bars_are_planned_and_dots_measured():
    measured = [{"root": "berlin", "method": "exact", "planned": 45e6, "measured": value} for value in (40e6, 44e6)]
    rows = joined(PLANNED[OF_SITES], measured, OF_SITES)
    figure = Figure()
    for_each_root(figure, rows)
    (axes,) = figure.axes
    heights = [patch.get_height() for patch in axes.patches]
    assert heights == [row["planned"] / 1e6 for method in METHODS for row in rows if row["method"] == method]
    (dots,) = (one for one in axes.containers if hasattr(one, "lines"))
    bar = axes.patches[-len(SITES) + SITES.index("berlin")]
    assert dots.lines[0].get_xydata().tolist() == [[pytest.approx(bar.get_x() + bar.get_width() / 2), 42.0]]


def test_lines_are_planned_and_wide_area_paths_lie_across():
    figure = Figure()
    with_clusters(figure, [*PLANNED[OF_CLUSTERS], *PAPER])
    drawn = {line.get_label(): line for line in figure.axes[0].lines}
    assert drawn["2 clusters, planned"].get_ydata() == pytest.approx([10, 20, 30, 40, 50, 52, 52, 52])
    assert drawn["3 clusters, planned"].get_ydata() == pytest.approx([10, 20, 30, 40, 45.6, 45.6, 45.6, 45.6])
    across = [line.get_ydata()[0] for line in figure.axes[0].lines if line.get_linestyle() == ":"]
    assert across == pytest.approx([52, 45.6])
    # The paper's points: 62 MB/s of what was 65 there, with six nodes.
    assert [6, pytest.approx(49.6)] in [line.get_xydata()[0].tolist() for line in figure.axes[0].lines]
