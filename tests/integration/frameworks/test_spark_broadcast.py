"""`blast_broadcast` in a real PySpark, on a cluster of two executors: one program with many scenes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.support.transport.spark_cluster import PYTHON, ROOT, agent_process, in_spark

pytestmark = [pytest.mark.spark, pytest.mark.test_all]

TIMEOUT = 240.0
"""Seconds until a cluster that hangs is killed."""


@pytest.fixture(scope="module")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, dict[str, Any]]]:
    folder = tmp_path_factory.mktemp("spark")
    (folder / "local").mkdir()
    with ExitStack() as stack:
        given = {
            "folder": str(folder / "agent"),
            "address": stack.enter_context(agent_process(folder / "agent")),
            "local": str(folder / "local"),
        }
        command = [PYTHON, str(ROOT / "tests" / "support" / "transport" / "spark_program.py"), json.dumps(given)]
        process = stack.enter_context(in_spark(command, folder))
        output, _ = process.communicate(timeout=TIMEOUT)
        assert process.returncode == 0, (folder / "spark.log").read_text()[-4000:]
        yield {scene.pop("scene"): scene for scene in map(json.loads, output.splitlines())}


@pytest.fixture(scope="module")
def array(scenes: dict[str, dict[str, Any]]) -> list[str]:
    """Return the digests of the array that Spark's own broadcast delivered."""
    found: list[str] = scenes["value array"]["spark"]
    return found


def test_value_equals_value_of_spark_broadcast(scenes: dict[str, dict[str, Any]]) -> None:
    for name in ("array", "dict", "bytes", "object"):
        scene = scenes[f"value {name}"]
        assert scene["reason"] is None and scene["executors"] == 2
        assert len(scene["digests"]) == 1 and scene["digests"] == scene["spark"]
    (mapped,) = scenes["value array"]["mapped"]
    assert mapped.startswith(scenes["over"]["folder"])
    assert scenes["destroyed"]["files"] == [0, 0, 0, 0]


def test_executors_without_folder_fetch_value_from_driver(scenes: dict[str, dict[str, Any]], array: list[str]) -> None:
    scene = scenes["folder not seen"]
    assert scene["reason"] is None and scene["digests"] == array
    assert scene["counts"]["fetched"] == scene["executors"] == 2, "once for each executor"
    assert all("/blockmgr-" in mapped for mapped in scene["mapped"])


def test_replacement_executor_gets_value_from_agent(scenes: dict[str, dict[str, Any]], array: list[str]) -> None:
    assert all(scenes[scene]["digests"] == array for scene in ("before", "while one is lost", "one was added"))
    assert any(scenes["one was added"]["files"]), "the new one found none, and the driver had it brought again"
    assert scenes["one was added"]["counts"]["fetched"] == 2, "no executor fetched it from the driver"
    assert all(mapped.startswith(scenes["over"]["folder"]) for mapped in scenes["one was added"]["mapped"])


def test_end_of_program_frees_files_on_hosts(scenes: dict[str, dict[str, Any]]) -> None:
    assert any(scenes["over"]["files"])
    assert not any(path.stat().st_size for path in Path(scenes["over"]["folder"]).glob("[0-9]*"))
