"""The programs that Blast is compared with, and floors, which are lower bounds on the time of any program.

udpcast, uftp, TakTuk, OpenMPI, ClusterShell and libtorrent are Debian packages (requirements/debian-benchmarks.txt);
`programs/` has naive TCP, the floors, a broadcast for MPI, and an unencrypted remote shell for tools that start their
own receivers.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
import time
from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from benchmarks.transfers.bed.bed import PACKETS, SENDER
from benchmarks.transfers.bed.failures import RunFailedError
from benchmarks.transfers.bed.program import Program, await_exits, await_received
from benchmarks.transfers.bed.programs import HERE
from benchmarks.transfers.bed.tools.tool import Sent, Tool, derive

if TYPE_CHECKING:
    from benchmarks.transfers.bed.run import Run

_NAIVE_PORT = "7100"
_BARE = "/usr/local/bin:/usr/bin:/bin"
_PLACES = f"{sysconfig.get_path('scripts')}:{os.environ.get('PATH', '')}"
# Debian's binding of libtorrent is for Debian's Python.
_PEER = ("/usr/bin/python3", str(HERE / "torrent_peer.py"))


class Floor(Tool):
    """N processes that only write pieces of 64,064 bytes from a buffer in the cache."""

    name = "floor"
    title = "floor: N processes only write"
    programs: ClassVar[tuple[str, ...]] = ("floor",)
    carries = False

    def prepare(self, run: Run) -> None:
        """Start them; they wait for a line."""
        program = str(run.programs_folder / "floor")
        self._writers = run.start_receivers(self.name, [program, str(run.size)])

    def send(self, run: Run) -> Sent:
        """Let them go."""
        for writer in self._writers:
            writer.write_line("go")
        await_exits(self._writers, run.deadline)
        return time.monotonic(), {}


class NaiveTcp(Tool):
    """One TCP connection for each receiver, by sendfile."""

    name = "naive"
    title = "naive TCP, sendfile to each"
    programs: ClassVar[tuple[str, ...]] = ("naive_tcp",)
    receives = "naive_tcp"
    """The program that receives."""

    def prepare(self, run: Run) -> None:
        """Let the receivers listen."""
        command = [str(run.programs_folder / self.receives), "receive", _NAIVE_PORT]
        self.receivers = run.start_receivers(self.name, command)

    def send(self, run: Run) -> Sent:
        """Wait for the copies, which are named when complete."""
        sender = self.start_sender(run)
        ended = run.await_outputs(sender)
        await_exits([sender], run.deadline)
        return ended, {}

    def start_sender(self, run: Run) -> Program:
        """Start the sender, which connects to all receivers."""
        addresses = [run.bed.packet_address(receiver) for receiver in run.receivers]
        program = run.programs_folder / "naive_tcp"
        return run.start_sender(self.name, [program, "send", run.source, _NAIVE_PORT, *addresses])


class VerifyingTcp(NaiveTcp):
    """Naive TCP whose receivers compute the BLAKE3 digest of the data."""

    name = "verifying"
    title = "naive TCP that verifies"
    programs = ("naive_tcp", "verifying")
    receives = "verifying"

    def send(self, run: Run) -> Sent:
        """Wait for the `received` of each receiver."""
        sender = self.start_sender(run)
        began, ended = await_received(self.receivers, run.deadline)
        await_exits([sender], run.deadline)
        return ended, {"since_first_byte": ended - began}


class VerifyingFloor(Floor):
    """N processes that digest and write pieces of 64,064 bytes from the cache, and one that digests."""

    name = "verifying_floor"
    title = "floor: N processes digest and write, one more digests"
    programs = ("verifying",)

    def prepare(self, run: Run) -> None:
        """Start them; they wait for a line."""
        program, size = str(run.programs_folder / "verifying"), str(run.size)
        digesting = run.start_sender(self.name, [program, "digest", size])
        self._writers = [*run.start_receivers(self.name, [program, "floor", size]), digesting]
        digesting.await_line("ready", run.deadline)

    def send(self, run: Run) -> Sent:
        """Let them go."""
        finished, _ = super().send(run)
        began, ended = await_received(self._writers, run.deadline)
        return finished, {"since_first_byte": ended - began}


_UDPCAST = ("--interface", PACKETS, "--nokbd", "--no-progress")


def _udp_sender(run: Run, rate_mbps: float | None = None) -> list[str | Path]:
    many = ["--rexmit-hello-interval", "100", "--min-receivers", str(len(run.receivers))]
    limit = [] if rate_mbps is None else ["--max-bitrate", f"{rate_mbps:g}m"]
    return ["udp-sender", "--file", run.source, "--full-duplex", *_UDPCAST, *many, *limit]


class Udpcast(Tool):
    """udpcast in full duplex, with feedback: its fastest mode without loss. `rate_mbps` limits its rate."""

    name = "udpcast"
    title = "udpcast, full duplex"
    commands = ("udp-sender", "udp-receiver")
    rate_mbps: float | None = None

    def prepare(self, run: Run) -> None:
        """Start the receivers, and give them time to send their one request: they do not report that they are ready."""
        for receiver in run.receivers:
            run.start(receiver, self.name, ["udp-receiver", *_UDPCAST, "--file", str(run.output(receiver))])
        self._receivers = list(run.programs)
        time.sleep(0.5)

    def send(self, run: Run) -> Sent:
        """Wait for the end of the receivers."""
        run.start_sender(self.name, _udp_sender(run, self.rate_mbps))
        await_exits(self._receivers, run.deadline)
        return time.monotonic(), {}


class Uftp(Tool):
    """uftp without congestion control, at 0.95 of the rate of the links, or as fast as it can.

    It counts its payload: at a higher rate the queue of the shaper overflows. `rate_mbps` limits its rate.
    """

    name = "uftp"
    title = "uftp, no congestion control"
    commands = ("uftp", "uftpd")
    rate_mbps: float | None = None

    def prepare(self, run: Run) -> None:
        """Start the daemons, and give them time to join the announcement group: they do not report that they have."""
        for receiver in run.receivers:
            command = ["uftpd", "-d", "-t", "-I", PACKETS, "-B", "16000000", "-U", f"0x{receiver:08x}"]
            command += ["-D", str(run.directory(receiver)), "-L", str(run.folder / f"uftpd-{receiver}.log")]
            run.start(receiver, "uftpd", command)
        time.sleep(1.0)

    def send(self, run: Run) -> Sent:
        """Wait for the copies, which are named when complete (-t)."""
        rate = self.rate_mbps or run.bed.plan.shape.rate_mbps
        command = ["uftp", "-I", PACKETS, "-R", "-1" if rate is None else f"{rate * 950:.0f}"]
        command += ["-B", "4000000", "-r", "0.05:0.01:1", "-C", "none", str(run.source)]
        run.await_outputs(run.start_sender(self.name, command))
        return time.monotonic(), {}


class BitTorrent(Tool):
    """libtorrent over TCP: the sender seeds to all receivers, and each receiver connects to those before it."""

    name = "libtorrent"
    title = "libtorrent, TCP"
    commands = (_PEER[0],)

    @property
    def missing(self) -> list[str]:
        """The binding."""
        found = subprocess.run([_PEER[0], "-c", "import libtorrent"], capture_output=True, check=False)
        return ["python3-libtorrent"] if found.returncode else []

    def prepare(self, run: Run) -> None:
        """Make the torrent, once for a file, and start the receivers."""
        self._torrent = run.source.with_suffix(".torrent")
        if not self._torrent.exists():
            made = subprocess.run([*_PEER, "make", run.source, self._torrent], capture_output=True, check=False)
            if made.returncode:
                raise RunFailedError(f"no torrent: {made.stderr.decode().strip()}")
        address = run.bed.packet_address
        self._receivers = []
        for receiver in run.receivers:
            others = [address(other) for other in run.receivers if other < receiver]
            words = [str(self._torrent), str(run.directory(receiver)), address(receiver), *others]
            self._receivers.append(run.start(receiver, self.name, [*_PEER, "receive", *words]))
            self._receivers[-1].await_line("ready", run.deadline)

    def send(self, run: Run) -> Sent:
        """Wait until each receiver has checked its last piece."""
        addresses = [run.bed.packet_address(host) for host in run.bed.plan.hosts]
        run.start_sender(self.name, [*_PEER, "seed", str(self._torrent), str(run.source.parent), *addresses])
        return max(one.await_line("complete", run.deadline) for one in self._receivers), {}


class Served(Tool):
    """A tool whose one command starts everything on the other hosts by `programs/rsh.c`, a remote shell.

    `order` is the order of the receivers in the command; the natural one if it is empty.
    """

    programs: ClassVar[tuple[str, ...]] = ("rsh",)

    order: Sequence[int] = ()

    def prepare(self, run: Run) -> None:
        """Serve remote shells, each in the folder of its receiver, on hosts with names of their own."""
        temporary = run.folder / "temporary"
        temporary.mkdir()
        environment = {"PATH": _BARE, "TMPDIR": str(temporary)}
        servers = []
        for receiver in run.receivers:
            command = [*_named(run, receiver), str(_shell(run)), "serve", str(run.directory(receiver))]
            servers.append(run.start(receiver, "rsh", command, environment))
        for server in servers:
            server.await_line("ready", run.deadline)

    def ordered(self, run: Run) -> Sequence[int]:
        """Return the receivers in the order of the command."""
        return self.order or run.receivers

    def addresses(self, run: Run) -> list[str]:
        """Return their addresses in that order."""
        return [run.bed.packet_address(receiver) for receiver in self.ordered(run)]


def _shell(run: Run) -> Path:
    return run.programs_folder / "rsh"


def _named(run: Run, host: int) -> list[str]:
    """Return a prefix that runs a command with a separate host name, by which OpenMPI distinguishes hosts."""
    return ["unshare", "--uts", "sh", "-c", 'hostname "$0"; exec "$@"', f"h{run.bed.packet_address(host)}"]


def as_ssh(run: Run) -> dict[str, str]:
    """Return the environment of a command that calls `ssh`: the remote shell has that name on its path."""
    folder = run.folder / "as-ssh"
    folder.mkdir()
    (folder / "ssh").symlink_to(_shell(run))
    return {"PATH": f"{folder}:{_BARE}"}


class OpenMpi(Served):
    """MPI_Bcast of OpenMPI, pieces of 1 MiB over TCP, along a pipeline.

    The paper's OpenMPI 1.4.5 chose this by default (`coll_tuned_decision_fixed.c`). By default the root of 4.1 sends
    about one copy to each receiver, which is ten times as slow on ten shaped links.
    """

    name = "mpi"
    title = "OpenMPI broadcast, 1 MiB"
    commands = ("mpirun", "mpicc")
    programs = ("rsh", "mpi_broadcast")

    def send(self, run: Run) -> Sent:
        """Wait for the copies, which are named when complete."""
        hosts = [run.bed.packet_address(SENDER), *self.addresses(run)]
        settings = {
            "plm_rsh_agent": str(_shell(run)),
            "plm_rsh_no_tree_spawn": "1",
            "mpi_yield_when_idle": "1",
            "btl": "tcp,self",
            "btl_tcp_if_include": PACKETS,
            "oob_tcp_if_include": PACKETS,
            "orte_keep_fqdn_hostnames": "1",
            "coll_tuned_use_dynamic_rules": "1",
            "coll_tuned_bcast_algorithm": "pipeline",
            "coll_tuned_bcast_algorithm_segmentsize": "65536",
        }
        command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", str(len(hosts))]
        command += ["--host", ",".join(f"{host}:1" for host in hosts), "--leave-session-attached"]
        command += [word for name, value in settings.items() for word in ("--mca", name, value)]
        command += [str(run.programs_folder / "mpi_broadcast"), str(run.source)]
        command += [str(run.directory(receiver)) for receiver in self.ordered(run)]
        run.await_outputs(run.start_sender(self.name, [*_named(run, SENDER), *command]))
        return time.monotonic(), {}


class TakTuk(Served):
    """TakTuk, which sends a file along a tree of its agents over the remote shells that started them."""

    commands = ("taktuk",)
    arity: int

    def send(self, run: Run) -> Sent:
        """Wait for its end."""
        # A name without folder: every agent runs in the folder of its receiver.
        put = ["broadcast", "put", "[", str(run.source), "]", "[", run.source.name, "]", ";", "quit"]
        tree = below(self.addresses(run), self.arity)
        sender = run.start_sender("taktuk", ["taktuk", "-c", _shell(run), *tree, *put])
        await_exits([sender], run.deadline)
        return time.monotonic(), {}


TakTukChain = derive(TakTuk, "taktuk-chain", "TakTuk, chain", arity=1)
TakTukTree = derive(TakTuk, "taktuk-tree", "TakTuk, binary tree", arity=2)


def below(addresses: Sequence[str], arity: int) -> list[str]:
    """Return the arguments that place these hosts below the one that reads them, in `arity` subtrees."""
    words = []
    for branch in range(arity):
        if mine := addresses[branch::arity]:
            words += ["-m", mine[0], *(["-[", *rest, "-]"] if (rest := below(mine[1:], arity)) else [])]
    return words


class Clustered(Served):
    """A tool that starts nothing on other hosts: `clush` starts its receivers while the sender waits for them."""

    @property
    def missing(self) -> list[str]:
        """The starter, too."""
        return [*super().missing, *([] if shutil.which("clush", path=_PLACES) else ["clush"])]

    @abstractmethod
    def at_receivers(self, run: Run) -> str:
        """Return the line for the shell of a receiver."""

    @abstractmethod
    def at_sender(self, run: Run) -> list[str | Path]:
        """Return the command of the sender."""

    def start(self, run: Run) -> tuple[Program, Program]:
        """Return the sender, and the starter, which ends with the last receiver."""
        addresses = self.addresses(run)
        # The fan-out of clush limits the number of concurrent commands, and all receivers must run concurrently.
        command = [str(shutil.which("clush", path=_PLACES)), "-n", "-S", "-f", str(len(addresses))]
        command += ["-w", ",".join(addresses), self.at_receivers(run)]
        starter = run.start(SENDER, "clush", command, as_ssh(run))
        return run.start_sender(self.name, self.at_sender(run)), starter


class UdpcastByClush(Clustered):
    """udpcast in full duplex, with feedback."""

    name = Udpcast.name
    title = Udpcast.title
    commands = Udpcast.commands

    def at_receivers(self, run: Run) -> str:
        """Wait for a sender."""
        return f"udp-receiver --file {run.source.name} {' '.join(_UDPCAST)}"

    def at_sender(self, run: Run) -> list[str | Path]:
        """Announce until all have answered."""
        return _udp_sender(run)

    def send(self, run: Run) -> Sent:
        """Wait for the end of all."""
        await_exits(self.start(run), run.deadline)
        return time.monotonic(), {}


class NaiveByClush(Clustered):
    """One TCP connection for each receiver, when all have been made."""

    name = NaiveTcp.name
    title = NaiveTcp.title
    programs = ("rsh", "naive_tcp")

    def at_receivers(self, run: Run) -> str:
        """Listen."""
        return f"{run.programs_folder / 'naive_tcp'} receive {_NAIVE_PORT} {run.source.name}"

    def at_sender(self, run: Run) -> list[str | Path]:
        """Try until all listen."""
        return [run.programs_folder / "naive_tcp", "send", run.source, _NAIVE_PORT, *self.addresses(run)]

    def send(self, run: Run) -> Sent:
        """Wait for the copies, which are named when complete."""
        sender, _ = self.start(run)
        return run.await_outputs(sender), {}
