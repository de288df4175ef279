# ruff: noqa: N802, N815 - the names of methods are those of Spark
"""`blast_broadcast` with real agents on the hosts of a fake Spark: copies, fallbacks, and their end.

An executor is simulated by unpickling a task; test_spark_broadcast.py runs real workers of Spark.
"""

from __future__ import annotations

import asyncio
import fcntl
import http.client
import logging
import os
import pickle
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from blast_client import InvalidArgumentError, PartState, RoundSettings
from blast_client.send import submitted
from blast_client.spark import (
    BlastBroadcast,
    DestroyedError,
    Reason,
    SparkSettings,
    ValueUnreachableError,
    application,
    asking,
    blast_broadcast,
    copies,
    copy_server,
    reasons_so_far,
    received,
)
from blast_client.spark.application import application_of
from blast_client.spark.asking import CopyKind, DriverAddress, DriverAnswer, DriverUnreachableError, ask, fetch
from blast_client.spark.parcel import ParcelForm, SparkParcel, ValueKind
from tests.support.controller.memory_controller import MemoryController, serving
from tests.support.controller.store_faults import before_writes
from tests.support.transport.transport_hosts import LOOPBACK, Agent, agent
from tests.support.waiting import HANGING, eventually

DRIVER = "127.0.0.1:1"


class FakeBroadcast:
    """Result of `FakeContext.broadcast`, which pickles to a copy of the value, as Spark's does in effect."""

    def __init__(self, value: object) -> None:
        self.value = pickle.loads(pickle.dumps(value))
        self.calls: list[str] = []
        self._jbroadcast = object()

    def unpersist(self, blocking: bool = False) -> None:
        self.calls.append("unpersist")

    def destroy(self, blocking: bool = False) -> None:
        self.calls.append("destroy")


class FakeContext:
    """The part of a SparkContext that `blast_client.spark` uses, without a JVM.

    `executors` are the block managers of executors, as HOST:PORT.
    """

    def __init__(self, application: str, *executors: str, local: bool = False, **conf: str) -> None:
        self.applicationId = application
        self.executors = set(executors)
        self.conf = {"spark.driver.host": "127.0.0.1"} | {key.replace("_", "."): text for key, text in conf.items()}
        self.broadcasts: list[FakeBroadcast] = []
        self._jsc: Any = _Jsc(self, local)

    def getConf(self) -> dict[str, str]:
        return self.conf

    def broadcast(self, value: object) -> FakeBroadcast:
        self.broadcasts.append(FakeBroadcast(value))
        return self.broadcasts[-1]

    def stop(self) -> None:
        self._jsc = None


class _Jsc:
    """The JVM's objects, all in one."""

    def __init__(self, context: FakeContext, local: bool) -> None:
        self._context, self._local = context, local

    def isLocal(self) -> bool:
        return self._local

    def hostPort(self) -> str:
        return DRIVER

    def mkString(self, between: str) -> str:
        return between.join([DRIVER, *sorted(self._context.executors)])

    def executorSummary(self, executor: str) -> _Jsc:
        assert executor == "driver"
        return self

    def _itself(self) -> _Jsc:
        return self

    sc = statusStore = getExecutorMemoryStatus = keySet = _itself


