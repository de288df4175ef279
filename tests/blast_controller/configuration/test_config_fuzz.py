"""The configuration parser on thousands of texts: each is a configuration or one ConfigError."""

from __future__ import annotations

import random
from pathlib import Path
from tempfile import TemporaryDirectory

import blast_controller
from blast_controller.configuration.config import Config, ConfigError
from blast_controller.configuration.openflow import required_names
from blast_controller.configuration.reading import load, parse
from tests.blast_controller.configuration.test_config import GOOD
from tests.blast_controller.configuration.test_config_optics import FABRIC, with_port
from tests.blast_controller.configuration.test_reload import ACCESS
from tests.support.fuzzing import Decoder, fuzz, inputs

TEXTS = inputs(6000)

EXAMPLE = (Path(blast_controller.__file__).parent / "example.toml").read_text()
COMPACT = "\n".join(line.split("#")[0].rstrip() for line in EXAMPLE.splitlines() if line.split("#")[0].strip())
RACKS = GOOD[GOOD.index("[[rack]]") :].replace('"ocs1"', '"nowhere"')
STATIC = """
[[rack]]
name = "r1"
datapath = "0000000000000001"
hosts = [{ name = "h1", port = 1, ip = "10.0.1.1" }]
[[rack]]
name = "r2"
datapath = "0000000000000002"
hosts = [{ name = "h2", port = 1, ip = "10.0.2.1" }]
[[static_tree]]
name = "t"
root = { rack = "r1", port = 60 }
leaves = [{ rack = "r2", port = 60 }, { host = "h1" }]
"""
OUTSIDE = '[controller]\nthrift = "0.0.0.0:9090"\n' + ACCESS.replace(
    "[[tenant]]", 'client_certificate = "optional"\n[[tenant]]'
)
MUTUAL = (
    """
[controller]
openflow = "0.0.0.0:6653"
[openflow]
certificate = "c.pem"
private_key = "k.pem"
switch_ca = "ca.pem"
"""
    + STATIC
)
DIALECTS = """
[controller]
openflow = "0.0.0.0:6653"
allow_insecure_openflow = true
[policy]
name = "paper"
[[optical_switch]]
name = "p"
address = "192.0.2.10:3082"
dialect = "polatis"
inputs = 8
outputs = 8
dialect_settings = { tid = "ocs" }
user = "u"
password_file = "secret"
[[optical_switch]]
name = "c"
address = "192.0.2.11:3082"
dialect = "calient"
inputs = 8
outputs = 8
light_check = "before_grant"
dialect_settings = { names = ["1.1.1"], group = "G", polls = 3, keepalive = 5 }
"""
JOURNAL = (
    """
[journal.etcd]
endpoints = ["etcd1.example.org:2379", "etcd2.example.org:2379"]
ca = "ca.pem"
certificate = "c.pem"
private_key = "k.pem"
user = "blast"
password_file = "secret"
prefix = "/lab/"
"""
    + STATIC
)
SSH = (
    DIALECTS
    + """
[optical_switch.ssh]
user = "u"
private_key = "k.pem"
known_hosts = "known"
subsystem = "tl1"
"""
    + STATIC
)
OPTICS = FABRIC + with_port("fiber_loss_db = 0.2, launch_dbm = 0").replace(
    "insertion_loss_db = 7.4",
    "insertion_loss_db = 3.5\nprice = 40.5\namplifier = { gain_db = 10, max_output_dbm = 10 }",
)
WHOLE = [COMPACT, GOOD, STATIC, OUTSIDE + GOOD, DIALECTS + STATIC, RACKS, OPTICS, MUTUAL, JOURNAL, SSH]
WHOLE += [OPTICS.replace("-15.8", "18"), OPTICS.replace("[-4.7, 0, 4]", "[1, 0, -1]")]
WHOLE += [SSH.replace('known_hosts = "known"', line) for line in ("", 'host_key = "h"\nknown_hosts = "known"')]
WHOLE += [SSH.replace("subsystem", 'command = "c"\nsubsystem')]
"""Most are valid; the last ones, and one before, lack a required key."""
SNIPPETS = [
    "[[rack]]", "[rack]", "[[splitter]]", "[controller]", "[fabric]", "[openflow]", "name = ", "optical_ports = ",
    "hosts = [{", "}]", "= 1", "= -1", "= 0", "= 1e400", "= nan", "= -inf", "= true", "= ''", '= """', "= 1979-05-27",
    "= 07:32:00", "= [[[[", "= 0xffffffffffffffffffff", "dscp = ", "group_network = '239.0.0.0/8'", "\u00e9", "\x00",
    "\ud7ff", "'''", ".", "a.b.c = 1", "outputs = [1, 2, 3]", "optical_rate_gbps", "{}", ",", "\t", "\r\n",
    "thrift = '0.0.0.0:1'", "openflow = '0.0.0.0:1'", "[access]", "[[access.client]]", "role = 'user'",
    "tenant = 'other'", "client_ca = 'x'", "certificate = 'x'", "private_key = 'x'", "token_file = 'x'", "[[tenant]]",
    "[journal.etcd]", "endpoints = ['127.0.0.1:1']", "ca = 'x'", "user = 'x'", "prefix = '/'", "password_file = 'x'",
    "[optical_switch.ssh]", "host_key = 'x'", "known_hosts = 'x'", "subsystem = 'x'", "command = 'x'",
    "certificate_names = { 0000000000000001 = 'x' }", "group_network = '10.0.0.0/8'", "guard_priority = 65000",
    "name = 'r1'", "dialect = 'calient'", "dialect_settings = { names = [1] }", "dialect_settings = { no = 1 }",
    "root = { host = 'h1' }", "leaves = [{ rack = 'r2', port = 60 }]", "datapath = '0000000000000001'",
    "launch_dbm = [3, 2, 1]", "sensitivity_dbm = 9", "switch_ca = 'x'", "amplifier = { gain_db = 1 }", "dscp = true",
    "loop_leaf = true", "keep_warm_ms = 0", "ip = '10.0.1.1'", "name = 'no such policy'", "group_network = 239",
]  # fmt: skip
CLIENT = "[[access.client]]\nrole = 'user'\nuri = 'u'\n"
KEYS = "certificate = 'c'\nprivate_key = 'k'\n"
HEADS = [
    "[controller]\nthrift = '0.0.0.0:1'\n[access]\ntoken_file = 't'\n",
    "[access]\n",
    "[access]\nclient_ca = 'c'\n",
    "[access]\nclient_certificate = 'optional'\nclient_ca = 'c'\n"
    + KEYS
    + "[[access.client]]\nrole = 'user'\nuri = 'u'\n",
    "[access]\nclient_ca = 'c'\n" + KEYS + "[[access.client]]\nrole = 'user'\n",
    "[access]\ntoken_file = 't'\n" + CLIENT,
    "[access]\nclient_ca = 'c'\n" + KEYS + CLIENT + "tenant = 'chemistry'\n",
    "[openflow]\nswitch_ca = 'x'\n",
    "[openflow]\npriority = 2\nguard_priority = 2\n",
    "[controller]\nopenflow = '0.0.0.0:6653'\n",
    "[openflow]\ncertificate_names = { 1 = 'x' }\n",
    "[openflow]\ngroup_network = '239.0.0.0/31'\n",
    "[journal.etcd]\nendpoints = ['192.0.2.1:2379']\n",
    "[journal.etcd]\nendpoints = ['127.0.0.1:2379']\nuser = 'u'\n",
    "[journal.etcd]\nendpoints = ['127.0.0.1:2379']\nprefix = '/'\n",
    "[journal.etcd]\nendpoints = ['127.0.0.1:2379']\nca = 'x'\n",
]
"""Sections rejected for contradictory keys; a valid configuration follows each."""
LINES = [line for text in WHOLE for line in text.splitlines()]


