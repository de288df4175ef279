"""Java: code that Thrift generates from the IDL plays an application's dialogue, and the libraries are tested.

The client library's tests start a real controller themselves.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import subprocess
import sys
import uuid
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import pytest

from blast_client import Client, MulticastRequest
from tests.support.controller.memory_controller import MemoryController, serving

BUILD_SECONDS = 900
"""The first build downloads Maven's own artifacts over a network of unknown speed."""
pytestmark = [pytest.mark.java, pytest.mark.timeout(BUILD_SECONDS + 60)]

PROJECT = Path(__file__).resolve().parents[3]
SOURCES = PROJECT / "clients" / "java"
JAR = SOURCES / "interop" / "target" / "blast-interop-0.1.0.jar"
LIBRARY = SOURCES / "client" / "target" / "blast-client-0.1.0.jar"
PLUGIN = SOURCES / "spark" / "target" / "blast-spark-0.1.0.jar"
HADOOP = SOURCES / "hadoop" / "target" / "blast-hadoop-0.1.0.jar"


SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For a Java that lives for seconds: to make its code faster still takes more than half of the processor's time."""


@pytest.fixture(scope="session")
def jar() -> Path:
    """Build once for all test processes, and again after a source was changed or removed."""
    built_from = JAR.parent / "built-from"
    with (SOURCES / "pom.xml").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        inputs = [PROJECT / "thrift" / "blast.thrift", SOURCES / "pom.xml"]
        inputs += [*SOURCES.glob("*/pom.xml"), *SOURCES.glob("*/src/**/*.java")]
        digests = "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()} {path}\n" for path in sorted(inputs))
        if not built_from.exists() or built_from.read_text() != digests:
            maven("clean", "package", "-DskipTests")
            built_from.write_text(digests)
    return JAR


def maven(*words: str) -> None:
    # Java takes the home directory from the system's list of users, and HOME may differ.
    options = f"{SHORT_LIVED} {os.environ.get('MAVEN_OPTS', '')} -Duser.home={Path.home()}"
    done = subprocess.run(
        ["mvn", "-q", "-B", *words], cwd=SOURCES, capture_output=True, text=True, timeout=BUILD_SECONDS, check=False,
        env={**os.environ, "MAVEN_OPTS": options, "BLAST_PYTHON": sys.executable},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def play(jar: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["java", "-jar", str(jar), *arguments], capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize("protocol", ["binary", "compact"])
def test_generated_java_client_completes_request_dialogue(jar, protocol):
    key = f"java-{uuid.uuid4().hex[:12]}"
    with serving(MemoryController()) as (_, host, port):
        run = play(jar, host, str(port), key, "h11", "h21,h31", "300000000", protocol)
    assert run.returncode == 0, run.stdout + run.stderr
    lines = [json.loads(line) for line in run.stdout.splitlines()]
    calls = ["version", "submit", "submit again", "awaitEvent", "finish", "status", "submit", "status"]
    assert [line["call"] for line in lines] == calls
    version, submitted, again, granted, _finished, status, rejected, unknown = lines
    assert version["answer"]["protocol"] == 1
    assert submitted["answer"]["key"] == again["answer"]["key"] == key
    assert granted["answer"]["kind"] == 1
    assert granted["answer"]["grant"]["groupAddress"].startswith("239.")
    assert sorted(granted["answer"]["grant"]["receivers"]) == ["h21", "h31"]
    assert status["answer"]["parts"][0]["state"] == 4
    assert (rejected["exception"], rejected["content"]["code"]) == ("Rejected", "unknown_host")
    assert (unknown["exception"], unknown["content"]["key"]) == ("UnknownRequest", f"{key}-unknown")


def test_java_program_prints_usage_on_missing_arguments(jar):
    run = play(jar, "127.0.0.1")
    assert run.returncode == 2 and run.stderr.startswith("arguments: HOST PORT KEY")


PACKED = {
    LIBRARY: ("org/blast/client/BlastClient.class", 2_000_000, 80),
    PLUGIN: ("org/blast/spark/BlastPlugin.class", 1_000_000, 250),
    HADOOP: ("org/blast/hadoop/BlastFileSystem.class", 500_000, 95),
}
"""For each library one of its classes, its maximum size in bytes, and a lower bound of its number of tests."""


@pytest.mark.parametrize("packed", PACKED, ids=lambda packed: packed.stem)
def test_library_contains_only_its_classes_and_passes_its_tests(jar, packed):
    name, max_bytes, fewest_tests = PACKED[packed]
    with zipfile.ZipFile(packed) as archive:
        classes = [found for found in archive.namelist() if found.endswith(".class")]
    assert name in classes
    assert [found for found in classes if not found.startswith("org/blast/")] == []
    assert packed.stat().st_size < max_bytes
    # Only that: everything is built.
    maven("surefire:test", "-pl", packed.parents[1].name, f"-DargLine={SHORT_LIVED}")
    reports = list((packed.parent / "surefire-reports").glob("TEST-*.xml"))
    counts = [ElementTree.parse(report).getroot().attrib for report in reports]
    assert sum(int(count["tests"]) for count in counts) > fewest_tests
    assert all(count["skipped"] == "0" for count in counts)


WAIT = """
import org.blast.client.BlastClient;

class Wait {
  public static void main(String[] arguments) throws Exception {
    try (BlastClient client = BlastClient.builder().addresses(arguments[0]).build()) {
      System.out.println(client.awaitEvent("k", 0, java.time.Duration.ofMinutes(1)).kind);
    }
  }
}
"""


def test_packed_library_runs_without_other_jars(jar, tmp_path):
    (tmp_path / "Wait.java").write_text(WAIT)
    with serving(MemoryController()) as (_, host, port), Client(f"{host}:{port}") as client:
        client.submit(MulticastRequest("k", "h11", ["h21"], 10**9))
        run = subprocess.run(
            ["java", "-cp", str(LIBRARY), str(tmp_path / "Wait.java"), f"{host}:{port}"],
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
    assert (run.returncode, run.stdout) == (0, "GRANTED\n"), run.stdout + run.stderr
