"""Emulated sites: planned rates, shared links, dead, long and changed paths as in the model; all is removed."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from algorithms.balanced.testbeds import INTERFACE
from mininet_topos.kernel.errors import PlanError
from mininet_topos.kernel.namespace import run_in_network_of
from mininet_topos.lab import cleanup
from mininet_topos.lab.agents import BLAST, PORT
from mininet_topos.sites import presets
from mininet_topos.sites.agents import FOLDER, agents_on
from mininet_topos.sites.plan import SitesPlan
from mininet_topos.sites.sites import Sites
from tests.support.waiting import HANGING, eventually

pytestmark = pytest.mark.lab

_PIECE = bytes(1 << 16)


@dataclass
class Stream:
    """One connection that sends as fast as it can; `arrived` counts."""

    sender: socket.socket
    receiver: socket.socket
    size: int
    arrived: int = 0
    ended: float = 0.0
    threads: list[threading.Thread] = field(default_factory=list)

    def start(self) -> None:
        """Send `size` bytes, and receive them."""
        self.threads = [threading.Thread(target=each, daemon=True) for each in (self._send, self._receive)]
        for thread in self.threads:
            thread.start()

    def _send(self) -> None:
        left = self.size
        # An error is the end of the test.
        with suppress(OSError):
            while left > 0:
                left -= self.sender.send(_PIECE[: min(left, len(_PIECE))])

    def _receive(self) -> None:
        with suppress(OSError):
            while self.arrived < self.size and (data := self.receiver.recv(len(_PIECE))):
                self.arrived += len(data)
            self.ended = time.monotonic()


def connected(sites: Sites, sender: str, receiver: str, size: int, stack: ExitStack) -> Stream:
    """Return a stream that is ready to start.

    Raises TimeoutError where no connection is established within one second.
    """
    address = sites.address(receiver)
    server = run_in_network_of(sites.pid(receiver), lambda: socket.create_server((address, 0)))
    with server:
        port = server.getsockname()[1]
        near = run_in_network_of(sites.pid(sender), lambda: socket.create_connection((address, port), 1.0))
        far, _ = server.accept()
    for end in (near, far):
        end.settimeout(HANGING)
        stack.callback(end.close)
    return Stream(near, far, size)


def mbps(sites: Sites, sender: str, receiver: str, size: int = 2_000_000, streams: int = 1) -> float:
    """Return the total rate of `streams` streams between two hosts in Mbit/s, which send `size` bytes in all."""
    return together(sites, [(sender, receiver)] * streams, size // streams)


def together(sites: Sites, pairs: Sequence[tuple[str, str]], size: int) -> float:
    """Return the total rate of a stream per pair in Mbit/s, each of `size` bytes."""
    with ExitStack() as stack:
        streams = [connected(sites, *pair, size, stack) for pair in pairs]
        began = time.monotonic()
        for stream in streams:
            stream.start()
        for stream in streams:
            stream.threads[1].join(HANGING)
            assert stream.arrived == stream.size, "a stream did not end"
        return len(streams) * size * 8 / (max(stream.ended for stream in streams) - began) / 1e6


def shares(sites: Sites, pairs: Sequence[tuple[str, str]], size: int) -> list[float]:
    """Return each stream's share of all received bytes at the moment at which the first one has its `size` bytes."""
    with ExitStack() as stack:
        streams = [connected(sites, *pair, size, stack) for pair in pairs]
        for stream in streams:
            stream.start()
        while not any(stream.ended for stream in streams):
            streams[0].threads[1].join(0.01)
        arrived = [stream.arrived for stream in streams]
        return [each / sum(arrived) for each in arrived]


SPARE = 1.03
"""Bursts of some milliseconds come on top of a rate."""


def three(**changes: object) -> SitesPlan:
    """Paths of 40, 32 and 16 Mbit/s, access links of 40."""
    slower = {pair: rate * 0.4 for pair, rate in presets.figure2().rates.items()}
    access = dict.fromkeys(presets.figure2().hosts, 40e6)
    return replace(presets.figure2(), rates=slower, out=access, into=access, **changes)


@pytest.fixture(scope="module")
def sites() -> Iterator[Sites]:
    with Sites(three()) as sites:
        yield sites


def test_path_does_not_exceed_planned_rate(sites):
    for pair, planned in sites.plan.rates.items():
        assert mbps(sites, *pair, size=1_000_000) < planned / 1e6 * SPARE + 2


def test_streams_share_access_link_evenly(sites):
    pairs = [("root", "one"), ("root", "two")]
    assert together(sites, pairs, 1_500_000) < 40 * SPARE + 1
    at_times(lambda: shares(sites, pairs, 1_500_000) == pytest.approx([0.5, 0.5], abs=0.1))


def test_both_directions_of_path_are_independent(sites):
    both = [("root", "one"), ("one", "root")]
    at_times(lambda: together(sites, both, 2_000_000) > 1.4 * together(sites, both[:1], 2_000_000))


