"""A tool whose one command starts everything else on the other hosts, by a remote shell.

All such tools have the same one: `programs/rsh.c`, over the packet network, which encrypts nothing. On the hosts there
is only its server, and what a bare Debian has.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from transport_bed.tools.tool import Tool

if TYPE_CHECKING:
    from transport_bed.run import Run

_BARE = "/usr/local/bin:/usr/bin:/bin"


class Served(Tool):
    """`order` is that in which the command names the receivers; the natural one where it is empty."""

    programs: ClassVar[tuple[str, ...]] = ("rsh",)

    def __init__(self) -> None:
        self.order: Sequence[int] = ()

    def prepare(self, run: Run) -> None:
        """Remote shells are served, each in the folder of its receiver, on hosts with a host name of their own."""
        temporary = run.folder / "temporary"
        temporary.mkdir()
        environment = {"PATH": _BARE, "TMPDIR": str(temporary)}
        servers = []
        for receiver in run.receivers:
            command: list[str | Path] = [self.shell(run), "serve", run.directory(receiver)]
            servers.append(run.start(receiver, "rsh", [*named(run, receiver), *command], environment))
        for server in servers:
            server.await_line("ready", run.deadline)

    def ordered(self, run: Run) -> Sequence[int]:
        """The receivers as the command names them."""
        return self.order or run.receivers

    def addresses(self, run: Run) -> list[str]:
        """Theirs, in that order."""
        return [run.bed.packet_address(receiver) for receiver in self.ordered(run)]

    def shell(self, run: Run) -> Path:
        """The remote shell's program."""
        return run.programs_folder / "rsh"


def named(run: Run, host: int) -> list[str]:
    """Words before a command that give it a host name of its own, which is how OpenMPI tells hosts apart."""
    name = f"h{run.bed.packet_address(host)}"
    return ["unshare", "--uts", "sh", "-c", 'hostname "$0"; exec "$@"', name]


def as_ssh(run: Run, shell: Path) -> dict[str, str]:
    """The environment of a command that knows no other remote shell than ssh: it is first on its path, by that name."""
    folder = run.folder / "as-ssh"
    folder.mkdir()
    (folder / "ssh").symlink_to(shell)
    return {"PATH": f"{folder}:{_BARE}"}
