# ruff: noqa: E501 - one case a line
"""Parse the configuration file; each error is one sentence that names the key."""

from __future__ import annotations

from ipaddress import IPv4Network
from pathlib import Path
from textwrap import dedent

import pytest

import blast_controller
from blast_controller.configuration.config import ConfigError
from blast_controller.configuration.reading import load, parse
from blast_controller.core.controller import Core
from blast_controller.core.model.fabric import OpticalPort

EXAMPLE = Path(blast_controller.__file__).parent / "example.toml"

GOOD = dedent("""
    [[optical_switch]]
    name = "ocs1"
    address = "192.0.2.10:10033"
    inputs = 16
    outputs = 16

    [[rack]]
    name = "r1"
    datapath = "0000000000000001"
    optical_ports = [{ port = 49, optical_switch = "ocs1", input = 1, output = 2 }]
    hosts = [{ name = "h1", port = 1, ip = "10.0.0.1" }]

    [[rack]]
    name = "r2"
    datapath = "0000000000000002"
    optical_ports = [{ port = 49, optical_switch = "ocs1", input = 2, output = 1 }]
    hosts = [{ name = "h2", port = 1, ip = "10.0.0.2" }]

    [[splitter]]
    name = "s1"
    optical_switch = "ocs1"
    input = 9
    outputs = [9, 10, 11, 12]
    """)


def with_change(old, new, count=1):
    assert old in GOOD
    return GOOD.replace(old, new, count)


def sentence(text):
    with pytest.raises(ConfigError) as error:
        parse(text)
    message = str(error.value)
    assert message.endswith(".") or message.endswith("?"), message
    assert "\n" not in message, message
    return message


def test_example_builds_a_fabric_and_a_core():
    config = load(EXAMPLE)
    fabric = config.build_fabric()
    Core(fabric, config.core_settings())
    assert list(fabric.racks) == ["r1", "r2", "r3"]
    assert fabric.racks["r1"].optical_ports == (OpticalPort("r1", 49, "ocs1", 1, 1),)
    assert [s.fan_out for s in fabric.splitters.values()] == [4, 2]
    assert fabric.light_rate == 10e9


def test_example_settings_equal_the_defaults():
    defaults, example = parse(GOOD), load(EXAMPLE)
    for section in ("controller", "policy", "openflow", "fabric"):
        assert getattr(example, section) == getattr(defaults, section), section


def test_settings_are_converted_to_seconds_and_bits():
    config = parse(
        "[controller]\nmin_lease_ms = 1500\ndisconnect_grace_ms = 250\nended_retention_ms = 60_000\n"
        "[fabric]\noptical_rate_gbps = 0.1\nmax_splitters_per_tree = 3\nloop_leaf = true\n"
        '[openflow]\ngroup_network = "239.1.0.0/24"\ngroup_port = 7\n' + GOOD
    )
    settings = config.core_settings()
    assert (settings.lease_minimum, settings.orphan_grace, settings.remember_ended) == (1.5, 0.25, 60.0)
    assert (settings.max_splitters_per_tree, settings.loop_leaf, settings.group_port) == (3, True, 7)
    assert settings.group_network == IPv4Network("239.1.0.0/24")
    assert config.build_fabric().light_rate == 1e8


def test_dscp_marking_can_be_disabled():
    assert parse("[openflow]\ndscp = false\n" + GOOD).rule_settings(7).dscp is None
    assert parse("[openflow]\ndscp = 0\n" + GOOD).rule_settings(7).dscp == 0
    assert parse(GOOD).rule_settings(7).epoch == 7


