"""A client in another language: Java, generated from the same IDL, plays an application's dialogue.

The controller is one in memory unless BLAST_JAVA_TARGET names another: "HOST:PORT SENDER RECEIVER,RECEIVER".
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import uuid
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.memory_controller import MemoryController, serving

pytestmark = pytest.mark.java

PROJECT = Path(__file__).resolve().parents[2]
SOURCES = PROJECT / "clients" / "java"
JAR = SOURCES / "target" / "blast-interop-0.1.0.jar"


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
        inputs = [PROJECT / "thrift" / "blast.thrift", SOURCES / "pom.xml", *(SOURCES / "src").rglob("*.java")]
        if not JAR.exists() or JAR.stat().st_mtime < max(path.stat().st_mtime for path in inputs):
            build = subprocess.run(
                ["mvn", "-q", "-B", "clean", "package"],
                cwd=SOURCES, capture_output=True, text=True, timeout=280, check=False,
            )  # fmt: skip
            assert build.returncode == 0, build.stdout + build.stderr
    return JAR


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


@pytest.mark.parametrize("protocol", ["binary", "compact"])
def test_the_whole_dialogue_in_java(jar, target, protocol):
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
