"""MPI_Bcast of OpenMPI (Debian `openmpi-bin`, `libopenmpi-dev`), pieces of 1 MiB over TCP, as in the Kascade paper."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from transport_bed.bed import PACKETS, SENDER
from transport_bed.tools.remote_shell import remote_shell
from transport_bed.tools.tool import Tool

if TYPE_CHECKING:
    from transport_bed.run import Run


class OpenMpi(Tool):
    """`programs/mpi_broadcast.c`; it starts its receivers itself, by a remote shell."""

    name = "mpi"
    title = "OpenMPI broadcast, 1 MiB"
    commands = ("mpirun", "mpicc")
    program = "mpi_broadcast"

    def prepare(self, run: Run) -> None:
        """Nothing waits for it."""
        self._shell = remote_shell(run)

    def send(self, run: Run) -> tuple[float, dict[str, Any]]:
        """Copies get their name when they are whole."""
        hosts = run.bed.plan.hosts
        settings = {
            "plm_rsh_agent": str(self._shell),
            "plm_rsh_no_tree_spawn": "1",
            "mpi_yield_when_idle": "1",
            "btl": "tcp,self",
            "btl_tcp_if_include": PACKETS,
            "oob_tcp_if_include": PACKETS,
            "orte_keep_fqdn_hostnames": "1",
        }
        command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", str(len(hosts))]
        command += ["--host", ",".join(f"{run.bed.packet_address(host)}:1" for host in hosts)]
        command += [word for name, value in settings.items() for word in ("--mca", name, value)]
        command += [str(run.programs_folder / "mpi_broadcast"), str(run.source), str(run.folder)]
        named = ["unshare", "--uts", "sh", "-c", 'hostname "$0"; exec "$@"', f"h{run.bed.packet_address(SENDER)}"]
        run.await_outputs(run.start_sender("mpi", [*named, *command]))
        return time.monotonic(), {}