def test_racks_may_share_a_datapath():
    shared = with_change("0000000000000002", "0000000000000001").replace(
        'port = 49, optical_switch = "ocs1", input = 2', 'port = 50, optical_switch = "ocs1", input = 2'
    )
    config = parse(shared.replace('"h2", port = 1', '"h2", port = 2'))
    assert config.optical_ports() == {1: (49, 50)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (with_change("inputs =", "input ="), "unknown key optical_switch[1].input; did you mean inputs?"),
        ("[controller]\nthirft = 'x'\n" + GOOD, "unknown key controller.thirft; did you mean thrift?"),
        ("[fabric]\nzzzzzz = 1\n" + GOOD, "unknown key fabric.zzzzzz; remove it."),
        (with_change('name = "h1",', 'nmae = "h1", name = "h1",'), "unknown key rack[1].hosts[1].nmae; did you "
                                                                   "mean name?"),
        (with_change('name = "s1"\n', ""), "the key splitter[1].name is missing."),
        ("", "the key rack is missing."),
        ("rack = []\n", "rack: tuple should have at least 1 item after validation, not 0 (found [])."),
        ("[controller]\nthrift = '9090'\n" + GOOD, "controller.thrift: must be \"HOST:PORT\" or \"[IPv6]:PORT\" "
                                                   "(found '9090')."),
        ("[policy]\nname = 'best'\n" + GOOD, "policy.name: must be one of edf, fair-share, hrrn, las-lease, "
                                             "paper, smith, srpt-lease (found 'best')."),
        (with_change('"ocs1"\naddress', '"ocs1"\ndialect = "klingon"\naddress'), "optical_switch[1].dialect: must "
                                                                                 "be one of"),
        (with_change("0000000000000001", "1"), "rack[1].datapath: must be 16 hexadecimal digits, not all zero "
                                               "(found '1')."),
        (with_change("0000000000000001", "0" * 16), "rack[1].datapath: must be 16 hexadecimal digits, not all zero"),
        (with_change('"10.0.0.1"', '"10.0.0.256"'), "rack[1].hosts[1].ip: "),
        (with_change('"s1"', '"s 1"'), "splitter[1].name: string should match pattern"),
        (with_change("[9, 10, 11, 12]", "[9]"), "splitter[1].outputs: tuple should have at least 2 items"),
        (with_change("input = 1,", "input = 0,"), "rack[1].optical_ports[1].input: input should be greater than "
                                                  "or equal to 1"),
        ("[controller]\nmin_lease_ms = inf\n" + GOOD, "controller.min_lease_ms: input should be a finite number"),
        ("[fabric]\noptical_rate_gbps = nan\n" + GOOD, "fabric.optical_rate_gbps: input should be a finite number"),
        ("[openflow]\nguard_priority = 40_000\n" + GOOD, "openflow.guard_priority must be below openflow.priority."),
        ("[openflow]\ngroup_network = '10.0.0.0/8'\n" + GOOD, "openflow.group_network 10.0.0.0/8 must be multicast"),
        ("[openflow]\ngroup_network = '239.0.0.0/31'\n" + GOOD, "must be multicast with at least 2 addresses."),
        ("[openflow]\ngroup_network = '239.0.0.1/16'\n" + GOOD, "openflow.group_network: "),
        ("[openflow]\ngroup_network = '224.0.0.0/4'\n" + GOOD, "openflow.group_network 224.0.0.0/4 contains "
                                                               "224.0.0.0/24"),
        (with_change('"10.0.0.1"', '"224.0.0.1"'), "rack[1].hosts[1].ip: must be the address of one host (found "
                                                   "'224.0.0.1')."),
        ("[controller]\nworkers = true\n" + GOOD, "controller.workers: input should be a valid integer (found True)."),
        ("[controller]\nworkers = '4'\n" + GOOD, "controller.workers: input should be a valid integer (found '4')."),
        ("[controller]\nallow_insecure_openflow = 1\n" + GOOD, "controller.allow_insecure_openflow: input should "
                                                               "be a valid boolean"),
        ('[journal]\nfile = "a\\u0000b"\n' + GOOD, "journal.file: must be a file path without NUL characters"),
        ("[access]\ntoken_file = ''\n" + GOOD, "access.token_file: must be a file path"),
        ('[[splitter]]\nname = "s1"\noptical_switch = "ocs1"\ninput = 10\noutputs = [13, 14]\n' + GOOD, "the "
                                                                                                        "splitter "
                                                                                                        "s1 is "
                                                                                                        "used twice."),
        (with_change('name = "r2"', 'name = "r1"'), "the rack r1 is used twice."),
        (with_change("10.0.0.2", "10.0.0.1"), "the host address 10.0.0.1 is used twice."),
        (with_change("0000000000000002", "0000000000000001"), "the port 1 of datapath 0000000000000001 is used twice."),
        (with_change("input = 2,", "input = 1,"), "input 1 of ocs1 is used twice: by rack r1 port 49 and rack r2 "
                                                  "port 49."),
        (with_change("[9, 10,", "[9, 9,"), "input 9 of ocs1 is used twice: by splitter s1 and splitter s1."),
        (with_change("input = 9", "input = 1"), "output 1 of ocs1 is used twice: by rack r2 port 49 and splitter s1."),
        (with_change("11, 12]", "11, 17]"), "splitter s1 uses input 17 of ocs1, which has only 16."),
        (with_change("output = 2 }", "output = 17 }"), "rack r1 port 49 uses output 17 of ocs1, which has only 16."),
        (with_change('optical_switch = "ocs1"\ninput = 9', 'optical_switch = "ocs2"\ninput = 9'), "splitter s1 "
                                                                                                  "names the "
                                                                                                  "optical switch "
                                                                                                  "'ocs2', which "
                                                                                                  "is not "
                                                                                                  "configured: "
                                                                                                  "add an "
                                                                                                  "[[optical_switch]] or correct the name."),
        (with_change("inputs = 16", 'inputs = 16\nuser = "blast"'), "the optical switch ocs1 has user but no "
                                                                    "password_file: set password_file."),
        ("rack = [\n", "not TOML: "),
        ("a = " + "[" * 5000, "not TOML"),
        ("a = " + "1" * 5000, "not TOML: "),
    ],
)  # fmt: skip
def test_error_is_reported_in_its_own_sentence(text, expected):
    assert expected in sentence(text)


