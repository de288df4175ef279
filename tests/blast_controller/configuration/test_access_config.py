"""[access] and [[tenant]] of the configuration file, the files that they name, and the command that makes tokens."""

from __future__ import annotations

import io
import subprocess
from textwrap import dedent

import pytest

from blast_base.settings import is_loopback
from blast_client.cli.command import main
from blast_controller.configuration.access_files import (
    check_access_files,
    read_policy,
    read_secret,
    switch_tls,
    tls_settings,
)
from blast_controller.configuration.config import Config, ConfigError
from blast_controller.configuration.openflow import required_names
from blast_controller.configuration.reading import parse
from blast_controller.core.model.settings import TenantLimits
from blast_controller.rpc.clients.access import OPEN_POLICY
from blast_controller.rpc.clients.identity import Identity, Role
from blast_controller.rpc.clients.tokens import digest_of, new_token, parse_tokens, token_line
from tests.support.certificates import Authority

RACK = dedent("""
    [[rack]]
    name = "r1"
    datapath = "0000000000000001"
    hosts = [{ name = "h1", port = 1, ip = "10.0.0.1" }]
    """)
OUTSIDE = '[controller]\nthrift = "192.0.2.1:9090"\n'
TLS = 'certificate = "/c"\nprivate_key = "/k"\n'
RULES = 'client_ca = "/ca"\nclient = [{ common_name = "a", role = "user" }]\n'
TOKENS = 'token_file = "/t"\n'
SWITCHES_OUTSIDE = '[controller]\nopenflow = "192.0.2.1:6653"\n'


def config(text: str) -> Config:
    return parse(text + RACK)


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("127.0.0.1:9090", True),
        ("127.9.9.9:1", True),
        ("[::1]:9090", True),
        ("localhost:9090", True),
        ("0.0.0.0:9090", False),
        ("[::]:9090", False),
        ("10.0.0.1:9090", False),
        ("localhost.example.org:9090", False),
        ("[::ffff:127.0.0.1]:9090", False),
        ("controller:9090", False),
    ],
)
def test_only_loopback_addresses_are_loopback(address, expected):
    assert is_loopback(address) is expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        '[controller]\nthrift = "[::1]:9090"\n',
        f"[access]\n{TOKENS}",
        f"{OUTSIDE}[access]\n{TLS}{TOKENS}",
        f"{OUTSIDE}[access]\n{TLS}{RULES}",
        f'{OUTSIDE}[access]\n{TLS}{RULES}{TOKENS}client_certificate = "optional"\n',
        f'{OUTSIDE}[access]\n{TLS}{TOKENS}client_ca = "/ca"\n',
        f'[access]\n{TLS}client_ca = "/ca"\n'
        'client = [{ organizational_unit = "p", tenant = "physics", role = "viewer" }]\n[[tenant]]\nname = "physics"\n',
        f"[openflow]\n{TLS}",
        f'{SWITCHES_OUTSIDE}[openflow]\n{TLS}switch_ca = "/ca"\n',
        f"{SWITCHES_OUTSIDE}allow_insecure_openflow = true\n",
        f"{SWITCHES_OUTSIDE}allow_insecure_openflow = true\n[openflow]\n{TLS}",
    ],
)
def test_protected_configurations_are_accepted(text):
    config(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (OUTSIDE, "reachable from other machines without authentication: add [access]"),
        (f"{OUTSIDE}[access]\n{TOKENS}", "reachable from other machines without TLS: set access.certificate"),
        (f"{OUTSIDE}[access]\n{TLS}", "admits no client"),
        (f'[access]\n{TLS}client_ca = "/ca"\n', "admits no client"),
        (f'[access]\n{TOKENS}certificate = "/c"\n', "must be set together"),
        (f"[access]\n{RULES}", "client_ca requires TLS"),
        (f'[access]\n{TLS}{TOKENS}client = [{{ common_name = "a", role = "user" }}]\n', "requires a CA"),
        (f'[access]\n{TLS}{RULES}client_certificate = "optional"\n', "token_file"),
        (f'[access]\n{TLS}client_ca = "/ca"\nclient = [{{ role = "operator" }}]\n', "access.client[1] matches every"),
        ("[access]\n" + TLS + RULES.replace("role", 'tenant = "x", role'), "which is not configured"),
        (f"[access]\n{TLS}{RULES.replace('user', 'root')}", "access.client[1].role"),
        (f"[access]\n{TLS}{RULES}common_name = 'a'\n", "unknown key access.common_name"),
        (SWITCHES_OUTSIDE, "reachable from other machines, and any peer that connects can claim to be a ToR"),
        (f"{SWITCHES_OUTSIDE}[openflow]\n{TLS}", "set openflow.switch_ca"),
        ('[openflow]\ncertificate = "/c"\n', "openflow.certificate and openflow.private_key must be set together"),
        ('[openflow]\nswitch_ca = "/ca"\n', "openflow.switch_ca requires TLS"),
        ('[[tenant]]\nname = "a/b"\n', "tenant[1].name"),
        ('[[tenant]]\nname = "a"\n[[tenant]]\nname = "a"\n', "the tenant a is used twice"),
        ('[[tenant]]\nname = "a"\nmax_pending = -1\n', "max_pending"),
        ('[[tenant]]\nname = "a"\nmax_light_seconds = 3.0\n', "did you mean max_light_seconds_per_hour"),
    ],
)
def test_insecure_or_invalid_access_is_rejected_in_one_sentence(text, words):
    with pytest.raises(ConfigError) as error:
        config(text)
    assert words in str(error.value) and "\n" not in str(error.value)


