"""Emulated sites before they are built: what is refused, what presets consist of, what `tc` is told."""

import argparse
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from algorithms.balanced.exact import exact
from algorithms.balanced.testbeds import SITES, gridlab
from blast_sim.trees.network_file import parse_network
from mininet_topos import command
from mininet_topos.kernel.errors import PlanError
from mininet_topos.sites import presets
from mininet_topos.sites.plan import MAX_BPS, MIN_BPS, SharedLink, SitesPlan, as_network_file, from_network
from mininet_topos.sites.shaping import WIRE, ShapedPeer, access_link, changed, shared_link


@pytest.fixture
def parse():
    parser = argparse.ArgumentParser(prog="blast")
    command.register(parser.add_subparsers(required=True))
    return parser.parse_args


PATHS = {("a", "b"): 1e6}


@pytest.mark.parametrize(
    ("plan", "word"),
    [
        (lambda: SitesPlan(("a",), {}), "2 to 64"),
        (lambda: SitesPlan(("a", "a"), {}), "twice"),
        (lambda: SitesPlan(("a", "../b"), {}), "'../b' cannot be the name of a host here"),
        (lambda: SitesPlan(("a", "b=c"), {}), "'b=c' cannot be the name of a host here"),
        (lambda: SitesPlan(("a", "b" * 65), {}), "cannot be the name of a host here"),
        (lambda: SitesPlan(("a", "b"), {("a", "c"): 1e6}), "c is not among"),
        (lambda: SitesPlan(("a", "b"), PATHS, out={"c": 1e6}), "c is not among"),
        (lambda: SitesPlan(("a", "b"), {("a", "a"): 1e6}), "to itself"),
        (lambda: SitesPlan(("a", "b"), {("a", "b"): 10.0}), "set the unit of the rates"),
        (lambda: SitesPlan(("a", "b"), PATHS, shared=(SharedLink(("a",), ("b",), 1.0),)), "set the unit of the rates"),
        (lambda: SitesPlan(("a", "b"), PATHS, far=frozenset(PATHS)), "far hosts"),
        (lambda: SitesPlan(("a", "b"), PATHS, shared=(SharedLink(("a",), ("b",), 1e6),) * 2), "two detours"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(plan, word):
    with pytest.raises(PlanError, match=word) as refusal:
        plan()
    assert "\n" not in str(refusal.value)


@given(
    st.dictionaries(
        st.tuples(st.sampled_from("abcd"), st.sampled_from("abcd")).filter(lambda pair: pair[0] != pair[1]),
        st.floats(MIN_BPS, MAX_BPS),
    ),
    st.dictionaries(st.sampled_from("abcd"), st.floats(MIN_BPS, MAX_BPS)),
)
def test_a_plan_comes_back_from_its_file(rates, out):
    paths = {**rates, ("a", "b"): 1e6, ("a", "c"): 2e6, ("a", "d"): 3e6}
    plan = SitesPlan(tuple("abcd"), paths, out)
    again = from_network(parse_network(json.dumps(as_network_file(plan, "a")).encode()))
    assert (again.hosts, again.rates, again.out, again.into) == (plan.hosts, paths, out, {})


@pytest.mark.parametrize("root", SITES[:2])
def test_gridlab_is_the_network_that_is_planned_for(root):
    emulated, known = presets.gridlab().network(root), gridlab(root)
    assert (emulated.rates == known.rates).all()
    assert (emulated.out == known.out).all() and (emulated.into == known.into).all()
    assert emulated.root == known.root


@pytest.mark.parametrize(("nodes", "mbps"), [(1, 10), (4, 40), (5, 45.6), (8, 45.6)])
def test_clusters_are_as_fast_as_their_nodes_or_the_slower_link(nodes, mbps):
    network = parse_network(json.dumps(presets.clusters_file(3, nodes)).encode())
    assert exact(network).rate == pytest.approx(mbps * 1e6)


def test_scaled_sites_have_the_same_trees_at_other_rates():
    whole, half = (exact(plan.network("berlin")) for plan in (presets.gridlab(), presets.gridlab().scaled(0.5)))
    assert half.rate == pytest.approx(whole.rate / 2)
    assert presets.clusters().scaled(0.5).shared[0].rate == 26e6


def test_the_link_carries_headers_on_top_of_the_rate():
    ceilings = {ceiling for line in shared_link("d", 10e6) for ceiling in re.findall(r"ceil (\d+)kbit", line)}
    assert ceilings == {str(round(10_000 * WIRE))}


def test_a_class_has_next_to_nothing_of_its_own_or_the_capacity_would_not_hold():
    lines = access_link("d", 10e6, "dst", [ShapedPeer(n, f"10.0.0.{n}", 9e6) for n in range(1, 4)])
    assert sum("rate 1kbit ceil" in line for line in lines) == 3 * 5
    assert sum("parent 1:1 " in line for line in lines) == 3


def test_a_local_path_is_beside_the_access_link():
    lines = access_link("d", 10e6, "dst", [ShapedPeer(1, "10.0.0.1", 90e6, local=True)])
    assert any("parent 1: classid 1:11 htb rate" in line for line in lines)


def test_a_dead_path_takes_nothing_and_forgets_what_waits():
    for rate, queue in ((0, "pfifo limit 0"), (1e6, "bfifo limit 9084b")):
        queues = [line for line in changed("d", ShapedPeer(1, "10.0.0.1", rate)) if line.startswith("qdisc")]
        assert len(queues) == 4
        assert all(line.endswith(queue) for line in queues)


def test_a_file_in_which_not_all_receive_stays_one_that_can_be_planned_for(parse, capsys, tmp_path):
    path = tmp_path / "network.json"
    known = {"hosts": ["a", "b", "c"], "root": "a", "receivers": ["b"], "links": [["a", "b", 10], ["c", "b", 5]]}
    path.write_text(json.dumps(known))
    options = parse(["lab", "sites", str(path), "--unit", "mbit", "--show"])
    assert options.run(options) == 0
    shown = parse_network(capsys.readouterr().out.encode())
    assert [shown.hosts[place] for place in shown.receivers] == ["b"]


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ([], "either"),
        (["network.json", "--preset", "gridlab"], "either"),
        (["network.json"], "set the unit of the rates"),
        (["missing.json"], "missing.json"),
    ],
)
def test_the_command_refuses_in_a_sentence(parse, capsys, monkeypatch, tmp_path, arguments, word):
    monkeypatch.chdir(tmp_path)
    network = {"hosts": ["a", "b"], "root": "a", "receivers": "all", "links": [["a", "b", 10]]}
    (tmp_path / "network.json").write_text(json.dumps(network))
    options = parse(["lab", "sites", *arguments])
    assert options.run(options) == 2
    said = capsys.readouterr().err
    assert word in said
    assert said.count("\n") == 1


def test_the_command_shows_what_blast_trees_reads(parse, capsys):
    for preset in ("figure2", "gridlab", "homogeneous", "clusters"):
        options = parse(["lab", "sites", "--preset", preset, "--show"])
        assert options.run(options) == 0
        assert parse_network(capsys.readouterr().out.encode()).to_all