def install_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make `pyspark` and `py4j` modules of which these are the classes."""
    pyspark, py4j, protocol = ModuleType("pyspark"), ModuleType("py4j"), ModuleType("py4j.protocol")
    pyspark.SparkContext = FakeContext  # type: ignore[attr-defined]
    protocol.Py4JError = type("Py4JError", (Exception,), {})  # type: ignore[attr-defined]
    for module in (pyspark, py4j, protocol):
        monkeypatch.setitem(sys.modules, module.__name__, module)


ALONG_A_CHAIN = RoundSettings(controller=None)
VALUE = np.arange(100_000.0)


class Hosts:
    """Agents by the host that they are on; `context` has an executor on each of `running`."""

    def __init__(self, context: FakeContext, agents: dict[str, Agent]) -> None:
        self.context, self.agents = context, agents
        for one in agents.values():
            (one.directory / context.applicationId).mkdir()

    def settings(self, **more: Any) -> SparkSettings:
        written = {host: f"{one.name}={one.address[1]}:{one.address[2]}" for host, one in self.agents.items()}
        return SparkSettings(**{"agents": written, "folder": "files", "threshold": 0, "round": ALONG_A_CHAIN} | more)

    def in_the_fabric(self) -> dict[str, str]:
        """Return the agents of two hosts, by names that the controller knows."""
        names = {"h1": "h21", "h2": "h31"}
        return {host: f"{name}={LOOPBACK}:{self.agents[host].address[2]}" for host, name in names.items()}

    def run_on(self, *hosts: str) -> None:
        """Set the hosts that have executors from now on."""
        self.context.executors = {f"{host}:2" for host in hosts}

    def files(self, host: str) -> dict[str, int]:
        folder = self.agents[host].directory / self.context.applicationId
        return {path.name.partition("-")[0]: path.stat().st_size for path in folder.glob("[0-9]*")}


@pytest.fixture
def hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hosts]:
    install_spark(monkeypatch)
    context = FakeContext(f"app-{tmp_path.name}")
    with ExitStack() as stack:
        made = {name: stack.enter_context(agent(tmp_path / f"r{name}")) for name in ("h1", "h2", "h3")}
        found = Hosts(context, made)
        found.run_on("h1", "h2")
        yield found
        application_of(context).close()
        for thread in [*application._at_work]:
            thread.join(30)


@pytest.fixture
def executor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Any]]:
    """Yield a function that runs a task on the host of an agent: `executor(pickled, agent)` → the value."""
    local = tmp_path / "local"
    local.mkdir()
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{local},elsewhere")

    def run(task: bytes, beside: Agent | None) -> Any:
        monkeypatch.setenv("BLAST_FOLDER", str(beside.directory if beside else tmp_path / "nowhere"))
        received._values.clear()
        return pickle.loads(task).value

    yield run
    received._values.clear()
    for descriptor, _ in received._claims.values():
        os.close(descriptor)
    received._claims.clear()


def counted(reason: Reason) -> int:
    return reasons_so_far().get(reason, 0)


# ------------------------------------------------------------------------------------------------- by Blast


def test_every_host_maps_the_delivered_file(hosts: Hosts, executor: Callable[..., Any]) -> None:
    broadcast = blast_broadcast(hosts.context, VALUE, settings=hosts.settings())
    assert broadcast.value is VALUE and broadcast.reason is None
    assert broadcast.outcome is not None and set(broadcast.outcome.delivered) == {"rh1", "rh2"}
    task = pickle.dumps(broadcast)
    assert len(task) < 1500
    for host in ("h1", "h2"):
        value = executor(task, hosts.agents[host])
        assert (value == VALUE).all() and isinstance(value.base, np.memmap)
        assert str(value.base.filename).startswith(str(hosts.agents[host].directory))
    assert not hosts.context.broadcasts
    assert hosts.files("h1") == {"1": VALUE.nbytes + 128}


def test_broadcast_uses_optical_transport(hosts: Hosts, executor: Callable[..., Any]) -> None:
    with serving(MemoryController()) as (_, address, port):
        way = RoundSettings(controller=f"{address}:{port}", sender="h11", optical_address=LOOPBACK, via="optical")
        settings = hosts.settings(agents=hosts.in_the_fabric(), round=way)
        broadcast = blast_broadcast(hosts.context, VALUE, settings=settings)
        assert broadcast.outcome is not None and broadcast.outcome.transports == ("optical",)
        assert (executor(pickle.dumps(broadcast), hosts.agents["h2"]) == VALUE).all()


def test_process_maps_value_once_and_drops_destroyed_values(
    hosts: Hosts, executor: Callable[..., Any], tmp_path: Path
) -> None:
    first, second, third = (blast_broadcast(hosts.context, VALUE + n, settings=hosts.settings()) for n in range(3))
    tasks = [pickle.dumps(one) for one in (first, second)]
    assert executor(tasks[0], hosts.agents["h1"]) is pickle.loads(tasks[0]).value
    assert executor(tasks[0], None)[1] == 1, "handed over"
    assert pickle.loads(tasks[1]).value[1] == 2
    local = tmp_path / "local" / "blast" / hosts.context.applicationId
    assert [path.name[:2] for path in sorted(local.iterdir())] == ["1-", "2-"]
    first.destroy()
    assert pickle.loads(pickle.dumps(third)).value[1] == 3
    assert [path.name[:2] for path in sorted(local.iterdir())] == ["2-", "3-"]
    assert sorted(number for _, number in received._values) == [2, 3]


# --------------------------------------------------------------------------------------------- late executors


def test_next_job_delivers_value_to_later_host(hosts: Hosts, executor: Callable[..., Any]) -> None:
    broadcast = blast_broadcast(hosts.context, VALUE, settings=hosts.settings())
    hosts.run_on("h1", "h2", "h3")
    task = pickle.dumps(broadcast)
    assert broadcast.outcome is not None and set(broadcast.outcome.delivered) == {"rh3"}
    assert (executor(task, hosts.agents["h3"]) == VALUE).all()


def test_earlier_task_requests_value_on_later_host(hosts: Hosts, executor: Callable[..., Any]) -> None:
    task = pickle.dumps(blast_broadcast(hosts.context, VALUE, settings=hosts.settings()))
    hosts.run_on("h2", "h3")
    before = counted(Reason.FETCHED)
    value = executor(task, hosts.agents["h3"])
    assert (value == VALUE).all() and str(value.base.filename).startswith(str(hosts.agents["h3"].directory))
    assert counted(Reason.FETCHED) == before, "its agent got it"


def test_host_without_agent_fetches_value_once(
    hosts: Hosts, executor: Callable[..., Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    task = pickle.dumps(blast_broadcast(hosts.context, {"a": VALUE, "b": VALUE[::2]}, settings=hosts.settings()))
    hosts.run_on("h1", "elsewhere")
    before = counted(Reason.FETCHED)
    with caplog.at_level(logging.WARNING, "blast_client.spark"):
        for _ in range(2):
            value = executor(task, None)
            assert list(value) == ["a", "b"] and (value["b"] == VALUE[::2]).all()
    assert counted(Reason.FETCHED) == before + 1, "the second process of the executor maps the file of the first"
    lines = [record.getMessage() for record in caplog.records if record.name == "blast_client.spark"]
    assert len(lines) == 1 and lines[0].endswith(" fetches it from the driver (fetched)")
    assert (tmp_path / "local" / "blast").stat().st_mode & 0o777 == 0o700


def test_unreadable_copy_is_fetched_from_driver_not_resent(
    hosts: Hosts, executor: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    task = pickle.dumps(blast_broadcast(hosts.context, VALUE, settings=hosts.settings()))
    taking, asked = received.receive, list[CopyKind]()

    def refusing(name: str, folder: Path, **more: Any) -> Any:
        if folder == hosts.agents["h1"].directory:
            raise PermissionError("not yours")
        return taking(name, folder, **more)

    monkeypatch.setattr(received, "receive", refusing)
    monkeypatch.setattr(received, "ask", lambda _, __, kind: asked.append(kind))
    assert (executor(task, hosts.agents["h1"]) == VALUE).all()
    assert not asked


def test_early_executor_waits_for_value_under_way(hosts: Hosts, executor: Callable[..., Any], monkeypatch: Any) -> None:
    begun, go_on = threading.Event(), threading.Event()
    sending = copies.async_broadcast

    async def held(*arguments: Any, **more: Any) -> Any:
        begun.set()
        await asyncio.to_thread(go_on.wait)
        return await sending(*arguments, **more)

    monkeypatch.setattr(copies, "async_broadcast", held)
    monkeypatch.setattr(copy_server, "_HELD_SECONDS", 0.02)
    later: list[DriverAnswer | None] = []
    once = asking._once

    def recorded(*arguments: Any) -> DriverAnswer | None:
        later.append(once(*arguments))
        if later[-1] is None:
            go_on.set()
        return later[-1]

    monkeypatch.setattr(asking, "_once", recorded)
    broadcast = blast_broadcast(hosts.context, VALUE, settings=hosts.settings(), wait=False)
    assert begun.wait(30)
    assert (executor(pickle.dumps(broadcast), hosts.agents["h2"]) == VALUE).all()
    assert later[0] is None and later[-1] is DriverAnswer.LOOK_AGAIN, (
        "the driver asks it to retry while the value is under way"
    )
    assert broadcast.wait() is not None and broadcast.reason is None


# ------------------------------------------------------------------------------------------------- by Spark


@pytest.mark.parametrize(
    ("reason", "change"),
    [
        (Reason.SMALL, {"threshold": 1 << 30}),
        (Reason.UNKNOWN_HOST, {"agents": {"h1": "rh1=127.0.0.1:9"}}),
        (Reason.NOT_DELIVERED, {"agents": lambda host: f"{host}=127.0.0.1:9"}),
        (Reason.NOT_SENT, {"folder": "a" * 2000, "round": RoundSettings(controller="127.0.0.1:9", via="optical")}),
    ],
)
def test_broadcast_falls_back_to_spark(
    hosts: Hosts, executor: Callable[..., Any], caplog: pytest.LogCaptureFixture, reason: Reason, change: dict[str, Any]
) -> None:
    before = counted(reason)
    with caplog.at_level(logging.INFO, "blast_client.spark"):
        broadcast = blast_broadcast(hosts.context, b"bytes" * 1000, settings=hosts.settings(**change))
        value = executor(pickle.dumps(broadcast), None)
    assert isinstance(value, memoryview) and value == broadcast.value == b"bytes" * 1000
    assert broadcast.reason is reason and counted(reason) == before + 1
    lines = [record.getMessage() for record in caplog.records if record.name == "blast_client.spark"]
    assert len(lines) == 1 and "Spark's broadcast carries " in lines[0] and lines[0].endswith(f"({reason})")
    assert len(hosts.context.broadcasts) == 1


def test_unreachable_agent_fails_delivery_and_frees_other_hosts(hosts: Hosts) -> None:
    written = hosts.settings().agents
    assert isinstance(written, dict)
    broadcast = blast_broadcast(
        hosts.context, VALUE, settings=hosts.settings(agents=written | {"h2": "gone=127.0.0.1:9"})
    )
    assert broadcast.reason is Reason.NOT_DELIVERED and broadcast.outcome is not None
    assert set(broadcast.outcome.delivered) == {"rh1"}
    eventually(lambda: hosts.files("h1") == {"1": 0}, "the file to be emptied")


def test_host_lost_during_broadcast_is_no_failure(hosts: Hosts) -> None:
    known = {"h1": hosts.settings().agents["h1"]}  # type: ignore[index]

    def agents(host: str) -> str:
        hosts.run_on("h1")
        return known.get(host, f"{host}=127.0.0.1:9")

    broadcast = blast_broadcast(hosts.context, VALUE, settings=hosts.settings(agents=agents))
    assert broadcast.reason is None and broadcast.outcome is not None and "h2" in broadcast.outcome.failed


def test_later_host_without_agent_falls_back_to_spark(hosts: Hosts, executor: Callable[..., Any]) -> None:
    broadcast = blast_broadcast(hosts.context, VALUE, settings=hosts.settings())
    before = pickle.dumps(broadcast)
    hosts.run_on("h1", "h2", "elsewhere")
    after = pickle.dumps(broadcast)
    assert broadcast.reason is Reason.UNKNOWN_HOST
    assert all((executor(task, None) == VALUE).all() for task in (before, after))
    assert hosts.files("h1") == {"1": VALUE.nbytes + 128}, "tasks of before may still want it"


def test_first_job_decides_if_no_executor_runs(hosts: Hosts, executor: Callable[..., Any]) -> None:
    hosts.run_on()
    early, late = (blast_broadcast(hosts.context, VALUE, settings=hosts.settings()) for _ in range(2))
    assert early.reason is None and early.outcome is None
    task = pickle.dumps(early)
    assert early.reason is Reason.NO_EXECUTORS and (executor(task, None) == VALUE).all()
    hosts.run_on("h1")
    assert (executor(pickle.dumps(late), hosts.agents["h1"]) == VALUE).all()
    assert late.reason is None


@pytest.mark.parametrize(
    "context",
    [
        {"local": True},
        {"spark_io_encryption_enabled": "TRUE"},
    ],
)
def test_local_and_encrypted_contexts_use_spark(monkeypatch: pytest.MonkeyPatch, context: dict[str, Any]) -> None:
    install_spark(monkeypatch)
    broadcast = blast_broadcast(FakeContext("app-x", "h1:2", **context), VALUE)
    assert broadcast.reason is (Reason.LOCAL if "local" in context else Reason.ENCRYPTED)
    assert (pickle.loads(pickle.dumps(broadcast)).value == VALUE).all()


def test_driver_that_cannot_listen_uses_spark(hosts: Hosts, executor: Callable[..., Any]) -> None:
    hosts.context.conf["spark.driver.bindAddress"] = "192.0.2.1"
    broadcast = blast_broadcast(hosts.context, VALUE, settings=hosts.settings())
    assert broadcast.reason is Reason.NOT_SENT and (executor(pickle.dumps(broadcast), None) == VALUE).all()


def test_jvm_gets_broadcast_of_spark(hosts: Hosts) -> None:
    broadcast = blast_broadcast(hosts.context, VALUE, settings=hosts.settings())
    before = counted(Reason.JVM)
    first = broadcast._jbroadcast
    assert first is broadcast._jbroadcast is hosts.context.broadcasts[0]._jbroadcast
    assert counted(Reason.JVM) == before + 1 and broadcast.reason is None


# ---------------------------------------------------------------------------------------------- what is wrong


def test_broadcast_requires_running_spark_context(monkeypatch: pytest.MonkeyPatch) -> None:
    install_spark(monkeypatch)
    stopped = FakeContext("app-x")
    stopped.stop()
    connect = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()
    for given, sentence in (
        (object(), "must be a SparkContext .* not a object"),
        (stopped, "was stopped"),
        (connect, "the client of Spark Connect .* use the plugin on the server"),
    ):
        with pytest.raises(InvalidArgumentError, match=sentence):
            blast_broadcast(given, VALUE)  # type: ignore[arg-type]


def test_copy_server_rejects_wrong_token_name_and_method(hosts: Hosts, tmp_path: Path) -> None:
    handle = pickle.loads(pickle.dumps(blast_broadcast(hosts.context, VALUE, settings=hosts.settings())))._handle
    for token in ("", "0" * 64, "\xe9"):
        with pytest.raises(DriverUnreachableError, match="status 403"):
            fetch(handle.place._replace(token=token), handle.name, tmp_path / "x")
    assert ask(handle.place, "another", CopyKind.COPY) is DriverAnswer.DESTROYED
    connection = http.client.HTTPConnection(handle.place.host, handle.place.port, timeout=30)
    connection.request("POST", "/", b"x")
    with connection.getresponse() as response:
        assert response.status == 501
    connection.close()


def test_executor_rejects_bytes_with_wrong_digest(
    hosts: Hosts, executor: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    mutable = bytearray(b"x" * 10_000)
    task = pickle.dumps(blast_broadcast(hosts.context, mutable, settings=hosts.settings()))
    pieces = SparkParcel.pieces

    def changing(parcel: SparkParcel) -> Iterator[memoryview]:
        yield from pieces(parcel)
        # Never restore earlier bytes: the driver begins the next reading before this one has ended here.
        mutable[0] += 1

    monkeypatch.setattr(SparkParcel, "pieces", changing)
    with pytest.raises(ValueUnreachableError, match="the digest of the answer differs"):
        executor(task, None)
    assert not list((tmp_path / "local" / "blast").rglob("1-*"))


def test_executor_reports_unreachable_driver(executor: Callable[..., Any]) -> None:
    place = DriverAddress("127.0.0.1", 9, "x")
    handle = received.Handle("app", 1, "app/1-x", ".npy", 9, ParcelForm(ValueKind.ARRAY), None, place, (1,), 1)
    with pytest.raises(
        ValueUnreachableError, match=r"app/1-x is not in .*nowhere.* no answer from the driver at 127.0.0.1:9"
    ):
        executor(pickle.dumps(received.ReceivedBroadcast(handle)), None)


# ------------------------------------------------------------------------------------------------- its end


def test_unpersist_frees_hosts_until_next_job(hosts: Hosts, executor: Callable[..., Any]) -> None:
    broadcast = blast_broadcast(hosts.context, VALUE, settings=hosts.settings())
    task = pickle.dumps(broadcast)
    kept = executor(task, hosts.agents["h1"])
    broadcast.unpersist(blocking=True)
    assert hosts.files("h1") == hosts.files("h2") == {"1": 0}
    assert (kept == VALUE).all(), "a process that has it mapped keeps it"
    assert (executor(pickle.dumps(broadcast), hosts.agents["h2"]) == VALUE).all()
    broadcast.unpersist(blocking=True)
    assert (executor(task, hosts.agents["h1"]) == VALUE).all(), "tasks of before ask for it"


def test_destroyed_broadcast_cannot_be_used(hosts: Hosts, executor: Callable[..., Any]) -> None:
    broadcast = blast_broadcast(hosts.context, VALUE, settings=hosts.settings())
    task = pickle.dumps(broadcast)
    broadcast.destroy(blocking=True)
    broadcast.destroy()
    assert hosts.files("h1") == hosts.files("h2") == {"1": 0}
    with pytest.raises(DestroyedError, match="the driver has destroyed"):
        executor(task, hosts.agents["h1"])
    for use in (lambda: pickle.dumps(broadcast), broadcast.unpersist, lambda: broadcast._jbroadcast):
        with pytest.raises(DestroyedError, match="create another"):
            use()


def test_unpersist_and_destroy_apply_to_broadcast_of_spark(hosts: Hosts) -> None:
    broadcast = blast_broadcast(hosts.context, VALUE, settings=hosts.settings(threshold=1 << 30))
    broadcast.unpersist()
    broadcast.destroy()
    assert hosts.context.broadcasts[0].calls == ["unpersist", "destroy"]


@pytest.fixture
def held_writes(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """No agent writes anything before this is set: every transfer is under way until then."""
    held = threading.Event()

    def hold(*_: object) -> None:
        assert held.wait(HANGING)

    before_writes(monkeypatch, hold)
    # A busy machine may take its time to withdraw.
    monkeypatch.setattr(submitted, "_SECONDS", HANGING)
    yield held
    held.set()


def test_destroy_aborts_transfer_under_way(hosts: Hosts, held_writes: threading.Event) -> None:
    broadcast = blast_broadcast(hosts.context, VALUE, settings=hosts.settings(), wait=False)
    broadcast.destroy(blocking=True)
    held_writes.set()
    assert not any(hosts.files(host).get("1") for host in ("h1", "h2"))


@pytest.fixture
def heeds_ctrl_c() -> Iterator[None]:
    """Restore the default SIGINT handler: a shell makes its background children ignore SIGINT, which tests inherit."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heeds_ctrl_c")
