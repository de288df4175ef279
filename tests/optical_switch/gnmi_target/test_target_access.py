"""TLS, logins, limits, and the start and end of an emulated switch."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import grpc
import pytest

from optical_switch.model import Circuit
from tests.optical_switch.gnmi_target.raw_client import (
    RawClient,
    connected,
    cross_connect,
    path,
    refused,
    subscription,
    watching,
)
from tests.support.certificates import Authority, Pair
from tests.support.waiting import HANGING, eventually, eventually_async

if TYPE_CHECKING:
    from optical_switch.emulator.gnmi_target.target import SonicOcsTarget
    from tests.optical_switch.gnmi_target.conftest import Serve

Code = grpc.StatusCode
RIGHT = (("username", "admin"), ("password", "secret"))


def credentials(authority: Authority, pair: Pair | None = None) -> grpc.ChannelCredentials:
    key, cert = (None, None) if pair is None else (pair.key.read_bytes(), pair.cert.read_bytes())
    return grpc.ssl_channel_credentials(authority.cert.read_bytes(), key, cert)


async def test_clients_need_a_certificate_of_the_authority(serve: Serve, tmp_path: Path) -> None:
    """Section 3.1: connections are mutually authenticated."""
    from optical_switch.emulator.gnmi_target.rpc_server import TargetTls

    ours, other = Authority(tmp_path / "tls", "ca"), Authority(tmp_path / "other", "other")
    server = ours.issue("/CN=ocs", "IP:127.0.0.1")
    async with serve(tls=TargetTls(server.cert, server.key, ours.cert)) as target:
        async with connected(target.address, credentials=credentials(ours, ours.issue("/CN=blast"))) as client:
            assert (await client.capabilities()).gNMI_version == "0.10.0"
            async with watching(client) as view:
                await client.set(cross_connect("1A-2B"))
                await view.until_port("1A", "connected")
        for wrong in (credentials(ours), credentials(ours, other.issue("/CN=blast"))):
            async with connected(target.address, credentials=wrong) as client:
                with refused(Code.UNAVAILABLE):
                    await client.capabilities()
        # Section 3.1: there is no fallback to unencrypted sessions.
        async with connected(target.address) as client:
            with refused(Code.UNAVAILABLE):
                await client.capabilities()


async def test_user_and_password_in_the_metadata_of_each_call(serve: Serve, tmp_path: Path) -> None:
    """Sections 3.1, 3.4.7: UNAUTHENTICATED."""
    from optical_switch.emulator.gnmi_target.admission import TargetLogin
    from optical_switch.emulator.gnmi_target.rpc_server import TargetTls

    authority = Authority(tmp_path / "tls", "ca")
    server = authority.issue("/CN=ocs", "IP:127.0.0.1")
    tls = TargetTls(server.cert, server.key)
    async with serve(tls=tls, login=TargetLogin("admin", "secret")) as target:
        async with connected(target.address, RIGHT, credentials(authority)) as client:
            await client.set(cross_connect("1A-2B"))
            async with watching(client):
                pass
        for wrong in ((), (("username", "admin"),), (("username", "admin"), ("password", "Secret"))):
            async with connected(target.address, wrong, credentials(authority)) as client:
                with refused(Code.UNAUTHENTICATED, "metadata"):
                    await client.capabilities()
                with refused(Code.UNAUTHENTICATED):
                    await client.set(delete=[path("OCS_CROSS_CONNECT")])
                call = client.subscribe()
                with refused(Code.UNAUTHENTICATED):
                    await call.write(subscription(path("OCS_PORT_TABLE")))
                    await call.read()


async def test_plaintext_beyond_this_machine_is_refused(serve: Serve) -> None:
    """Section 3.1."""
    listener = socket.create_server(("0.0.0.0", 0))
    with pytest.raises(ValueError, match="TLS"):
        async with serve(listener=listener):
            pass


async def test_subscriptions_are_limited(client: RawClient, target: SonicOcsTarget) -> None:
    from optical_switch.emulator.gnmi_target.admission import MAX_SUBSCRIPTIONS

    async with AsyncExitStack() as stack:
        for _ in range(MAX_SUBSCRIPTIONS):
            await stack.enter_async_context(watching(client, path("OCS_PORT_TABLE", "1A")))
        with refused(Code.RESOURCE_EXHAUSTED, "16 of 16"):
            async with watching(client):
                pass
        # Other requests are served.
        await client.set(cross_connect("1A-2B"))


async def test_connections_are_limited(target: SonicOcsTarget, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("optical_switch.emulator.gnmi_target.relay.MAX_CONNECTIONS", 1)
    async with connected(target.address) as first:
        await first.capabilities()
        async with connected(target.address) as second:
            with refused(Code.UNAVAILABLE):
                await second.capabilities()
        assert await first.capabilities()


async def test_slow_subscriber_delays_no_other_and_receives_the_last_values(target: SonicOcsTarget) -> None:
    async with (
        connected(target.address) as slow,
        connected(target.address) as quick,
        watching(slow) as late,
        watching(quick) as view,
    ):
        # `late` reads nothing meanwhile.
        for _ in range(50):
            await quick.set(cross_connect("1A-2B"))
            await view.until_port("1A", "connected")
            await quick.set(delete=[path("OCS_CROSS_CONNECT")])
            await view.until_port("1A", "blocked")
        await quick.set(cross_connect("4A-4B"))
        await late.until_port("4B", "connected")
        assert late.port("1A")["oper_status"] == "blocked"


async def test_connections_that_end_are_forgotten(target: SonicOcsTarget) -> None:
    relay = target._starter.relay
    _, writer = await asyncio.open_connection(*target.address.split(":"))
    await eventually_async(lambda: len(relay._connections) == 1, "the connection")
    writer.close()
    await writer.wait_closed()
    await eventually_async(lambda: not relay._connections, "its end")


# ------------------------------------------------------------------------------------------------- start and end


async def process_of_redis(target: SonicOcsTarget) -> Path:
    reader, writer = await asyncio.open_unix_connection(target.redis_socket)
    writer.write(b"INFO server\r\n")
    while not (line := await reader.readline()).startswith(b"process_id:"):
        pass
    writer.close()
    await writer.wait_closed()
    return Path("/proc", line.partition(b":")[2].strip().decode())


async def test_end_of_the_block_leaves_no_process_and_no_listener(serve: Serve) -> None:
    async with serve() as target:
        process = await process_of_redis(target)
        assert process.exists()
    assert not process.exists()
    with pytest.raises(OSError):
        await asyncio.open_connection(*target.address.split(":"))


async def test_cancellation_leaves_no_process_even_during_a_change(serve: Serve) -> None:
    started = asyncio.Event()
    processes: list[Path] = []

    async def apply(_removed: Sequence[Circuit], _added: Sequence[Circuit]) -> None:
        started.set()
        await asyncio.Event().wait()

    async def run() -> None:
        async with serve(apply=apply) as target:
            processes.append(await process_of_redis(target))
            await target.another_writer(Circuit(1, 2))
            await asyncio.Event().wait()

    running = asyncio.create_task(run())
    async with asyncio.timeout(HANGING):
        await started.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not processes[0].exists()
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_two_switches_share_nothing(serve: Serve, tmp_path: Path) -> None:
    from optical_switch.emulator.gnmi_target.target import serve_sonic_ocs

    folder = tmp_path / "other"
    folder.mkdir()
    async with serve() as first, serve_sonic_ocs(folder, 2, 2) as second:
        await first.another_writer(Circuit(1, 2))
        async with connected(first.address) as client, watching(client) as view:
            await view.until_port("1A", "connected")
        async with connected(second.address) as client:
            assert await client.value(path("OCS_CROSS_CONNECT")) == {}


async def test_folder_with_a_long_path_is_refused(serve: Serve, tmp_path: Path) -> None:
    from optical_switch.emulator.gnmi_target.redis_server import RedisStartError
    from optical_switch.emulator.gnmi_target.target import serve_sonic_ocs

    folder = tmp_path / ("x" * 100)
    folder.mkdir()
    with pytest.raises(RedisStartError, match="shorter path"):
        async with serve_sonic_ocs(folder, 2, 2):
            pass


async def test_redis_that_does_not_start_names_its_log(serve: Serve, tmp_path: Path) -> None:
    from optical_switch.emulator.gnmi_target.redis_server import RedisStartError

    (tmp_path / "dump.rdb").write_bytes(b"this is no database")
    with pytest.raises(RedisStartError, match=r"redis\.log"):
        async with serve():
            pass


async def test_missing_redis_is_named(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    from optical_switch.emulator.gnmi_target.redis_server import RedisStartError

    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(RedisStartError, match="apt-get install redis-server"):
        async with serve():
            pass


@asynccontextmanager
async def command(*arguments: str, cwd: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    import sys

    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "optical_switch.emulator.gnmi_target", *arguments,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def test_command_prints_where_it_serves_and_ends_with_sigterm(serve: Serve, tmp_path: Path) -> None:
    import json

    async with command("--ports", "3", "--listen", "127.0.0.1:0", cwd=tmp_path) as process:
        assert process.stdout is not None
        async with asyncio.timeout(HANGING):
            ready = json.loads(await process.stdout.readline())
        assert (ready["inputs"], ready["outputs"]) == (3, 3)
        socket = Path(ready["redis_socket"])
        assert socket.is_socket()
        async with connected(ready["address"]) as client:
            assert "3A" in await client.value(path("OCS_PORT_TABLE"), prefix=subscription().subscribe.prefix)
        process.terminate()
        async with asyncio.timeout(HANGING):
            assert await process.wait() == 0
        eventually(lambda: not socket.parent.exists(), "the temporary folder to be removed")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--listen", "0.0.0.0:0"), "TLS"),
        (("--certificate", "cert.pem"), "--private-key"),
        (("--user", "admin"), "--password-file"),
        (("--ports", "0"), "number of ports"),
    ],
)
async def test_command_refuses_options_that_do_not_fit(
    serve: Serve, tmp_path: Path, arguments: tuple[str, ...], text: str
) -> None:
    async with command(*arguments, cwd=tmp_path) as process:
        async with asyncio.timeout(HANGING):
            _, error = await process.communicate()
        assert process.returncode == 2
        assert text in error.decode()
