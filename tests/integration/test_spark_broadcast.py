"""`blast_broadcast` in a real PySpark, on a cluster of two executors: one program with many scenes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.support.memory_controller import MemoryController, serving
from tests.support.spark_cluster import agent_process, program

pytestmark = [pytest.mark.spark, pytest.mark.test_all]

PATIENCE = 240.0
"""Seconds, which only keep a cluster that hangs from staying."""


@pytest.fixture(scope="module")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, dict[str, Any]]]:
    folder = tmp_path_factory.mktemp("spark")
    (folder / "local").mkdir()
    with ExitStack() as stack:
        _, host, port = stack.enter_context(serving(MemoryController()))
        given = {
            "folder": str(folder / "agent"),
            "address": stack.enter_context(agent_process(folder / "agent")),
            "small": stack.enter_context(agent_process(folder / "small", "file_bytes = 1000")),
            "controller": f"{host}:{port}",
            "local": str(folder / "local"),
        }
        process = stack.enter_context(program("spark_program", given, folder))
        output, _ = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, (folder / "spark.log").read_text()[-4000:]
        yield {scene.pop("scene"): scene for scene in map(json.loads, output.splitlines())}


@pytest.fixture(scope="module")
def array(scenes: dict[str, dict[str, Any]]) -> list[str]:
    """The digest of the array, as Spark's own broadcast brought it."""
    found: list[str] = scenes["value array"]["spark"]
    return found


@pytest.mark.parametrize("name", ["array", "dict", "bytes", "object"])
def test_a_value_is_the_one_that_spark_brings(scenes: dict[str, dict[str, Any]], name: str) -> None:
    scene = scenes[f"value {name}"]
    assert scene["reason"] is None and scene["executors"] == 2
    assert len(scene["digests"]) == 1 and scene["digests"] == scene["spark"]


def test_an_array_is_mapped_from_the_agents_folder(scenes: dict[str, dict[str, Any]]) -> None:
    (mapped,) = scenes["value array"]["mapped"]
    assert mapped.startswith(scenes["over"]["folder"])


def test_destroyed_the_files_are_empty(scenes: dict[str, dict[str, Any]]) -> None:
    assert scenes["destroyed"]["files"] == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("scene", "carriers", "why"),
    [("light", ["optical"], ""), ("controller down", ["pipeline"], "no answer"), ("refused", ["pipeline"], "stranger")],
)
def test_whatever_the_controller_says_it_goes_by_blast(
    scenes: dict[str, dict[str, Any]], array: list[str], scene: str, carriers: list[str], why: str
) -> None:
    found = scenes[scene]
    assert found["carriers"] == carriers and why in found["no_light"]
    assert found["reason"] is None and found["digests"] == array


@pytest.mark.parametrize(
    ("scene", "reason"),
    [("no agent", "not_delivered"), ("unknown host", "unknown_host"), ("no room", "not_delivered"), ("small", "small")],
)
def test_what_blast_cannot_do_spark_does(
    scenes: dict[str, dict[str, Any]], array: list[str], scene: str, reason: str
) -> None:
    assert scenes[scene]["reason"] == reason and scenes[scene]["digests"] == array
    assert scenes["folder not seen"]["counts"][reason] >= 1


def test_where_executors_do_not_see_the_folder_the_driver_hands_it_over(
    scenes: dict[str, dict[str, Any]], array: list[str]
) -> None:
    scene = scenes["folder not seen"]
    assert scene["reason"] is None and scene["digests"] == array
    assert scene["counts"]["fetched"] == scene["executors"] == 2, "once for each executor"
    assert all("/blockmgr-" in mapped for mapped in scene["mapped"])


def test_a_job_need_not_wait(scenes: dict[str, dict[str, Any]], array: list[str]) -> None:
    assert scenes["not waited for"]["digests"] == array and scenes["not waited for"]["reason"] is None


def test_unpersisted_it_comes_again(scenes: dict[str, dict[str, Any]], array: list[str]) -> None:
    assert not any(scenes["unpersisted"]["files"])
    assert scenes["unpersisted"]["digests"] == array


def test_an_executor_is_lost_and_another_comes(scenes: dict[str, dict[str, Any]], array: list[str]) -> None:
    assert all(scenes[scene]["digests"] == array for scene in ("before", "while one is lost", "one was added"))
    assert any(scenes["one was added"]["files"]), "the new one found none, and the driver had it brought again"
    assert scenes["one was added"]["counts"]["fetched"] == 2, "nobody took it from the driver"
    assert all(mapped.startswith(scenes["over"]["folder"]) for mapped in scenes["one was added"]["mapped"])


def test_the_end_of_the_program_frees_the_hosts(scenes: dict[str, dict[str, Any]]) -> None:
    assert any(scenes["over"]["files"])
    assert not any(path.stat().st_size for path in Path(scenes["over"]["folder"]).glob("[0-9]*"))
