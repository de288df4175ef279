"""The session by the databases, with a real Redis server; and with a scripted one for what Redis never sends."""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from optical_switch.drivers import SwitchTarget
from optical_switch.errors import (
    DeviceBusyError,
    OpticalSwitchError,
    ProtocolError,
    RefusedError,
    SwitchUsageError,
    UnreachableError,
)
from optical_switch.model import Alarm, Circuit, CircuitReading, CircuitState, LossReading, Port, PortDescription
from optical_switch.session import Notice
from optical_switch.sonic_ocs.access import RedisAccess
from optical_switch.sonic_ocs.settings import Login
from tests.optical_switch.sonic_ocs.redis_server import CONFIG_DB, PROGRAM, STATE_DB, RedisServer, redis_server
from tests.support.certificates import Authority
from tests.support.waiting import HANGING, eventually_async

pytest.importorskip("redis", reason="needs redis-py: the extra sonic-ocs")
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="needs redis-server: apt-get install redis-server")

from optical_switch.sonic_ocs.redis_connection import MAX_REPLY_BYTES  # noqa: E402
from optical_switch.sonic_ocs.redis_session import RedisSession  # noqa: E402

CIRCUIT = Circuit(7, 9)
TIMEOUT = 0.2
"""Seconds that a test waits for an answer that never arrives."""
NEAR = SwitchTarget("ocs1", "127.0.0.1", 1, 16, 16, HANGING)
Opened = Callable[..., RedisSession]


