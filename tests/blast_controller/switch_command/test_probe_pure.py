"""The pure parts of `blast switch probe`: first bytes, settings, the text of a table, hints."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blast_base.endpoint import Endpoint
from blast_controller.cli.switch.probe.attempts import variants
from blast_controller.cli.switch.probe.configuration_table import table_text
from blast_controller.cli.switch.probe.discovery import DiscoveredPeer
from blast_controller.cli.switch.probe.failures import ProbeFailureError, advised, refuses_login
from blast_controller.cli.switch.probe.first_bytes import HTTP2_PREFACE, PeerProtocol, recognize_peer
from blast_controller.cli.switch.probe.host_key import lacks_host_key
from blast_controller.cli.switch.probe.settings import InvalidSettingError, settings_table
from blast_controller.cli.switch.probe.suggestions import mismatch, missing_keys, suggested_table
from optical_switch.errors import RefusedError, UnreachableError

ENDPOINT = Endpoint("10.0.0.1", 830)
SSH, TL1, GRPC = (DiscoveredPeer(one) for one in (PeerProtocol.SSH, PeerProtocol.TL1, PeerProtocol.GRPC))
GRPC_TLS = DiscoveredPeer(PeerProtocol.GRPC, is_tls=True)
SETTINGS_FRAME = bytes([0, 0, 6, 4, 0, 0, 0, 0, 0]) + bytes(6)


@pytest.mark.parametrize(
    ("received", "protocol"),
    [
        (b"SSH-2.0-OpenSSH_9.2p1 Debian\r\n", "SSH"),
        (b"Welcome\r\nSSH-2.0-x\r\n", "SSH"),
        (b"SSH-2.0-OpenSSH", None),
        (b"\r\n\n   sw1 26-11-20 10:00:00\r\nM  1 COMPLD\r\n;", "TL1"),
        (b"<\r\n\n   sw1 26-11-20 10:00:00\r\n", "TL1"),
        (b"IP 1\r\n<", "TL1"),
        (b"M  0 DENY\r\n", "TL1"),
        (b"<", None),
        (b"agent>", None),
        (b"login: ", None),
        (b"+PONG\r\n", "Redis"),
        (b"-NOAUTH Authentication required.\r\n", "Redis"),
        (b"-DENIED Redis is running in protected mode\r\n", "Redis"),
        (b"-ERR unknown command 'RTRV-HDR:::1;'\r\n", "Redis"),
        (b"HTTP/1.1 400 Bad Request\r\n", "HTTP"),
        (b"\x15\x03\x03\x00\x02\x02\x46", "TLS"),
        (SETTINGS_FRAME, "HTTP/2"),
        (SETTINGS_FRAME[:8], None),
        (bytes([0, 0, 8, 7, 0, 0, 0, 0, 0]), "HTTP/2"),
        (bytes([0, 0, 5, 4, 0, 0, 0, 0, 0]), None),
        (HTTP2_PREFACE, None),
        (bytes(20), None),
        (b"", None),
    ],
)
def test_protocol_of_a_peer_by_its_first_bytes(received: bytes, protocol: str | None) -> None:
    found = recognize_peer(received)
    assert (None if found is None else found.protocol.value) == protocol


def test_banner_is_printable_and_bounded() -> None:
    found = recognize_peer(b"SSH-2.0-a\x1b[2J" + b"x" * 240 + b"\r\n")
    assert found is not None and found.text.isprintable() and len(found.text) <= 201
    assert recognize_peer(b"SSH-2.0-" + b"x" * 300 + b"\r\n") is None


# -------------------------------------------------------------------------------------------------------- settings


def test_settings_make_a_table() -> None:
    texts = ["ssh.user=admin", "ssh.private_key=/etc/blast/ocs1.key", "inputs=16", "ssh.terminal=true", 'user="16"']
    texts += [
        "dialect_settings={names = ['a', 'b']}",
        "step_timeout_ms=2_500",
        "password_file=a=b",
        "name=",
        'x."y z"=1',
    ]
    assert settings_table(texts) == {
        "ssh": {"user": "admin", "private_key": "/etc/blast/ocs1.key", "terminal": True},
        "inputs": 16,
        "user": "16",
        "dialect_settings": {"names": ["a", "b"]},
        "step_timeout_ms": 2500,
        "password_file": "a=b",
        "name": "",
        "x": {"y z": 1},
    }  # fmt: skip


@pytest.mark.parametrize("value", ["1\nother = 2", "a # b", '"open', "{", "1, 2", "[" * 5000])
def test_value_that_is_no_toml_is_a_string(value: str) -> None:
    assert settings_table([f"key={value}"]) == {"key": value}


@pytest.mark.parametrize(
    ("texts", "reason"),
    [
        (["ssh.user"], "has no value"),
        (["a b=1"], "no key of TOML"),
        (["=1"], "no key of TOML"),
        (["a=1", "a=1"], "contradicts"),
        (["a=1", "a.b=1"], "contradicts"),
        (["a.b=1", "a=1"], "contradicts"),
        (["address=10.0.0.1:1"], "give ADDRESS"),
        (["driver=tl1"], "give --driver"),
    ],
)
def test_settings_that_cannot_be_used(texts: list[str], reason: str) -> None:
    with pytest.raises(InvalidSettingError, match=reason):
        settings_table(texts)


SCALARS = st.one_of(st.booleans(), st.integers(-(1 << 60), 1 << 60), st.floats(allow_nan=False), st.text())
TABLES = st.recursive(
    st.dictionaries(st.text(min_size=1), st.one_of(SCALARS, st.lists(SCALARS, max_size=3)), max_size=3),
    lambda inner: st.dictionaries(st.text(min_size=1), st.one_of(SCALARS, inner), max_size=3),
    max_leaves=4,
)


@given(TABLES)
def test_table_is_written_as_toml(table: dict[str, object]) -> None:
    assert tomllib.loads(table_text(table, ["a comment"])) == {"optical_switch": [table]}


# ----------------------------------------------------------------------------------------------- drivers and remedies


@pytest.mark.parametrize(
    ("peer", "table"),
    [
        (TL1, {"driver": "tl1"}),
        (SSH, {"driver": "netconf"}),
        (GRPC_TLS, {"driver": "sonic-ocs", "access": "gnmi"}),
        (DiscoveredPeer(PeerProtocol.REDIS), {"driver": "sonic-ocs", "access": "redis"}),
    ],
)
def test_driver_for_a_protocol(peer: DiscoveredPeer, table: dict[str, object]) -> None:
    assert suggested_table(peer, ENDPOINT) == table


@pytest.mark.parametrize("protocol", [PeerProtocol.HTTP, PeerProtocol.TLS])
def test_protocol_without_a_driver(protocol: PeerProtocol) -> None:
    with pytest.raises(ProbeFailureError, match=r"10\.0\.0\.1:830 .*: "):
        suggested_table(DiscoveredPeer(protocol, text="ALERT"), ENDPOINT)


def test_missing_keys_are_named() -> None:
    assert "ssh.user=USER" in missing_keys(SSH, {}, ENDPOINT) and not missing_keys(SSH, {"ssh": {}}, ENDPOINT)
    assert "--set ca=FILE" in missing_keys(GRPC_TLS, {}, ENDPOINT) and not missing_keys(GRPC, {}, ENDPOINT)
    assert lacks_host_key({"ssh": {"user": "a"}}) and not lacks_host_key({}) and not lacks_host_key({"ssh": 1})
    assert not lacks_host_key({"ssh": {"host_key": "a"}}) and not lacks_host_key({"ssh": {"known_hosts": "a"}})


@pytest.mark.parametrize(
    ("peer", "table", "hint"),
    [
        (SSH, {"driver": "tl1"}, "SSH server: give --set ssh.user"),
        (SSH, {"driver": "tl1", "ssh": {}}, ""),
        (SSH, {"driver": "netconf", "ssh": {}}, "if it speaks TL1 over SSH, give --driver tl1"),
        (TL1, {"driver": "netconf", "ssh": {}}, "not SSH: leave out"),
        (TL1, {"driver": "tl1"}, ""),
        (GRPC, {"driver": "tl1"}, "leave out --driver"),
        (GRPC, {"driver": "sonic-ocs"}, ""),
        (GRPC, {"driver": "sonic-ocs", "access": "redis"}, "leave out --driver"),
        (GRPC_TLS, {"driver": "sonic-ocs"}, "--set ca=FILE"),
        (GRPC, {"driver": "sonic-ocs", "ca": "x"}, "leave out ca"),
        (GRPC_TLS, {"driver": "sonic-ocs", "ca": "x"}, ""),
        (DiscoveredPeer(PeerProtocol.TLS, is_tls=True), {"driver": "sonic-ocs", "ca": "x"}, ""),
        (DiscoveredPeer(PeerProtocol.TLS, is_tls=True), {"driver": "sonic-ocs"}, "--set ca=FILE"),
    ],
)
def test_hint_if_a_table_does_not_fit_the_peer(peer: DiscoveredPeer, table: dict[str, object], hint: str) -> None:
    found = mismatch(peer, table)
    assert (hint in found) if hint else not found


def test_errors_have_remedies() -> None:
    table = {"address": "10.0.0.1:1"}
    denied = RefusedError("PLNA", "login not active")
    assert refuses_login(denied) and refuses_login(RefusedError("NOAUTH")) and not refuses_login(RefusedError("IICM"))
    assert not refuses_login(RefusedError("PRTL"))
    assert advised(denied, table) == (
        "10.0.0.1:1: PLNA: login not active: give --set user=USER and --set password_file=FILE"
    )
    assert ": correct --set user" in advised(denied, {**table, "user": "a"})
    lost = UnreachableError("the switch at 10.0.0.1:1 closed the connection")
    assert advised(lost, table, "correct the port") == f"{lost}; correct the port"
    assert "signed the certificate" in advised(lost, {**table, "ca": "x"})


def test_settings_that_are_left_open_are_tried() -> None:
    assert [one["dialect"] for one in variants({"driver": "tl1"})][:2] == ["glimmerglass", "calient"]
    assert variants({"driver": "tl1", "dialect": "polatis"}) == [{}] == variants({"driver": "netconf"})
    assert variants({"driver": "sonic-ocs"}) == [{"origin": "databases"}, {"origin": "yang"}]
    assert variants({"driver": "sonic-ocs", "access": "redis"}) == [{}]
