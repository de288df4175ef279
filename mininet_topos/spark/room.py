"""A lab with everything that a Spark cluster with the plugin needs: agents, a way to the controller, the cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from blast_client import Client
from mininet_topos.demo.latency import KEEP_WARM_MS
from mininet_topos.demo.results import Results
from mininet_topos.demo.stage import Stage
from mininet_topos.lab import registry
from mininet_topos.lab.agents import BLAST, AgentPlaces, Agents, write_new_secret
from mininet_topos.lab.lab import Lab
from mininet_topos.lab.relay import ADDRESS, relay
from mininet_topos.spark.cluster import SparkCluster
from mininet_topos.spark.installation import SparkInstallation
from mininet_topos.topology.plan import LabPlan

AGENT_FOLDER = "spark"


@dataclass(frozen=True)
class SparkRoom:
    """The running lab, cluster and agents."""

    lab: Lab
    agents: Agents
    cluster: SparkCluster

    def wait_devices(self) -> None:
        """Wait until the controller has all its switches, after it has been started."""
        with Client(self.lab.thrift) as client:
            Stage(self.lab, client, Results(self.lab.plan.summary)).wait_devices()

    def plugin_conf(self, jar: Path) -> dict[str, str]:
        """Return the settings of a job with the plugin."""
        host, port = ADDRESS
        return {
            "spark.plugins": "org.blast.spark.BlastPlugin",
            "spark.driver.extraClassPath": str(jar),
            "spark.executor.extraClassPath": str(jar),
            "spark.blast.controller": f"{host}:{port}",
            "spark.blast.secretFile": str(self.agents.places.secret),
            "spark.blast.command": BLAST,
            "spark.blast.folder": AGENT_FOLDER,
            "spark.blast.linkRate": f"{self.lab.plan.access_rate_mbps}m",
        }


@contextmanager
def spark_room(plan: LabPlan, spark: SparkInstallation, jobs: int = 1) -> Iterator[SparkRoom]:
    """Run a driver, executors and agents on the hosts of the plan, and yield them.

    The driver is on the first host, an executor on each other host for each of `jobs` concurrent jobs, and an agent on
    all. Raises `LabError`.
    """
    driver, *executors = [host.name for rack in plan.rack_plans for host in rack.hosts]
    with Lab(plan, keep_warm_ms=KEEP_WARM_MS) as lab:
        memory = registry.memory(lab.id)
        memory.mkdir(mode=0o700)
        secret = write_new_secret(lab.directory / "agents.secret")
        places = AgentPlaces(AGENT_FOLDER, memory / "agents", lab.directory, secret, durable=False)
        with (
            Agents(lab, [driver, *executors], places) as agents,
            # In a machine room there is a management network.
            relay(lab, [driver]),
            SparkCluster(lab, driver, executors, spark, agents, jobs=jobs) as cluster,
        ):
            room = SparkRoom(lab, agents, cluster)
            room.wait_devices()
            yield room
