"""What it costs to come to an agent: a connection that both ends have proved, and an agent started over SSH.

connections  one after the other over loopback, to one agent in a process of its own; median and 90th percentile
start        agents on N addresses of loopback by one sshd: until all are ready, and until all are gone

.venv/bin/python benchmarks/agent_start.py --hosts 1 5 15     (root, for sshd; half a minute)
"""

from __future__ import annotations

import argparse
import secrets
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

import machine

sys.path.append(str(Path(__file__).resolve().parents[1]))

from blast_transport.agent.bundle import build_bundle
from blast_transport.agent.reporting import Reporter
from blast_transport.agent.server import AgentServer
from blast_transport.agent.settings import AgentSection, ClientSection, Settings
from blast_transport.base.endpoint import Endpoint
from blast_transport.credentials.admission import Admission, dialer
from blast_transport.credentials.material import Credentials, SharedSecret
from blast_transport.credentials.tls import TlsFiles
from blast_transport.remote.start import StartOptions, started_agents
from tests.support.certificates import Authority
from tests.support.ssh_server import SshServer, lacks


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, nargs="+", default=[1, 5, 15], help="at most 16, as sshd listens")
    parser.add_argument("--connections", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    print(f"{machine.describe()}\nthe agent's single file: {len(build_bundle())} bytes\n")
    with tempfile.TemporaryDirectory() as folder:
        connections(Path(folder), arguments.connections)
        if lacks() is None:
            starts(Path(folder), arguments.hosts, arguments.rounds)


def connections(folder: Path, count: int) -> None:
    """A table of what one connection takes, with each proof."""
    authority = Authority(folder / "ca", "ca")
    pair = authority.issue("/CN=both", "DNS:agent")
    proofs: dict[str, Credentials] = {
        "nothing": None,
        "secret": SharedSecret(secrets.token_bytes(32)),
        "certificates (TLS)": TlsFiles(pair.cert, pair.key, authority.cert),
    }
    print(f"{'proof':<20} {'median ms':>10} {'p90 ms':>8}   ({count} connections, client and agent in one process)")
    for name, credentials in proofs.items():
        taken = sorted(connection_seconds(credentials, count))
        print(f"{name:<20} {statistics.median(taken) * 1e3:>10.2f} {taken[len(taken) * 9 // 10] * 1e3:>8.2f}")


def connection_seconds(credentials: Credentials, count: int) -> list[float]:
    """Seconds from nothing to a connection that may be used, each."""
    settings = Settings(AgentSection(Endpoint("127.0.0.1", 0)))
    admission = Admission(credentials, [ClientSection(common_name="both")])
    server = AgentServer(settings, admission, no_session, Reporter())
    thread = threading.Thread(target=server.run)
    thread.start()
    dial, taken = dialer(credentials), []
    try:
        for _ in range(count):
            began = time.perf_counter()
            sock = dial(("agent", *server.endpoint), 5.0)
            taken.append(time.perf_counter() - began)
            sock.close()
    finally:
        server.stop("measured")
        thread.join()
    return taken


def no_session(*_: object) -> None:
    """Nobody asks for one."""


def starts(folder: Path, sizes: list[int], rounds: int) -> None:
    """A table of what it takes to start agents over SSH."""
    print(f"\n{'hosts':>5} {'all ready s':>12} {'spread':>12} {'all gone s':>11}   (median of {rounds})")
    (folder / "ssh").mkdir()
    hosts = [f"127.0.0.{number + 2}" for number in range(max(sizes))]
    with SshServer(folder / "ssh", hosts, {}).running() as server:
        options = StartOptions(port=server.port, ssh_options=server.ssh_options, seconds=60)
        for size in sizes:
            ready, gone = zip(*(start_seconds(hosts[:size], folder, options) for _ in range(rounds)), strict=True)
            spread = f"{min(ready):.2f}-{max(ready):.2f}"
            print(f"{size:>5} {statistics.median(ready):>12.2f} {spread:>12} {statistics.median(gone):>11.2f}")


def start_seconds(hosts: list[str], folder: Path, options: StartOptions) -> tuple[float, float]:
    """Seconds until all agents are ready, and then until all are gone."""
    began = time.perf_counter()
    with started_agents(hosts, str(folder), options) as agents:
        ready = time.perf_counter()
        assert len(agents.addresses) == len(hosts), agents.failed
    return ready - began, time.perf_counter() - ready


if __name__ == "__main__":
    main()
