"""Quantities, JSON and the picture of the fabric."""

from __future__ import annotations

import itertools
import re
from xml.etree import ElementTree

import pytest

from blast_api.ttypes import (
    CrossConnectStatus,
    FabricStatus,
    IdleResources,
    LightTreeStatus,
    OpticalPortStatus,
    OpticalSwitchStatus,
    RackStatus,
    SplitterStatus,
    StaticTreeStatus,
    WarmStatus,
)
from blast_base.drawing.geometry import Point
from blast_base.drawing.layout import lay_out
from blast_client.cli.units import format_bytes, format_ms, format_rate, parse_bytes, parse_rate, parse_seconds
from blast_client.fabric.svg import fabric_svg
from blast_client.fabric.table import fabric_table

# ---------------------------------------------------------------------- quantities


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("1", 1),
        ("300MB", 300_000_000),
        ("300 mb", 300_000_000),
        ("1.5GiB", 3 << 29),
        ("2kB", 2000),
        ("9007199254740993", 9007199254740993),
    ],
)
def test_parse_bytes_reads_units(text, count):
    assert parse_bytes(text) == count


@pytest.mark.parametrize("text", ["", "1 XB", "0", "0.2", "9223372036854775808", "٣MBx"])
def test_parse_bytes_rejects_invalid_sizes(text):
    with pytest.raises(ValueError, match=r"is not a size|out of range: a size"):
        parse_bytes(text)
    assert [parse_seconds(time) for time in ("2", "200ms", "5min", "1h")] == [2, 0.2, 300, 3600]


def test_parsers_reject_out_of_range_quantities():
    for parse, unit in ((parse_seconds, "time"), (parse_rate, "rate")):
        with pytest.raises(ValueError, match=f"out of range: a {unit} is at most"):
            parse("9" * 400)


def test_formatters_print_quantities_with_units():
    assert [format_bytes(n) for n in (1, 999, 1000, 999_999, 300_000_000, 5 * 10**15)] == [
        "1 B", "999 B", "1 kB", "1 MB", "300 MB", "5000 TB",
    ]  # fmt: skip
    assert format_rate(98_700_000) == "98.7 Mbit/s"
    assert [format_ms(n) for n in (0.4, 14.172, 24_000, 185_000, 7_440_000)] == [
        "0.4 ms", "14.2 ms", "24 s", "3 min 5 s", "2 h 4 min",
    ]  # fmt: skip


# ---------------------------------------------------------------------- the picture


def fabric(racks: int, fan_out: list[int], ports: int = 1, trees: int = 1) -> FabricStatus:
    """Racks on one switch; tree t leads from rack t over splitter t to the racks after the roots."""
    numbers = iter(range(1, racks * ports + 1))
    rack_list = [
        RackStatus(
            f"rack{r}",
            f"{r:x}",
            True,
            [OpticalPortStatus(10 + k, "ocs", n, n) for k, n in zip(range(ports), numbers, strict=False)],
            [f"h{r}-{k}" for k in range(9)],
        )
        for r in range(1, racks + 1)
    ]
    splitters = [
        SplitterStatus(f"s{n}", w, "ocs", 1000 + n, list(range(2000 + 100 * n, 2000 + 100 * n + w)))
        for n, w in enumerate(fan_out)
    ]
    light = []
    for t in range(trees):
        leaves = list(range(trees, racks))[t * fan_out[t] : (t + 1) * fan_out[t]]
        cross = [CrossConnectStatus("ocs", rack_list[t].opticalPorts[0].switchInput, 1000 + t)]
        for output, leaf in zip(splitters[t].switchInputs, leaves, strict=False):
            cross.append(CrossConnectStatus("ocs", output, rack_list[leaf].opticalPorts[0].switchOutput))
        names = [f"rack{leaf + 1}" for leaf in leaves]
        light.append(LightTreeStatus(t + 1, f"job{t}", 0, "lit", "239.1.0.1", f"rack{t + 1}", names, [f"s{t}"], cross))
    return FabricStatus(rack_list, splitters, [OpticalSwitchStatus("ocs", True)], light, 10**8, 0)


