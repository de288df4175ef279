"""Optical switches that are reached by SSH: a real sshd on loopback, with a user and keys of its own.

The user `tl1` exists for this sshd only: it sees files of its own in place of /etc/passwd and /etc/shadow.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

from tests.support import ssh_server, tl1
from tests.support.ssh_server import Sshd, run
from tests.support.tl1 import Lab
from tests.support.waiting import eventually_async
from tl1_driver.client import SwitchClient
from tl1_driver.dialects import Dialect

USER, PASSWORD = "tl1", "open sesame;"
SETTLED = 60.0
"""Seconds for an SSH session to be opened; no test is about it."""
_PROGRAM = Path(__file__).with_name("ssh_switch_program.py")
_OWN_USERS = 'mount --bind "$0/passwd" /etc/passwd && mount --bind "$0/shadow" /etc/shadow && exec "$@"'


def lacks() -> str | None:
    """Why no such sshd can be run here."""
    if (why := ssh_server.lacks()) is not None:
        return why
    tried = subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False)
    return "needs mount namespaces" if tried.returncode else None


class SshSwitch(Sshd):
    """An sshd with a user for a switch; its folder has also the file `password`."""

    def __init__(self, folder: Path) -> None:
        (folder / "password").write_text(f"{PASSWORD}\n")
        (folder / "password").chmod(0o600)
        hashed = run("openssl", "passwd", "-6", "-salt", "salt", PASSWORD).strip()
        (folder / "passwd").write_text(
            f"root:x:0:0::/root:/bin/sh\nsshd:x:101:65534::/run/sshd:/bin/false\n{USER}:x:0:0::{folder}:/bin/sh\n"
        )
        (folder / "shadow").write_text(f"root:*:20000::::::\nsshd:*:20000::::::\n{USER}:{hashed}:20000::::::\n")
        super().__init__(
            folder,
            ["127.0.0.1"],
            "PermitRootLogin yes",
            f"AllowUsers {USER}",
            "PasswordAuthentication yes",
            "Subsystem tl1 bridge",
            f"ForceCommand {sys.executable} -I -S {_PROGRAM} {folder}",
        )
        self._process: subprocess.Popen[bytes] | None = None

    @contextlib.contextmanager
    def running(self) -> Iterator[SshSwitch]:
        """Serve; nothing that it has started stays."""
        self.resume()
        try:
            yield self
        finally:
            self.stop()

    def resume(self) -> None:
        """Serve, for the first time or again."""
        self._process = self.start("unshare", "--mount", "sh", "-c", _OWN_USERS, str(self.folder))

    def stop(self) -> None:
        """The server and its sessions; new ones are refused from then on."""
        if (process := self._process) is not None:
            process.terminate()
            process.wait(30)
            self._process = None
        self.kill_sessions()

    def kill_sessions(self) -> None:
        """End every session in the middle of a word, as when a switch crashes."""
        for pid in self.sessions() + self.programs():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def sessions(self) -> list[int]:
        """The processes of this sshd that serve connections."""
        if self._process is None:
            return []
        return [pid for pid in _processes() if _parent(pid) == self._process.pid]

    def programs(self) -> list[int]:
        """What is run for those who have logged in."""
        needle = f"{_PROGRAM}\0{self.folder}\0".encode()
        return [pid for pid in _processes() if needle in _read(Path(f"/proc/{pid}/cmdline"))]

    def at_rest(self) -> bool:
        """Nothing runs for anybody."""
        return not self.programs() and not self.sessions()


@contextlib.asynccontextmanager
async def emulated(server: SshSwitch, way: object, spoken: Dialect, **options) -> AsyncIterator[Lab]:
    """As `tl1.emulated`, with clients that come by SSH; `way` opens what bridges to the emulated switch."""
    async with tl1.emulated(spoken, **options) as lab:
        clients: list[SwitchClient] = []

        class Arriving(SwitchClient):
            async def open(self) -> None:
                """Until the emulated switch knows: sshd lets in before that."""
                before = set(lab.switch._connections)
                await super().open()
                await eventually_async(lambda: lab.switch._connections - before, "the session to reach the switch")

        leads_here = replace(way, command=f"bridge {lab.port}", seconds=SETTLED)

        def client(dialect: Dialect = spoken, **settings) -> SwitchClient:
            settings = {"timeout": 2.0, "way": leads_here, **settings}
            clients.append(Arriving("127.0.0.1", server.port, dialect, **settings))
            return clients[-1]

        try:
            yield replace(lab, client=client)
        finally:
            for made in clients:
                await made.close()


def _processes() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]


def _parent(pid: int) -> int:
    fields = _read(Path(f"/proc/{pid}/stat")).rpartition(b")")[2].split()
    return int(fields[1]) if fields else 0


def _read(path: Path) -> bytes:
    with contextlib.suppress(OSError):
        return path.read_bytes()
    return b""
