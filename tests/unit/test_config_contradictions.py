"""Settings that contradict each other are refused, and each sentence names both keys."""

from __future__ import annotations

from importlib.resources import files

import pytest

from blast_controller.configuration.config import ConfigError
from blast_controller.configuration.reading import parse
from tests.unit.test_config import GOOD

EXAMPLE = files("blast_controller").joinpath("example.toml").read_text()
SECOND = '\n[[optical_switch]]\nname = "ocs2"\naddress = "{}"\ninputs = 4\noutputs = 4\n'


def changed(*replacements: tuple[str, str]) -> str:
    text = EXAMPLE
    for old, new in replacements:
        assert old in text
        text = text.replace(old, new, 1)
    return text


@pytest.mark.parametrize(
    ("replacements", "words"),
    [
        ([("remember_ended_ms = 3_600_000", "remember_ended_ms = 59_999")], ["keep_warm_ms", "remember_ended_ms"]),
        ([("client_grace_ms = 2_000", "client_grace_ms = 3_600_001")], ["client_grace_ms", "remember_ended_ms"]),
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
            ["dark_dbm", "sensitivity_dbm"],
        ),
        ([("\n# A rack is", SECOND.format("192.0.2.10:10033") + "\n# A rack is")], ["ocs1", "ocs2"]),
    ],
)
def test_a_contradiction_is_refused_in_one_sentence(replacements, words):
    with pytest.raises(ConfigError) as refusal:
        parse(changed(*replacements))
    assert all(word in str(refusal.value) for word in words)


@pytest.mark.parametrize(
    "replacements",
    [
        [],
        [("remember_ended_ms = 3_600_000", "remember_ended_ms = 60_000")],
        [("127.0.0.1:6653", "127.0.0.1:0"), ("127.0.0.1:9090", "127.0.0.1:0")],
        [("\n# A rack is", SECOND.format("192.0.2.10:10034") + "\n# A rack is")],
    ],
)
def test_what_is_at_the_edge_is_taken(replacements):
    parse(changed(*replacements))


@pytest.mark.parametrize(
    ("etcd", "sentence"),
    [
        ('endpoints = ["e1"]', 'must be "ADDRESS:PORT"'),
        ('endpoints = ["e1:2379"]', "are on other machines: give ca, certificate and private_key"),
        ('endpoints = ["127.0.0.1:1"]\nca = "x"', "belong together: give all three"),
        ('endpoints = ["127.0.0.1:1"]\nuser = "x"', "user and password_file belong together"),
        ('endpoints = ["127.0.0.1:1"]\nprefix = "/"', "must name a place of its own"),
    ],
)
def test_a_journal_in_etcd_that_cannot_be_reached_safely_is_refused(etcd, sentence):
    with pytest.raises(ConfigError, match=sentence):
        parse(f"{GOOD}\n[journal.etcd]\n{etcd}\n")
