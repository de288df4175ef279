"""A small cluster of Hadoop's in a process of its own, and Hadoop's commands as a shell on its hosts has them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.spark_cluster import ROOT, configured_agent

SOURCES = ROOT / "clients" / "java"
JAR = SOURCES / "hadoop" / "target" / "blast-hadoop-0.1.0.jar"
CLUSTER = SOURCES / "hadoop-cluster" / "target"
CLUSTER_JAR = CLUSTER / "blast-hadoop-cluster-0.1.0.jar"

SLOW = 300.0
"""Seconds in which a command of Hadoop's has certainly ended on this machine."""
FOLDER = "hadoop"
HEAP = "-Xmx512m"
SHORT_LIVED = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""These JVMs live for a few seconds: compiling for the long run would take most of that."""
OPENED = ("--add-opens", "java.base/java.lang=ALL-UNNAMED")
"""Without this Hadoop 3.4's servers do not start on Java 17."""
BRISK = {
    "mapreduce.client.completion.pollinterval": 200,
    "mapreduce.client.progressmonitor.pollinterval": 200,
    "yarn.app.mapreduce.am.scheduler.heartbeat.interval-ms": 200,
    "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms": 200,
    # As it ends, a NodeManager waits for logs that it is to remove later.
    "yarn.nodemanager.log.retain-seconds": 1,
    "yarn.nodemanager.vmem-check-enabled": "false",
    # A node whose disk is nine tenths full would be none; how full the tests' machine is matters to nobody.
    "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": 100,
    "mapreduce.map.java.opts": " ".join(["-Xmx200m", *SHORT_LIVED]),
    "yarn.app.mapreduce.am.command-opts": " ".join(["-Xmx300m", *SHORT_LIVED]),
}
"""Hadoop's own pauses are for clusters of thousands, and its heaps for machines that nobody shares."""


@dataclass(frozen=True)
class Cluster:
    """One that runs, and the folder with its configuration."""

    folder: Path
    conf: Path
    process: subprocess.Popen[str]

    def bytes_read(self) -> int:
        """What NameNode, DataNode, ResourceManager and NodeManagers have read from HDFS so far."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def log(self) -> str:
        """What they have said."""
        return (self.folder / "cluster.log").read_text()

    def hadoop(self, program: str, *words: str) -> subprocess.CompletedProcess[str]:
        """Run one of Hadoop's commands, or a job."""
        command = ["java", HEAP, *SHORT_LIVED, "-cp", f"{self.conf}:{_class_path()}", program, *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=SLOW, check=False, cwd=self.folder)


@contextmanager
def cluster(folder: Path, settings: Mapping[str, object]) -> Iterator[Cluster]:
    """HDFS and two NodeManagers, with these settings."""
    conf = folder / "conf"
    conf.mkdir()
    defined = [word for name, value in {**BRISK, **settings}.items() for word in ("-D", f"{name}={value}")]
    java = ["java", HEAP, *SHORT_LIVED, *OPENED, "-cp", _class_path()]
    command = [*java, "org.blast.cluster.Cluster", *defined, str(conf)]
    with (
        (folder / "cluster.log").open("w") as log,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, cwd=folder,
        ) as process,
    ):  # fmt: skip
        assert process.stdout is not None and process.stdin is not None
        try:
            assert process.stdout.readline() == "ready\n", (folder / "cluster.log").read_text()
            yield Cluster(folder, conf, process)
        finally:
            # It ends its containers, which are in sessions of their own.
            process.stdin.close()
            try:
                process.wait(SLOW)
            finally:
                process.kill()


@contextmanager
def agent(folder: Path, secret: Path) -> Iterator[int]:
    """One that is beside both NodeManagers, and whose copies everybody may read: its port."""
    folder.mkdir()
    config = folder.with_suffix(".toml")
    config.write_text(
        f'[agent]\nlisten = "127.0.0.1:0"\ndurable = false\nfile_mode = "0644"\n'
        f'[[folder]]\nname = "{FOLDER}"\npath = "{folder}"\n[access]\nsecret_file = "{secret}"\n'
    )
    with configured_agent(config) as port:
        yield port


def _class_path() -> str:
    return f"{JAR}:{CLUSTER_JAR}:{(CLUSTER / 'classpath').read_text()}"