@pytest.fixture(scope="module")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with redis_server(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture
def server(shared_server: RedisServer) -> RedisServer:
    """Return the server with the rows of one circuit, and with the settings of SONiC."""
    shared_server.do("FLUSHALL")
    shared_server.do("CONFIG", "SET", "notify-keyspace-events", "AKE")
    shared_server.set_row("OCS_PORT_TABLE|7A", oper_status="connected", target_simplex_port_id="9B")
    shared_server.set_row("OCS_PORT_TABLE|9B", oper_status="connected", target_simplex_port_id="7A")
    shared_server.set_row("OCS_CROSS_CONNECT_TABLE|7A-9B", status="enabled", insertion_loss_dB="1.25")
    return shared_server


@pytest.fixture
async def new_session(server: RedisServer) -> AsyncIterator[Opened]:
    sessions: list[RedisSession] = []

    def new(access: RedisAccess | None = None, check_seconds: float = HANGING) -> RedisSession:
        sessions.append(RedisSession(access or RedisAccess(NEAR, socket=server.socket), check_seconds))
        return sessions[-1]

    yield new
    for session in sessions:
        await session.close()


async def opened(session: RedisSession) -> list[Notice]:
    """Open a session; return the list to which it appends notices."""
    notices: list[Notice] = []
    session.subscribe(notices.append)
    await session.open()
    return notices


def states(notices: list[Notice]) -> list[CircuitState]:
    return [notice.state for notice in notices if isinstance(notice, CircuitReading)]


async def test_state_is_known_after_open_without_notices(new_session: Opened) -> None:
    session = new_session()
    assert await opened(session) == []
    assert await session.read_circuits() == [CircuitReading(CIRCUIT, CircuitState.CONNECTED)]
    assert await session.read_losses() == [LossReading(CIRCUIT, 1.25)]


async def test_thousands_of_rows_are_read(server: RedisServer, new_session: Opened) -> None:
    for number in range(1, 1201):
        server.set_row(f"OCS_PORT_TABLE|{number}B", oper_status="blocked", label="ignored")
    session = new_session()
    await opened(session)
    assert len(await session.read_ports()) == 1201


async def test_changes_are_reported_as_they_arrive(server: RedisServer, new_session: Opened) -> None:
    notices = await opened(new_session())
    server.set_row("OCS_PORT_TABLE|9B", oper_status="failed")
    await eventually_async(lambda: len(notices) == 2, "alarm and circuit")
    assert notices[0] == Alarm(Port("out", 9), "9B", "failed")
    server.do("DEL", "OCS_CROSS_CONNECT_TABLE|7A-9B")
    await eventually_async(lambda: states(notices) == [CircuitState.FAILED, CircuitState.ABSENT], "the deletion")


async def test_deleted_column_and_expired_row_are_reported(server: RedisServer, new_session: Opened) -> None:
    notices = await opened(new_session())
    server.do("HDEL", "OCS_PORT_TABLE|9B", "oper_status")
    await eventually_async(lambda: states(notices) == [CircuitState.TUNING], "the deleted column")
    server.do("PEXPIRE", "OCS_CROSS_CONNECT_TABLE|7A-9B", "1")
    await eventually_async(lambda: states(notices)[1:] == [CircuitState.ABSENT], "the expired row")


async def test_flushed_database_is_detected_by_next_reading(server: RedisServer, new_session: Opened) -> None:
    """Redis sends no notification for it."""
    notices = await opened(new_session(check_seconds=0.01))
    server.do("FLUSHDB")
    await eventually_async(lambda: states(notices) == [CircuitState.ABSENT], "the next reading")


async def test_reading_without_changes_reports_nothing(server: RedisServer, new_session: Opened) -> None:
    notices = await opened(new_session(check_seconds=0.001))
    before = _scans(server)
    await eventually_async(lambda: _scans(server) > before + 4, "two readings")
    assert notices == []


def _scans(server: RedisServer) -> int:
    found = server.do("INFO", "commandstats").partition("cmdstat_scan:calls=")[2].partition(",")[0]
    return int(found or 0)


async def test_change_is_one_transaction_of_config_db(server: RedisServer, new_session: Opened) -> None:
    server.set_row("OCS_CROSS_CONNECT|7A-9B", database=CONFIG_DB, a_side="7A", b_side="9B")
    session = new_session()
    await opened(session)
    result = await session.apply([CIRCUIT, Circuit(5, 5)], [Circuit(1, 2), Circuit(7, 3)])
    assert not result.refused and result.error is None
    assert "OCS_CROSS_CONNECT|7A-9B" not in server.do("KEYS", "*", database=CONFIG_DB)
    row = server.do("HGETALL", "OCS_CROSS_CONNECT|7A-3B", database=CONFIG_DB).split("\r\n")[2::2]
    assert row == ["a_side", "7A", "b_side", "3B"]
    assert "exec:calls=" in server.do("INFO", "commandstats")


async def test_empty_and_impossible_changes_are_not_sent(server: RedisServer, new_session: Opened) -> None:
    session = new_session()
    await opened(session)
    assert (await session.apply([], [])).error is None
    with pytest.raises(SwitchUsageError):
        await session.apply([], [Circuit(1, 0)])
    assert server.do("DBSIZE", database=CONFIG_DB) == ":0\r\n"


async def test_row_that_redis_cannot_write_is_the_only_one_refused(server: RedisServer, new_session: Opened) -> None:
    server.do("SET", "OCS_CROSS_CONNECT|1A-2B", "text", database=CONFIG_DB)
    session = new_session()
    await opened(session)
    result = await session.apply([], [Circuit(1, 2), Circuit(7, 3)])
    assert list(result.refused) == [Circuit(1, 2)] and result.error is None
    assert server.do("EXISTS", "OCS_CROSS_CONNECT|7A-3B", database=CONFIG_DB) == ":1\r\n"


async def test_ports_are_read_with_labels_of_config_db(server: RedisServer, new_session: Opened) -> None:
    server.set_row("OCS_PORT|7A", database=CONFIG_DB, label="rack 1", config_status="normal")
    server.set_row("OCS_PORT|9B", database=CONFIG_DB, config_status="normal")
    session = new_session()
    await opened(session)
    assert await session.read_ports() == [
        PortDescription(Port("in", 7), "7A", "rack 1"),
        PortDescription(Port("out", 9), "9B"),
    ]


@pytest.mark.parametrize("columns", [{"oper_status": "lost"}, {"target_simplex_port_id": "x" * 200}])
async def test_value_outside_model_ends_session(
    server: RedisServer, new_session: Opened, columns: dict[str, str]
) -> None:
    session = new_session()
    await opened(session)
    server.set_row("OCS_PORT_TABLE|9B", **columns)
    assert "the switch reports" in await session.wait_closed()
    with pytest.raises(ProtocolError):
        await session.read_circuits()


async def test_value_outside_model_ends_open(server: RedisServer, new_session: Opened) -> None:
    server.do("HSET", "OCS_PORT_TABLE|9B", "oper_status", "lost")
    with pytest.raises(ProtocolError, match="'lost'"):
        await new_session().open()


async def test_server_that_stops_ends_session(tmp_path: Path) -> None:
    with redis_server(tmp_path) as server:
        session = RedisSession(RedisAccess(NEAR, socket=server.socket))
        await opened(session)
        server.stop()
        assert "no connection" in await session.wait_closed()
        with pytest.raises(UnreachableError):
            await session.apply([], [CIRCUIT])
        await session.close()
        with pytest.raises(UnreachableError, match="no connection"):
            await RedisSession(RedisAccess(NEAR, socket=server.socket)).open()
        server.start()


@pytest.fixture
def paused_server(server: RedisServer) -> Iterator[RedisServer]:
    """Return a server that does not carry out commands that write."""
    server.do("CLIENT", "PAUSE", "600000", "WRITE")
    yield server
    server.do("CLIENT", "UNPAUSE")


async def test_change_without_answer_ends_session(paused_server: RedisServer, new_session: Opened) -> None:
    target = replace(NEAR, timeout=TIMEOUT)
    session = new_session(RedisAccess(target, socket=paused_server.socket))
    await opened(session)
    with pytest.raises(UnreachableError, match="no answer"):
        await session.apply([], [CIRCUIT])
    assert "no answer" in await session.wait_closed()


async def test_connection_is_not_used_after_cancelled_change(paused_server: RedisServer, new_session: Opened) -> None:
    """Its next reply would be that of the cancelled change."""
    session = new_session()
    await opened(session)
    applying = asyncio.create_task(session.apply([], [CIRCUIT]))
    await eventually_async(lambda: re.search(r"flags=\w*x", paused_server.do("CLIENT", "LIST")), "the transaction")
    applying.cancel()
    with pytest.raises(asyncio.CancelledError):
        await applying
    with pytest.raises(UnreachableError, match="interrupted"):
        await session.apply([], [CIRCUIT])
    assert "interrupted" in await session.wait_closed()


@pytest.mark.parametrize("database", [CONFIG_DB, STATE_DB])
async def test_closed_connection_is_detected_without_changes(
    server: RedisServer, new_session: Opened, database: int
) -> None:
    session = new_session(check_seconds=0.01)
    await opened(session)
    (number, *_) = re.findall(rf"id=(\d+) .* db={database} sub=0 psub=0 .*cmd=(?!client)", server.do("CLIENT", "LIST"))
    assert server.do("CLIENT", "KILL", "ID", number) == ":1\r\n"
    assert "no connection" in await session.wait_closed()


async def test_close_leaves_no_task_and_no_connection(server: RedisServer) -> None:
    before = asyncio.all_tasks()
    session = RedisSession(RedisAccess(NEAR, socket=server.socket))
    await opened(session)
    assert _clients(server) == 4
    await session.close()
    await session.close()
    assert await session.wait_closed() == "the session was closed"
    await eventually_async(lambda: asyncio.all_tasks() <= before, "all tasks to end")
    await eventually_async(lambda: _clients(server) == 1, "all connections to end")


def _clients(server: RedisServer) -> int:
    """Return the number of connections, with that of this request."""
    return server.do("CLIENT", "LIST").count("laddr=")


# ---------------------------------------------------------------------------------------- notifications and users


@pytest.mark.parametrize(
    ("denied", "reason"), [("+config", "lacks K"), ("-config", "may not read notify-keyspace-events")]
)
async def test_state_is_polled_without_notifications_and_no_setting_is_changed(
    server: RedisServer,
    new_session: Opened,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    denied: str,
    reason: str,
) -> None:
    monkeypatch.setattr("optical_switch.sonic_ocs.redis_session.POLL_SECONDS", 0.01)
    server.do("CONFIG", "SET", "notify-keyspace-events", "E$")
    server.do("ACL", "SETUSER", "blast", "reset", *USER, denied)
    # The usual interval, in which all rows are read as well, must not end during the test.
    access = RedisAccess(NEAR, Login("blast", "secret"), socket=server.socket)
    notices = await opened(new_session(access, 10 * HANGING))
    for status in ("tuning", "connected"):
        server.set_row("OCS_PORT_TABLE|9B", oper_status=status)
        await eventually_async(lambda status=status: states(notices)[-1:] == [CircuitState(status)], "the change")
    assert server.do("CONFIG", "GET", "notify-keyspace-events").split("\r\n")[-2] == "$E"
    assert "ocs1" in caplog.text and caplog.text.count(reason) == 1


async def test_notifications_suffice_without_polling(
    server: RedisServer, new_session: Opened, caplog: pytest.LogCaptureFixture
) -> None:
    notices = await opened(new_session())
    server.set_row("OCS_PORT_TABLE|9B", oper_status="tuning")
    await eventually_async(lambda: states(notices) == [CircuitState.TUNING], "the change")
    assert not caplog.records


async def test_losses_have_accuracy_of_the_factory(server: RedisServer, new_session: Opened) -> None:
    server.set_row("OCS_FACTORY_INSERTION_LOSS_TABLE|7A-9B|229.100|25.00", loss_dB="1.00", accuracy_dB="0.10")
    session = new_session()
    notices = await opened(session)
    await eventually_async(lambda: notices == [LossReading(CIRCUIT, 1.25, 0.1)], "the accuracy")
    assert await session.read_losses() == notices


async def test_too_many_rows_of_the_factory_are_not_read(
    server: RedisServer, new_session: Opened, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("optical_switch.sonic_ocs.redis_session.MAX_FACTORY_KEYS", 1)
    caplog.set_level("INFO")
    for frequency in ("193.100", "229.100"):
        server.set_row(f"OCS_FACTORY_INSERTION_LOSS_TABLE|7A-9B|{frequency}|25.00", accuracy_dB="0.10")
    session = new_session()
    await opened(session)
    await eventually_async(lambda: "more than 1 rows" in caplog.text, "the reason")
    assert await session.read_losses() == [LossReading(CIRCUIT, 1.25, 0.5)]


USER = ("on", ">secret", "~*", "&*", "+@all")


async def test_user_and_password_are_checked(server: RedisServer, new_session: Opened) -> None:
    server.do("ACL", "SETUSER", "blast", "reset", *USER)
    access = RedisAccess(NEAR, Login("blast", "secret"), socket=server.socket)
    await opened(new_session(access))
    with pytest.raises(RefusedError) as caught:
        await new_session(replace(access, login=Login("blast", "wrong"))).open()
    assert caught.value.code == "WRONGPASS"


@pytest.mark.parametrize(
    ("denied", "code"), [("-hset", "NOPERM"), ("-multi", "NOPERM"), ("-exec", "EXECABORT"), ("%R~*", "NOPERM")]
)
async def test_user_without_right_to_write_is_refused_and_nothing_is_done(
    server: RedisServer, new_session: Opened, denied: str, code: str
) -> None:
    rights = USER if denied.startswith("-") else tuple(right for right in USER if right != "~*")
    assert server.do("ACL", "SETUSER", "blast", "reset", *rights, denied) == "+OK\r\n"
    session = new_session(RedisAccess(NEAR, Login("blast", "secret"), socket=server.socket))
    await opened(session)
    result = await session.apply([], [CIRCUIT])
    assert result.error is not None and result.error.code == code and not result.refused
    assert server.do("DBSIZE", database=CONFIG_DB) == ":0\r\n"


async def test_tls_authenticates_server(tmp_path: Path) -> None:
    ours, other = Authority(tmp_path / "ours", "ours"), Authority(tmp_path / "other", "other")
    pair = ours.issue("/CN=ocs1", "IP:127.0.0.1")
    client = ours.issue("/CN=blast")
    with redis_server(tmp_path) as server:
        options = {
            "tls-cert-file": pair.cert,
            "tls-key-file": pair.key,
            "tls-ca-cert-file": ours.cert,
        }
        settings = [word for name, path in options.items() for word in (name, str(path))]
        assert server.do("CONFIG", "SET", *settings) == "+OK\r\n"
        port = _free_port()
        assert server.do("CONFIG", "SET", "tls-port", str(port)) == "+OK\r\n"

        def access(authority: Authority, *, authenticated: bool = True) -> RedisAccess:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.load_verify_locations(authority.cert)
            if authenticated:
                context.load_cert_chain(client.cert, client.key)
            return RedisAccess(replace(NEAR, port=port), tls=context)

        session = RedisSession(access(ours))
        await opened(session)
        await session.close()
        for refused in (access(other), access(ours, authenticated=False)):
            session = RedisSession(refused)
            with pytest.raises(UnreachableError):
                await session.open()


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


# ------------------------------------------------------------------------------------------------- scripted server


Scripted = Callable[[bytes], Awaitable[RedisAccess]]


@pytest.fixture
async def scripted() -> AsyncIterator[Scripted]:
    """Return a function that starts a server which answers every command with the same bytes."""
    servers: list[asyncio.Server] = []
    serving: set[asyncio.Task[None]] = set()

    async def start(answer: bytes) -> RedisAccess:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            serving.add(task)
            while received := await reader.read(1 << 16):
                writer.write(answer * len(re.findall(rb"(?m)^\*\d+\r\n", received)))
            writer.close()

        servers.append(await asyncio.start_server(serve, "127.0.0.1", 0))
        port = servers[-1].sockets[0].getsockname()[1]
        return RedisAccess(SwitchTarget("ocs1", "127.0.0.1", port, 16, 16, TIMEOUT))

    yield start
    for server in servers:
        server.close()
    if serving:
        await asyncio.wait(serving)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (b"", UnreachableError),
        (b"-ERR max number of clients reached\r\n", DeviceBusyError),
        (b"-LOADING Redis is loading the dataset in memory\r\n", DeviceBusyError),
        (b"-NOAUTH Authentication required.\r\n", RefusedError),
        (b"-ERR \x1b[2J" + b"x" * 1000 + b"\r\n", RefusedError),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", ProtocolError),
        (b"$x\r\n", ProtocolError),
        (b"$%d\r\n" % (MAX_REPLY_BYTES + 1), ProtocolError),
        (b"*%d\r\n" % (MAX_REPLY_BYTES + 1), ProtocolError),
        (b"*1\r\n" * 100_000, ProtocolError),
        (b"x" * (1 << 17), ProtocolError),
    ],
)
async def test_other_answers_end_open_with_typed_error(
    scripted: Scripted, answer: bytes, kind: type[OpticalSwitchError]
) -> None:
    session = RedisSession(await scripted(answer))
    with pytest.raises(kind) as caught:
        await session.open()
    assert str(caught.value).isprintable() and len(str(caught.value)) < 400


async def test_cancelled_open_disconnects(scripted: Scripted) -> None:
    access = await scripted(b"")
    session = RedisSession(replace(access, target=replace(access.target, timeout=HANGING)))
    opening = asyncio.create_task(session.open())
    await eventually_async(lambda: _tasks_in("serve"), "the connection")
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    await eventually_async(lambda: not _tasks_in("serve"), "the connection to end")
    assert await session.wait_closed() == "the session was closed"


def _tasks_in(name: str) -> bool:
    """Return True while a coroutine of this name runs."""
    return any(f"{name}()" in repr(task) for task in asyncio.all_tasks())


def test_databases_have_the_numbers_of_sonic() -> None:
    from optical_switch.sonic_ocs.redis_commands import CONFIG_NUMBER, STATE_NUMBER

    assert (CONFIG_NUMBER, STATE_NUMBER) == (CONFIG_DB, STATE_DB)
