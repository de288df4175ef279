"""`blast trees`: network files, output, pictures and invalid input."""

from __future__ import annotations

import io
import json
import re
import sys
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import pytest

from algorithms.balanced.exact import exact
from algorithms.balanced.fpfr import ORDERS
from blast_sim import trees_command
from blast_sim.base.wrong_input import InputError
from blast_sim.trees import network_file
from blast_sim.trees.network_file import MAX_HOSTS, parse_network
from blast_sim.trees.trees_plan import LIMITED
from tests.support.simulators.balanced import check
from tests.support.simulators.balanced_families import clustered, sparse, to_half
from tests.support.simulators.results import results_of
from tests.support.simulators.sim_output import run

FIGURE_2 = {
    "hosts": ["root", "h1", "h2"],
    "root": "root",
    "receivers": "all",
    "links": [["root", "h1", 10], ["root", "h2", 8], ["h1", "h2", 4], ["h2", "h1", 4]],
    "out": {"root": 10, "h1": 10, "h2": 10},
    "in": {"h1": 10, "h2": 10},
}


def document(**changes):
    return {key: value for key, value in {**FIGURE_2, **changes}.items() if value is not ...}


def parsed(value):
    return parse_network(json.dumps(value).encode())


def as_document(network):
    names = network.hosts
    return {
        "hosts": names,
        "root": names[network.root],
        "receivers": [names[host] for host in network.receivers],
        "links": [
            [names[i], names[j], network.rates[i, j]] for i in range(len(names)) for j in range(len(names)) if i != j
        ],
        "out": dict(zip(names, network.out, strict=True)),
        "in": dict(zip(names, network.into, strict=True)),
    }


# --------------------------------------------------------------------------------------------------------- the file


def test_network_file_is_parsed():
    network = parsed(FIGURE_2)
    assert (network.hosts, network.root, network.receivers) == (("root", "h1", "h2"), 0, (1, 2))
    assert network.rates.tolist() == [[0, 10, 8], [0, 0, 4], [0, 4, 0]]
    assert parsed(document(receivers=["h2"])).receivers == (2,)
    assert parsed(document(out=..., **{"in": ...})).out.tolist() == [float("inf")] * 3


WRONG = {
    "hosts missing": (document(hosts=...), "the network has no 'hosts'"),
    "hosts no list": (document(hosts="abc"), "hosts must be a list, not 'abc'"),
    "a host is a number": (document(hosts=["root", 1]), "entry 2 of hosts must be the name of a host, not 1"),
    "a name of two lines": (document(hosts=["root", "a\nb"]), "entry 2 of hosts must be the name"),
    "too many hosts": (document(hosts=[str(n) for n in range(MAX_HOSTS + 1)]), "there are 1001 hosts, but no more"),
    "receivers other": (document(receivers="some"), "receivers must be a list, not 'some'"),
    "root is a list": (document(root=["root"]), "root must be the name of a host"),
    "unknown key": (document(link=[]), "unknown key 'link': did you mean 'links'"),
    "link too short": (document(links=[["root", "h1"]]), "link number 1 must be .from, to, rate., not"),
    "link no list": (document(links=[3]), "link number 1 must be a list, not 3"),
    "link to a number": (document(links=[["root", 1, 1]]), "link number 1: to must be the name of a host, not 1"),
    "negative rate": (
        document(links=[["root", "h1", -1]]),
        "the rate of the link from 'root' to 'h1' must be .* not -1",
    ),
    "rate a text": (document(links=[["root", "h1", "9"]]), "the rate of the link from 'root' to 'h1' must be a number"),
    "rate too large": (document(links=[["root", "h1", 10**400]]), "must be a number"),
    "rate too small": (
        document(links=[["root", "h1", 1e-12]]),
        "is 1e-12; a rate is 0 or at least 1e-09: use another unit",
    ),
    "out no table": (document(out=[1]), "out must be a table of hosts and capacities, not .1."),
    "in null": (document(**{"in": {"h1": None}}), "the in capacity of 'h1' must be a number from 0 to 1e.18, not None"),
    "disconnected": (document(links=[["root", "h1", 10], ["h1", "h2", 0]]), "leads from 'root' to 'h2'"),
}


