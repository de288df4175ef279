"""The agent's configuration: accepted settings, and one-line errors for invalid ones."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import blast_transport.agent
from blast_base.endpoint import Endpoint, parse_listening
from blast_transport.agent.settings import FILE_NAME, load, parse
from blast_transport.base.errors import SettingsError
from blast_transport.credentials.roles import NEIGHBOR, SENDER

EXAMPLE = Path(blast_transport.agent.__file__).with_name("example.toml")
FOLDER = '[[folder]]\nname = "in"\npath = "/srv/in"\n'
TLS = 'certificate = "/c"\nprivate_key = "/k"\nclient_ca = "/ca"\n'


def uncommented(text: str) -> str:
    """Return the example with its commented settings enabled: lines that are TOML after `# `."""
    return re.sub(r"^# (?=\[|\w+ = |    \{|\])", "", text, flags=re.MULTILINE)


def test_example_equals_defaults_with_readable_folder():
    settings = load(EXAMPLE)
    folder = f'[[folder]]\nname = "incoming"\npath = "{settings.folder[0].path}"'
    assert settings == parse(f'[agent]\nfile_mode = "0644"\n{folder}')


def test_commented_settings_of_example_are_valid():
    upper, lower = EXAMPLE.read_text().split("# ... or a secret")
    by_certificates = parse(uncommented(upper))
    assert by_certificates.access.client[1].role == NEIGHBOR and by_certificates.command[0].name == "untar"
    by_secret = parse(FOLDER + "#" + uncommented(lower))
    assert by_secret.access.secret_file == Path("/etc/blast/agent.secret") and by_secret.log.level == "info"


def test_example_documents_every_key():
    import dataclasses

    def keys(section):
        for field in dataclasses.fields(section):
            value = getattr(section, field.name)
            if dataclasses.is_dataclass(value):
                yield from keys(value)
            elif not isinstance(value, tuple):
                yield field.name

    text = EXAMPLE.read_text()
    assert not [key for key in keys(parse(FOLDER)) if f"{key} = " not in text]


def test_settings_of_every_section_are_parsed():
    settings = parse(
        '[agent]\nlisten = "[::1]:0"\noptical_address = "10.1.0.2"\nstop_timeout_ms = 100\n'
        + FOLDER
        + f'[[command]]\nname = "untar"\nrun = ["/bin/tar", "-x", "{FILE_NAME}"]\nfolder = "/srv"\n'
        + "[limits]\nsessions = 2\nfile_bytes = 5\nmemory_bytes = 7\nmax_rate_mbps = 0.5\n"
        + f'[access]\n{TLS}client = [{{ common_name = "a" }}, {{ dns_name = "b", role = "neighbor" }}]\n'
        + '[log]\nlevel = "debug"\nformat = "json"\n'
    )
    assert settings.agent.listen == Endpoint("::1", 0) and settings.agent.optical_address == "10.1.0.2"
    assert settings.folder[0].path == Path("/srv/in") and settings.command[0].folder == Path("/srv")
    assert [client.role for client in settings.access.client] == [SENDER, NEIGHBOR]
    assert settings.access.client[1].names() == {("dns_name", "b")}
    assert settings.limits.max_rate_mbps == 0.5 and settings.limits.connections == 1024


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[agnt]", "unknown key agnt; did you mean agent?"),
        ("[agent]\nlisten_on = 1", "unknown key agent.listen_on; did you mean listen?"),
        ("[agent]\nqqq = 1", "unknown key agent.qqq; remove it."),
        ("agent = 3", "agent: must be a table (found 3)."),
        ("folder = 3", "folder: must be an array of tables (found 3)."),
        ('[[folder]]\npath = "/x"', "the key folder[1].name is missing."),
        (FOLDER + '[[folder]]\nname = "b"\npath = "x"', "folder[2].path: must be an absolute path (found 'x')."),
        (FOLDER * 2, "two folders have the name 'in': rename one."),
        ('[[folder]]\nname = "a/b"\npath = "/"', "must be up to 64 letters, digits, '.', '_' and '-' (found 'a/b')."),
        (FOLDER + "[limits]\nsessions = true", "limits.sessions: must be a whole number from 1 to 4096 (found True)."),
        (FOLDER + "[limits]\nmax_rate_mbps = nan", "must be a number from 0.001 to 1e+09 (found nan)."),
        (FOLDER + "[limits]\nunauthenticated = 2", "limits.unauthenticated_per_host is more than"),
        (FOLDER + '[log]\nlevel = "loud"', "log.level: must be one of debug, info, warning, error (found 'loud')."),
        (FOLDER + '[agent]\noptical_address = "::1"', "agent.optical_address: must be an IPv4 address (found '::1')."),
        ('[[command]]\nname = "c"\nrun = []', "command[1].run: must be an array of strings, with at least one"),
        ('[[command]]\nname = "c"\nrun = ["tar"]', "command[1].run: must be an absolute path"),
        (f'[[command]]\nname = "c"\nrun = ["/tar", "-f{FILE_NAME}"]', "must stand alone, as one element"),
        ("", "may write nowhere: give a [[folder]], [[device]] or [[command]], or limits.memory_bytes."),
        ("[agent", "not TOML: "),
        ("a = " + "[" * 5000, "not TOML"),
    ],
)
def test_invalid_setting_is_reported_in_one_sentence(text, sentence):
    with pytest.raises(SettingsError) as caught:
        parse(text)
    assert sentence in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("access", "sentence"),
    [
        ("", "agent.listen 0.0.0.0:9095 is reached from other machines: add [access]"),
        ("handshake_timeout_ms = 5", "agent.listen 0.0.0.0:9095 is reached from other machines: add [access]"),
        ('certificate = "/c"', "access.certificate, access.private_key and access.client_ca belong together"),
        (TLS, "access permits no client: set access.client"),
        (
            TLS + 'client = [{ common_name = "a" }]\nsecret_file = "/s"',
            "access has both certificates and a secret_file",
        ),
        (TLS + 'client = [{ role = "sender" }]', "access.client[1] fits every certificate"),
        ('secret_file = "/s"\nclient = [{ common_name = "a" }]', "access.client needs a CA"),
    ],
)
def test_listening_beyond_loopback_requires_authentication(access, sentence):
    with pytest.raises(SettingsError) as caught:
        parse(f'{FOLDER}[agent]\nlisten = "0.0.0.0:9095"\n[access]\n{access}')
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    "text", ["", "127.0.0.1", "host:80", "127.0.0.1:", "127.0.0.1:65536", "::1:80", "[127.0.0.1]:1"]
)
def test_invalid_endpoint_is_rejected(text):
    with pytest.raises(ValueError, match="IP-ADDRESS:PORT"):
        parse_listening(text)


def test_unreadable_configuration_file_is_named(tmp_path):
    with pytest.raises(SettingsError, match=r"absent\.toml cannot be read: No such file or directory"):
        load(tmp_path / "absent.toml")
    broken = tmp_path / "latin.toml"
    broken.write_bytes(b"\xff")
    with pytest.raises(SettingsError, match=r"latin\.toml is not UTF-8 text \(byte 0\)"):
        load(broken)
    broken.write_text("[agnt]")
    with pytest.raises(SettingsError, match=r"latin\.toml: unknown key agnt"):
        load(broken)


@pytest.mark.parametrize("mode", ["640", "0640", "0600", "0666"])
def test_valid_file_mode_is_accepted(mode):
    assert parse(f'{FOLDER}[agent]\nfile_mode = "{mode}"\n').agent.file_mode == mode


@pytest.mark.parametrize("mode", ['"0400"', '"0888"', '"rw-r--r--"', '""', '"17777"', "0o640", "640"])
def test_invalid_file_mode_is_rejected(mode):
    with pytest.raises(SettingsError, match=r"agent\.file_mode: must be "):
        parse(f"{FOLDER}[agent]\nfile_mode = {mode}\n")


def test_received_files_are_durable_and_private_by_default():
    agent = parse(FOLDER).agent
    assert agent.durable and agent.file_mode == "0600"
    assert not parse(f"{FOLDER}[agent]\ndurable = false\n").agent.durable
    with pytest.raises(SettingsError, match=r"agent\.durable: must be true or false"):
        parse(f'{FOLDER}[agent]\ndurable = "yes"\n')