@pytest.mark.parametrize("section", ["controller", "rack"])
def test_error_names_the_section_of_a_wrong_type(section):
    for value in ("5", "'x'", "[1]", "[[1]]", "true", "1979-05-27"):
        assert section in sentence(f"{section} = {value}\n")


def test_error_names_the_unreadable_file(tmp_path):
    file = tmp_path / "blast.toml"
    with pytest.raises(ConfigError, match=r"blast.toml cannot be read: No such file or directory\."):
        load(file)
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        load(tmp_path)
    for content, sentence in (
        (b"# caf\xe9\n", r"blast.toml is not UTF-8 text \(byte 5\)"),
        (b"[polcy]\n", r"blast.toml: "),
    ):
        file.write_bytes(content)
        with pytest.raises(ConfigError, match=sentence):
            load(file)


# ---------------------------------------------------------------------------------------------------- contradictions

SECOND = '\n[[optical_switch]]\nname = "ocs2"\naddress = "{}"\ninputs = 4\noutputs = 4\n'


def changed(*replacements: tuple[str, str]) -> str:
    text = EXAMPLE.read_text()
    for old, new in replacements:
        assert old in text
        text = text.replace(old, new, 1)
    return text


@pytest.mark.parametrize(
    ("replacements", "words"),
    [
        ([("ended_retention_ms = 3_600_000", "ended_retention_ms = 59_999")], ["keep_warm_ms", "ended_retention_ms"]),
        (
            [("disconnect_grace_ms = 2_000", "disconnect_grace_ms = 3_600_001")],
            ["disconnect_grace_ms", "ended_retention_ms"],
        ),
        ([("127.0.0.1:6653", "127.0.0.1:9090")], ["controller.thrift", "controller.openflow"]),
        ([("# in_memory = true", "in_memory = true")], ["journal.in_memory", "journal.file"]),
        (
            [('# file = "/var/lib/blast/recording.sqlite"', 'file = "/var/lib/blast/journal.sqlite"')],
            ["journal.file", "recording.file"],
        ),
        ([("loop_leaf = false", "loop_leaf = true"), ("directional = false", "directional = true")], ["loop_leaf"]),
        (
            [
                ('# light_check = "before_grant"', 'light_check = "under_traffic"'),
                ("# sensitivity_dbm = -15.8", "sensitivity_dbm = -30.1"),
            ],
            ["dark_threshold_dbm", "sensitivity_dbm"],
        ),
        ([("\n# A rack is", SECOND.format("192.0.2.10:10033") + "\n# A rack is")], ["ocs1", "ocs2"]),
    ],
)
def test_contradictory_keys_are_rejected_by_name(replacements, words):
    with pytest.raises(ConfigError) as refusal:
        parse(changed(*replacements))
    assert all(word in str(refusal.value) for word in words)


@pytest.mark.parametrize(
    "replacements",
    [
        [],
        [("ended_retention_ms = 3_600_000", "ended_retention_ms = 60_000")],
        [("127.0.0.1:6653", "127.0.0.1:0"), ("127.0.0.1:9090", "127.0.0.1:0")],
        [("\n# A rack is", SECOND.format("192.0.2.10:10034") + "\n# A rack is")],
    ],
)
def test_values_at_the_limit_are_accepted(replacements):
    parse(changed(*replacements))


@pytest.mark.parametrize(
    ("etcd", "sentence"),
    [
        ('endpoints = ["e1"]', r'must be "HOST:PORT" or "\[IPv6\]:PORT"'),
        ('endpoints = ["e1:2379"]', "are on other machines: set ca, certificate and private_key"),
        ('endpoints = ["127.0.0.1:1"]\nca = "x"', "must be set together: set all three"),
        ('endpoints = ["127.0.0.1:1"]\nuser = "x"', "user and password_file must be set together"),
        ('endpoints = ["127.0.0.1:1"]\nprefix = "/"', "must not be empty"),
    ],
)
def test_insecure_or_invalid_etcd_journal_is_rejected(etcd, sentence):
    with pytest.raises(ConfigError, match=sentence):
        parse(f"{GOOD}\n[journal.etcd]\n{etcd}\n")
