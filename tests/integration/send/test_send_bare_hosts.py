"""`blast send --ssh` to hosts that have nothing but sshd and Python: Figure 2 of the Kascade paper, word for word.

Each host is a mount namespace with its own /home, /opt and /dev; its /dev/sda2 is a loop device.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from io import BytesIO
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.support.controller import ssh_server
from tests.support.controller.ssh_server import SSHD, await_port, free_port

DEVICES = {"null": (1, 3), "zero": (1, 5), "full": (1, 7), "random": (1, 8), "urandom": (1, 9), "tty": (5, 0)}
SENDER = "n1"
_OWN = ("home", "opt", "dev")


def lacks() -> str | None:
    """Return why such hosts cannot run on this machine, or None."""
    if (reason := ssh_server.lacks()) is not None:
        return reason
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
        """Run all hosts; remove everything of them in the end, except the folder."""
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
        """Return where a path of a host is on this machine."""
        return self.folder / host / path.lstrip("/")

    def disk(self, host: str) -> Path:
        """Return the file behind /dev/sda2 of a host."""
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
        """Return the shell commands that turn a mount namespace into this host."""
        binds = [(self.folder / "hosts", "/etc/hosts"), (self.folder / "ssh_config", "/etc/ssh/ssh_config")]
        # The sender may live in /home.
        binds += [(self.path(name, own), f"/{own}") for own in (_OWN if name != SENDER else ("dev",))]
        return "set -e; " + "; ".join(f"mount --bind {source} {target}" for source, target in binds)


def _python() -> Path:
    """Return the interpreter outside of any virtual environment."""
    return Path(sys.base_prefix, "bin", f"python{sys.version_info.major}.{sys.version_info.minor}").resolve()


pytestmark = pytest.mark.skipif(lacks() is not None, reason=lacks() or "")

NAMES = ["n2", "n3", "n4"]
DISK = 1 << 20


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BareHosts]:
    with BareHosts(tmp_path_factory.mktemp("bare"), NAMES, DISK).running() as running:
        yield running


@contextmanager
def system_log(hosts: BareHosts, name: str) -> Iterator[socket.socket]:
    """Yield a socket that listens on a host's /dev/log."""
    folder = os.open(hosts.path(name, "dev"), os.O_RDONLY)
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as log:
            # By way of the open folder, whose own path may be longer than an address can be.
            log.bind(f"/proc/self/fd/{folder}/log")
            log.setblocking(False)
            yield log
    finally:
        hosts.path(name, "dev/log").unlink()
        os.close(folder)


def archive(folder: Path) -> bytes:
    """Write myfile.tgz with one file, and return the content of that file."""
    content = os.urandom(300_000)
    with tarfile.open(folder / "myfile.tgz", "w:gz") as tar:
        entry = tarfile.TarInfo("data/content")
        entry.size = len(content)
        tar.addfile(entry, BytesIO(content))
    return content


def run(hosts: BareHosts, line: str, folder: Path, complete: str = "3 of 3") -> CompletedProcess[str]:
    """Run a command line and check the reported number of complete receivers."""
    done = hosts.run(line, folder)
    assert done.stdout.startswith(f"{complete} receivers have it, verified"), done
    return done


def test_figure_2_sends_file_to_three_hosts(hosts: BareHosts, tmp_path: Path) -> None:
    archive(tmp_path)
    run(hosts, "blast send myfile.tgz --to n2,n3,n4 --ssh --ssh-folder /home/login", tmp_path)
    for name in NAMES:
        assert hosts.path(name, "/home/login/myfile.tgz").read_bytes() == (tmp_path / "myfile.tgz").read_bytes()


