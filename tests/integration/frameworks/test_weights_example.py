"""`examples/weights` as programs, with real agents: requests flow while versions come, hosts die, late ones catch up.

Every answer names its version, and must match exactly that version's weights: all layers change with each.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from tests.support.waiting import HANGING, eventually

EXAMPLE = Path(__file__).parents[3] / "examples" / "weights"
BLAST = str(Path(sys.executable).with_name("blast"))
MODEL = "demo"
WIDTHS = (32, 256, 256, 8)
LAYERS = len(WIDTHS) - 1


def weights(version: int) -> dict[str, np.ndarray[Any, Any]]:
    tensors: dict[str, np.ndarray[Any, Any]] = {}
    for number, (inputs, outputs) in enumerate(pairwise(WIDTHS)):
        dice = np.random.default_rng([version, number])
        # As in an nn.Sequential with a ReLU after each layer.
        tensors[f"{2 * number}.weight"] = dice.standard_normal((outputs, inputs), np.float32) / np.float32(inputs**0.5)
        tensors[f"{2 * number}.bias"] = dice.standard_normal(outputs, np.float32)
    return tensors


def answers(tensors: dict[str, np.ndarray[Any, Any]], x: Any) -> Any:
    """Return the answers of a model to the rows of `x`."""
    for number in range(LAYERS):
        x = x @ tensors[f"{2 * number}.weight"].T + tensors[f"{2 * number}.bias"]
        x = np.maximum(x, 0) if number < LAYERS - 1 else x
    return x


def are_of(y: Any, tensors: dict[str, np.ndarray[Any, Any]], x: Any) -> bool:
    return bool(np.allclose(y, answers(tensors, x), rtol=1e-3, atol=1e-3))


def call(port: int, method: str, path: str, body: str | None = None) -> tuple[int, dict[str, Any]]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=HANGING)
    try:
        connection.request(method, path, body)
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


@dataclass
class Clients:
    """Threads that query workers repeatedly, and the answers."""

    ports: list[int]
    answers: dict[int, list[tuple[int, Any, Any]]] = field(default_factory=dict)
    wrong: list[object] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)

    def ask(self, port: int) -> None:
        received = self.answers[port] = []
        dice = np.random.default_rng(port)
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=HANGING)
        while not self.ended.wait(0.002):
            x = dice.standard_normal(WIDTHS[0]).astype(np.float32)
            try:
                connection.request("POST", "/answer", json.dumps({"x": x.tolist()}))
                response = connection.getresponse()
                reply = json.loads(response.read())
                assert response.status == 200, reply
            except Exception as error:  # noqa: BLE001 - whatever it is, a request was lost
                self.wrong.append((port, repr(error)))
                return
            received.append((reply["version"], x, reply["y"]))
        connection.close()

    def check(self) -> None:
        """Check that no request was lost, versions never decrease, and each answer matches its version."""
        assert not self.wrong
        for received in self.answers.values():
            versions = [version for version, _, _ in received]
            assert versions == sorted(versions)
            for this in set(versions):
                x, y = zip(*((x, y) for version, x, y in received if version == this), strict=True)
                assert are_of(y, weights(this), np.array(x))


@contextmanager
def asking(*ports: int) -> Iterator[Clients]:
    clients = Clients(list(ports))
    threads = [threading.Thread(target=clients.ask, args=(port,)) for port in ports]
    for thread in threads:
        thread.start()
    try:
        yield clients
    finally:
        clients.ended.set()
        for thread in threads:
            thread.join(HANGING)
    clients.check()


class Process:
    """A program of ours, with its JSON lines and its standard error output."""

    def __init__(self, words: list[str], **environment: str) -> None:
        environment = {**os.environ, "BLAST_CONTROLLER": "", "OMP_NUM_THREADS": "1", **environment}
        self.process = subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        )
        self.lines: list[dict[str, Any]] = []
        self.errors = ""
        self._readers = [threading.Thread(target=self._read), threading.Thread(target=self._read_errors)]
        for reader in self._readers:
            reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                self.lines.append(json.loads(line))

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        with self.process.stderr as lines:
            for line in lines:
                self.errors += line

    def port(self) -> int:
        """Return the port of its line `ready`."""
        return eventually(lambda: [line["port"] for line in self.lines if line.get("event") == "ready"], self.errors)[0]

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal and return the exit status."""
        for one in (signal.SIGCONT, number):
            self.process.send_signal(one)
        return self.wait()

    def wait(self) -> int:
        """Wait until it has ended and its output is complete; return the exit status."""
        status = self.process.wait(HANGING)
        for reader in self._readers:
            reader.join()
        return status


