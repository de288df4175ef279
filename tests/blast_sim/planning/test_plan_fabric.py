"""`blast fabric plan`: the price table, bills, proposals, the chosen fabric and the next piece."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial

import pytest

from algorithms.b_matching.options import options
from blast_sim.allocation.allocate import AllocationMethod, plan
from blast_sim.allocation.instance import Instance, InstanceRequest
from blast_sim.base.wrong_input import InputError
from blast_sim.planning.fabric_choice import best_for, cheapest_serving, pareto
from blast_sim.planning.fabric_plan import Planner, PlanQuestion
from blast_sim.planning.hardware import Hardware, bill
from blast_sim.planning.pool_program import PoolProgram, SplitterSize
from blast_sim.planning.prices import example_text, parse_prices
from blast_sim.planning.samples import from_family
from tests.support.simulators.results import results_of
from tests.support.simulators.sim_output import run

EXAMPLE = parse_prices(example_text())
PLAIN = """
[rack_port]
price = 10
watts = 1
[[optical_switch]]
ports = 20
price = 100
watts = 5
[[optical_switch]]
ports = 40
price = 300
watts = 8
[[splitter]]
fan_out = 4
price = 4
watts = 0
[[splitter]]
fan_out = 8
price = 6
watts = 0
"""
CHEAP = parse_prices(PLAIN)


# -------------------------------------------------------------------------------------------------- price table


def test_example_has_the_prices_of_the_paper():
    assert {fan_out: offer.item.price for fan_out, offer in EXAMPLE.splitters.items()} == {4: 40, 16: 80, 64: 250}
    (switch,) = [offer for offer in EXAMPLE.switches if offer.ports == 320]
    assert (switch.item.price, switch.item.watts) == (85_000, 50)


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("price = 10", "prize = 10", "rack_port has an unknown key 'prize': did you mean 'price'"),
        ("price = 10", "price = -1", "rack_port: price must be a number from 0"),
        ("price = 10", "price = true", "rack_port: price must be a number"),
        ("ports = 20", "ports = 0", "optical_switch number 1: ports must be"),
        ("fan_out = 4", "fan_out = 1", "splitter number 1: ways must be a whole number from 2"),
        ("fan_out = 4", "fan_out = 8", "1:8 splitters twice"),
        ("[rack_port]", "[rackport]", "unknown key 'rackport': did you mean 'rack_port'"),
        ("[rack_port]", "[light]\nbudget_db = 9\npass_loss_db = 1\n[rack_port]", "splitter number 1 has no 'loss_db'"),
        ("[rack_port]", "[[[", "not TOML"),
        ("watts = 5", "", "optical_switch number 1 has no 'watts'"),
    ],
)
def test_invalid_price_table_is_rejected_in_one_sentence(old, new, sentence):
    with pytest.raises(InputError, match=sentence):
        parse_prices(PLAIN.replace(old, new, 1))


# --------------------------------------------------------------------------------------------------------- bills


def test_fabric_of_the_paper_needs_320_ports():
    hardware = Hardware(120, 1, {4: 40})
    assert hardware.switch_ports == 320
    assert replace(hardware, packed=True).switch_ports == 280
    cost = bill(hardware, EXAMPLE)
    assert [(line.name, line.count) for line in cost.lines] == [
        ("optical switch, 320 ports", 1),
        ("optical port of a ToR", 120),
        ("1:4 splitter", 40),
    ]
    assert cost.price == 85_000 + 120 * 300 + 40 * 40
    assert cost.watts == 50 + 120 * 1.5


def test_bill_uses_the_smallest_sufficient_switch():
    assert bill(Hardware(10, 2, {}), CHEAP).price == 100 + 20 * 10
    assert bill(Hardware(7, 3, {}), CHEAP).price == 300 + 21 * 10
    assert bill(Hardware(41, 1, {}), CHEAP) is None


# ----------------------------------------------------------------------------------------------------- proposals


def worlds(*groups: tuple[tuple[int, ...], float], racks: int = 12) -> list[Instance]:
    """Return one sample with these groups (racks, the sender's first, and weight)."""
    requests = tuple(InstanceRequest(str(n), of[0], of[1:], weight) for n, (of, weight) in enumerate(groups))
    return [Instance((1,) * racks, {4: 1}, requests)]


def candidates(question: PlanQuestion, *ports: int) -> list:
    planner = Planner(question)
    found = [planner.tried(hardware) for number in ports for hardware in planner.proposals(number)]
    return pareto(candidate for candidate in found if candidate is not None)


def test_planner_buys_splitters_that_fit_the_groups():
    samples = worlds(((0, 1, 2), 10.0), ((3, 4, 5), 10.0), ((6, 7, 8, 9, 10, 11), 10.0))
    best = candidates(PlanQuestion(samples, CHEAP), 1)[-1]
    # Two 1:4 splitters do the wide group as well, but take ten switch ports, and the 1:8 nine.
    assert dict(best.hardware.pool) == {4: 2, 8: 1}
    assert best.served == pytest.approx(1.0)
    assert best.bound == pytest.approx(1.0)


def test_planner_buys_no_unused_splitters():
    samples = worlds(((0, 1, 2), 10.0))
    planner = Planner(PlanQuestion(samples, CHEAP))
    assert dict(planner.tried(Hardware(12, 1, {4: 3, 8: 1})).hardware.pool) == {4: 1}
    assert planner.tried(Hardware(12, 4, {4: 1})) is None


def test_only_lightpaths_are_planned_without_splitters():
    none = replace(EXAMPLE, splitters={})
    assert [one.served for one in candidates(PlanQuestion(worlds(((0, 1), 1.0), ((2, 3, 4), 3.0)), none), 1)] == [0.25]
    assert [one.served for one in candidates(PlanQuestion(worlds(((2, 3, 4), 3.0)), none), 1)] == [0.0]


def test_pool_is_sufficient_for_the_largest_sample():
    (few,) = worlds(((0, 1, 2), 1.0))
    (many,) = worlds(((0, 1, 2), 1.0), ((3, 4, 5), 1.0), ((6, 7, 8), 1.0))
    best = candidates(PlanQuestion([few, many], CHEAP), 1)[-1]
    assert best.served == pytest.approx(1.0)
    assert dict(best.hardware.pool) == {4: 3}


@pytest.mark.parametrize("family", ["S-many", "FB"])
def test_pareto_fabrics_cost_more_only_if_they_serve_more(family):
    samples = from_family(family, 24, 12, 2)
    found = candidates(PlanQuestion(samples, EXAMPLE), 1, 2)
    prices, served = ([pick(one) for one in found] for pick in (lambda c: c.bill.price, lambda c: c.served))
    assert prices == sorted(prices)
    assert served == sorted(set(served))
    assert all(0 <= one.served <= one.bound + 1e-9 <= 1 + 2e-9 for one in found)
    chosen = cheapest_serving(found, 0.9)
    assert chosen.served >= 0.9 * served[-1]
    assert not [one for one in found if one.served >= 0.9 * served[-1] and one.bill.price < chosen.bill.price]
    assert best_for(found, prices[1]) is found[1]
    with pytest.raises(InputError, match="the cheapest fabric costs"):
        best_for(found, prices[0] - 1)


def test_served_share_is_limited_by_the_exact_optimum():
    samples = [replace(one, pool={4: 24, 16: 24}) for one in from_family("FB", 24, 30, 2)]
    prices = replace(EXAMPLE, light=None)
    best = candidates(PlanQuestion(samples, prices), 1)[-1]
    optimum = [plan(one, AllocationMethod(exact=10.0)) for one in samples]
    volumes = [sum(request.weight for request in one.requests) for one in samples]
    max_served = sum(one.allocation.value / volume for one, volume in zip(optimum, volumes, strict=True)) / len(samples)
    assert best.served == pytest.approx(max_served, rel=0.02)
    assert best.served <= max_served + 1e-9


def test_proposals_stay_within_the_largest_switch():
    planner = Planner(PlanQuestion(worlds(((0, 1), 1.0), racks=21), CHEAP))
    assert planner.proposals(1) and planner.proposals(2) == []
    groups = [((3 * n, 3 * n + 1, 3 * n + 2), 1.0) for n in range(10)]
    found = candidates(PlanQuestion(worlds(*groups, racks=30), CHEAP), 1)
    assert all(one.hardware.switch_ports <= 40 for one in found)
    # Ten ports are left for splitters: two of 1:4 with five each.
    assert dict(found[-1].hardware.pool) == {4: 2}


def program(instance: Instance, sizes: list[SplitterSize], max_ports: int = 1000) -> PoolProgram:
    return PoolProgram([options(instance.groups(), instance.feasibility())], sizes, max_ports)


def test_program_buys_splitters_only_for_groups_with_free_ports():
    (rivals,) = worlds(((0, 1, 2), 3.0), ((2, 3, 4), 2.0))
    found = program(replace(rivals, pool={4: 9}), [SplitterSize(4, 1.0, 5)])
    assert found.solve(0.01) == {4: 1}
    assert found.solve(0.59) == {4: 1}
    # The heavier group is 3/5 of the volume: a splitter is not worth more.
    assert found.solve(0.61) == {4: 0}


def test_program_serves_each_group_once():
    (one,) = worlds(((0, 1, 2), 1.0))
    plenty = replace(one, ports=(2,) * 12, pool={4: 9, 8: 9})
    assert program(plenty, [SplitterSize(4, 1.0, 5), SplitterSize(8, 2.0, 9)]).solve(0.01) == {4: 1, 8: 0}


def test_program_rounds_down_to_the_ports_of_the_switch():
    # The ports are enough for one and a half of the three splitters that the groups need.
    (three,) = worlds(((0, 1, 2), 1.0), ((3, 4, 5), 1.0), ((6, 7, 8), 1.0))
    assert program(replace(three, pool={4: 9}), [SplitterSize(4, 1.0, 5)], 8).solve(0.01) == {4: 1}
    assert program(replace(three, pool={4: 9}), [SplitterSize(4, 1.0, 5)], 10).solve(0.01) == {4: 2}


# ---------------------------------------------------------------------------------------------------- light budget


def test_tree_beyond_the_power_budget_is_not_counted():
    samples = worlds((tuple(range(12)), 1.0))
    light = "[light]\nbudget_db = {}\npass_loss_db = 1.5\n"
    losses = PLAIN.replace("fan_out = 4", "fan_out = 4\nloss_db = 7").replace(
        "fan_out = 8", "fan_out = 8\nloss_db = 10"
    )
    # Eleven leaves are two levels of either size: three passes of 1.5 dB, and 7 + 7 dB at best.
    for budget, served in (("18.4", 0.0), ("18.6", 1.0)):
        best = candidates(PlanQuestion(samples, parse_prices(light.format(budget) + losses)), 1)[-1]
        assert best.served == pytest.approx(served)
    assert candidates(PlanQuestion(samples, CHEAP), 1)[-1].served == pytest.approx(1.0)


def test_limit_on_splitters_per_tree_is_respected():
    samples = worlds((tuple(range(12)), 1.0))
    # Eleven leaves: one 1:8 and one 1:4 without a light budget, four 1:4 within one.
    for prices, needed in ((CHEAP, 2), (replace(EXAMPLE, splitters={4: EXAMPLE.splitters[4]}), 4)):
        question = PlanQuestion(samples, prices)
        for limit, served in ((None, 1.0), (needed, 1.0), (needed - 1, 0.0)):
            best = candidates(replace(question, max_splitters_per_tree=limit), 1)[-1]
            assert best.served == pytest.approx(served)


# -------------------------------------------------------------------------------------------------- the next piece


def test_planner_reports_gain_and_price_of_the_next_piece():
    # One splitter is there for two groups; a third sends from a rack that receives, and a fourth needs a second port.
    samples = worlds(((0, 1, 2), 10.0), ((3, 4, 5), 3.0), ((1, 6), 2.0), ((0, 7), 1.0))
    planner = Planner(PlanQuestion(samples, CHEAP))
    chosen = planner.tried(Hardware(12, 1, {4: 1}))
    assert chosen.served == pytest.approx(10 / 16)
    gains = {piece.name: piece for piece in planner.next_pieces(chosen)}
    assert gains["a 1:4 splitter"].gain == pytest.approx(3 / 16)
    assert gains["a 1:4 splitter"].price == 300 - 100 + 4
    assert gains["a 1:8 splitter"].gain == pytest.approx(3 / 16)
    assert gains["an optical port at every rack"].gain == pytest.approx(3 / 16)
    assert gains["an optical port at every rack"].watts == 12 + 3
    assert gains["directional ports (a setting)"].gain == pytest.approx(2 / 16)
    assert gains["directional ports (a setting)"].price == 0
    no_room = {piece.name: piece for piece in planner.next_pieces(planner.tried(Hardware(12, 3, {})))}
    assert no_room["an optical port at every rack"].gain is None


# -------------------------------------------------------------------------------------------------------- samples


@pytest.mark.parametrize(
    ("name", "racks", "groups", "sentence"),
    [
        ("P-contg", 20, 5, "did you mean 'P-contig'"),
        ("S36-disjoint", 20, 36, "use more racks"),
        ("S-many", 2, 5, "use more racks"),
        ("ADV-star", 20, 5, "use more racks"),
    ],
)
def test_impossible_workloads_are_rejected(name, racks, groups, sentence):
    with pytest.raises(InputError, match=sentence):
        from_family(name, racks, groups, 1)


# ----------------------------------------------------------------------------------------------------- the command


@pytest.fixture
def blast(capsys):
    return partial(run, capsys, "fabric", "plan")


def files(folder, groups, prices):
    """Write a workload of these groups (racks, the sender's first, and weight) and prices; return the options."""
    requests = [
        {"id": str(n), "sender": racks[0], "receivers": list(racks[1:]), "weight": weight}
        for n, (racks, weight) in enumerate(groups)
    ]
    racks = 1 + max(max(of) for of, _ in groups)
    pool = [{"fan_out": 4, "count": 1}]
    instance = {"racks": racks, "ports_per_rack": 1, "splitters": pool, "requests": requests}
    (folder / "requests.json").write_text(json.dumps(instance))
    (folder / "prices.toml").write_text(prices)
    return "--workload", folder / "requests.json", "--prices", folder / "prices.toml"


def test_plan_for_a_workload_family_is_reproducible(blast):
    arguments = ("--racks", 24, "--workload", "S-many", "--groups", 12, "--samples", 2, "--json")
    (status, out, err), again = blast(*arguments), blast(*arguments)
    assert (status, err) == (0, "")
    answer = results_of(out)
    assert results_of(again[1]) == answer
    assert answer["chosen"]["served"] >= 0.95 * max(fabric["served"] for fabric in answer["fabrics"])
    assert answer["chosen"]["price"] == sum(line["price"] for line in answer["chosen"]["bill"])
    assert {piece["item"] for piece in answer["next"]} >= {"a 1:4 splitter", "an optical port at every rack"}
    text = blast(*arguments[:-1])[1]
    assert "none: no rack repeats a multicast that the listed splitters can serve." in text
    assert "none is proposed" in text


def test_command_plans_a_workload_file_with_own_prices(blast, tmp_path):
    options = files(tmp_path, [((0, 1, 2), 4.0), ((3, 4, 5), 3.0)], PLAIN)
    status, out, _ = blast(*options, "--serve", 100)
    assert status == 0
    assert "2 x 1:4" in out
    assert "100.0%" in out
    status, out, err = blast(*options, "--racks", 5)
    assert (status, out) == (2, "")
    assert err == "blast: request '1' has rack 5, but --racks is 5: use more racks\n"
    status, out, _ = blast(*options, "--ports", "1,2,7")
    assert (status, "Not tried: 7 ports per rack" in out, "Not tried: 2" in out) == (0, True, False)
    status, _, err = blast(*options, "--max-price", 5)
    assert (status, err.count("\n")) == (2, 1)


def test_printed_example_prices_can_be_parsed(blast, tmp_path):
    status, out, _ = blast("--example-prices")
    assert status == 0
    assert parse_prices(out) == EXAMPLE


def test_text_and_json_output_agree(blast, tmp_path):
    prices = example_text().replace("budget_db = 28.0", "budget_db = 12.0")
    options = files(tmp_path, [(range(12), 9.0)], prices)
    status, out, _ = blast(*options, "--json")
    answer = json.loads(out)
    assert status == 0
    assert answer["light"] == {"widest_leaves": 11, "too_wide": 1.0, "lit_by_amplifiers": 1.0}
    assert answer["chosen"]["amplifiers"] == 1
    assert [one for one in answer["chosen"]["splitters"] if one["amplified"]] == answer["chosen"]["splitters"]
    assert answer["chosen"]["price"] == sum(line["price"] for line in answer["chosen"]["bill"])
    (static,) = answer["static"]
    assert static["price"] == sum(line["price"] for line in static["bill"])
    assert static["trees"][0]["amplifiers"] == 1
    assert static["cheapest_fabric_price"] == answer["chosen"]["price"]
    status, out, _ = blast(*options)
    assert status == 0
    lines = out.splitlines()
    assert "Amplifiers: 1, before the 1:16 splitters: 100.0% of the volume has no passive tree within 12 dB." in lines
    (row,) = [line.split() for line in lines if line.startswith("1 ") and "rack 0 to 11 racks" in line]
    assert row[-4:] == [
        f"{static['price']:,.0f}",
        f"{static['watts']:,.0f}",
        "100.0%",
        f"{static['cheapest_fabric_price']:,.0f}",
    ]
    for claim in answer["claims"]:
        assert any(claim["paper"] in line and claim["here"] in line for line in lines)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "--workload is missing"),
        (("--workload", "P-contig"), "--racks is missing"),
        (("--workload", "nothing like it", "--racks", "9"), "neither a file nor a workload family"),
        (("--workload", "P-contig", "--racks", "9", "--prices", "/nowhere.toml"), "No such file"),
        (("--workload", "P-contig", "--racks", "9999", "--groups", "1"), "add a larger one"),
        (("--workload", "P-contig", "--racks", "9", "--ports", "1,0"), "not a whole number"),
    ],
)
def test_invalid_options_are_status_2_and_one_line(blast, arguments, sentence):
    status, out, err = blast(*arguments)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert sentence in err
