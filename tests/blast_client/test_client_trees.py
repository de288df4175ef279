"""Trees at the client: plan and network files, the choice of the transport, and replanning as the network changes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from blast_client.api.base_error import InvalidArgumentError
from blast_client.send.round import RoundSettings
from blast_client.trees import planner as planners
from blast_client.trees.given import given_trees
from blast_client.trees.guide import SETTLED_SECONDS, TreeGuide
from blast_client.trees.planner import planner_of
from blast_sim.tree_planner import NetworkTreePlanner
from blast_transport.base.errors import TransportError, WrongInputError
from blast_transport.session.route import Improve, Route
from blast_transport.transports.choices import Chain, Tree, Trees, Unicast
from blast_transport.transports.sight import HostFlow, PhaseMeasurement
from tests.blast_sim.planning.test_tree_planner import FIGURE_2, network_file
from tests.support.waiting import eventually, for_a_while

# --------------------------------------------------------------------------------------------------- files


def plan_file(folder, *trees):
    file = folder / "plan.json"
    file.write_text(json.dumps({"trees": [{"rate": 1, "edges": edges} for edges in trees]}))
    return file


def test_plan_file_for_all_receivers_is_accepted(tmp_path):
    given = given_trees(plan_file(tmp_path, [["r", "a"], ["a", "b"]]), ["a", "b"])
    assert [dict(tree.parents) for tree in given.trees] == [{"a": "", "b": "a"}]


@pytest.mark.parametrize(
    ("edges", "reason"),
    [([["r", "a"]], "does not reach b"), ([["r", "a"], ["r", "b"], ["b", "c"]], "reaches c")],
)
def test_plan_file_for_other_receivers_is_rejected(tmp_path, edges, reason):
    with pytest.raises(WrongInputError, match=rf"plan\.json: .*{reason}"):
        given_trees(plan_file(tmp_path, edges), ["a", "b"])


def test_missing_plan_or_network_file_is_named(tmp_path):
    for read in (lambda path: given_trees(path, ["a"]), planner_of):
        with pytest.raises(WrongInputError, match=r"cannot read .*nowhere"):
            read(tmp_path / "nowhere")


# ------------------------------------------------------------------------------------------------- planners


class Declared:
    """An entry point."""

    def __init__(self, load):
        self.load = load


@pytest.fixture(autouse=True)
def declared(monkeypatch):
    """Declare one planner, regardless of the installed ones, and return the list of declared planners."""
    found = [Declared(lambda: NetworkTreePlanner)]
    monkeypatch.setattr(planners, "entry_points", lambda group: found if group == planners.GROUP else [])
    return found


def test_missing_planner_error_names_package_extra(declared, tmp_path):
    declared.clear()
    with pytest.raises(WrongInputError, match=r"\[sim\]"):
        planner_of(tmp_path)

    def load():
        raise ModuleNotFoundError("No module named 'numpy'")

    declared.append(Declared(load))
    with pytest.raises(WrongInputError, match=r"numpy.*\[sim\]"):
        planner_of(tmp_path)


def test_invalid_network_file_is_named(tmp_path):
    with pytest.raises(WrongInputError, match=r"network\.json: .*no 'hosts'"):
        planner_of(network_file(tmp_path, {}))


@pytest.mark.parametrize(
    "options",
    [
        {"via": "trees"},
        {"via": "trees", "network": Path("n"), "trees": Path("t")},
        {"via": "auto", "trees": Path("t")},
        {"via": "pipeline", "network": Path("n")},
    ],
)
def test_round_settings_reject_conflicting_options(options):
    with pytest.raises(InvalidArgumentError):
        RoundSettings(**options)


# ---------------------------------------------------------------------------------------------------- guide


@pytest.fixture
def guide(tmp_path):
    return guide_of(tmp_path)


def guide_of(folder, probe=None):
    return TreeGuide(planner_of(network_file(folder, FIGURE_2)), ["one", "two"], probe)


def rate_of_link(choice, parent, child):
    return sum(tree.rate for tree in choice.trees if tree.parents[child] == parent)


def next_order(route):
    return eventually(route.take_order, "a better plan")


def test_guide_starts_with_optimal_plan(guide):
    assert guide.rate == pytest.approx(9)
    assert isinstance(guide.choice, Trees)
    assert rate_of_link(guide.choice, "", "one") + rate_of_link(guide.choice, "", "two") == pytest.approx(10)


def test_trees_are_used_only_if_clearly_faster_than_pipeline(guide, tmp_path):
    assert guide.are_worth_it(["one", "two"])
    even = {"hosts": ["r", "a", "b"], "root": "r", "receivers": "all", "out": {"r": 9, "a": 9, "b": 9}}
    even["links"] = [[i, j, 10] for i in "rab" for j in "rab" if i != j]
    assert not TreeGuide(planner_of(network_file(tmp_path, even)), ["a", "b"]).are_worth_it(["a", "b"])


def test_broken_path_changes_plan_until_probe_succeeds(tmp_path, monkeypatch):
    monkeypatch.setattr("algorithms.balanced.estimate.PROBE_SECONDS", 0.0)
    found = [TransportError("not yet")]

    def probe(sender, receiver):
        assert (sender, receiver) == ("root", "one")
        if isinstance(found[0], Exception):
            raise found[0]
        return found[0]

    guide, route = guide_of(tmp_path, probe), Route(Chain())
    with guide.guiding(route):
        guide.choice.watch(PhaseMeasurement(0.1, (), (), (("", "one"),)))
        order = next_order(route)
        assert isinstance(order, Improve)
        assert rate_of_link(order.choice, "", "one") == 0
        found[0] = 10.0
        assert sum(tree.rate for tree in next_order(route).choice.trees) == pytest.approx(9)


def test_startup_measurements_do_not_count_as_drift(guide, monkeypatch):
    monkeypatch.setattr("algorithms.balanced.estimate.STEADY_SECONDS", 0.0)
    route, planned = Route(Chain()), rate_of_link(guide.choice, "", "one")
    flows = (HostFlow("", "one", 0.0, planned, True), HostFlow("", "two", 0.0, 5.0, True))
    with guide.guiding(route):
        guide.choice.watch(PhaseMeasurement(0.9 * SETTLED_SECONDS, flows))
        guide.choice.watch(PhaseMeasurement(SETTLED_SECONDS, (HostFlow("", "one", planned, planned, False),)))
        for_a_while(lambda: route.take_order() is None, "the first plan")


def test_guide_excludes_lost_receivers(guide):
    route = Route(Chain())
    with guide.guiding(route):
        guide.choice.watch(PhaseMeasurement(0.1, (), ("one",)))
        assert [dict(tree.parents) for tree in next_order(route).choice.trees] == [{"two": ""}]
        guide.choice.watch(PhaseMeasurement(0.1, (), ("two",)))
        guide.choice.watch(PhaseMeasurement(SETTLED_SECONDS, ()))


# ---------------------------------------------------------------------------------------------------- route


def test_route_accepts_improvement_of_same_transport_only():
    tree = Tree(1.0, {"a": ""})
    trees, better = Trees((tree,)), Trees((tree,), watch=print)
    route = Route(Unicast(), trees)
    route.improve(better)
    assert route.otherwise is better
    assert route.take_order() == Improve(better)
    route.improve(Chain(("a",)))
    assert route.otherwise is better
    route.take_order()
    route.go_otherwise()
    assert route.take_order() is better
