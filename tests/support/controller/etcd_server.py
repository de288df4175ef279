"""A real etcd on loopback, of one member or several, with mutual TLS, users and a role."""

from __future__ import annotations

import base64
import http.client
import itertools
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TypeVar

from blast_controller.store.etcd.access import Access, EtcdTimeouts, EtcdTlsFiles, User
from blast_controller.store.etcd.connection import EtcdConnection
from blast_controller.store.etcd.errors import StoreUnavailableError
from blast_controller.store.etcd.keys import Keys
from blast_controller.store.etcd.leadership import Leadership
from blast_controller.store.etcd.methods import RANGE, REVOKE, STATUS, TXN
from blast_controller.store.etcd.proto import etcd_pb2 as api
from blast_controller.store.etcd.requests import get
from blast_controller.store.etcd.store import EtcdStore, StorePolicy
from tests.support.certificates import Authority
from tests.support.waiting import eventually

C = TypeVar("C", bound=EtcdConnection)
PREFIX = "/blast-test/"
"""The prefix that the user `blast` may read and write; each test has its own prefix below it."""
LONG = EtcdTimeouts(in_all=30.0, at_one=10.0)
"""For calls that succeed, on a busy machine too."""
SHORT = EtcdTimeouts(in_all=0.4, at_one=0.4)
"""For calls that fail."""
AT_ONCE = StorePolicy(wait=0.0)
TIMES = ("--heartbeat-interval", "20", "--election-timeout", "200", "--bcrypt-cost", "4")


class EtcdServer:
    """An etcd server in `folder`, whose next start limits its database to `quota` bytes (0: etcd's default)."""

    quota = 0

    def __init__(self, folder: Path, members: int = 1) -> None:
        self.folder = folder
        self.authority = Authority(folder / "certificates", "ca")
        self._server = self.authority.issue("/CN=etcd", "IP:127.0.0.1")
        # Without a common name, which would be taken for the user; the gateway refuses such.
        self.client = self.authority.issue("/O=controller")
        self.password_file = folder / "password"
        self.password_file.touch(mode=0o600)
        self.password_file.write_text("secret\n")
        self._members = range(members)
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._numbers = itertools.count(1)
        self._has_users = False
        self.ports: list[int] = []
        self._peers: list[str] = []

    @contextmanager
    def running(self) -> Iterator[EtcdServer]:
        """Serve, with users; all processes end with it."""
        try:
            self._start_somewhere()
            self._make_users()
            yield self
        finally:
            self.kill()

    def kill(self, *members: int) -> None:
        """Kill these members, or all; their data is kept."""
        for member in members or tuple(self._processes):
            process = self._processes.pop(member)
            process.kill()
            process.wait()

    def start(self, *members: int) -> None:
        """Start these members (again), or all, and wait until they serve. Raises OSError where one ends by itself."""
        started = members or tuple(self._members)
        for member in started:
            self._processes[member] = self._run(member)
        for member in started:
            eventually(lambda member=member: self._is_healthy(member), "etcd to serve")

    def pause(self, member: int) -> None:
        """Let a member hang: its connections stay, and it answers nothing."""
        self._processes[member].send_signal(signal.SIGSTOP)

    def go_on(self, member: int) -> None:
        """End the pause."""
        self._processes[member].send_signal(signal.SIGCONT)

    def leader(self) -> int:
        """Wait for the leader of the members and return it."""
        return eventually(self._leaders, "a leader among the members")[0]

    @property
    def port(self) -> int:
        """Return the port of the first member."""
        return self.ports[0]

    def access(self, port: int = 0, **changes: object) -> Access:
        """Return the controller's access to etcd; with another port if a proxy is in between."""
        tls = EtcdTlsFiles(self.authority.cert, self.client.cert, self.client.key)
        endpoints = tuple(f"127.0.0.1:{one}" for one in ([port] if port else self.ports))
        user = User("blast", self.password_file)
        return Access(**{"endpoints": endpoints, "tls": tls, "user": user, "timeouts": LONG, **changes})

    def keys(self) -> Keys:
        """Return a prefix that is not used yet."""
        return Keys(f"{PREFIX}{next(self._numbers)}/")

    def post(self, path: str, **content: object) -> dict[str, object]:
        """Call etcd's gateway, as its administrator."""
        return self._post(path, self._token(self.port) if self._has_users else "", content)

    def _run(self, member: int) -> subprocess.Popen[bytes]:
        client, peer = f"https://127.0.0.1:{self.ports[member]}", self._peers[member]
        cluster = ",".join(f"m{number}={one}" for number, one in enumerate(self._peers))
        # It ends with the test's process too, however that ends.
        command = ["setpriv", "--pdeathsig", "KILL", "etcd", *TIMES, "--quota-backend-bytes", str(self.quota)]
        command += ["--name", f"m{member}", "--data-dir", str(self.folder / f"m{member}"), "--initial-cluster", cluster]
        command += ["--listen-client-urls", client, "--advertise-client-urls", client]
        command += ["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer]
        command += ["--cert-file", str(self._server.cert), "--key-file", str(self._server.key)]
        command += ["--client-cert-auth", "--trusted-ca-file", str(self.authority.cert)]
        environment = {**os.environ, "ETCD_UNSUPPORTED_ARCH": "arm64"}
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)

    def _post(self, path: str, token: str, content: dict[str, object], port: int = 0) -> dict[str, object]:
        tls = ssl.create_default_context(cafile=str(self.authority.cert))
        tls.load_cert_chain(self.client.cert, self.client.key)
        connection = http.client.HTTPSConnection("127.0.0.1", port or self.port, timeout=10, context=tls)
        try:
            headers = {"Authorization": token} if token else {}
            connection.request("POST", f"/v3/{path}", json.dumps(content), headers)
            answer = connection.getresponse()
            found = json.loads(answer.read())
            assert answer.status == 200, found
            return found
        finally:
            connection.close()

    def _token(self, port: int) -> str:
        # A new one each time: etcd forgets them, after some minutes or when users change.
        return str(self._post("auth/authenticate", "", {"name": "root", "password": "secret"}, port)["token"])

    def _start_somewhere(self) -> None:
        for _ in range(5):
            with ExitStack() as held:
                sockets = [held.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in (*self._members,) * 2]
                ports = [one.getsockname()[1] for one in sockets]
            self.ports = ports[: len(self._members)]
            self._peers = [f"http://127.0.0.1:{port}" for port in ports[len(self._members) :]]
            try:
                self.start()
            except OSError:
                # Another process has taken a port in the meantime.
                self.kill()
                for member in self._members:
                    shutil.rmtree(self.folder / f"m{member}", ignore_errors=True)
            else:
                return
        raise AssertionError(f"etcd did not start: {(self.folder / 'log').read_text()[-2000:]}")

    def _is_healthy(self, member: int) -> bool:
        if self._processes[member].poll() is not None:
            raise OSError("etcd has ended by itself")
        try:
            if self._has_users:
                return bool(self._token(self.ports[member]))
            return bool(self._post("maintenance/status", "", {}, self.ports[member])["leader"])
        except (OSError, KeyError, ValueError, AssertionError, http.client.HTTPException):
            return False

    def _leaders(self) -> list[int]:
        found = []
        for member, port in enumerate(self.ports):
            connection = EtcdConnection(self.access(port, timeouts=SHORT))
            try:
                status = connection.call(STATUS, api.StatusRequest())
            except StoreUnavailableError:
                continue
            finally:
                connection.close()
            if status.leader and status.leader == status.header.member_id:
                found.append(member)
        return found

    def _make_users(self) -> None:
        start, end = (base64.b64encode(key.encode()).decode() for key in (PREFIX, PREFIX[:-1] + "0"))
        self.post("auth/role/add", name="journal")
        self.post("auth/role/grant", name="journal", perm={"permType": "READWRITE", "key": start, "range_end": end})
        for user, role in (("root", "root"), ("blast", "journal")):
            self.post("auth/user/add", name=user, password="secret")
            if role == "root":
                self.post("auth/role/add", name=role)
            self.post("auth/user/grant", user=user, role=role)
        self.post("auth/enable")
        self._has_users = True


