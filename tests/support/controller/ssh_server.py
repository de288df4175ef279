"""A real sshd on loopback, at a high port, with keys of its own: one address is one host, and hosts may have faults."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from contextlib import suppress
from pathlib import Path

from tests.support.waiting import eventually

SSHD = shutil.which("sshd") or "/usr/sbin/sshd"


def lacks() -> str | None:
    """Return the reason why no sshd can run here, or None."""
    if not Path(SSHD).exists() or shutil.which("ssh") is None:
        return "needs OpenSSH: scripts/setup test"
    if os.geteuid() != 0:
        return "needs root, for sshd's separation of privileges"
    return None


class Sshd:
    """An sshd in `folder`, listening on `hosts`; `lines` extend its configuration, and the folder has its keys."""

    def __init__(self, folder: Path, hosts: list[str], *lines: str) -> None:
        self.folder, self.hosts = folder, hosts
        self.port = free_port()
        self.log = folder / "sshd.log"
        for name in ("host_key", "other_host_key", "user_key", "unauthorized_key"):
            run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name))
        (folder / "authorized_keys").write_text((folder / "user_key.pub").read_text())
        key = " ".join((folder / "host_key.pub").read_text().split()[:2])
        (folder / "known_hosts").write_text("".join(f"[{host}]:{self.port} {key}\n" for host in hosts))
        common = [
            *(f"ListenAddress {host}" for host in hosts),
            f"Port {self.port}",
            f"HostKey {folder}/host_key",
            f"AuthorizedKeysFile {folder}/authorized_keys",
            "PidFile none",
            "UsePAM no",
            "StrictModes no",
            "KbdInteractiveAuthentication no",
            "MaxStartups 100",
            "LogLevel VERBOSE",
        ]
        (folder / "sshd_config").write_text("\n".join([*common, *lines]) + "\n")

    def start(self, *prefix: str) -> subprocess.Popen[bytes]:
        """Start it, by a command in front of its own, and wait until it listens."""
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        command = [*prefix, SSHD, "-D", "-f", str(self.folder / "sshd_config"), "-E", str(self.log)]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        await_port(self.hosts[0], self.port, process)
        return process


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


def run(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
