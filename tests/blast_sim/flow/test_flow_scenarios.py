"""Scenario files: valid contents, and errors with file and line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from algorithms.balanced.testbeds import gridlab
from blast_sim.base.scenario_file import ScenarioSource, parsed_value
from blast_sim.base.wrong_input import InputError
from blast_sim.experiments.cell import Effort, cells_of
from blast_sim.experiments.run import run_cell
from blast_sim.scenarios.loading import find, load, shipped
from blast_sim.scenarios.sites import hosts_of

SMALL = """\
title = "small"

[network]
racks = 6
servers_per_rack = 3
uplink_gbps = { thin = 4.0, "10:1" = 12.0 }

[background]
racks_per_direction = { none = 0, some = 2 }

[light]
splitters = 2
fan_out = 4
switch_ports = 16

[multicasts]
groups = 2
megabytes = 30.0

[[run]]
methods = ["naive", "blast"]
networks = ["thin"]
backgrounds = ["none", "some"]
"""


def source(text: str = SMALL) -> ScenarioSource:
    return ScenarioSource("mine.toml", text)


def test_shipped_scenarios_can_be_read() -> None:
    assert shipped() == ["contended", "fig4", "hundreds-of-jobs", "iterative-jobs", "methods", "sites"]
    for name in shipped():
        assert load(find(name)).title


def test_find_reads_a_path_and_lists_scenarios_for_an_unknown_name(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(SMALL)
    assert load(find(str(tmp_path / "mine.toml"))).title == "small"
    with pytest.raises(InputError, match="contended, fig4, hundreds-of-jobs, iterative-jobs, methods, sites"):
        find("fig5")


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("splitters = 2", "spliters = 2", 12, "unknown key light.spliters; did you mean splitters?"),
        ('title = "small"', "titel = 1", 1, "unknown key titel; did you mean title?"),
        ('title = "small"\n', "", 1, "the key title is missing"),
        ("megabytes = 30.0", "megabytes = -1", 18, "multicasts.megabytes: input should be greater than 0"),
        ('["naive", "blast"]', '["naive", "magic"]', 21, "must be one of naive, hdfs"),
        ('["thin"]', '["thick"]', 22, "network.uplink_gbps has no 'thick'; did you mean 'thin'"),
        ('"some"]', '"sone"]', 23, "has no 'sone'; did you mean 'some'"),
        ("groups = 2", "groups = 3", 17, "3 disjoint groups of 3 racks need 9 racks, and there are 6"),
        ("groups = 2", "groups = 1\nracks_per_group = 7", 18, "a group cannot have 7 to 7 of 6 racks"),
        ("switch_ports = 16", "switch_ports = 15", 14, "need 16 ports, and the optical switch has 15"),
        ("switch_ports = 16", "switches = 2\nswitch_ports = 7", 15, "shared among 2 optical switches, need 8 ports"),
        ("groups = 2", "groups = 1\npods = 3", 18, "a group of 3 racks has no room in a pod of 2"),
        ("groups = 2", "groups = 3\npods = 2", 17, "3 racks need 6 racks in a pod, and there are 3"),
        ("[multicasts]", '[hdfs]\nreads = "at once"\n\n[multicasts]', 17, "input should be 'sequential' or 'parallel'"),
        ("splitters = 2\n", "splitters = 0\n", 12, "needs a tree of 2 leaves, and the splitters make one of 1"),
        ("some = 2 }", "some = 3 }", 9, "3 racks each way and the own one are more than the 6"),
        ("[multicasts]", "[[jobs]]", 17, "unknown key jobs[1].groups"),
        ("[multicasts]\ngroups = 2\nmegabytes = 30.0\n", "", 1, "the workload must be either"),
        ("racks = 6", "racks = = 6", 1, "not TOML"),
    ],
)
def test_invalid_scenario_is_one_sentence_with_file_and_line(old: str, new: str, line: int, message: str) -> None:
    text = SMALL.replace(old, new, 1)
    with pytest.raises(InputError) as wrong:
        load(source(text))
    error = str(wrong.value)
    assert message in error and "\n" not in error
    if "not TOML" in message:
        assert "line 4" in error
    else:
        assert error.startswith(f"mine.toml:{line}: ")


# --------------------------------------------------------------------------------------------------- --set


def test_settings_override_keys_of_the_scenario() -> None:
    scenario = load(
        source(),
        {
            "light.splitters": 1,
            "network.uplink_gbps.thin": 2,
            "run.0.methods": ["naive"],
            "background.round_seconds": 2,
        },
    )
    assert scenario.light.splitters == 1 and scenario.network.uplink_gbps["thin"] == 2
    assert scenario.run[0].methods == ("naive",) and scenario.background.round_seconds == 2
    text = SMALL.replace("[light]\nsplitters = 2\nfan_out = 4\nswitch_ports = 16\n", "")
    assert load(source(text), {"light.switch": "calient"}).light.switching_seconds == 0.2


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("light.spliters", 3, "--set light.spliters: unknown key light.spliters; did you mean splitters?"),
        ("light.splitters", 0, "--set light.splitters: a group of 3 racks needs"),
        ("light.switch", "optical", "--set light.switch: light.switch: must be one of section-vi"),
        ("title.words", 1, "--set title.words: there is no table"),
        ("run.7.methods", ["naive"], "--set run.7.methods: there is no table"),
        ("run.7", 1, "--set run.7: there is nothing to set"),
    ],
)
def test_error_of_a_setting_names_its_key(key: str, value: object, message: str) -> None:
    with pytest.raises(InputError, match="^" + re.escape(message)):
        load(source(), {key: value})


@pytest.mark.parametrize(
    ("text", "value"),
    [("3", 3), ("2.5", 2.5), ("true", True), ('["naive"]', ["naive"]), ("calient", "calient"), ("10:1", "10:1")],
)
def test_setting_values_are_toml_or_plain_text(text: str, value: object) -> None:
    assert parsed_value(text) == value


SITES = """\
title = "sites"