@pytest.mark.parametrize(("value", "sentence"), WRONG.values(), ids=WRONG)
def test_error_in_a_network_file_names_its_place(value, sentence):
    with pytest.raises(InputError, match=sentence) as refusal:
        parsed(value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "this is no JSON"),
        (b"[1]", "the network must be a table"),
        (b"[" * 100_000, "this is no network: its brackets are nested too deep"),
        (b'{"links": [["a", "b", NaN]]}', "NaN is no finite number"),
        (b'{"links": [["a", "b", -Infinity]]}', "-Infinity is no finite number"),
        (b'{"root": "a", "root": "b"}', "the key 'root' is there twice"),
    ],
)
def test_data_other_than_a_network_is_rejected(data, sentence):
    with pytest.raises(InputError, match=sentence):
        parse_network(data)


# ------------------------------------------------------------------------------------------------------ the command


@pytest.fixture
def blast(capsys):
    return partial(run, capsys, "trees")


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "network.json"
    path.write_text(json.dumps(FIGURE_2))
    return path


@pytest.mark.parametrize(
    ("method", "rate"), [("exact", 9), ("balanced", 9), ("fpfr", 7.5), ("bottleneck", 5), ("semi-flat", 5)]
)
def test_command_prints_the_plan_as_json(blast, file, method, rate):
    status, out, err = blast(file, "--json", "--method", method)
    answer = results_of(out)
    assert (status, err) == (0, "")
    assert list(answer) == ["rate", "bound", "trees"]
    assert (answer["rate"], answer["bound"]) == pytest.approx((rate, 9))
    assert sum(tree["rate"] for tree in answer["trees"]) == pytest.approx(rate)
    for tree in answer["trees"]:
        assert list(tree) == ["rate", "edges"]
        reached = {"root"}
        for sender, receiver in tree["edges"]:
            assert sender in reached
            reached.add(receiver)
        assert reached == {"root", "h1", "h2"}


def test_fpfr_order_changes_the_plan_and_is_printed(blast, tmp_path):
    # Access links without a limit; the orders index and widest reserve 3 of 4 (see
    # tests/algorithms/balanced/test_balanced_orders.py).
    names = ["h0", "h1", "h2", "h3"]
    rates = [[0, 1, 2, 1], [0, 0, 1, 2], [0, 1, 0, 1], [0, 2, 1, 0]]
    links = [
        [one, other, rate]
        for one, row in zip(names, rates, strict=True)
        for other, rate in zip(names, row, strict=True)
        if rate
    ]
    path = tmp_path / "network.json"
    path.write_text(json.dumps({"hosts": names, "root": "h0", "receivers": "all", "links": links}))
    assert "balanced (order widest): rate 3 over" in blast(path, "--method", "balanced")[1]
    assert "balanced (order index): rate 3 over" in blast(path, "--method", "balanced", "--fpfr-order", "index")[1]
    random = [
        blast(path, "--method", "fpfr", "--fpfr-order", "random", "--seed", seed, "--json")[1] for seed in range(9)
    ]
    assert {json.loads(out)["rate"] for out in random} > {4.0}
    assert "fpfr (order random, seed 0): rate" in blast(path, "--method", "fpfr", "--fpfr-order", "random")[1]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--fpfr-order", "index"), "--fpfr-order goes with --method balanced or fpfr, not with exact"),
        (("--method", "fpfr", "--seed", "1"), "--seed goes with --fpfr-order random"),
    ],
)
def test_order_without_effect_is_rejected(blast, file, words, sentence):
    status, out, err = blast(file, *words)
    assert (status, out) == (2, "")
    assert sentence in err


def test_command_offers_the_orders_of_the_algorithm():
    assert ORDERS == trees_command.ORDERS


def test_command_prints_the_plan_as_a_table(blast, file):
    status, out, err = blast(file)
    assert (status, err) == (0, "")
    assert re.search(r"^1 +4 +44.4% +root → h[12] → h[12]$", out, re.MULTILINE)
    assert re.search(r"^3 +1 +11.1% +root → h1, root → h2$", out, re.MULTILINE)
    assert "exact: rate 9 over 3 trees, found in " in out
    assert "no plan exceeds 9 (gap 0 %)" in out


@pytest.mark.parametrize("method", LIMITED)
def test_command_reports_the_cost_of_a_tree_limit(blast, file, method):
    status, out, _ = blast(file, "--method", method, "--max-trees", 2)
    assert status == 0
    assert "over 2 trees" in out
    assert "3 trees would give 9: the limit costs 11.11%" in out
    assert "the limit costs" not in blast(file, "--method", method, "--max-trees", 3)[1]