def test_core_settings_contain_tenant_limits():
    text = '[[tenant]]\nname = "physics"\nmax_pending = 2\nmax_splitters = 0\nmax_light_seconds_per_hour = 90.5\n'
    settings = config(text + '[[tenant]]\nname = "biology"\n').core_settings()
    assert settings.tenants == {"physics": TenantLimits(2, 0, 90.5), "biology": TenantLimits()}


def test_local_clients_are_operators_without_access_section():
    policy = read_policy(config(""))
    assert (policy.anonymous, policy.features) == (OPEN_POLICY.anonymous, frozenset())
    assert policy.anonymous == Identity("default", Role.OPERATOR)
    assert tls_settings(None) is None
    assert read_policy(config('[[tenant]]\nname = "x"\n')).features == {"tenants"}


# --------------------------------------------------------------------------------------------------------- files


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("ca"), "ca")


@pytest.fixture
def protected(authority, tmp_path):
    """Return a configuration with every kind of file, all valid, and its key pair, token file and token."""
    pair = authority.issue("/CN=controller", "IP:127.0.0.1")
    tokens = tmp_path / "tokens"
    tokens.write_text(token_line(token := new_token(), Identity("physics", Role.USER)) + "\n")
    tokens.chmod(0o640)
    text = (
        f'[access]\ncertificate = "{pair.cert}"\nprivate_key = "{pair.key}"\nclient_ca = "{authority.cert}"\n'
        f'client_certificate = "optional"\ntoken_file = "{tokens}"\n'
        'client = [{ uri = "u:admin", role = "operator" }]\n[[tenant]]\nname = "physics"\n'
    )
    return text, pair, tokens, token


def test_policy_identifies_clients_by_token_and_certificate(protected):
    text, pair, _, token = protected
    check_access_files(config(text))
    policy = read_policy(config(text))
    assert policy.identify(frozenset(), policy.known_digest(token)) == Identity("physics", Role.USER)
    assert policy.identify(frozenset({("uri", "u:admin")}), None) == Identity("default", Role.OPERATOR)
    assert policy.identify(frozenset(), None) is None
    assert policy.features == {"login", "tenants", "tls"} and policy.tenants == {"default", "physics"}
    settings = tls_settings(config(text).access)
    assert (settings.certificate, settings.required, settings.handshake_seconds) == (pair.cert, False, 5.0)


@pytest.mark.parametrize("which", ["key", "tokens"])
@pytest.mark.parametrize("mode", [0o644, 0o604, 0o602, 0o601])
def test_check_rejects_secrets_accessible_to_other_users(protected, which, mode):
    text, pair, tokens, _ = protected
    path = pair.key if which == "key" else tokens
    path.chmod(mode)
    with pytest.raises(ConfigError, match=f"chmod o= {path}"):
        check_access_files(config(text))
    path.chmod(0o640)
    check_access_files(config(text))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"secret\n", "line 1 must be"),
        (b"\xff", "not UTF-8"),
        (f"sha256:{'0' * 64} chemistry user".encode(), "which is not configured"),
        (b"#" * (1 << 20) + b"#", "the limit for a file of secrets"),
    ],
)
def test_check_rejects_invalid_token_files(protected, content, words):
    text, _, tokens, _ = protected
    tokens.write_bytes(content)
    with pytest.raises(ConfigError) as error:
        check_access_files(config(text))
    assert words in str(error.value) and str(tokens) in str(error.value)


