"""NETCONF in the configuration: its keys, and what importing the driver loads."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import asyncssh
import pytest
from pydantic import ValidationError

from blast_base.extras import how_to_install
from optical_switch.drivers import SwitchTarget
from optical_switch.errors import InvalidDriverSettingError
from optical_switch.model import Port
from optical_switch.netconf.driver import DRIVER, NetconfAccess, NetconfKeys
from tests.optical_switch.netconf.scripted_device import TextFiles
from tests.support.needs import ROOT

SSH = {"user": "blast", "password_file": "/p", "host_key": "/h"}
TARGET = SwitchTarget("ocs1", "ocs1.example.org", 830, 16, 24)


def keys(**table: object) -> NetconfKeys:
    return NetconfKeys.model_validate({"ssh": SSH} | table)


@pytest.mark.parametrize(
    "table",
    [
        {"ssh": None},
        {"profile": "other"},
        {"first_output": 1},
        {"first_output": 65536},
        {"user": "blast"},
        {"ssh": SSH | {"subsystem": "x"}},
    ],
)
def test_wrong_keys_are_rejected(table: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        keys(**table)


@pytest.mark.parametrize(
    ("ssh", "fault"),
    [
        ({"user": "u", "password_file": "/p"}, "needs host_key or known_hosts to authenticate the switch"),
        (SSH | {"known_hosts": "/k"}, "has both host_key and known_hosts"),
        (SSH | {"private_key": "/k"}, "needs either password_file or private_key"),
    ],
)
def test_contradictory_ssh_table_is_one_sentence(ssh: dict[str, str], fault: str) -> None:
    [sentence] = keys(ssh=ssh).faults("the optical switch ocs1")
    assert sentence.startswith(f"the table ssh of the optical switch ocs1 {fault}") and sentence.endswith(".")


def test_outputs_follow_the_inputs_unless_they_are_given(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("open sesame\n")
    (tmp_path / "key").write_text("# none\n")
    ssh = {"user": "u", "password_file": tmp_path / "password", "host_key": tmp_path / "key"}
    with pytest.raises(InvalidDriverSettingError, match=r"^the optical switch ocs1: .*/key has no host key\.$"):
        DRIVER.access(keys(ssh=ssh), TARGET, TextFiles())
    asyncssh.generate_private_key("ssh-ed25519").write_public_key(tmp_path / "key")
    for table, number in (({}, 17), ({"first_output": 49}, 49)):
        access = DRIVER.access(keys(ssh=ssh, **table), TARGET, TextFiles())
        assert isinstance(access, NetconfAccess)
        assert access.numbering.number(Port("out", 1)) == number
        assert (access.transport.subsystem, access.transport.password) == ("netconf", "open sesame")
    assert keys().summary == "polatis by NETCONF over SSH" and keys().default_light_check == "off"


def test_missing_asyncssh_names_the_extra_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("blast_base.extras.find_spec", lambda name: None)
    with pytest.raises(InvalidDriverSettingError) as caught:
        DRIVER.access(keys(), TARGET, TextFiles())
    expected = f"the optical switch ocs1 cannot use SSH: asyncssh not installed: {how_to_install('ssh-switches')}."
    assert str(caught.value) == expected


def test_importing_the_driver_loads_no_ssh_library() -> None:
    program = (
        "import sys, optical_switch.netconf.driver\n"
        "print([name for name in ('asyncssh', 'lxml', 'cryptography') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