def test_figure_2_unpacks_archive_on_the_fly(hosts: BareHosts, tmp_path: Path) -> None:
    content = archive(tmp_path)
    with system_log(hosts, "n3") as log:
        run(hosts, "blast send myfile.tgz --to n2,n3,n4 --ssh --command 'tar -xzC /opt/'", tmp_path)
        entry = log.recv(4096).decode()
    assert entry.endswith("for user 0, from 127.0.0.1, may run tar -xzC /opt/"), entry
    for name in NAMES:
        assert hosts.path(name, "/opt/data/content").read_bytes() == content


def test_figure_2_clones_partition(hosts: BareHosts, tmp_path: Path) -> None:
    content = os.urandom(DISK // 2) + bytes(DISK // 2)
    hosts.disk("n1").write_bytes(content)
    line = "dd if=/dev/sda2 | gzip | blast send - --to n2,n3,n4 --ssh --command 'gunzip | dd of=/dev/sda2'"
    run(hosts, line, tmp_path)
    for name in NAMES:
        assert disk_of(hosts, name) == content


def disk_of(hosts: BareHosts, name: str) -> bytes:
    """Return the content of /dev/sda2 of a host."""
    assert hosts.path(name, "/dev/sda2").is_block_device()
    return hosts.path(name, "/dev/sda2").read_bytes()


def test_failed_command_is_reported_and_host_lists_are_correct(hosts: BareHosts, tmp_path: Path) -> None:
    """Its first part fails, which the last one does not notice."""
    archive(tmp_path)
    command = "{ cat >/dev/null; [ ! -e /opt/broken ] || ls /no/such/file; } | cat"
    line = f"blast send myfile.tgz --to n[2-4] --ssh --command '{command}' --start-timeout 2min"
    line += " --ok-file ok --failed-file failed"
    hosts.path("n3", "/opt/broken").touch()
    try:
        done = run(hosts, line, tmp_path, "2 of 3")
    finally:
        hosts.path("n3", "/opt/broken").unlink()
    assert done.returncode == 3, done.stderr
    assert (tmp_path / "ok").read_text() == "n2\nn4\n"
    failed = (tmp_path / "failed").read_text()
    assert (
        failed.startswith("n3\t# ")
        and "the command sh failed (exit status 2): ls: " in failed
        and "/no/such/file" in failed
    )


@contextmanager
def without_device(hosts: BareHosts, name: str) -> Iterator[None]:
    """Remove /dev/sda2 from a host for the duration of the block."""
    device, away = hosts.path(name, "/dev/sda2"), hosts.path(name, "/dev/away")
    device.rename(away)
    try:
        yield
    finally:
        away.rename(device)


def test_send_overwrites_device_only_where_usable(hosts: BareHosts, tmp_path: Path) -> None:
    content = os.urandom(DISK // 4)
    (tmp_path / "disk.img").write_bytes(content)
    before = {name: disk_of(hosts, name) for name in NAMES}
    taken = os.open(hosts.path("n4", "/dev/sda2"), os.O_RDONLY | os.O_EXCL)
    try:
        with without_device(hosts, "n3"):
            line = "blast send disk.img --to n[2-4] --ssh --as /dev/sda2 --start-timeout 2min"
            done = run(hosts, line, tmp_path, "1 of 3")
            assert not hosts.path("n3", "/dev/sda2").exists()
    finally:
        os.close(taken)
    assert done.returncode == 3, done.stderr
    assert "n3 does not have it: there is no device /dev/sda2" in done.stderr
    assert "n4 does not have it: /dev/sda2 is in use" in done.stderr and "is undefined" in done.stderr
    assert {name: disk_of(hosts, name) for name in NAMES} == before | {"n2": content + before["n2"][len(content) :]}


def test_send_to_dev_null_keeps_it_a_device(hosts: BareHosts, tmp_path: Path) -> None:
    archive(tmp_path)
    line = "blast send - --to n2,n3,n4 --ssh --as /dev/null --ssh-window 2 --start-timeout 2min <myfile.tgz"
    run(hosts, line, tmp_path)
    for name in NAMES:
        assert hosts.path(name, "/dev/null").is_char_device()
