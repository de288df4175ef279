"""MPI_Bcast of OpenMPI (Debian `openmpi-bin`, `libopenmpi-dev`), pieces of 1 MiB over TCP, along a pipeline.

That is what the paper's OpenMPI 1.4.5 chose for pieces of this size by itself (`coll_tuned_decision_fixed.c`). Left to
choose, 4.1 has the root send about as many copies as there are receivers: ten times as slow on ten shaped links.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from transport_bed.bed import PACKETS, SENDER
from transport_bed.tools.served import Served, named

if TYPE_CHECKING:
    from transport_bed.run import Run


class OpenMpi(Served):
    """`programs/mpi_broadcast.c`; mpirun starts a daemon on every host, and that the receiver."""

    name = "mpi"
    title = "OpenMPI broadcast, 1 MiB"
    commands = ("mpirun", "mpicc")
    programs = ("rsh", "mpi_broadcast")

    def send(self, run: Run) -> tuple[float, dict[str, Any]]:
        """Copies get their name when they are whole."""
        hosts = [run.bed.packet_address(SENDER), *self.addresses(run)]
        settings = {
            "plm_rsh_agent": str(self.shell(run)),
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
        folders = [str(run.directory(receiver)) for receiver in self.ordered(run)]
        command += [str(run.programs_folder / "mpi_broadcast"), str(run.source), *folders]
        run.await_outputs(run.start_sender("mpi", [*named(run, SENDER), *command]))
        return time.monotonic(), {}
