"""Java: what Thrift generates from the IDL plays an application's dialogue, and the client library has its own tests.

The library's tests start a controller themselves. That of the dialogue is one in memory, unless BLAST_JAVA_TARGET names
another ("HOST:PORT SENDER RECEIVER,RECEIVER"), and the real one of a lab.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
import uuid
import zipfile
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import pytest

from blast_client import Client, MulticastRequest
from mininet_topos.demo.results import Results
from mininet_topos.demo.stage import Stage
from mininet_topos.plan import LabPlan
from tests.support.memory_controller import MemoryController, serving

BUILD_SECONDS = 900
"""The first build fetches Maven's own parts from a network whose speed nobody here decides."""
pytestmark = [pytest.mark.java, pytest.mark.timeout(BUILD_SECONDS + 60)]

PROJECT = Path(__file__).resolve().parents[2]
SOURCES = PROJECT / "clients" / "java"
JAR = SOURCES / "interop" / "target" / "blast-interop-0.1.0.jar"
LIBRARY = SOURCES / "client" / "target" / "blast-client-0.1.0.jar"
PLUGIN = SOURCES / "spark" / "target" / "blast-spark-0.1.0.jar"
HADOOP = SOURCES / "hadoop" / "target" / "blast-hadoop-0.1.0.jar"


SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For a Java that lives for seconds: to make its code faster still takes more than half of the processor's time."""


class Target(NamedTuple):
    """A controller to talk to and hosts that it knows."""

    host: str
    port: str
    sender: str
    receivers: str


@pytest.fixture(scope="session")
def jar() -> Path:
    """Build once, whoever of several test processes comes first."""
    if not (shutil.which("mvn") and shutil.which("thrift")):
        pytest.skip("needs Maven and the Thrift compiler")
    with (SOURCES / "pom.xml").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        inputs = [PROJECT / "thrift" / "blast.thrift", *SOURCES.rglob("pom.xml"), *SOURCES.glob("*/src/**/*.java")]
        if not JAR.exists() or JAR.stat().st_mtime < max(path.stat().st_mtime for path in inputs):
            maven("clean", "package", "-DskipTests")
    return JAR