class Host:
    """An agent, and a worker beside it, with a folder."""

    def __init__(self, fleet: Fleet, name: str) -> None:
        self.name, self.folder, self._fleet = name, fleet.path / name, fleet
        self.folder.mkdir()
        self._config = fleet.path / f"{name}.toml"
        self.agent_port = self.worker_port = 0
        self.start_agent()
        self.start_worker()

    def start_agent(self) -> None:
        text = f'[agent]\nlisten = "127.0.0.1:{self.agent_port}"\noptical_address = "127.0.0.1"\ndurable = false\n'
        self._config.write_text(f'{text}[[folder]]\nname = "in"\npath = "{self.folder}"\n')
        self.agent = self._fleet.start([BLAST, "agent", "run", "--config", str(self._config), "--json"])
        self.agent_port = self.agent.port()

    def start_worker(self) -> None:
        words = [sys.executable, str(EXAMPLE / "worker.py"), "--model", MODEL, "--folder", str(self.folder)]
        self.worker = self._fleet.start([*words, "--listen", f"127.0.0.1:{self.worker_port}", "--look", "0.05"])
        self.worker_port = self.worker.port()

    @property
    def line(self) -> str:
        return f"{self.name}=127.0.0.1:{self.agent_port} 127.0.0.1:{self.worker_port}\n"

    def serving(self) -> int:
        version: int = call(self.worker_port, "GET", "/version")[1]["serving"]
        return version

    def files(self) -> list[str]:
        return sorted(path.name for path in self.folder.iterdir())

    def mapped(self) -> set[str]:
        """Return the files of versions that the worker has mapped into its memory, deleted ones too."""
        lines = Path(f"/proc/{self.worker.process.pid}/maps").read_text().splitlines()
        return {line.partition(f"{self.folder}/")[2] for line in lines if f"/{MODEL}-v" in line}


class Fleet:
    """Hosts on the loopback, and where releases are; everything ends with `stack`."""

    def __init__(self, path: Path, stack: ExitStack) -> None:
        self.path, self._stack = path, stack
        self.releases, self.hosts_file = path / "releases", path / "hosts.txt"
        self.releases.mkdir()
        self.hosts: list[Host] = []

    def start(self, words: list[str], **environment: str) -> Process:
        process = Process(words, **environment)
        self._stack.callback(process.end, signal.SIGKILL)
        return process

    def add(self, *names: str) -> list[Host]:
        hosts = [Host(self, name) for name in names]
        self.hosts += hosts
        self.name_hosts()
        return hosts

    def name_hosts(self) -> None:
        unfinished = self.hosts_file.with_suffix(".new")
        unfinished.write_text("# agent worker\n" + "".join(host.line for host in self.hosts))
        unfinished.rename(self.hosts_file)

    def publisher(self, *options: str, **environment: str) -> Process:
        words = [sys.executable, str(EXAMPLE / "publisher.py"), "--model", MODEL, "--releases", str(self.releases)]
        return self.start([*words, "--hosts", str(self.hosts_file), "--look", "0.1", *options], **environment)

    def release(self, version: int) -> None:
        unfinished = self.releases / f"{version}.unfinished"
        save_file(weights(version), unfinished)
        unfinished.rename(self.releases / f"{version}.safetensors")

    def await_version(self, version: int, *hosts: Host) -> None:
        for host in hosts:
            eventually(lambda host=host: host.serving() == version, f"{host.name} to serve version {version}")


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    with ExitStack() as stack:
        yield Fleet(tmp_path, stack)


def test_workers_serve_requests_while_versions_change(fleet: Fleet) -> None:
    hosts = fleet.add("h1", "h2")
    fleet.release(1)
    publisher = fleet.publisher()
    fleet.await_version(1, *hosts)
    with asking(*(host.worker_port for host in hosts)) as clients:
        for version in range(2, 5):
            fleet.release(version)
            fleet.await_version(version, *hosts)
            counts = [len(received) for received in clients.answers.values()]
            eventually(
                lambda counts=counts: all(
                    len(received) > count + 5 for received, count in zip(clients.answers.values(), counts, strict=True)
                ),
                "some answers of this version",
            )
    for received in clients.answers.values():
        assert {version for version, _, _ in received} >= {2, 3, 4}
    for host in hosts:
        assert host.files() == [f"{MODEL}-v3.safetensors", f"{MODEL}-v4.safetensors"]
        # Without queries, nothing holds the older versions.
        eventually(lambda host=host: host.mapped() == {f"{MODEL}-v4.safetensors"}, "older versions to be given up")
    pushes = [line for line in publisher.lines if "version" in line]
    delivered = [(line["version"], host) for line in pushes for host in line["delivered"]]
    assert sorted(delivered) == [(version, host) for version in range(1, 5) for host in ("h1", "h2")]
    assert not any(line["failed"] for line in pushes)
    assert publisher.end() == 0 and publisher.errors == ""
    assert [host.worker.end() for host in hosts] == [0, 0]


