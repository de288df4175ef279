"""Finding the protocol of real servers, and of peers that behave badly."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest

from blast_base.endpoint import Endpoint
from blast_controller.cli.switch.probe.discovery import DiscoveredPeer, DiscoveryTimes, discover
from blast_controller.cli.switch.probe.first_bytes import HTTP2_PREFACE, RTRV_HDR, PeerProtocol
from optical_switch.errors import ProtocolError, UnreachableError
from tests.blast_controller.switch_command.peers import (
    TIMES,
    greeting_with,
    needs_redis,
    relay_to,
    served,
    server_context,
)
from tests.support.certificates import Authority
from tests.support.controller.tl1 import emulated
from tl1_driver.dialects import DIALECTS

IMPATIENT = DiscoveryTimes(silence=0.02, answer=0.05, total=30.0)


@pytest.mark.parametrize("language", ["glimmerglass", "calient", "calient-prompt", "polatis"])
async def test_tl1_with_and_without_a_prompt(language: str) -> None:
    async with emulated(DIALECTS["glimmerglass"], dialect=language) as lab:
        found = await discover(Endpoint("127.0.0.1", lab.port), TIMES)
    assert found.protocol is PeerProtocol.TL1 and not found.is_tls


async def test_netconf_server_is_an_ssh_server() -> None:
    pytest.importorskip("asyncssh")
    from tests.optical_switch.netconf_server.raw_client import netconf_lab

    async with netconf_lab() as lab:
        found = await discover(Endpoint(*lab.switch.address), TIMES)
    assert found.protocol is PeerProtocol.SSH and found.text.startswith("SSH-2.0-AsyncSSH")


@needs_redis
async def test_gnmi_with_and_without_tls(tmp_path: Path, authority: Authority) -> None:
    pytest.importorskip("redis")
    from optical_switch.emulator.gnmi_target.rpc_server import TargetTls
    from optical_switch.emulator.gnmi_target.target import serve_sonic_ocs

    pair = authority.issue("/CN=ocs", "IP:127.0.0.1")
    for name, tls in (("plain", None), ("tls", TargetTls(pair.cert, pair.key, authority.cert))):
        (tmp_path / name).mkdir()
        async with serve_sonic_ocs(tmp_path / name, 2, 2, tls=tls) as target:
            host, _, port = target.address.rpartition(":")
            found = await discover(Endpoint(host, int(port)), TIMES)
            assert found == DiscoveredPeer(PeerProtocol.GRPC, is_tls=tls is not None)


@needs_redis
async def test_redis_with_and_without_tls(tmp_path: Path, authority: Authority) -> None:
    from tests.optical_switch.sonic_ocs.redis_server import redis_server

    pair = authority.issue("/CN=ocs", "IP:127.0.0.1")
    with redis_server(tmp_path) as redis:
        redis.do("CONFIG", "SET", "requirepass", "secret")
        async with served(relay_to(redis.socket)) as endpoint:
            found = await discover(endpoint, TIMES)
            assert (found.protocol, found.is_tls) == (PeerProtocol.REDIS, False) and found.text.startswith("-")
        async with served(relay_to(redis.socket), server_context(pair)) as endpoint:
            found = await discover(endpoint, TIMES)
            assert (found.protocol, found.is_tls) == (PeerProtocol.REDIS, True)


async def test_tls_that_requires_a_certificate_of_the_client(authority: Authority) -> None:
    context = server_context(authority.issue("/CN=ocs", "IP:127.0.0.1"), authority.cert)
    async with served(greeting_with(b""), context) as endpoint:
        assert await discover(endpoint, TIMES) == DiscoveredPeer(PeerProtocol.TLS, is_tls=True)


async def test_web_server() -> None:
    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await reader.read(-1)

    async with served(behave) as endpoint:
        assert (await discover(endpoint, TIMES)).protocol is PeerProtocol.HTTP


async def test_unknown_peer_receives_only_messages_without_effect() -> None:
    received: list[bytes] = []

    async def behave(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        received.append(await reader.read(1 << 16))

    async with served(behave) as endpoint:
        with pytest.raises(ProtocolError, match="speaks none of SSH, TL1, gRPC and Redis: check the port"):
            await discover(endpoint, TIMES)
    header, hello, preface = received
    assert (header, preface) == (RTRV_HDR, HTTP2_PREFACE)
    # A handshake of TLS: its record, and the type ClientHello.
    assert hello[:2] == b"\x16\x03" and hello[5] == 1


@pytest.mark.parametrize("text", [b"login: ", b"x" * 100_000, b"\0" * 9])
async def test_peer_with_another_protocol_is_read_no_further_than_needed(text: bytes) -> None:
    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(text)
        await reader.read(1 << 16)

    async with served(behave) as endpoint:
        with pytest.raises(ProtocolError, match=str(endpoint.port)):
            await discover(endpoint, TIMES)


async def test_peer_that_closes_every_connection() -> None:
    async def behave(_reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        pass

    async with served(behave) as endpoint:
        with pytest.raises(ProtocolError, match="has a free session"):
            await discover(endpoint, TIMES)


async def test_deadline_ends_everything() -> None:
    async with served(greeting_with(b"")) as endpoint:
        with pytest.raises(ProtocolError, match="speaks none"):
            await discover(endpoint, DiscoveryTimes(silence=3600.0, answer=3600.0, total=0.05))


async def test_address_without_a_server() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(UnreachableError, match=r"not reachable: .*: check the address and the port"):
        await discover(Endpoint("127.0.0.1", port), TIMES)


async def test_server_that_accepts_no_connection_in_time() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        endpoint = Endpoint(*listener.getsockname())
        # Fill the queue of the listener, which nothing empties.
        with socket.create_connection(endpoint), socket.socket() as second:
            second.setblocking(False)
            second.connect_ex(endpoint)
            with pytest.raises((UnreachableError, ProtocolError), match=str(endpoint.port)):
                await discover(endpoint, IMPATIENT)


async def test_discovery_leaves_a_switch_with_one_session_free() -> None:
    async with emulated(DIALECTS["polatis"], dialect="polatis") as lab:
        lab.switch.faults.max_sessions = 1
        assert (await discover(Endpoint("127.0.0.1", lab.port), TIMES)).protocol is PeerProtocol.TL1
        client = await lab.opened(DIALECTS["polatis"], timeout=30.0)
        assert await client.circuits() == []
