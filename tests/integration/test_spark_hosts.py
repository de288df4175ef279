"""`blast_broadcast` in a real PySpark on a standalone cluster of several hosts, addresses of the loopback."""

from __future__ import annotations

import json
import socket
import subprocess
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.support.spark_cluster import agent_process, make_spark_home, program, standalone

pytestmark = [pytest.mark.spark, pytest.mark.test_all]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def next_line(process: subprocess.Popen[str], log: Path) -> dict[str, Any]:
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, log.read_text()[-4000:]
    return dict(json.loads(line))


def go_on(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def test_hosts_that_come_later(tmp_path: Path) -> None:
    """The last host has no agent: tasks of before take the value from the driver there, new ones from Spark."""
    make_spark_home(tmp_path / "spark")
    port, log = free_port(), tmp_path / "spark.log"
    master = f"spark://127.0.0.1:{port}"
    with ExitStack() as stack:

        def worker(address: str) -> None:
            more = ("--cores", "1", "--memory", "512m", "--work-dir", str(tmp_path / f"work-{address}"), master)
            folder = str(tmp_path / address)
            stack.enter_context(
                standalone(
                    tmp_path, "worker.Worker", address, *more, BLAST_FOLDER=folder, SPARK_LOCAL_DIRS=str(tmp_path)
                )
            )

        agents = {
            address: f"agent-{address}={stack.enter_context(agent_process(tmp_path / address))}"
            for address in ("127.0.0.2", "127.0.0.3", "127.0.0.4")
        }
        stack.enter_context(standalone(tmp_path, "master.Master", "127.0.0.1", "--port", str(port)))
        worker("127.0.0.2")
        worker("127.0.0.3")
        driver = stack.enter_context(program("spark_hosts_program", {"master": master, "agents": agents}, tmp_path))

        next_line(driver, log)
        go_on(driver)

        def folders(files: list[str]) -> list[str]:
            return sorted({Path(file).relative_to(tmp_path).parts[0] for file in files})

        first = next_line(driver, log)
        assert first["hosts"] == ["127.0.0.2", "127.0.0.3"]
        assert first["delivered"] == ["agent-127.0.0.2", "agent-127.0.0.3"]
        assert first["right"] and folders(first["files"]) == ["127.0.0.2", "127.0.0.3"]

        worker("127.0.0.4")
        go_on(driver)
        with_agent = next_line(driver, log)
        assert with_agent["right"] and with_agent["fetched"] == 0
        assert folders(with_agent["files"]) == ["127.0.0.2", "127.0.0.3", "127.0.0.4"]

        worker("127.0.0.5")
        go_on(driver)
        without = next_line(driver, log)
        assert without["right"] and without["fetched"] == 1
        assert any("/blockmgr-" in file for file in without["files"])

        go_on(driver)
        assert next_line(driver, log) == {"what": "by spark", "reason": "unknown_host"}
        go_on(driver)
        assert driver.wait(60) == 0
        assert all(not path.stat().st_size for address in agents for path in (tmp_path / address).rglob("1-*"))
