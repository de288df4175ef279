"""Plans of emulated sites: rejected values, presets, and the commands for `tc`."""

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
def test_plan_rejects_impossible_sites_with_reason(plan, word):
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
def test_plan_round_trips_through_network_file(rates, out):
    paths = {**rates, ("a", "b"): 1e6, ("a", "c"): 2e6, ("a", "d"): 3e6}
    plan = SitesPlan(tuple("abcd"), paths, out)
    again = from_network(parse_network(json.dumps(as_network_file(plan, "a")).encode()))
    assert (again.hosts, again.rates, again.out, again.into) == (plan.hosts, paths, out, {})


@pytest.mark.parametrize("root", SITES[:2])
def test_gridlab_preset_matches_planned_network(root):
    emulated, known = presets.gridlab().network(root), gridlab(root)
    assert (emulated.rates == known.rates).all()
    assert (emulated.out == known.out).all() and (emulated.into == known.into).all()
    assert emulated.root == known.root


@pytest.mark.parametrize(("nodes", "mbps"), [(1, 10), (4, 40), (5, 45.6), (8, 45.6)])
def test_cluster_rate_is_limited_by_nodes_or_slower_link(nodes, mbps):
    network = parse_network(json.dumps(presets.clusters_file(3, nodes)).encode())
    assert exact(network).rate == pytest.approx(mbps * 1e6)


def test_scaled_plan_scales_rates():
    whole, half = (exact(plan.network("berlin")) for plan in (presets.gridlab(), presets.gridlab().scaled(0.5)))
    assert half.rate == pytest.approx(whole.rate / 2)
    assert presets.clusters().scaled(0.5).shared[0].rate == 26e6


def test_shared_link_ceiling_includes_headers():
    ceilings = {ceiling for line in shared_link("d", 10e6) for ceiling in re.findall(r"ceil (\d+)kbit", line)}
    assert ceilings == {str(round(10_000 * WIRE))}


def test_classes_have_minimal_guaranteed_rate():
    lines = access_link("d", 10e6, "dst", [ShapedPeer(n, f"10.0.0.{n}", 9e6) for n in range(1, 4)])
    assert sum("rate 1kbit ceil" in line for line in lines) == 3 * 5
    assert sum("parent 1:1 " in line for line in lines) == 3


def test_local_path_bypasses_access_link_class():
    lines = access_link("d", 10e6, "dst", [ShapedPeer(1, "10.0.0.1", 90e6, local=True)])
    assert any("parent 1: classid 1:11 htb rate" in line for line in lines)


def test_change_to_rate_zero_empties_queues():
    for rate, queue in ((0, "pfifo limit 0"), (1e6, "bfifo limit 9084b")):
        queues = [line for line in changed("d", ShapedPeer(1, "10.0.0.1", rate)) if line.startswith("qdisc")]
        assert len(queues) == 4
        assert all(line.endswith(queue) for line in queues)


def test_shown_network_keeps_receivers_of_file(parse, capsys, tmp_path):
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
def test_sites_command_rejects_invalid_input_in_one_sentence(parse, capsys, monkeypatch, tmp_path, arguments, word):
    monkeypatch.chdir(tmp_path)
    network = {"hosts": ["a", "b"], "root": "a", "receivers": "all", "links": [["a", "b", 10]]}
    (tmp_path / "network.json").write_text(json.dumps(network))
    options = parse(["lab", "sites", *arguments])
    assert options.run(options) == 2
    errors = capsys.readouterr().err
    assert word in errors
    assert errors.count("\n") == 1


def test_shown_preset_is_readable_network_file(parse, capsys):
    for preset in ("figure2", "gridlab", "homogeneous", "clusters"):
        options = parse(["lab", "sites", "--preset", preset, "--show"])
        assert options.run(options) == 0
        assert parse_network(capsys.readouterr().out.encode()).to_all