def test_request_begun_before_swaps_is_answered_by_its_version(fleet: Fleet) -> None:
    (host,) = fleet.add("h1")
    fleet.release(1)
    fleet.publisher()
    fleet.await_version(1, host)
    x = np.linspace(-1, 1, WIDTHS[0], dtype=np.float32)
    body = json.dumps({"x": x.tolist()}).encode()
    connection = http.client.HTTPConnection("127.0.0.1", host.worker_port, timeout=HANGING)
    connection.putrequest("POST", "/answer")
    connection.putheader("Content-Length", str(len(body)))
    connection.putheader("Expect", "100-continue")
    connection.endheaders()
    assert connection.sock.recv(1, socket.MSG_PEEK), "the worker confirms that it has accepted the request"
    connection.send(body[:10])
    for version in (2, 3, 4):
        fleet.release(version)
        fleet.await_version(version, host)
    assert f"{MODEL}-v1.safetensors" not in host.files()
    assert f"{MODEL}-v1.safetensors (deleted)" in host.mapped()
    connection.send(body[10:])
    reply = json.loads(connection.getresponse().read())
    assert reply["version"] == 1 and are_of(reply["y"], weights(1), x)
    connection.request("POST", "/answer", body)
    reply = json.loads(connection.getresponse().read())
    assert reply["version"] == 4 and are_of(reply["y"], weights(4), x)
    connection.close()
    eventually(lambda: host.mapped() == {f"{MODEL}-v4.safetensors"}, "older versions to be given up")


def test_dead_and_frozen_hosts_block_no_host_and_catch_up(fleet: Fleet) -> None:
    good, dying, slow = fleet.add("h1", "h2", "h3")
    fleet.release(1)
    publisher = fleet.publisher()
    fleet.await_version(1, good, dying, slow)
    with asking(good.worker_port, dying.worker_port, slow.worker_port):
        dying.agent.end(signal.SIGKILL)
        slow.agent.process.send_signal(signal.SIGSTOP)
        fleet.release(2)
        fleet.await_version(2, good)
        assert dying.serving() == 1 and slow.serving() == 1
        eventually(lambda: any("h2" in line.get("failed", {}) for line in publisher.lines), "the outcome to name it")
        # Now that both have failed, the good one gets its versions without them.
        fleet.release(3)
        fleet.await_version(3, good)
        assert dying.serving() == 1 and slow.serving() == 1
        dying.start_agent()
        slow.agent.process.send_signal(signal.SIGCONT)
        fleet.await_version(3, dying, slow)
    delivered = [line for line in publisher.lines if line.get("delivered") == ["h1"]]
    assert {line["version"] for line in delivered} == {2, 3}


def test_late_restarted_and_emptied_hosts_catch_up(fleet: Fleet) -> None:
    first, other = fleet.add("h1", "h2")
    fleet.release(1)
    publisher = fleet.publisher()
    fleet.await_version(1, first, other)
    other.worker.end(signal.SIGKILL)
    fleet.release(2)
    fleet.await_version(2, first)
    eventually(lambda: {"silent": ["h2"]} in publisher.lines, "the silent one to be named")
    (late,) = fleet.add("h3")
    fleet.await_version(2, late)
    for path in other.folder.iterdir():
        path.unlink()
    other.start_worker()
    fleet.await_version(2, other)
    assert {"silent": []} in publisher.lines
    # A file that is wrong for a while changes nothing, and is reported once.
    fleet.hosts_file.write_text("h1\n")
    eventually(lambda: "problem" in publisher.lines[-1], "the wrong file to be named")
    fleet.name_hosts()
    fleet.release(3)
    fleet.await_version(3, first, other, late)
    assert len([line for line in publisher.lines if "problem" in line]) == 1


def test_invalid_model_is_not_served_and_next_version_is(fleet: Fleet) -> None:
    (host,) = fleet.add("h1")
    fleet.release(1)
    publisher = fleet.publisher()
    fleet.await_version(1, host)
    with asking(host.worker_port):
        (fleet.releases / "2.safetensors").write_bytes(b"no tensors at all")
        eventually(lambda: "version 2 is not served" in host.worker.errors, "its error message")
        save_file({"0.weight": np.ones((3, 2), np.float32), "0.bias": np.ones(5, np.float32)}, fleet.path / "new")
        (fleet.path / "new").rename(fleet.releases / "3.safetensors")
        eventually(lambda: "version 3 is not served" in host.worker.errors, "its error message")
        assert host.serving() == 1
        fleet.release(4)
        fleet.await_version(4, host)
    # The publisher reports a version shortly after the worker serves it.
    eventually(lambda: {"version": 4}.items() <= publisher.lines[-1].items(), "the publisher to report version 4")
    # Invalid versions were sent once, although no worker serves them, and only the newest of them stays.
    assert [line["version"] for line in publisher.lines if "version" in line] == [1, 2, 3, 4]
    assert host.files() == [f"{MODEL}-v{version}.safetensors" for version in (1, 3, 4)]
