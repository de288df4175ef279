"""Hosts that have nothing but an SSH server and Python: addresses of loopback with folders and devices of their own.

Every host is a mount namespace with its own /home, /opt and /dev, in which /dev/sda2 is a loop device; the sender is
one more. All of them know each other by name: so commands with names and paths of other machines run as they are.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.support import ssh_server
from tests.support.ssh_server import SSHD, await_port, free_port

DEVICES = {"null": (1, 3), "zero": (1, 5), "full": (1, 7), "random": (1, 8), "urandom": (1, 9), "tty": (5, 0)}
SENDER = "n1"
_OWN = ("home", "opt", "dev")


def lacks() -> str | None:
    """Why there can be no such hosts here."""
    if (why := ssh_server.lacks()) is not None:
        return why
    missing = [tool for tool in ("unshare", "losetup", "mount", "gzip", "tar", "dd") if shutil.which(tool) is None]
    if missing:
        return f"needs {', '.join(missing)}"
    if subprocess.run(["losetup", "--find"], capture_output=True, check=False).returncode:
        return "needs loop devices"
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode:
        return "needs mount namespaces"
    if _python().is_relative_to("/home") or _python().is_relative_to("/opt"):
        return "needs a Python that is neither in /home nor in /opt, which these hosts have for themselves"
    return None


class BareHosts:
    """Hosts of these names, below `folder`."""

    def __init__(self, folder: Path, names: list[str], device_bytes: int) -> None:
        self.folder, self.names = folder, names
        self._addresses = {name: f"127.0.0.{number}" for number, name in enumerate((SENDER, *names), 101)}
        self._port = free_port()
        self._device_bytes = device_bytes
        self._disks = folder
        for name in ("host_key", "user_key"):
            command = ("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name))
            subprocess.run(command, capture_output=True, check=True, timeout=60)
        (folder / "authorized_keys").write_text((folder / "user_key.pub").read_text())
        (folder / "hosts").write_text("".join(f"{address} {name}\n" for name, address in self._addresses.items()))
        (folder / "ssh_config").write_text(
            f"Host *\nPort {self._port}\nIdentityFile {folder}/user_key\nIdentitiesOnly yes\nUser root\n"
            f"UserKnownHostsFile {folder}/known_hosts\nStrictHostKeyChecking yes\n"
        )
        key = " ".join((folder / "host_key.pub").read_text().split()[:2])
        (folder / "known_hosts").write_text("".join(f"[{name}]:{self._port} {key}\n" for name in names))

    @contextmanager
    def running(self) -> Iterator[BareHosts]:
        """All of them up; everything of theirs goes in the end, but for the folder."""
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        with ExitStack() as stack:
            # In memory: a disk that others keep busy would have us wait for it.
            self._disks = Path(stack.enter_context(tempfile.TemporaryDirectory(dir="/dev/shm")))
            for name in self._addresses:
                stack.enter_context(self._with_devices(name))
            for name in self.names:
                stack.enter_context(self._host(name))
            yield self

    def path(self, host: str, path: str) -> Path:
        """Where a path of a host is for us."""
        return self.folder / host / path.lstrip("/")

    def disk(self, host: str) -> Path:
        """What is behind /dev/sda2 of a host."""
        return self._disks / host

    def run(self, line: str, folder: Path) -> subprocess.CompletedProcess[str]:
        """Run a line of shell at the sender, in this folder."""
        return subprocess.run(
            ["unshare", "--mount", "sh", "-c", f"{self._own(SENDER)}; cd {folder}; {line}"],
            env={**os.environ, "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "BLAST_CONTROLLER": "n1:9"},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    @contextmanager
    def _with_devices(self, name: str) -> Iterator[None]:
        for own in _OWN:
            self.path(name, own).mkdir(parents=True)
        self.path(name, "home/login").mkdir()
        for device, (major, minor) in DEVICES.items():
            os.mknod(self.path(name, f"dev/{device}"), 0o20666, os.makedev(major, minor))
        self.disk(name).write_bytes(bytes(self._device_bytes))
        made = subprocess.run(
            ["losetup", "--find", "--show", str(self.disk(name))], capture_output=True, text=True, check=True
        )
        loop = made.stdout.strip()
        try:
            os.mknod(self.path(name, "dev/sda2"), 0o60600, Path(loop).stat().st_rdev)
            yield
        finally:
            subprocess.run(["losetup", "--detach", loop], check=True)

    @contextmanager
    def _host(self, name: str) -> Iterator[None]:
        folder = self.folder
        (folder / f"{name}.conf").write_text(
            f"ListenAddress {self._addresses[name]}\nPort {self._port}\nHostKey {folder}/host_key\n"
            f"AuthorizedKeysFile {folder}/authorized_keys\nPidFile none\nUsePAM no\nStrictModes no\n"
            f"PermitRootLogin prohibit-password\nSetEnv PATH={_python().parent}:/usr/bin:/bin\n"
        )
        line = f"{self._own(name)}; exec {SSHD} -D -f {folder}/{name}.conf -E {folder}/{name}.log"
        process = subprocess.Popen(["unshare", "--mount", "sh", "-c", line], stdin=subprocess.DEVNULL)
        try:
            await_port(self._addresses[name], self._port, process)
            yield
        finally:
            process.terminate()
            process.wait(30)

    def _own(self, name: str) -> str:
        """What makes a mount namespace this host."""
        binds = [(self.folder / "hosts", "/etc/hosts"), (self.folder / "ssh_config", "/etc/ssh/ssh_config")]
        # The sender may live in /home.
        binds += [(self.path(name, own), f"/{own}") for own in (_OWN if name != SENDER else ("dev",))]
        return "set -e; " + "; ".join(f"mount --bind {source} {target}" for source, target in binds)


def _python() -> Path:
    """Without what a virtual environment has."""
    return Path(sys.base_prefix, "bin", f"python{sys.version_info.major}.{sys.version_info.minor}").resolve()
