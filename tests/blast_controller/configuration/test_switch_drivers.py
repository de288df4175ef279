"""The tables of optical switches: `driver` selects the keys, and wrong ones are refused with the right value."""

from __future__ import annotations

import pytest

from blast_controller.configuration.config import ConfigError
from blast_controller.configuration.reading import parse
from tests.blast_controller.configuration.test_access_config import RACK

TABLE = """
[[optical_switch]]
name = "ocs1"
address = "ocs1.example.org:830"
inputs = 8
outputs = 8
"""
ADDRESS = 'address = "ocs1.example.org:830"\n'
SSH = '[optical_switch.ssh]\nuser = "blast"\nprivate_key = "/k"\nhost_key = "/h"\n'


@pytest.mark.parametrize(
    ("keys", "driver"),
    [("", "tl1"), ('driver = "netconf"\n' + SSH, "netconf"), ('driver = "sonic-ocs"\nca = "/ca.pem"\n', "sonic-ocs")],
)
def test_driver_selects_the_keys(keys: str, driver: str) -> None:
    section = parse(TABLE + keys + RACK).optical_switch[0]
    assert section.driver == driver and section.target().timeout == 2.0


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ('driver = "snmp"\n', r"optical_switch\[1\]: driver must be one of netconf, sonic-ocs, tl1\."),
        ('driver = "netconf"\n', r"the key optical_switch\[1\]\.ssh is missing\."),
        (
            'driver = "sonic-ocs"\ndialect = "polatis"\n',
            r"unknown key optical_switch\[1\]\.dialect: only tl1 has it\.",
        ),
        ('driver = "sonic-ocs"\norigen = "yang"\n', r"unknown key optical_switch\[1\]\.origen; did you mean origin\?"),
        (
            'driver = "sonic-ocs"\nca = "/ca.pem"\nlight_check = "before_grant"\n',
            "the optical switch ocs1 has light_check, but a switch with driver sonic-ocs has no power meters: remove",
        ),
        ('driver = "netconf"\nprofile = "acme"\n' + SSH, r"optical_switch\[1\]\.profile: must be one of polatis"),
        ('driver = "sonic-ocs"\ninputs = "8"\n', "not TOML"),
    ],
)
def test_wrong_table_is_refused_with_the_right_value(keys: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse(TABLE + keys + RACK)


REDIS = TABLE + 'driver = "sonic-ocs"\naccess = "redis"\nca = "/ca.pem"\n'
AT_SOCKET = REDIS.replace('ca = "/ca.pem"', 'socket = "/run/redis.sock"')


def test_redis_has_an_address_or_a_socket() -> None:
    by_tcp, at_socket = (parse(table + RACK).optical_switch[0] for table in (REDIS, AT_SOCKET.replace(ADDRESS, "")))
    assert (by_tcp.place, by_tcp.target().host) == ("ocs1.example.org:830", "ocs1.example.org")
    assert (at_socket.place, at_socket.target().host, at_socket.target().port) == ("/run/redis.sock", "", 0)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (AT_SOCKET, r"optical_switch\[1\]: address and socket are mutually exclusive: keep only one\."),
        (REDIS.replace(ADDRESS, ""), r'optical_switch\[1\]: set address = "HOST:PORT"\.'),
        (TABLE.replace(ADDRESS, ""), r'optical_switch\[1\]: set address = "HOST:PORT"\.'),
        (
            AT_SOCKET.replace(ADDRESS, "") + AT_SOCKET.replace(ADDRESS, "").replace("ocs1", "ocs2"),
            r"the optical switches ocs1 and ocs2 have the same address /run/redis\.sock",
        ),
    ],
)
def test_a_switch_has_exactly_one_place_of_its_own(table: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse(table + RACK)
