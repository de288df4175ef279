"""Shaping and rate arithmetic."""

import pytest

from mininet_topos.kernel.shaping import (
    access_shaping,
    host_shaping,
    light_queue,
    light_shaping,
    packet_queue,
    uplink_shaping,
)
from mininet_topos.lab.rate_check import fitting_factor


def test_marked_packets_have_own_class():
    lines = access_shaping("x1", 100, 9000)
    assert any("match ip tos 0xb8 0xfc flowid 1:2" in line for line in lines)
    assert any("protocol arp prio 2 u32 match u32 0 0 flowid 1:2" in line for line in lines)
    assert any("classid 1:2 htb prio 0 rate 98000kbit ceil 100000kbit" in line for line in lines)
    assert any("classid 1:3 htb prio 1 rate 2000kbit ceil 100000kbit" in line for line in lines)


def test_full_host_queue_drops_oldest_frame():
    # With a tail drop, Open vSwitch would drop later frames, marked or not.
    (line,) = (line for line in access_shaping("x1", 20, 9000) if "parent 1:3 " in line)
    assert line.endswith("pfifo_head_drop limit 4")
    assert any("handle 3: pfifo_head_drop limit 82" in line for line in access_shaping("x1", 100, 1500))


def test_single_queue_has_configured_rate():
    for shaping in (host_shaping, uplink_shaping, light_shaping):
        assert "tbf rate 12500kbit" in shaping("x1", 12.5, 1500)[0]


def test_queue_lengths_of_packet_and_optical_links():
    assert packet_queue(100, 1500) == 125_000
    assert light_queue(100, 1500) == 1_250_000
    assert packet_queue(1, 9000) == light_queue(1, 9000) == 4 * 9014


@pytest.mark.parametrize(
    ("carried", "factor"), [(100, 200), (112, 100), (556, 20), (1000, 20), (2300, 5), (0.5, 50_000)]
)
def test_fitting_factor_leaves_ten_percent_margin(carried, factor):
    assert fitting_factor(carried) == factor
    assert 10_000 / factor <= 0.9 * carried