def test_dead_path_is_dead_in_its_direction_only(sites):
    sites.set_rate("root", "one", 0)
    with ExitStack() as stack, pytest.raises(TimeoutError):
        connected(sites, "root", "one", 1, stack)
    assert mbps(sites, "one", "root", 1_000_000)
    sites.set_rate("root", "one", 40e6)


def test_stream_stalls_while_path_is_dead_and_resumes(sites):
    with ExitStack() as stack:
        stream = connected(sites, "root", "one", 3_000_000, stack)
        stream.start()
        eventually(lambda: stream.arrived > 500_000, "data to arrive")
        sites.set_rate("root", "one", 0)
        # Another stream shows that time passes.
        mbps(sites, "root", "two", 1_000_000)
        held = stream.arrived
        mbps(sites, "root", "two", 1_000_000)
        assert stream.arrived == held
        assert held < stream.size
        sites.set_rate("root", "one", 40e6)
        eventually(lambda: stream.ended, "the rest to arrive")
    with pytest.raises(PlanError, match="emulates"):
        sites.set_rate("root", "one", 10)
    with pytest.raises(PlanError, match="itself"):
        sites.set_rate("root", "root", 8e6)


def test_window_limits_stream_on_long_path_but_not_parallel_ones():
    with Sites(presets.far(presets.homogeneous(2, 80), 8.0)) as sites:
        window_mbps = 65_535 * 8 / 0.016 / 1e6
        assert mbps(sites, "h1", "h2", 4_000_000) < window_mbps * SPARE
        at_times(lambda: mbps(sites, "h1", "h2", 4_000_000, streams=4) > 1.4 * mbps(sites, "h1", "h2", 2_000_000))


def test_cluster_hosts_share_wide_area_link_but_not_local_one():
    slower = [replace(link, rate=16e6) for link in presets.clusters(2, 4).shared]
    with Sites(replace(presets.clusters(2, 4), shared=tuple(slower))) as sites:
        pairs = [(f"amsterdam{n}", f"leiden{n}") for n in range(4)]
        assert together(sites, pairs[:1], 500_000) < INTERFACE / 1e6 * SPARE + 1
        assert together(sites, pairs, 1_000_000) < 16 * SPARE + 1
        at_times(lambda: mbps(sites, "amsterdam0", "amsterdam1", 4_000_000) > 2 * INTERFACE / 1e6)


def at_times(holds: Callable[[], object]) -> None:
    """Wait for one attempt that holds: a busy machine may be slower than a network in one attempt, but not in all."""
    eventually(holds, "an attempt in which the network decides", within=4 * HANGING)


def test_blast_send_transfers_file_between_sites(tmp_path):
    source = tmp_path / "data"
    source.write_bytes(bytes(range(256)) * 4000)
    with Sites(three()) as sites:
        with agents_on(sites) as agents:
            to = ",".join(f"{host}={sites.address(host)}:{PORT}" for host in ("one", "two"))
            words = [BLAST, "send", str(source), "--to", to, "--via", "pipeline", "--folder", FOLDER]
            sender = sites.popen("root", [*words, "--secret-file", str(agents.places.secret)])
            assert sender.wait(HANGING) == 0
            assert all((agents.folder(host) / "data").read_bytes() == source.read_bytes() for host in ("one", "two"))
            folder = agents.folder("one")
        assert folder.exists()
    assert not folder.exists()


def test_sites_are_removed_after_exception():
    with pytest.raises(RuntimeError), Sites(presets.far(three())) as sites:
        lab = sites.id
        left = sites.popen("one", ["sleep", "1000"])
        raise RuntimeError
    assert left.wait(HANGING) == -signal.SIGTERM
    assert lab not in cleanup.found_labs()
    assert not cleanup.marked_processes(lab)


def test_failed_construction_leaves_no_sites(monkeypatch):
    found = []
    monkeypatch.setattr(Sites, "_shape", lambda sites: found.append(sites.id) or 1 / 0)
    with pytest.raises(ZeroDivisionError), Sites(three()):
        pass
    assert not set(found) & set(cleanup.found_labs())


def test_sites_command_serves_until_interrupted(tmp_path):
    network = tmp_path / "network.json"
    links = [["a", "b", 20], ["b", "c", 20]]
    network.write_text(json.dumps({"hosts": ["a", "b", "c"], "root": "a", "receivers": "all", "links": links}))
    words = [BLAST, "lab", "sites", str(network), "--unit", "mbit", "--json"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as command:
        try:
            assert command.stdout is not None
            ready = json.loads(command.stdout.readline())
            assert [host["name"] for host in ready["hosts"]] == ["a", "b", "c"]
            assert "--via pipeline" in ready["send"]
            assert json.loads(Path(ready["network"]).read_text())["links"] == [["a", "b", 20e6], ["b", "c", 20e6]]
        finally:
            command.send_signal(signal.SIGINT)
        assert command.wait(HANGING) == 0
    assert ready["lab"] not in cleanup.found_labs()
