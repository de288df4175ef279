"""An unmodified MapReduce job finds its file on its nodes: real HDFS, two NodeManagers, a real agent."""

from __future__ import annotations

import getpass
import hashlib
import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.integration.frameworks.test_java_client import (  # noqa: F401 - one is the fixture
    BUILD_SECONDS,
    HADOOP,
    SHORT_LIVED,
    SOURCES,
    jar,
    maven,
)
from tests.support.transport.spark_cluster import BLAST
from tests.support.transport.transport_hosts import agent_process

pytestmark = [pytest.mark.java, pytest.mark.test_all, pytest.mark.timeout(BUILD_SECONDS + 600)]

SIZE = 8 << 20
TASKS = 2
DONE, WRONG_USE, PARTLY = 0, 2, 3


CLUSTER = SOURCES / "hadoop-cluster" / "target"
CLUSTER_JAR = CLUSTER / "blast-hadoop-cluster-0.1.0.jar"

SLOW = 300.0
"""Seconds in which a command of Hadoop's has certainly ended on this machine."""
FOLDER = "hadoop"
HEAP = "-Xmx512m"
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
    # By default a node is unhealthy once its disk is 90 % full, which is irrelevant to these tests.
    "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": 100,
    "mapreduce.map.java.opts": f"-Xmx200m {SHORT_LIVED}",
    "yarn.app.mapreduce.am.command-opts": f"-Xmx300m {SHORT_LIVED}",
}
"""Hadoop's default intervals suit clusters of thousands, and its default heaps suit dedicated machines."""


@dataclass(frozen=True)
class Cluster:
    """A running cluster and the folder with its configuration."""

    folder: Path
    conf: Path
    process: subprocess.Popen[str]

    def bytes_read(self) -> int:
        """Return the bytes that NameNode, DataNode, ResourceManager and NodeManagers have read from HDFS."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def log(self) -> str:
        """Return the log of the cluster's processes."""
        return (self.folder / "cluster.log").read_text()

    def hadoop(self, program: str, *words: str) -> subprocess.CompletedProcess[str]:
        """Run one of Hadoop's commands, or a job."""
        command = ["java", HEAP, *SHORT_LIVED.split(), "-cp", f"{self.conf}:{_class_path()}", program, *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=SLOW, check=False, cwd=self.folder)


@contextmanager
def cluster(folder: Path, settings: Mapping[str, object]) -> Iterator[Cluster]:
    """Run HDFS and two NodeManagers with these settings."""
    conf = folder / "conf"
    conf.mkdir()
    defined = [word for name, value in {**BRISK, **settings}.items() for word in ("-D", f"{name}={value}")]
    java = ["java", HEAP, *SHORT_LIVED.split(), *OPENED, "-cp", _class_path()]
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
    """Run an agent beside both NodeManagers, whose copies all users may read; yield its port."""
    folder.mkdir()
    config = folder.with_suffix(".toml")
    config.write_text(
        f'[agent]\nlisten = "127.0.0.1:0"\ndurable = false\nfile_mode = "0644"\n'
        f'[[folder]]\nname = "{FOLDER}"\npath = "{folder}"\n[access]\nsecret_file = "{secret}"\n'
    )
    with agent_process(config) as running:
        yield running.port


def _class_path() -> str:
    return f"{HADOOP}:{CLUSTER_JAR}:{(CLUSTER / 'classpath').read_text()}"