def test_check_rejects_missing_or_mismatched_files(protected, authority, tmp_path):
    text, pair, tokens, _ = protected
    other = authority.issue("/CN=other")
    nothing = tmp_path / "nothing"
    garbage = tmp_path / "garbage"
    garbage.write_text("no certificate")
    garbage.chmod(0o600)
    locked = tmp_path / "locked.key"
    locking = ["openssl", "ec", "-in", str(pair.key), "-aes128", "-passout", "pass:x", "-out", str(locked)]
    subprocess.run(locking, check=True, capture_output=True, timeout=30)
    locked.chmod(0o600)
    with pytest.raises(ConfigError, match="cannot be read"):
        read_secret(nothing)
    for old, new in (
        (pair.key, other.key), (pair.key, nothing), (pair.key, garbage), (pair.key, locked),
        (pair.cert, nothing), (pair.cert, garbage), (authority.cert, garbage), (authority.cert, nothing),
        (tokens, nothing),
    ):  # fmt: skip
        with pytest.raises(ConfigError) as error:
            check_access_files(config(text.replace(f'"{old}"', f'"{new}"')))
        assert str(new) in str(error.value) and "\n" not in str(error.value)


def test_check_reads_the_tls_files_of_openflow(authority, tmp_path):
    pair, nothing = authority.issue("/CN=controller"), tmp_path / "nothing"
    text = f'[openflow]\ncertificate = "{pair.cert}"\nprivate_key = "{pair.key}"\nswitch_ca = "{authority.cert}"\n'
    check_access_files(config(text))
    settings = switch_tls(config(text).openflow)
    assert (settings.certificate, settings.client_ca, settings.required) == (pair.cert, authority.cert, True)
    assert switch_tls(config("").openflow) is None
    for old in (pair.cert, pair.key, authority.cert):
        with pytest.raises(ConfigError, match=str(nothing)):
            check_access_files(config(text.replace(f'"{old}"', f'"{nothing}"')))
    pair.key.chmod(0o644)
    with pytest.raises(ConfigError, match=f"chmod o= {pair.key}"):
        check_access_files(config(text))


# ------------------------------------------------------------------------------------------------------ commands


def test_hash_token_creates_a_token_and_prints_its_line(tmp_path, capsys):
    file = tmp_path / "physics.token"
    command = ["controller", "hash-token", "--tenant", "physics", "--role", "viewer"]
    assert main([*command, "--new", str(file)]) == 0
    line = capsys.readouterr().out
    assert parse_tokens(line) == {digest_of(file.read_text().strip()): Identity("physics", Role.VIEWER)}
    assert file.stat().st_mode & 0o777 == 0o600
    assert main([*command, "--new", str(file)]) == 1, "an existing token is not overwritten"
    assert "exists" in capsys.readouterr().err


def test_hash_token_reads_a_token_from_standard_input(monkeypatch, capsys):
    command = ["controller", "hash-token", "--role", "operator"]
    token = new_token()
    monkeypatch.setattr("sys.stdin", io.StringIO(token + "\n"))
    assert main(command) == 0
    out = capsys.readouterr().out
    assert parse_tokens(out) == {digest_of(token): Identity("default", Role.OPERATOR)} and token not in out
    for text in ("", "hunter2\n"):
        monkeypatch.setattr("sys.stdin", io.StringIO(text))
        assert main(command) == 2
        assert "--new" in capsys.readouterr().err
    monkeypatch.setattr("sys.stdin", io.StringIO(token))
    assert main([*command, "--tenant", "a b"]) == 2


def test_check_command_reports_how_clients_are_authenticated(protected, tmp_path, capsys):
    text, pair, _, _ = protected
    file = tmp_path / "blast.toml"
    file.write_text(text + RACK)
    assert main(["controller", "check", "--config", str(file)]) == 0
    assert "(TLS, clients authenticated by certificates of" in capsys.readouterr().out
    pair.key.chmod(0o644)
    assert main(["controller", "check", "--config", str(file)]) == 2
    assert "chmod" in capsys.readouterr().err
    file.write_text(RACK)
    assert main(["controller", "check", "--config", str(file)]) == 0
    assert "no authentication: every local client is an operator" in capsys.readouterr().out
    file.write_text(OUTSIDE + RACK)
    assert main(["controller", "check", "--config", str(file)]) == 2
    assert "reachable from other machines" in capsys.readouterr().err


def test_tor_certificate_name_defaults_to_its_datapath():
    by_name = f'certificate_names = {{ "{1:016x}" = "tor1.example" }}\n'
    with_ca = f'[openflow]\n{TLS}switch_ca = "/ca"\n'
    assert required_names(config(with_ca).openflow, [1, 2]) == {1: f"{1:016x}", 2: f"{2:016x}"}
    assert required_names(config(with_ca + by_name).openflow, [1, 2]) == {1: "tor1.example", 2: f"{2:016x}"}
    assert required_names(config(f"[openflow]\n{TLS}").openflow, [1]) is None
    with pytest.raises(ConfigError, match=r"set openflow\.switch_ca"):
        config(f"[openflow]\n{by_name}")
    with pytest.raises(ConfigError, match="no rack has"):
        config(with_ca + by_name.replace(f"{1:016x}", f"{7:016x}"))