def test_command_reads_standard_input(blast, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json.dumps(FIGURE_2).encode())))
    assert json.loads(blast("-", "--json")[1])["rate"] == pytest.approx(9)


def test_invalid_input_is_status_2_and_one_line(blast, tmp_path):
    path = tmp_path / "wrong.json"
    path.write_text(json.dumps(document(root="x")))
    for given in (path, tmp_path / "none.json"):
        status, out, err = blast(given)
        assert (status, out, err.count("\n")) == (2, "", 1)
        assert err.startswith("blast: ")
    assert "No such file" in err


@pytest.mark.parametrize(
    "words",
    [("--method", "best"), ("--max-trees", "0"), ("--max-trees", "x"), ("--method", "fpfr", "--max-trees", "2"),
     ("--json", "--svg", "x.svg")],
)  # fmt: skip
def test_invalid_options_are_status_2(blast, file, words):
    status, out, err = blast(file, *words)
    assert (status, out) == (2, "")
    assert err


def test_oversized_network_file_is_rejected_early(blast, monkeypatch):
    monkeypatch.setattr(network_file, "MAX_BYTES", 100_000)
    with Path("/dev/zero").open() as zeros:
        monkeypatch.setattr("sys.stdin", zeros)
        for file in ("-", "/dev/zero"):
            status, out, errors = blast(file)
            assert (status, out) == (2, "")
            assert errors == "blast: more than 100000 bytes are no network of 1000 hosts\n"


def test_failed_solver_is_status_1(blast, file, monkeypatch):
    from algorithms.balanced.master import Master, TreeSolverError

    def give_up(_):
        raise TreeSolverError("the solver ended with Unknown")

    monkeypatch.setattr(Master, "solve", give_up)
    assert blast(file) == (1, "", "blast: the solver ended with Unknown: try another --method\n")


def test_example_in_the_help_is_a_valid_network(blast):
    status, out, _ = blast("--help")
    assert status == 0
    example = out[out.index('{"hosts"') : out.index("JSON output")]
    network = parsed(json.loads(example))
    check(network, exact(network))


# ------------------------------------------------------------------------------------------------------ the picture

SVG = "{http://www.w3.org/2000/svg}"


def drawn(blast, tmp_path, network):
    path, picture = tmp_path / "network.json", tmp_path / "trees.svg"
    path.write_text(json.dumps(network))
    status, out, _ = blast(path, "--svg", picture)
    assert status == 0
    return out, ElementTree.fromstring(picture.read_text())


@pytest.mark.parametrize("network", [clustered(32, 0), to_half(sparse(16, 0), 0)], ids=["32", "16"])
def test_picture_shows_every_tree_with_its_rate_and_hosts(blast, tmp_path, network):
    out, picture = drawn(blast, tmp_path, as_document(network))
    shown = min(24, int(re.search(r"over (\d+) tree", out)[1]))
    panels = list(picture.iter(f"{SVG}g"))
    assert len(panels) == shown
    width, height = float(picture.get("width")), float(picture.get("height"))
    for number, panel in enumerate(panels, start=1):
        texts = [text.text for text in panel.iter(f"{SVG}text")]
        assert texts[0].startswith(f"Tree {number} · ")
        names = texts[1:]
        assert len(set(names)) == len(names)
        assert {network.hosts[host] for host in network.receivers} <= set(names) <= set(network.hosts)
        assert len(list(panel.iter(f"{SVG}path"))) == len(names) - 1
        box = panel.find(f"{SVG}rect")
        x, y = map(float, re.findall(r"[\d.]+", panel.get("transform")))
        assert x + float(box.get("width")) <= width and y + float(box.get("height")) <= height
        assert all(float(text.get("y")) <= float(box.get("height")) for text in panel.iter(f"{SVG}text"))


def test_host_names_in_the_picture_are_escaped_and_cut(blast, tmp_path):
    name = "<b>&amp;" + "x" * 40
    network = {"hosts": ["a", name], "root": "a", "receivers": "all", "links": [["a", name, 1]]}
    texts = [text.text for text in drawn(blast, tmp_path, network)[1].iter(f"{SVG}text")]
    assert any(text.startswith("<b>&amp;xxx") and text.endswith("…") for text in texts)