@dataclass(frozen=True)
class World:
    """A cluster, an agent beside its NodeManagers, and the folder of its received copies."""

    cluster: Cluster
    copies: Path
    settings: dict[str, object]

    def files(self, *words: str) -> str:
        """`hadoop fs`."""
        done = self.cluster.hadoop("org.apache.hadoop.fs.FsShell", *words)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def blast(self, verb: str, *words: str) -> subprocess.CompletedProcess[str]:
        """`hadoop jar blast-hadoop.jar`."""
        return self.cluster.hadoop("org.blast.hadoop.BlastTool", verb, *self._defined(), *words)

    def digests(self, uri: str, output: str) -> tuple[list[str], int]:
        """Run a job; return the digests that its tasks computed, and the bytes read from HDFS meanwhile."""
        before = self.cluster.bytes_read()
        cached = f"mapreduce.job.cache.files={uri}#weights"
        done = self.cluster.hadoop("org.blast.cluster.DigestJob", *self._defined(), "-D", cached, "/lines", output)
        assert done.returncode == 0, done.stderr + self.cluster.log()
        read = self.cluster.bytes_read() - before
        return self.files("-cat", f"{output}/part*").split(), read

    def _defined(self) -> list[str]:
        return [word for name, value in self.settings.items() for word in ("-D", f"{name}={value}")]


@pytest.fixture(scope="module")
def world(jar: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:  # noqa: F811
    maven("package", "-f", str(SOURCES / "hadoop-cluster" / "pom.xml"))
    folder = tmp_path_factory.mktemp("hadoop")
    secret = folder / "secret"
    secret.write_text(os.urandom(32).hex())
    secret.chmod(0o600)
    copies = folder / "copies"
    (folder / "lines").write_text("a task\n" * TASKS)
    for name in ("brought", "left"):
        (folder / name).write_bytes(os.urandom(SIZE))
    with ExitStack() as stack:
        port = stack.enter_context(agent(copies, secret))
        nodes: dict[str, object] = {"blast.folder.path": copies, "blast.agent.user": getpass.getuser()}
        running = stack.enter_context(cluster(folder, nodes))
        sender: dict[str, object] = {
            "blast.command": BLAST,
            "blast.agent.port": port,
            "blast.send.secret-file": secret,
            "blast.send.via": "pipeline",
        }
        made = World(running, copies, sender)
        made.files("-put", *(str(folder / name) for name in ("lines", "brought", "left")), "/")
        yield made


def content(world: World, name: str) -> str:
    return hashlib.sha256((world.cluster.folder / name).read_bytes()).hexdigest()


def test_job_reads_pushed_file_from_local_copy_not_hdfs(world: World) -> None:
    pushed = world.blast("push", "--json", "/brought")
    assert pushed.returncode == DONE, pushed.stderr
    result = json.loads(pushed.stdout)
    # Both NodeManagers are on this host, which needs one copy.
    assert (result["bytes"], result["delivered"], result["failed"]) == (SIZE, ["localhost"], {})
    copy = world.copies / result["copy"]
    assert copy.stat().st_size == SIZE

    digests, read = world.digests(result["uri"], "/with-copy")
    assert digests == [content(world, "brought")] * TASKS
    assert read < SIZE
    assert f"reading {result['uri']} from this host's copy" in world.cluster.log()

    removed = world.blast("remove", result["uri"])
    assert removed.returncode == DONE, removed.stderr
    assert copy.stat().st_size == 0


def test_job_without_copy_reads_original_from_hdfs(world: World) -> None:
    # The only agent is unreachable, but the URI is valid.
    pushed = world.blast("push", "--to", "localhost:1", "/left")
    assert pushed.returncode not in {DONE, WRONG_USE} and "localhost has no copy of" in pushed.stderr
    digests, read = world.digests(pushed.stdout.strip(), "/without-copy")
    assert digests == [content(world, "left")] * TASKS
    assert read >= SIZE
    assert f"reading {pushed.stdout.strip()} from hdfs:" in world.cluster.log()


def test_push_rejects_file_not_readable_by_all_users(world: World) -> None:
    world.files("-cp", "/lines", "/private")
    world.files("-chmod", "600", "/private")
    before = sorted(world.copies.iterdir())
    pushed = world.blast("push", "/lines", "/private")
    assert pushed.returncode == WRONG_USE and "/private is not readable by all users" in pushed.stderr
    assert pushed.stdout == "" and sorted(world.copies.iterdir()) == before
