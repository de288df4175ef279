"""gNMI over TLS between the driver and the target: expired and foreign certificates, and what the operator reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from optical_switch.drivers import SwitchTarget
from optical_switch.emulator.gnmi_target.rpc_server import TargetTls
from optical_switch.emulator.gnmi_target.target import serve_sonic_ocs
from optical_switch.errors import UnreachableError
from optical_switch.sonic_ocs.access import GnmiAccess
from optical_switch.sonic_ocs.settings import PemTexts
from tests.support.certificates import Authority, Pair

pytestmark = pytest.mark.redis
SUBJECT = "IP:127.0.0.1"


def texts(authority: Authority, client: Pair) -> PemTexts:
    return PemTexts(authority.cert.read_text(), client.cert.read_text(), client.key.read_text())


async def opened(folder: Path, server: tuple[Authority, Pair], client: tuple[Authority, Pair]) -> None:
    """Open a session and read, between a target and a driver with these certificates, each trusting `Authority`."""
    redis = folder / "redis"
    redis.mkdir()
    tls = TargetTls(server[1].cert, server[1].key, server[0].cert)
    async with serve_sonic_ocs(redis, 4, 4, tls=tls) as switch:
        port = int(switch.address.rpartition(":")[2])
        access = GnmiAccess(SwitchTarget("ocs1", "127.0.0.1", port, 4, 4, 5.0), tls=texts(*client))
        session = access.new_session()
        try:
            await session.open()
            assert await session.read_circuits() == []
        finally:
            await session.close()


async def test_session_by_certificates_of_both_ends(tmp_path: Path) -> None:
    authority = Authority(tmp_path, "ca")
    await opened(tmp_path, (authority, authority.issue("/CN=ocs1", SUBJECT)), (authority, authority.issue("/CN=blast")))


async def test_expired_certificate_of_the_switch_is_reported(tmp_path: Path) -> None:
    authority = Authority(tmp_path, "ca")
    switch = authority.issue("/CN=ocs1", SUBJECT, days=-1)
    with pytest.raises(UnreachableError, match="certificate has expired"):
        await opened(tmp_path, (authority, switch), (authority, authority.issue("/CN=blast")))


async def test_expired_certificate_of_the_controller_opens_no_session(tmp_path: Path) -> None:
    authority = Authority(tmp_path, "ca")
    client = authority.issue("/CN=blast", days=-1)
    with pytest.raises(UnreachableError):
        await opened(tmp_path, (authority, authority.issue("/CN=ocs1", SUBJECT)), (authority, client))


async def test_switch_of_another_authority_is_reported(tmp_path: Path) -> None:
    authority, other = Authority(tmp_path, "ca"), Authority(tmp_path, "other")
    with pytest.raises(UnreachableError, match="certificate"):
        await opened(tmp_path, (authority, other.issue("/CN=ocs1", SUBJECT)), (authority, authority.issue("/CN=blast")))
