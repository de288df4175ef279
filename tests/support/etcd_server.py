"""A real etcd of one member on loopback, with mutual TLS, users and a role; it can be killed, and started again."""

from __future__ import annotations

import base64
import http.client
import itertools
import json
import os
import shutil
import socket
import ssl
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from blast_controller.store.etcd.access import Access, Patience, TlsFiles, User
from blast_controller.store.etcd.connection import Connection
from blast_controller.store.etcd.keys import Keys
from blast_controller.store.etcd.leadership import Leadership
from blast_controller.store.etcd.store import EtcdStore, Policy
from tests.support.certificates import Authority
from tests.support.waiting import eventually

ETCD = shutil.which("etcd")
PREFIX = "/blast-test/"
"""What the user `blast` may read and write: each test has a prefix of its own below it."""
PATIENCE = Patience(in_all=30.0, at_one=10.0)
"""For what works: on a busy machine too."""
SHORT = Patience(in_all=0.4, at_one=0.4)
"""For what will not."""
AT_ONCE = Policy(wait=0.0)
TIMES = ("--heartbeat-interval", "20", "--election-timeout", "200")


def lacks() -> str | None:
    """Why no etcd can be run here."""
    return None if ETCD else "needs etcd: scripts/setup test"


class EtcdServer:
    """etcd in `folder`, whose database may grow to `quota` bytes (0: as etcd likes)."""

    def __init__(self, folder: Path, quota: int = 0) -> None:
        self.folder = folder
        authority = Authority(folder / "certificates", "ca")
        self.authority = authority
        self._server = authority.issue("/CN=etcd", "IP:127.0.0.1")
        # Without a common name, which would be taken for the user; the gateway refuses such.
        self.client = authority.issue("/O=controller")
        self.password_file = folder / "password"
        self.password_file.touch(mode=0o600)
        self.password_file.write_text("secret\n")
        self.quota = quota
        self._process: subprocess.Popen[bytes] | None = None
        self._numbers = itertools.count(1)
        self._has_users = False
        self.port, self._peer_port = 0, 0

    @contextmanager
    def running(self) -> Iterator[EtcdServer]:
        """Serve, with users; the process ends with it, whatever happens."""
        try:
            self._start_somewhere()
            self._make_users()
            yield self
        finally:
            self.kill()

    def kill(self) -> None:
        """End it at once; what it has is kept."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()

    def start(self) -> None:
        """Start it (again), with its ports and its data. Raises OSError where it ends by itself."""
        client, peer = f"https://127.0.0.1:{self.port}", f"http://127.0.0.1:{self._peer_port}"
        # It ends with the test's process too, however that ends.
        command = [
            "setpriv",
            "--pdeathsig",
            "KILL",
            str(ETCD),
            "--name",
            "one",
            "--data-dir",
            str(self.folder / "data"),
            *TIMES,
            "--bcrypt-cost",
            "4",
        ]
        command += ["--listen-client-urls", client, "--advertise-client-urls", client, "--listen-peer-urls", peer]
        command += ["--initial-advertise-peer-urls", peer, "--initial-cluster", f"one={peer}"]
        command += ["--cert-file", str(self._server.cert), "--key-file", str(self._server.key), "--client-cert-auth"]
        command += ["--trusted-ca-file", str(self.authority.cert), "--quota-backend-bytes", str(self.quota)]
        with (self.folder / "log").open("ab") as log:
            environment = {**os.environ, "ETCD_UNSUPPORTED_ARCH": "arm64"}
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)
        eventually(self._is_healthy, "etcd to serve")

    # ------------------------------------------------------------------------------------------------- for tests

    def access(self, port: int = 0, **changes: object) -> Access:
        """How the controller reaches it, by another port if a proxy stands there."""
        tls = TlsFiles(self.authority.cert, self.client.cert, self.client.key)
        endpoints = (f"127.0.0.1:{port or self.port}",)
        user = User("blast", self.password_file)
        return Access(**{"endpoints": endpoints, "tls": tls, "user": user, "patience": PATIENCE, **changes})

    @property
    def ports(self) -> list[int]:
        """Of its members."""
        return [self.port]

    def settings(self, ports: Sequence[int]) -> list[str]:
        """Lines of a controller's configuration that say how it is reached by these ports."""
        return [
            f"endpoints = {json.dumps([f'127.0.0.1:{port}' for port in ports])}",
            f'ca = "{self.authority.cert}"',
            f'certificate = "{self.client.cert}"',
            f'private_key = "{self.client.key}"',
            'user = "blast"',
            f'password_file = "{self.password_file}"',
        ]

    def keys(self) -> Keys:
        """A prefix of its own."""
        return Keys(f"{PREFIX}{next(self._numbers)}/")

    def post(self, path: str, **content: object) -> dict[str, object]:
        """A call to etcd's gateway, as its administrator."""
        return self._post(path, self._token() if self._has_users else "", content)

    # --------------------------------------------------------------------------------------------------- inside

    def _post(self, path: str, token: str, content: dict[str, object]) -> dict[str, object]:
        tls = ssl.create_default_context(cafile=str(self.authority.cert))
        tls.load_cert_chain(self.client.cert, self.client.key)
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=10, context=tls)
        try:
            headers = {"Authorization": token} if token else {}
            connection.request("POST", f"/v3/{path}", json.dumps(content), headers)
            answer = connection.getresponse()
            found = json.loads(answer.read())
            assert answer.status == 200, found
            return found
        finally:
            connection.close()

    def _token(self) -> str:
        # A new one each time: etcd forgets them, after some minutes or when users change.
        return str(self._post("auth/authenticate", "", {"name": "root", "password": "secret"})["token"])

    def _start_somewhere(self) -> None:
        for _ in range(5):
            with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
                self.port, self._peer_port = one.getsockname()[1], other.getsockname()[1]
            try:
                self.start()
            except OSError:
                # Somebody else has taken a port in the meantime.
                self.kill()
                shutil.rmtree(self.folder / "data", ignore_errors=True)
            else:
                return
        raise AssertionError(f"etcd did not start: {(self.folder / 'log').read_text()[-2000:]}")

    def _is_healthy(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            raise OSError("etcd has ended by itself")
        try:
            if self._has_users:
                return bool(self._token())
            return bool(self.post("maintenance/status")["leader"])
        except (OSError, KeyError, ValueError, AssertionError, http.client.HTTPException):
            return False

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


class Controllers:
    """Makes stores on one prefix, each as of a controller of its own, and closes them all."""

    def __init__(self, server: EtcdServer, keys: Keys | None = None) -> None:
        self.server = server
        self.keys = keys or server.keys()
        self._undo = ExitStack()

    def connection(self, port: int = 0, **changes: object) -> Connection:
        """A connection of its own, by another port if a proxy stands there."""
        connection = Connection(self.server.access(port, **changes))
        self._undo.callback(connection.close)
        return connection

    def leadership(self, connection: Connection | None = None, address: str = "here:9090", ttl: int = 5) -> Leadership:
        """Not leading yet."""
        leadership = Leadership(connection or self.connection(), self.keys, address, ttl)
        self._undo.callback(leadership.resign)
        return leadership

    def store(self, policy: Policy = AT_ONCE, leadership: Leadership | None = None) -> EtcdStore:
        """Not open yet."""
        store = EtcdStore(leadership or self.leadership(), policy)
        self._undo.callback(store.close)
        return store

    def on_close(self, act: Callable[[], object]) -> None:
        """What else is to be undone."""
        self._undo.callback(act)

    def close(self) -> None:
        """Close all, the latest first."""
        self._undo.close()
