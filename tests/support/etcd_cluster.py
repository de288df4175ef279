"""An etcd of several members on loopback, without TLS and users, whose members are killed, paused and started again."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from blast_controller.store.etcd.access import Access, Patience
from blast_controller.store.etcd.connection import Connection
from blast_controller.store.etcd.errors import StoreAway
from blast_controller.store.etcd.keys import Keys
from blast_controller.store.etcd.methods import STATUS
from blast_controller.store.etcd.proto import etcd_pb2 as api
from tests.support.etcd_server import ETCD, TIMES
from tests.support.waiting import eventually


class EtcdCluster:
    """Members 0, 1, … in `folder`; to be used in `running`."""

    def __init__(self, folder: Path, members: int = 3) -> None:
        self._folder = folder
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        with ExitStack() as stack:
            held = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(2 * members)]
            ports = [one.getsockname()[1] for one in held]
        self.endpoints = tuple(f"127.0.0.1:{port}" for port in ports[:members])
        self._peers = [f"http://127.0.0.1:{port}" for port in ports[members:]]

    @contextmanager
    def running(self) -> Iterator[EtcdCluster]:
        """Serve; all members end with it."""
        try:
            for member in range(len(self.endpoints)):
                self.start(member)
            self.leader()
            yield self
        finally:
            for member in list(self._processes):
                self.kill(member)

    def start(self, member: int) -> None:
        """Start a member (again)."""
        client, peer = f"http://{self.endpoints[member]}", self._peers[member]
        cluster = ",".join(f"m{number}={one}" for number, one in enumerate(self._peers))
        command = ["setpriv", "--pdeathsig", "KILL", str(ETCD), "--name", f"m{member}", *TIMES]
        command += ["--data-dir", str(self._folder / f"m{member}"), "--initial-cluster", cluster]
        command += ["--listen-client-urls", client, "--advertise-client-urls", client]
        command += ["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer]
        with (self._folder / f"log{member}").open("ab") as log:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self._processes[member] = process

    def kill(self, member: int) -> None:
        """End a member at once."""
        process = self._processes.pop(member)
        process.kill()
        process.wait()

    def pause(self, member: int) -> None:
        """A member hangs: its connections stay, and it answers nothing."""
        self._processes[member].send_signal(signal.SIGSTOP)

    def go_on(self, member: int) -> None:
        """It hangs no longer."""
        self._processes[member].send_signal(signal.SIGCONT)

    @property
    def ports(self) -> list[int]:
        """Of its members."""
        return [int(endpoint.rpartition(":")[2]) for endpoint in self.endpoints]

    def settings(self, ports: Sequence[int]) -> list[str]:
        """Lines of a controller's configuration that say how it is reached by these ports."""
        return [f"endpoints = {json.dumps([f'127.0.0.1:{port}' for port in ports])}"]

    @staticmethod
    def keys() -> Keys:
        """It serves one journal."""
        return Keys("/blast/")

    @property
    def members(self) -> list[int]:
        """Those that run."""
        return sorted(self._processes)

    def access(self, patience: Patience) -> Access:
        """All members."""
        return Access(self.endpoints, patience=patience)

    def leader(self) -> int:
        """The member that leads, once one does."""
        return eventually(self._leaders, "a leader among the members")[0]

    def _leaders(self) -> list[int]:
        """Those who are there and say that they lead."""
        found = []
        for member, endpoint in enumerate(self.endpoints):
            connection = Connection(Access((endpoint,), patience=Patience(0.3, 0.3)))
            try:
                status = connection.call(STATUS, api.StatusRequest())
            except StoreAway:
                continue
            finally:
                connection.close()
            if status.leader and status.leader == status.header.member_id:
                found.append(member)
        return found