class Mortal(EtcdConnection):
    """A controller's connection that dies before its next write when none are `left` (None: it lives).

    With `receives_last_answer` off, it dies before the answer to its last write. Then only its lease ends.
    """

    left: int | None = None
    receives_last_answer = True
    transactions = 0

    def call(self, method, request, seconds=None):
        is_write = method is TXN and bool(request.compare)
        self.transactions += is_write
        if self.left is None or method is REVOKE:
            return super().call(method, request, seconds)
        if self.left <= 0:
            raise StoreUnavailableError("nowhere", "its controller is dead")
        self.left -= is_write
        answer = super().call(method, request, seconds)
        if self.left <= 0 and not self.receives_last_answer:
            raise StoreUnavailableError("nowhere", "its controller died before the answer")
        return answer


class Controllers:
    """A factory of stores on one prefix, each of a controller of its own, which it closes."""

    def __init__(self, server: EtcdServer, keys: Keys | None = None) -> None:
        self.server = server
        self.keys = keys or server.keys()
        self._undo = ExitStack()

    def connection(self, port: int = 0, kind: type[C] = EtcdConnection, **changes: object) -> C:
        """Return a new connection; with another port if a proxy is in between."""
        connection = kind(self.server.access(port, **changes))
        self._undo.callback(connection.close)
        return connection

    def leadership(
        self, connection: EtcdConnection | None = None, address: str = "here:9090", ttl: int = 5
    ) -> Leadership:
        """Return a candidacy that has not begun."""
        leadership = Leadership(connection or self.connection(), self.keys, address, ttl)
        self._undo.callback(leadership.resign)
        return leadership

    def store(self, policy: StorePolicy = AT_ONCE, leadership: Leadership | None = None) -> EtcdStore:
        """Return a store that is not open."""
        store = EtcdStore(leadership or self.leadership(), policy)
        self._undo.callback(store.close)
        return store

    def opened_store(self, policy: StorePolicy = AT_ONCE, leadership: Leadership | None = None) -> EtcdStore:
        """Return an open `store`."""
        store = self.store(policy, leadership)
        store.open()
        return store

    def leader_key(self) -> api.KeyValue | None:
        """Return the key of the current leader, if there is one."""
        found = self.connection().call(RANGE, get(self.keys.leader)).kvs
        return found[0] if found else None

    def depose(self) -> None:
        """Revoke the leader's lease, as an operator might, or as its end does."""
        leader = self.leader_key()
        assert leader is not None
        self.connection().call(REVOKE, api.LeaseRevokeRequest(ID=leader.lease))

    def options(self, **changes: object) -> list[str]:
        """Return the options of a command that reads or writes the journal, without options that are None."""
        server = self.server
        options = {
            "etcd": f"127.0.0.1:{server.port}",
            "etcd-prefix": self.keys.prefix,
            "etcd-ca": server.authority.cert,
            "etcd-cert": server.client.cert,
            "etcd-key": server.client.key,
            "etcd-user": "blast",
            "etcd-password-file": server.password_file,
            **changes,
        }
        return [f"--{name}={value}" for name, value in options.items() if value is not None]

    def on_close(self, act: Callable[[], object]) -> None:
        """Register a clean-up action."""
        self._undo.callback(act)

    def close(self) -> None:
        """Close all, the latest first."""
        self._undo.close()
