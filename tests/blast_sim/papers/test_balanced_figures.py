"""`blast figures balanced`: planned rates, files of measurements, and positions of points."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from algorithms.balanced.fpfr import ORDERS
from algorithms.balanced.testbeds import SITES
from blast_sim.base.wrong_input import InputError
from blast_sim.papers.balanced.drawings import SYNTHETIC, for_each_root, with_clusters
from blast_sim.papers.balanced.figures import METHODS, NODES, OF_CLUSTERS, OF_SITES, PAPER, joined, planned, read
from blast_sim.papers.balanced.random_networks import SHARES, claim_shares, network_rows, random_rows
from tests.support.simulators.sim_output import rows_of, run, texts

PLANNED = planned()
SITES_FILE = "root,method,planned,measured\nberlin,exact,45e6,42e6\nberlin,exact,45000000,44e6\n"
CLUSTERS_FILE = "clusters,nodes,planned,measured\n3,6,45.6e6,43e6\n"


@pytest.fixture
def figures(tmp_path, capsys, monkeypatch):
    """Return a function that runs `blast figures balanced`, which writes into its own folder."""
    monkeypatch.setattr("blast_sim.papers.balanced.figures.QUICK_NETWORKS", 2)
    monkeypatch.setattr("blast_sim.papers.balanced.figures.QUICK_DRAWS", 3)
    words = ("--out", tmp_path / "figures", "--quick", "--processes", 1)
    return partial(run, capsys, "figures", "balanced", *words)


def test_plan_covers_every_root_method_and_number_of_nodes():
    assert {(row["root"], row["method"]) for row in PLANNED[OF_SITES]} == {(s, m) for s in SITES for m in METHODS}
    assert [(row["clusters"], row["nodes"]) for row in PLANNED[OF_CLUSTERS]] == [(c, n) for c in (2, 3) for n in NODES]


def test_figures_are_drawn_without_measurements(figures, tmp_path):
    status, out, _ = figures()
    names = [Path(line).name for line in out.split()]
    assert status == 0
    pictures = ["balanced-sites", "balanced-clusters", "balanced-random-gains", "balanced-random-shares"]
    assert names == [f"{picture}.{kind}" for picture in pictures for kind in ("svg", "csv")]
    words = texts(tmp_path / "figures" / "balanced-sites.svg")
    assert {*SITES, "FPFR, not shaped", *(f"FPFR's order: {order}" for order in ORDERS)} <= words
    assert not any("measured" in text for text in words)
    rows = rows_of(tmp_path / "figures" / "balanced-clusters.csv")
    assert [row["from"] != "" for row in rows] == [False] * 16 + [True] * len(PAPER)


def test_synthetic_sites_are_declared_in_picture_and_csv(figures, tmp_path):
    assert figures()[0] == 0
    words = " ".join(texts(tmp_path / "figures" / "balanced-sites.svg"))
    assert SYNTHETIC in words
    rows = rows_of(tmp_path / "figures" / "balanced-sites.csv")
    assert {row["data"] for row in rows} == {SYNTHETIC}


def test_lines_of_clusters_are_assumed_without_measurements(figures, tmp_path):
    assert figures()[0] == 0
    words = texts(tmp_path / "figures" / "balanced-clusters.svg")
    assert {
        "2 clusters, assumed: min(nodes × interface, path)",
        "3 clusters, assumed: min(nodes × interface, path)",
    } <= words
    rows = rows_of(tmp_path / "figures" / "balanced-clusters.csv")
    assert {row["line"] for row in rows if not row["from"]} == {"assumed: min(nodes × interface, path)"}


def test_every_order_and_the_range_of_the_draws_are_in_the_csv(figures, tmp_path):
    assert figures()[0] == 0
    rows = rows_of(tmp_path / "figures" / "balanced-sites.csv")
    fpfr = {(row["root"], row["order"]): row for row in rows if row["method"] == "fpfr"}
    assert set(fpfr) == {(root, order) for root in SITES for order in ORDERS}
    assert float(fpfr["zurich", "index"]["planned"]) == pytest.approx(40.867e6, rel=1e-4)
    drawn = fpfr["zurich", "random"]
    assert drawn["draws"] == "3"
    assert float(drawn["draws_min"]) <= float(drawn["planned"]) <= float(drawn["draws_max"])


# -------------------------------------------------------------------------------------------- random networks


def test_quick_run_names_the_number_of_networks(figures, tmp_path):
    assert figures()[0] == 0
    for picture in ("balanced-random-gains", "balanced-random-shares"):
        words = " ".join(texts(tmp_path / "figures" / f"{picture}.svg"))
        assert "2 random networks of eight sites" in words
        assert "share of 16 cases (2 networks, each root)" in words
    assert len(rows_of(tmp_path / "figures" / "balanced-random-gains.csv")) == 16


def test_random_rows_do_not_depend_on_the_number_of_processes():
    assert random_rows(3, 2) == random_rows(3, 1) == [row for seed in range(3) for row in network_rows(seed)]


def test_balanced_rate_lies_between_fpfr_and_exact():
    for row in network_rows(5):
        for order in ORDERS:
            assert row[f"fpfr {order}"] <= row[f"balanced {order}"] * (1 + 1e-6)
            assert row[f"balanced {order}"] <= row["exact"] * (1 + 1e-8)


def test_shares_count_cases_and_networks_in_which_a_claim_holds():
    def row(network, root, single, fpfr, balanced, best):
        rates = {f"{name} {order}": rate for order in ORDERS for name, rate in (("fpfr", fpfr), ("balanced", balanced))}
        return {"network": network, "root": root, "semi-flat": single, "bottleneck": 1.0, **rates, "exact": best}

    rows = [row(0, 0, 2.0, 4.0, 6.0, 6.0), row(0, 1, 1.0, 2.0, 4.0, 8.0)]
    rows += [row(1, 0, 3.0, 2.0, 3.0, 4.0), row(1, 1, 5.0, 4.0, 4.0, 5.0)]
    one = claim_shares(rows)[0]
    assert [one[name] for name in SHARES] == [0.75, 0.5, 0.5, 0.5, 0.5, 0.25]
    assert (one["networks"], one["cases"], one["gain_above_50_percent"]) == (2, 4, 0.25)
    assert [one[f"gain_q{quantile}"] for quantile in ("00", "50", "100")] == [0.0, 0.5, 1.0]
    assert [one[f"max_gain_q{quantile}"] for quantile in ("00", "100")] == [0.5, 1.0]


def test_measurements_may_begin_with_provenance(tmp_path):
    path = tmp_path / "sites.csv"
    path.write_text('# format: 1\n# command: "blast"\n' + SITES_FILE)
    names, rows = read(path)
    assert names == OF_SITES and [row["measured"] for row in rows] == [42e6, 44e6]
    path.write_text("# format: 1\nroot,method,planned,measured\nberlin,exact,45e6,fast\n")
    with pytest.raises(InputError, match=r"sites\.csv:3: measured is 'fast'"):
        read(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "lacks columns: add root, method, planned, measured or clusters, nodes"),
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
def test_invalid_measurement_file_is_rejected_in_one_sentence(figures, tmp_path, text, message):
    path = tmp_path / "measured.csv"
    path.write_bytes(text.encode("latin-1"))
    status, out, err = figures("--measured", path)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert message in err
    assert not (tmp_path / "figures").exists()


def test_measurement_file_with_too_many_rows_is_rejected(tmp_path, monkeypatch):
    monkeypatch.setattr("blast_sim.papers.balanced.figures.MAX_ROWS", 1)
    (tmp_path / "sites.csv").write_text(SITES_FILE)
    with pytest.raises(InputError, match="more than 1 rows"):
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
    assert drawn["2 clusters, assumed: min(nodes × interface, path)"].get_ydata() == pytest.approx(
        [10, 20, 30, 40, 50, 52, 52, 52]
    )
    assert drawn["3 clusters, assumed: min(nodes × interface, path)"].get_ydata() == pytest.approx(
        [10, 20, 30, 40, 45.6, 45.6, 45.6, 45.6]
    )
    across = [line.get_ydata()[0] for line in figure.axes[0].lines if line.get_linestyle() == ":"]
    assert across == pytest.approx([52, 45.6])
    # The paper's points: 62 of 65 MB/s there, with six nodes.
    assert [6, pytest.approx(49.6)] in [line.get_xydata()[0].tolist() for line in figure.axes[0].lines]