def maven(*words: str) -> None:
    # Java looks for the home directory in the system's list of users, where HOME may say another.
    options = f"{SHORT_LIVED} {os.environ.get('MAVEN_OPTS', '')} -Duser.home={Path.home()}"
    done = subprocess.run(
        ["mvn", "-q", "-B", *words], cwd=SOURCES, capture_output=True, text=True, timeout=BUILD_SECONDS, check=False,
        env={**os.environ, "MAVEN_OPTS": options, "BLAST_PYTHON": sys.executable},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def target():
    """The controller that BLAST_JAVA_TARGET names, else one in memory."""
    named = os.environ.get("BLAST_JAVA_TARGET")
    if named:
        address, sender, receivers = named.split()
        host, _, port = address.rpartition(":")
        yield Target(host, port, sender, receivers)
        return
    with serving(MemoryController()) as (_, host, port):
        yield Target(host, str(port), "h11", "h21,h31")


def play(jar: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["java", "-jar", str(jar), *arguments], capture_output=True, text=True, timeout=60, check=False
    )


@pytest.fixture(scope="module")
def lab_target():
    """The controller of a lab, with all its devices."""
    # Mininet is not everywhere where tests are collected.
    from mininet_topos.lab import Lab

    with Lab(LabPlan(racks=3, hosts_per_rack=1, splitters={2: 1})) as lab, Client(lab.thrift) as client:
        Stage(lab, client, Results("")).wait_devices()
        host, _, port = lab.thrift.rpartition(":")
        yield Target(host, port, "r1h1", "r2h1,r3h1")


@pytest.mark.parametrize("protocol", ["binary", "compact"])
def test_the_whole_dialogue_in_java(jar, target, protocol):
    check_dialogue(jar, target, protocol)


@pytest.mark.lab
@pytest.mark.parametrize("protocol", ["binary", "compact"])
def test_the_whole_dialogue_in_java_with_the_controller_of_a_lab(jar, lab_target, protocol):
    check_dialogue(jar, lab_target, protocol)


def check_dialogue(jar, target, protocol):
    key = f"java-{uuid.uuid4().hex[:12]}"
    run = play(jar, target.host, target.port, key, target.sender, target.receivers, "300000000", protocol)
    assert run.returncode == 0, run.stdout + run.stderr
    lines = [json.loads(line) for line in run.stdout.splitlines()]
    calls = ["version", "submit", "submit again", "awaitEvent", "finish", "status", "submit", "status"]
    assert [line["call"] for line in lines] == calls
    version, submitted, again, granted, _finished, status, rejected, unknown = lines
    assert version["answer"]["protocol"] == 1
    assert submitted["answer"]["key"] == again["answer"]["key"] == key
    assert granted["answer"]["kind"] == 1
    assert granted["answer"]["grant"]["groupAddress"].startswith("239.")
    assert sorted(granted["answer"]["grant"]["receivers"]) == sorted(target.receivers.split(","))
    assert status["answer"]["parts"][0]["state"] == 4
    assert (rejected["exception"], rejected["content"]["code"]) == ("Rejected", "unknown_host")
    assert (unknown["exception"], unknown["content"]["key"]) == ("UnknownRequest", f"{key}-unknown")


def test_nobody_there_in_java(jar):
    run = play(jar, "127.0.0.1", "1", "k", "h11", "h21", "1")
    assert run.returncode != 0 and "refused" in run.stderr


def test_wrong_use_in_java(jar):
    run = play(jar, "127.0.0.1")
    assert run.returncode == 2 and run.stderr.startswith("arguments: HOST PORT KEY")


# ----------------------------------------------------------------------------------------------- the client library


def test_the_librarys_own_tests(jar):
    check_own_tests(LIBRARY, 80)


def test_the_library_brings_no_class_that_others_bring_too(jar):
    classes = packed_classes(LIBRARY)
    assert "org/blast/client/BlastClient.class" in classes
    assert [name for name in classes if not name.startswith("org/blast/")] == []
    assert LIBRARY.stat().st_size < 2_000_000


def check_own_tests(packed: Path, at_least: int) -> None:
    # Only that: everything is built.
    maven("surefire:test", "-pl", packed.parents[1].name, f"-DargLine={SHORT_LIVED}")
    reports = list((packed.parent / "surefire-reports").glob("TEST-*.xml"))
    counts = [ElementTree.parse(report).getroot().attrib for report in reports]
    assert sum(int(count["tests"]) for count in counts) > at_least
    assert all(count["skipped"] == "0" for count in counts)


def packed_classes(packed: Path) -> list[str]:
    with zipfile.ZipFile(packed) as archive:
        return [name for name in archive.namelist() if name.endswith(".class")]


def test_the_packed_library_works_and_waits_without_threads(jar):
    request = MulticastRequest("k", "h11", ["h21"], 10**9)
    with serving(MemoryController()) as (_, host, port), Client(f"{host}:{port}") as client:
        client.submit(request)
        assert client.await_event("k").sequence == 1
        classes = f"{LIBRARY}:{LIBRARY.parent / 'test-classes'}"
        run = subprocess.run(
            ["java", "-cp", classes, "org.blast.client.Bench", f"{host}:{port}", "k", "50", "500"],
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
    assert run.returncode == 0, run.stdout + run.stderr
    figures = json.loads(run.stdout)
    assert figures["waits"] == 500
    assert figures["threads_with_waits"] < figures["threads_before"] + 20


# ------------------------------------------------------------------------------------------------- Spark's plugin


@pytest.mark.test_all
def test_the_plugins_own_tests(jar):
    check_own_tests(PLUGIN, 250)


def test_the_plugin_brings_no_class_that_spark_brings_too(jar):
    classes = packed_classes(PLUGIN)
    assert "org/blast/spark/BlastPlugin.class" in classes
    assert [name for name in classes if not name.startswith("org/blast/")] == []
    assert PLUGIN.stat().st_size < 1_000_000


# --------------------------------------------------------------------------------------------------------- Hadoop


@pytest.mark.test_all
def test_hadoops_own_tests(jar):
    check_own_tests(HADOOP, 95)


def test_what_is_for_hadoop_brings_no_class_that_hadoop_brings_too(jar):
    classes = packed_classes(HADOOP)
    assert "org/blast/hadoop/BlastFileSystem.class" in classes
    assert [name for name in classes if not name.startswith("org/blast/")] == []
    assert HADOOP.stat().st_size < 500_000