[network]
racks = 3
servers_per_rack = 1
uplink_gbps = { thin = 1.0 }

[network.sites.wide]
names = ["a", "b", "c"]
paths_mbps = [[0, 10, 8], [10, 0, 4], [8, 4, 0]]
out_mbps = [10, 10, 10]
in_mbps = [10, 10, 10]

[background]
racks_per_direction = { none = 0, some = 1 }

[multicasts]
groups = 1
megabytes = 90.0

[[run]]
methods = ["naive", "pipeline", "trees"]
networks = ["wide", "thin"]
backgrounds = ["none"]
"""


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ('["a", "b", "c"]', '["a", "b", "a"]', 9, "the site 'a' is there twice"),
        ("[8, 4, 0]]", "[8, 4]]", 10, "c needs paths to 3 sites, 0 to itself, not to 2"),
        (", [8, 4, 0]]", "]", 10, "3 sites need 3 entries here, not 2"),
        ("out_mbps = [10, 10, 10]", "out_mbps = [10]", 11, "3 sites need 3 entries here, not 1"),
        ("in_mbps = [10, 10, 10]", "in_mbps = [10, 10, 0]", 12, "greater than 0"),
        ("[0, 10, 8]", "[0, 10, inf]", 10, "finite number"),
        ("[8, 4, 0]", "[0, 0, 0]", 8, "no way of links with a rate above 0 leads from 'c' to 'a', 'b'"),
        ("racks = 3", "racks = 4", 8, "3 sites are 3 racks of one server"),
        ("{ thin = 1.0 }", "{ wide = 1.0 }", 8, "'wide' is a network of racks and one of sites"),
        ('"trees"]', '"blast"]', 22, "blast needs racks, and wide is of sites"),
        ('"trees"]', '"rack-fabric"]', 22, "rack-fabric needs racks, and wide is of sites"),
        ('["none"]', '["some"]', 24, "the background some is of racks, and wide is of sites"),
        ('["wide", "thin"]', '["wise"]', 23, "network has no 'wise'; did you mean 'wide'"),
    ],
)
def test_error_in_sites_names_file_and_line(old: str, new: str, line: int, message: str) -> None:
    assert old in SITES
    with pytest.raises(InputError) as wrong:
        load(source(SITES.replace(old, new)))
    assert re.match(rf"mine\.toml:{line}: ", str(wrong.value)) and message in str(wrong.value)


def test_scenario_without_a_network_is_rejected() -> None:
    text = SITES.replace("uplink_gbps = { thin = 1.0 }\n", "").replace("[network.sites.wide]", "[unknown]")
    with pytest.raises(InputError, match="unknown key"):
        load(source(text))
    without = SITES[: SITES.index("uplink_gbps")] + SITES[SITES.index("[background]") :]
    with pytest.raises(InputError, match="no network is defined: add uplink_gbps of racks, or sites"):
        load(source(without))


def test_racks_and_sites_are_compared_in_one_scenario() -> None:
    """Three sites are Figure 2 of the paper on balanced multicasting, where trees reach 9 of 10."""
    cells = list(cells_of(load(source(SITES)), (0,), Effort()))
    times = {(cell.method, cell.network): run_cell(cell)[0]["seconds"] for cell in cells}
    assert len(times) == 6
    assert times["trees", "thin"] == pytest.approx(times["pipeline", "thin"])
    assert times["trees", "wide"] < times["pipeline", "wide"]
    assert times["trees", "wide"] >= 8 * 90e6 / 10e6


def test_shipped_sites_equal_the_testbed() -> None:
    sites = load(find("sites")).network.sites["gridlab"]
    shown, testbed = hosts_of(sites), gridlab("amsterdam")
    assert shown.hosts == testbed.hosts
    assert (shown.out == testbed.out).all() and (shown.into == testbed.into).all()
    assert (shown.rates == testbed.rates).all()