def test_ctrl_c_while_waiting_withdraws_request(hosts: Hosts, held_writes: threading.Event) -> None:
    controller = MemoryController()

    def states() -> list[int]:
        return [one.state for one in controller.requests.values()]

    def interrupt() -> None:
        eventually(lambda: states() == [PartState.ACTIVE], "light")
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    with serving(controller) as (_, address, port):
        way = RoundSettings(controller=f"{address}:{port}", sender="h11", optical_address=LOOPBACK, via="optical")
        settings = hosts.settings(agents=hosts.in_the_fabric(), round=way)
        operator = threading.Thread(target=interrupt)
        operator.start()
        with pytest.raises(KeyboardInterrupt):
            blast_broadcast(hosts.context, VALUE, settings=settings)
        operator.join()
        assert states() == [PartState.WITHDRAWN]
    assert not application_of(hosts.context)._all


@pytest.mark.usefixtures("held_writes")
def test_ctrl_c_at_start_aborts_broadcast(hosts: Hosts, monkeypatch: pytest.MonkeyPatch) -> None:
    begin = BlastBroadcast.begin

    def interrupted(broadcast: BlastBroadcast[Any]) -> None:
        begin(broadcast)
        raise KeyboardInterrupt

    monkeypatch.setattr(BlastBroadcast, "begin", interrupted)
    with pytest.raises(KeyboardInterrupt):
        blast_broadcast(hosts.context, VALUE, settings=hosts.settings(), wait=False)
    assert not application_of(hosts.context)._all
    assert not any(hosts.files(host).get("1") for host in ("h1", "h2"))