FABRICS = {
    "two racks without splitters": fabric(2, [], trees=0),
    "4": fabric(4, [4, 4]),
    "8 with two ports": fabric(8, [4, 4], ports=2, trees=1),
    "32": fabric(32, [8, 8, 8, 4], trees=3),
    "64 with two ports": fabric(64, [8] * 12, ports=2, trees=4),
    "256": fabric(256, [8] * 40, trees=9),
    "empty": FabricStatus([], [], [], [], 10**8, 0),
}


@pytest.mark.parametrize("name", FABRICS)
def test_fabric_svg_is_valid_xml_without_overlapping_boxes(name):
    status, picture = FABRICS[name], fabric_svg(FABRICS[name])
    assert ElementTree.fromstring(picture).tag.endswith("svg")
    assert all(f">{rack.name}</text>" in picture for rack in status.racks)
    assert all(f">{splitter.name}  1:{splitter.fanOut}</text>" in picture for splitter in status.splitters)
    layout = lay_out(status)
    boxes = [*layout.switches.values(), *(b for _, b in layout.racks), *(b for _, b in layout.splitters)]
    for number, one in enumerate(boxes):
        assert one.x >= 0 and one.x + one.width <= layout.width
        for other in boxes[number + 1 :]:
            apart = one.x + one.width <= other.x or other.x + other.width <= one.x
            assert apart or one.bottom <= other.y or other.bottom <= one.y


