"""A MapReduce job that nobody has changed finds its file on its nodes: real HDFS, two NodeManagers, a real agent."""

from __future__ import annotations

import getpass
import hashlib
import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.integration.test_java_client import BUILD_SECONDS, jar, maven  # noqa: F401 - one is the fixture
from tests.support.hadoop_cluster import SOURCES, Cluster, agent, cluster
from tests.support.spark_cluster import BLAST

pytestmark = [pytest.mark.java, pytest.mark.test_all, pytest.mark.timeout(BUILD_SECONDS + 600)]

SIZE = 8 << 20
TASKS = 2
DONE, WRONG_USE, PARTLY = 0, 2, 3


@dataclass(frozen=True)
class World:
    """A cluster, an agent beside its NodeManagers, and the folder where it puts what comes."""

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
        """What the tasks of a job have found, and how much was read from HDFS meanwhile."""
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


def test_what_was_pushed_is_read_on_the_nodes_and_not_from_hdfs(world: World) -> None:
    pushed = world.blast("push", "--json", "/brought")
    assert pushed.returncode == DONE, pushed.stderr
    told = json.loads(pushed.stdout)
    # Both NodeManagers are on this host, which needs one copy.
    assert (told["bytes"], told["delivered"], told["failed"]) == (SIZE, ["localhost"], {})
    copy = world.copies / told["copy"]
    assert copy.stat().st_size == SIZE

    digests, read = world.digests(told["uri"], "/with-copy")
    assert digests == [content(world, "brought")] * TASKS
    assert read < SIZE
    assert f"{told['uri']} is read from this host's copy" in world.cluster.log()

    removed = world.blast("remove", told["uri"])
    assert removed.returncode == DONE, removed.stderr
    assert copy.stat().st_size == 0


def test_without_a_copy_the_job_reads_the_original(world: World) -> None:
    # An agent that is not there, and nobody else: the URI is good all the same.
    pushed = world.blast("push", "--to", "localhost:1", "/left")
    assert pushed.returncode not in {DONE, WRONG_USE} and "localhost does not have" in pushed.stderr
    digests, read = world.digests(pushed.stdout.strip(), "/without-copy")
    assert digests == [content(world, "left")] * TASKS
    assert read >= SIZE
    assert f"{pushed.stdout.strip()} is read from hdfs:" in world.cluster.log()


def test_what_is_not_for_everybody_stays_where_it_is(world: World) -> None:
    world.files("-cp", "/lines", "/private")
    world.files("-chmod", "600", "/private")
    before = sorted(world.copies.iterdir())
    pushed = world.blast("push", "/lines", "/private")
    assert pushed.returncode == WRONG_USE and "/private is not for everybody to read" in pushed.stderr
    assert pushed.stdout == "" and sorted(world.copies.iterdir()) == before


def test_who_does_not_get_it_is_named(world: World) -> None:
    agents = f"localhost:{world.settings['blast.agent.port']},nowhere=localhost:1"
    pushed = world.blast("push", "--to", agents, "/lines")
    assert pushed.returncode == PARTLY
    assert "nowhere does not have blast://hdfs@" in pushed.stderr and "localhost does not have" not in pushed.stderr
