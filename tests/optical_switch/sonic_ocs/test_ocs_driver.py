"""The keys of SONiC OCS in a configuration, and the access that follows from them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError

from optical_switch.drivers import SwitchTarget
from optical_switch.errors import InvalidDriverSettingError
from optical_switch.sonic_ocs import driver
from optical_switch.sonic_ocs.access import GnmiAccess, RedisAccess
from optical_switch.sonic_ocs.driver import DRIVER, SonicOcsKeys
from optical_switch.sonic_ocs.settings import Login, PemTexts
from tests.support.certificates import Authority

FAR = SwitchTarget("ocs1", "10.0.0.1", 8080, 16, 16)
NEAR = SwitchTarget("ocs1", "127.0.0.1", 8080, 16, 16)


class FolderFiles:
    """The files of a folder; secrets are noted."""

    def __init__(self) -> None:
        self.secret: list[Path] = []

    def read(self, path: Path) -> str:
        return path.read_text()

    def read_secret(self, path: Path) -> str:
        self.secret.append(path)
        return path.read_text()


def faults(**keys: object) -> list[str]:
    return list(SonicOcsKeys(**keys).faults("the optical switch ocs1"))


def access(target: SwitchTarget = FAR, **keys: object) -> GnmiAccess | RedisAccess:
    found = DRIVER.access(SonicOcsKeys(**keys), target, FolderFiles())
    assert isinstance(found, GnmiAccess | RedisAccess)
    return found


@pytest.fixture(autouse=True)
def libraries(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """Return the libraries that the driver requires, which need not be installed here."""
    required: list[tuple[str, ...]] = []
    monkeypatch.setattr(driver, "require", lambda extra, *modules: required.append((extra, *modules)))
    return required


def test_driver_is_imported_without_its_libraries() -> None:
    program = (
        "import sys, optical_switch.sonic_ocs.driver; print({'grpc', 'google.protobuf', 'redis'} & set(sys.modules))"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"


@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"origin": "yang", "ca": "/ca", "certificate": "/c", "private_key": "/k"},
        {"user": "blast", "password_file": "/p"},
        {"access": "redis", "socket": "/s", "password_file": "/p"},
        {"access": "redis", "ca": "/ca", "allow_insecure": True},
    ],
)
def test_consistent_keys_have_no_fault(keys: dict[str, object]) -> None:
    assert faults(**keys) == []


@pytest.mark.parametrize(
    ("keys", "fault"),
    [
        ({"certificate": "/c", "ca": "/ca"}, "needs certificate and private_key together"),
        ({"private_key": "/k"}, "needs certificate and private_key together"),
        ({"certificate": "/c", "private_key": "/k"}, "has certificate but no ca"),
        ({"user": "blast"}, "has user but no password_file"),
        ({"password_file": "/p"}, "has password_file but no user"),
        ({"socket": "/s"}, "has socket, which is for access"),
        ({"access": "redis", "origin": "yang"}, "has origin, which is for access"),
        ({"access": "redis", "socket": "/s", "ca": "/ca"}, "has socket and ca"),
    ],
)
def test_keys_that_contradict_each_other_are_named(keys: dict[str, object], fault: str) -> None:
    (found,) = faults(**keys)
    assert found.startswith(f"the optical switch ocs1 {fault}") and found.endswith(".")


@pytest.mark.parametrize("keys", [{"access": "ssh"}, {"origin": "openconfig"}, {"token": "x"}, {"ca": ""}])
def test_unknown_keys_and_values_are_refused(keys: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        SonicOcsKeys(**keys)


@pytest.mark.parametrize(
    ("keys", "summary"),
    [
        ({}, "gNMI by plain TCP"),
        ({"ca": "/ca"}, "gNMI by TLS"),
        ({"access": "redis", "socket": "/s"}, "Redis by a Unix socket"),
    ],
)
def test_summary_names_protocol_and_transport(keys: dict[str, object], summary: str) -> None:
    assert SonicOcsKeys(**keys).summary == summary


@pytest.mark.parametrize("protocol", ["gnmi", "redis"])
def test_network_without_tls_must_be_allowed(protocol: str) -> None:
    with pytest.raises(InvalidDriverSettingError, match="the optical switch ocs1 would be reached without TLS: set ca"):
        access(access=protocol)
    assert access(access=protocol, allow_insecure=True).target is FAR
    assert access(NEAR, access=protocol).target is NEAR


def test_unix_socket_needs_no_tls(tmp_path: Path) -> None:
    found = access(access="redis", socket=tmp_path / "redis.sock")
    assert isinstance(found, RedisAccess) and found.socket == tmp_path / "redis.sock" and found.tls is None


@pytest.mark.parametrize(("protocol", "library"), [("gnmi", "grpc"), ("redis", "redis")])
def test_only_library_of_protocol_is_required(protocol: str, library: str, libraries: list[tuple[str, ...]]) -> None:
    access(NEAR, access=protocol)
    assert libraries == [("sonic-ocs", library)]


def test_missing_library_is_named_with_installation(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(extra: str, *modules: str) -> None:
        raise driver.NotInstalledError(f"{modules[0]} not installed: install {extra}")

    monkeypatch.setattr(driver, "require", missing)
    with pytest.raises(InvalidDriverSettingError, match="cannot use Redis: redis not installed: install sonic-ocs"):
        access(NEAR, access="redis")


def test_password_is_read_as_secret(tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text("secret\n")
    files = FolderFiles()
    found = DRIVER.access(SonicOcsKeys(user="blast", password_file=password), NEAR, files)
    assert isinstance(found, GnmiAccess) and found.login == Login("blast", "secret")
    assert found.secrets == {"secret"} and files.secret == [password]
    password.write_text("\n")
    with pytest.raises(InvalidDriverSettingError, match="is empty"):
        access(NEAR, user="blast", password_file=password)


def test_certificates_are_read_and_checked(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "ours", "ours")
    pair, other = authority.issue("/CN=blast"), authority.issue("/CN=other")
    encrypted = tmp_path / "encrypted.key"
    subprocess.run(
        ["openssl", "pkcs8", "-topk8", "-in", pair.key, "-out", encrypted, "-passout", "pass:x"],
        check=True, capture_output=True, timeout=60,
    )  # fmt: skip
    garbage = tmp_path / "garbage"
    garbage.write_text("-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n")
    keys = {"ca": authority.cert, "certificate": pair.cert, "private_key": pair.key}
    found = access(**keys)
    assert isinstance(found, GnmiAccess)
    assert found.tls == PemTexts(authority.cert.read_text(), pair.cert.read_text(), pair.key.read_text())
    found = access(access="redis", **keys)
    assert isinstance(found, RedisAccess) and found.tls is not None and found.tls.check_hostname
    assert access(ca=authority.cert).tls is not None
    for wrong, name in (
        ({"ca": garbage}, garbage),
        ({"certificate": garbage}, garbage),
        ({"private_key": other.key}, other.key),
        ({"private_key": encrypted}, encrypted),
    ):
        with pytest.raises(InvalidDriverSettingError, match=f"the optical switch ocs1: .*{name.name}"):
            access(**{**keys, **wrong})