def mutation(rng: random.Random, text: str) -> str:
    """Return a configuration with a few characters, words or lines changed."""
    lines = text.splitlines() or [""]
    for _ in range(rng.choice([1, 1, 1, 2, 2, 4])):
        at = rng.randrange(len(lines))
        match rng.choice([0, 1, 2, 2, 3, 4, 5, 6, 6]):
            case 0:
                del lines[at]
            case 1:
                lines.insert(at, rng.choice(LINES))
            case 2:
                lines[at] = lines[at].replace(
                    str(rng.randrange(10)), rng.choice(["", "0", "-1", "70000", "1.5", "'x'"]), 1
                )
            case 3:
                cut = rng.randint(0, len(lines[at]))
                lines[at] = lines[at][:cut] + rng.choice(SNIPPETS) + lines[at][cut:]
            case 4:
                cut = rng.randint(0, len(lines[at]))
                changed = chr(rng.choice([0, 10, 34, 39, 44, 61, 91, 93, 125, 0x2028]))
                lines[at] = lines[at][:cut] + changed + lines[at][cut + 1 :]
            case 5:
                lines[at] = lines[at].replace("=", "= " + rng.choice(SNIPPETS[10:20]).lstrip("= ") + " #", 1)
            case 6:
                lines.insert(at, rng.choice(SNIPPETS))
        if not lines:
            break
    return "\n".join(lines)[:20_000]


def garbage(rng: random.Random) -> str:
    """Return pieces of TOML in any order, or any characters."""
    if rng.random() < 0.01:
        return "x = " + rng.choice(["[", "{ y = ", "1"]) * rng.choice([10, 5000])
    if rng.random() < 0.1:
        return rng.choice(HEADS) + mutation(rng, GOOD)
    if rng.random() < 0.7:
        return "\n".join(rng.choice(SNIPPETS + LINES + LINES) for _ in range(rng.randint(0, 12)))
    return "".join(chr(rng.choice([rng.randrange(32, 127), rng.randrange(0xD800)])) for _ in range(rng.randint(0, 60)))


def check(rng: random.Random, text: str) -> str:
    """Check that the text yields a usable configuration, or one sentence."""
    try:
        config = parse(text) if rng.random() > 0.01 else from_file(rng, text)
    except ConfigError as error:
        assert str(error).strip()
        return "refused: not TOML" if "not TOML" in str(error) else "refused: a sentence on a key"
    assert isinstance(config, Config)
    config.build_fabric()
    config.core_settings()
    config.rule_settings(epoch=1)
    required_names(config.openflow, config.optical_ports())
    return "a configuration"


def from_file(rng: random.Random, text: str) -> Config:
    """Check the same with a file, which may be missing or binary."""
    with TemporaryDirectory() as directory:
        path = Path(directory) / "blast.toml"
        if rng.random() < 0.9:
            path.write_text(text, encoding="utf-16" if rng.random() < 0.1 else "utf-8", errors="replace", newline="")
        return load(path)


CONFIG = Decoder(
    "config",
    WHOLE,
    mutation,
    garbage,
    check,
    ("/access.py", "/config.py", "/etcd.py", "/openflow.py", "/optics.py", "/reading.py", "/section.py", "/ssh.py"),
)


def test_any_text_gives_a_configuration_or_a_config_error():
    run = fuzz(CONFIG, TEXTS)
    assert min(run.outcomes[name] for name in ("a configuration", "refused: a sentence on a key")) > run.inputs // 100
    assert run.mutated * 2 == run.inputs