@pytest.mark.parametrize("seed", range(2))
def test_task_always_gets_value_under_random_changes(hosts: Hosts, executor: Callable[..., Any], seed: int) -> None:
    """Hosts come and go, files vanish, values are given up for a while; old tasks and new ones run anywhere."""
    dice = random.Random(seed)
    values = [VALUE + number for number in range(3)]
    broadcasts = [blast_broadcast(hosts.context, value, settings=hosts.settings()) for value in values]
    tasks = [(number, pickle.dumps(broadcast)) for number, broadcast in enumerate(broadcasts)]
    for _ in range(40):
        number = dice.randrange(3)
        match dice.choice(("hosts", "unpersist", "lose", "job", "task", "task")):
            case "hosts":
                hosts.run_on(*dice.sample([*hosts.agents], dice.randint(1, 3)))
            case "unpersist":
                broadcasts[number].unpersist(blocking=dice.random() < 0.5)
            case "lose":
                folder = dice.choice([*hosts.agents.values()]).directory / hosts.context.applicationId
                for path in folder.glob(f"{number + 1}-*"):
                    path.unlink(missing_ok=True)
            case "job":
                tasks.append((number, pickle.dumps(broadcasts[number])))
            case "task":
                number, task = dice.choice(tasks)
                beside = dice.choice([None, *hosts.agents.values()])
                assert executor(task, beside)[7] == values[number][7]
    assert [broadcast.reason for broadcast in broadcasts] == [None] * 3


def test_stopped_context_frees_files_on_hosts(hosts: Hosts) -> None:
    broadcast = blast_broadcast(hosts.context, VALUE, settings=hosts.settings())
    pickle.dumps(broadcast)
    hosts.context.stop()
    other = FakeContext("app-other", "h1:2")
    application_of(other).close()
    eventually(lambda: hosts.files("h1") == hosts.files("h2") == {"1": 0}, "the files to be emptied")
    with pytest.raises(DestroyedError, match=r"SparkContext .*was stopped"):
        pickle.dumps(broadcast)
    broadcast.destroy()


def test_claim_lasts_until_process_ends(tmp_path: Path) -> None:
    (tmp_path / ".claim").touch()
    program = (
        "from pathlib import Path; from blast_client.spark.received import _claim\n"
        f"_claim(Path({str(tmp_path)!r})); _claim(Path({str(tmp_path)!r})); print('held', flush=True); input()"
    )

    def is_free() -> bool:
        with (tmp_path / ".claim").open("r+b") as file:
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return False
            return True

    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == "held\n"
        assert not is_free()
        process.communicate("\n")
    assert is_free()
