"""A real sshd on loopback, at a high port, with keys of its own: one address is one host, and hosts may have faults."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.support.waiting import eventually

SSHD = shutil.which("sshd") or "/usr/sbin/sshd"
_PRIVILEGE_SEPARATION = Path("/run/sshd")


def lacks() -> str | None:
    """Why no sshd can be run here."""
    if not Path(SSHD).exists() or shutil.which("ssh") is None:
        return "needs OpenSSH: scripts/setup test"
    if os.geteuid() != 0:
        return "needs root, for sshd's separation of privileges"
    return None


class SshServer:
    """sshd in `folder`, listening on `hosts` (addresses of 127.0.0.0/8); `faults` are Match blocks for some of them."""

    def __init__(self, folder: Path, hosts: list[str], faults: Mapping[str, str]) -> None:
        self._folder, self.hosts = folder, hosts
        self.port = free_port()
        self.log = folder / "sshd.log"
        for name in ("host_key", "user_key", "stranger_key"):
            _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name))
        (folder / "authorized_keys").write_text((folder / "user_key.pub").read_text())
        (folder / "none").touch()
        self._know(hosts)
        self._config(faults)

    @property
    def ssh_options(self) -> str:
        """What makes ssh a client of this server and of nothing else."""
        folder = self._folder
        return (
            f"-F none -i {folder}/user_key -oIdentitiesOnly=yes -oUserKnownHostsFile={folder}/known_hosts "
            "-oGlobalKnownHostsFile=/dev/null -oStrictHostKeyChecking=yes"
        )

    @property
    def left(self) -> list[Path]:
        """What is in the hosts' temporary folder."""
        return sorted((self._folder / "tmp").iterdir())

    @contextmanager
    def running(self) -> Iterator[SshServer]:
        """Serve; the server's children end with it."""
        _PRIVILEGE_SEPARATION.mkdir(mode=0o755, exist_ok=True)
        command = [SSHD, "-D", "-f", str(self._folder / "sshd_config"), "-E", str(self.log)]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        try:
            await_port(self.hosts[0], self.port, process)
            yield self
        finally:
            process.terminate()
            process.wait(30)

    def _know(self, hosts: list[str]) -> None:
        key = " ".join((self._folder / "host_key.pub").read_text().split()[:2])
        lines = [f"[{host}]:{self.port} {key}" for host in hosts]
        (self._folder / "known_hosts").write_text("\n".join(lines) + "\n")

    def forget(self, host: str) -> None:
        """The client does not know the key of this host."""
        path = self._folder / "known_hosts"
        kept = [line for line in path.read_text().splitlines() if not line.startswith(f"[{host}]:")]
        path.write_text("\n".join(kept) + "\n")

    def _config(self, faults: Mapping[str, str]) -> None:
        folder = self._folder
        lines = [f"ListenAddress {host}" for host in self.hosts]
        lines += [
            f"Port {self.port}",
            f"HostKey {folder}/host_key",
            f"AuthorizedKeysFile {folder}/authorized_keys",
            "PidFile none",
            "UsePAM no",
            "StrictModes no",
            "PermitRootLogin prohibit-password",
            "PasswordAuthentication no",
            "KbdInteractiveAuthentication no",
            "MaxStartups 100",
            "LogLevel VERBOSE",
            f"SetEnv PATH={Path(sys.executable).parent}:/usr/bin:/bin TMPDIR={folder}/tmp HOME={folder}",
        ]
        (folder / "tmp").mkdir()
        for host, block in faults.items():
            lines += [f"Match LocalAddress {host}", *(f"  {line}" for line in block.format(folder=folder).splitlines())]
        (folder / "sshd_config").write_text("\n".join(lines) + "\n")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


def await_port(host: str, port: int, process: subprocess.Popen[bytes]) -> None:
    def listens() -> bool:
        assert process.poll() is None, "sshd did not start"
        with suppress(OSError):
            socket.create_connection((host, port), 30).close()
            return True
        return False

    eventually(listens, "sshd to listen")


def _run(*command: str) -> None:
    subprocess.run(command, capture_output=True, check=True, timeout=60)