@pytest.mark.parametrize(("racks", "widest", "rows"), [(16, 1200, 1), (64, 1500, 4), (256, 2000, 16)])
def test_layout_places_many_racks_in_rows(racks, widest, rows):
    layout = lay_out(fabric(racks, [8] * (racks // 8)))
    assert layout.width <= widest and layout.height <= 2 * layout.width
    assert len({box.y for _, box in layout.racks}) == rows


@pytest.mark.parametrize("name", FABRICS)
def test_no_fiber_crosses_a_box(name):
    layout = lay_out(FABRICS[name])
    boxes = [box for _, box in (*layout.racks, *layout.splitters)]
    for fiber in (*layout.into_switch.values(), *layout.out_of_switch.values()):
        points = (fiber.near, *fiber.bends, Point(fiber.last.x, fiber.far.y))
        for one, other in itertools.pairwise(points):
            (left, right), (top, bottom) = sorted((one.x, other.x)), sorted((one.y, other.y))
            assert left == right or top == bottom
            for box in boxes:
                beside = right <= box.x or left >= box.x + box.width
                assert beside or bottom <= box.y or top >= box.bottom


@pytest.mark.parametrize("name", FABRICS)
def test_fibers_do_not_cross_and_end_at_edge_of_switch(name):
    layout = lay_out(FABRICS[name])
    uprights, levels = [], []
    for (switch, _), fiber in (*layout.into_switch.items(), *layout.out_of_switch.items()):
        box = layout.switches[switch]
        assert fiber.far.y in (box.y, box.bottom) and box.x <= fiber.far.x <= box.x + box.width
        for one, other in itertools.pairwise((fiber.near, *fiber.bends, fiber.far)):
            if one.x == other.x:
                uprights.append((one.x, *sorted((one.y, other.y))))
            else:
                levels.append((one.y, *sorted((one.x, other.x))))
    for y, left, right in levels:
        assert not [x for x, top, bottom in uprights if left < x < right and top < y < bottom]


def test_each_tree_is_drawn_from_root_to_leaves_in_own_color():
    status = fabric(8, [4, 4], trees=2)
    picture = fabric_svg(status)
    groups = [g.split("</g>")[0] for g in picture.split("<g>") if g.startswith("<title>tree ")]
    assert len(groups) == 2
    colors = [set(re.findall(r'stroke="(#\w+)"', g)) for g in groups]
    assert all(len(c) == 1 for c in colors) and colors[0] != colors[1]
    for tree, group in zip(status.lightTrees, groups, strict=True):
        # Each cross-connect is two fibers and a curve; each splitter in it one comb; each fiber has an arrow.
        assert group.count('class="light"') == 3 * len(tree.crossConnects) + len(tree.splitters)
        assert group.count("Z") == 2 * len(tree.crossConnects)


def test_picture_and_table_show_states_and_faults():
    status = fabric(4, [4])
    plain_picture = fabric_svg(status)
    assert 'class="bad"' not in plain_picture and "stroke-dasharray" not in plain_picture.split("</style>")[1]
    status.lightTrees[0].state = "configuring"
    status.splitters[0].unusable = "dirty connector"
    status.racks[2].opticalPorts[0].unusable = "no light"
    status.racks[3].connected = False
    status.opticalSwitches[0].connected, status.opticalSwitches[0].reason = False, "refused"
    picture = fabric_svg(status)
    assert "stroke-dasharray" in picture.split("</style>")[1]
    disconnected = "rack4: its ToR is disconnected", "ocs is disconnected: refused"
    for text in ("splitter s0: dirty connector", "port rack3/10: no light", *disconnected):
        assert text in picture
    table = fabric_table(status)
    assert "unusable: dirty connector" in table and "disconnected" in table and "refused" in table


def test_fabric_table_lists_static_trees_with_their_reservation():
    status = fabric(4, [4])
    assert "STATIC TREE" not in fabric_table(status)
    status.staticTrees = [
        StaticTreeStatus("fixed1", "rack1", ["rack2", "rack3h1"], 7),
        StaticTreeStatus("fixed2", "rack2h1", ["rack1", "rack4"], None, "dark at rack4"),
    ]
    table = fabric_table(status).splitlines()
    first = next(number for number, line in enumerate(table) if line.startswith("STATIC TREE"))
    assert table[first + 1].split("  ")[-1] == "tree 7" and "rack2, rack3h1" in table[first + 1]
    assert table[first + 2].endswith("unusable: dark at rack4")


def test_fabric_table_reports_warm_trees_and_hit_rate():
    status = fabric(4, [4])
    assert "kept lit" not in fabric_table(status)
    status.warm = WarmStatus(1, [IdleResources("ocs", None, 3, 2, 1), IdleResources("ocs", 4, 1, 0, 5)], 40, 10, 7, 2)
    *_, summary, header, ports, splitters = fabric_table(status).splitlines()
    assert summary == "warm trees: 1; grants on a warm tree: 10 of 40 (25%); evicted: 7; reclaimed: 2"
    assert header.split("  ")[0] == "IDLE" and header.split()[-1] == "RESERVE"
    assert ports.split() == ["optical", "ports", "ocs", "3", "2", "1"]
    assert splitters.split() == ["splitters", "1:4", "ocs", "1", "0", "5"]
    status.warm = WarmStatus(0, [], 0, 0, 0, 0)
    assert fabric_table(status).splitlines()[-1].startswith("warm trees: 0; grants on a warm tree: 0 of 0;")


def test_fabric_svg_escapes_names():
    status = fabric(2, [4], trees=1)
    status.racks[0].name = status.lightTrees[0].rootRack = '<script>&"$Y'
    status.lightTrees[0].key = "</svg>$Y"
    root = ElementTree.fromstring(fabric_svg(status))
    texts = "".join(root.itertext())
    assert "</svg>$Y" in texts and not root.findall(".//{*}script")


def test_legend_abbreviates_many_trees_and_faults():
    status = fabric(40, [4] * 20, trees=20)
    for splitter in status.splitters:
        splitter.unusable = "dirty"
    picture = fabric_svg(status)
    assert "… and 8 more light trees" in picture and "… and 8 more unusable elements" in picture
    assert len(set(re.findall(r'class="light" stroke="([^"]+)"', picture))) == 20
