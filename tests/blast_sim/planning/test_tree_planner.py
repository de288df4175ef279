"""`NetworkTreePlanner`: trees by host names, for some of the hosts, and new trees after changes of the network."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from algorithms.balanced.best_trees import THIN
from algorithms.balanced.estimate import PROBE_SECONDS
from algorithms.balanced.exact import exact
from algorithms.balanced.testbeds import SITES, gridlab
from blast_sim.base.wrong_input import InputError
from blast_sim.tree_planner import NetworkTreePlanner

FIGURE_2 = {
    "hosts": ["root", "one", "two"],
    "root": "root",
    "receivers": "all",
    "links": [
        ["root", "one", 10], ["root", "two", 8], ["one", "two", 4],
        ["one", "root", 10], ["two", "root", 8], ["two", "one", 4],
    ],
    "out": dict.fromkeys(["root", "one", "two"], 10),
    "in": dict.fromkeys(["root", "one", "two"], 10),
}  # fmt: skip

EVEN = {
    "hosts": ["root", "one", "two"],
    "root": "root",
    "receivers": "all",
    "links": [[i, j, 10] for i in ("root", "one", "two") for j in ("one", "two") if i != j],
    "out": dict.fromkeys(["root", "one", "two"], 10),
}
"""A network in which other paths replace the rate that one path loses."""


@pytest.fixture
def planner(tmp_path: Path) -> NetworkTreePlanner:
    return NetworkTreePlanner(network_file(tmp_path, FIGURE_2))


def network_file(folder: Path, network: object) -> Path:
    file = folder / "network.json"
    file.write_text(json.dumps(network))
    return file


def load(planned, parent, child):
    return sum(rate for rate, parents in planned.trees if parents.get(child) == parent)


def test_planner_reaches_the_rate_of_figure_2(planner):
    assert planner.better() is None
    planned = planner.plan(["one", "two"])
    assert planner.better() is None, "nothing has changed"
    assert planned.rate == pytest.approx(9)
    assert sum(rate for rate, _ in planned.trees) == pytest.approx(9)
    assert all(set(parents) == {"one", "two"} for _, parents in planned.trees)
    assert planner.root == "root"


def test_only_receivers_forward(planner):
    planned = planner.plan(["two"])
    assert [dict(parents) for _, parents in planned.trees] == [{"two": "root"}]
    assert planned.rate == pytest.approx(8)
    # The rate of a pipeline.
    assert planner.chain_rate(["one", "two"]) == 4
    assert planner.chain_rate(["two"]) == 8


@pytest.mark.parametrize("use", [lambda p, to: p.plan(to), lambda p, to: p.chain_rate(to)])
def test_error_names_hosts_missing_from_the_file(planner, use):
    with pytest.raises(InputError, match="no host 'three'"):
        use(planner, ["one", "three"])


def test_error_names_unreachable_hosts(tmp_path):
    network = {"hosts": ["a", "b", "c"], "root": "a", "receivers": ["b"], "links": [["a", "b", 1]]}
    with pytest.raises(InputError, match="to 'c'"):
        NetworkTreePlanner(network_file(tmp_path, network)).plan(["b", "c"])


def test_planner_avoids_a_slow_path_until_a_probe_finds_it_fast(tmp_path):
    planner = NetworkTreePlanner(network_file(tmp_path, EVEN))
    before = planner.plan(["one", "two"])
    used = "one" if load(before, "root", "one") else "two"
    rate = load(before, "root", used)
    for now in range(3):
        planner.see([("root", used, rate / 2, rate, True)], [], float(now))
    around = planner.better()
    assert around is not None and around.rate == pytest.approx(10)
    left = load(around, "root", used)
    assert left <= rate / 2 * 1.001
    assert planner.better() is None
    planner.see([("root", used, left, left, False)], [], 4.0)
    suspect = planner.suspect(4.0 + PROBE_SECONDS)
    assert (suspect.sender, suspect.receiver) == ("root", used)
    planner.probed(suspect, 0.1)
    assert planner.suspect(4.0 + 2 * PROBE_SECONDS) is not None, "as slow as it was"
    planner.probed(suspect, 10 - left)
    assert planner.suspect(4.0 + 9 * PROBE_SECONDS) is None


def test_planner_uses_a_lost_path_again_after_a_probe(planner):
    before = planner.plan(["one", "two"])
    rate = load(before, "root", "one")
    planner.see([], [("root", "one")], 0.0)
    around = planner.better()
    assert around is not None and around.rate == pytest.approx(4), "no faster, but one of the trees has stopped"
    assert load(around, "root", "one") == 0
    planner.probed(planner.suspect(PROBE_SECONDS), rate)
    again = planner.better()
    assert again is not None and again.rate == pytest.approx(before.rate)


@pytest.mark.parametrize("root", ["amsterdam", "berlin"])
def test_planner_omits_thin_trees_at_little_cost(tmp_path, root):
    network = gridlab(root)
    links = [
        [one, other, float(network.rates[i, j])]
        for i, one in enumerate(SITES)
        for j, other in enumerate(SITES)
        if i != j
    ]
    access = {
        key: dict(zip(SITES, rates.tolist(), strict=True))
        for key, rates in (("out", network.out), ("in", network.into))
    }
    written = {"hosts": list(SITES), "root": root, "receivers": "all", "links": links, **access}
    planned = NetworkTreePlanner(network_file(tmp_path, written)).plan([site for site in SITES if site != root])
    assert planned.rate >= 0.97 * exact(network).rate
    assert min(rate for rate, _ in planned.trees) >= THIN * planned.rate / 2
