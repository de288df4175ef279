"""`blast_broadcast` in a real PySpark, on a cluster of two executors: one program with many scenes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.memory_controller import MemoryController, serving

pytestmark = pytest.mark.spark

ROOT = Path(__file__).resolve().parents[2]
PYTHON = str(ROOT / ".venv-spark" / "bin" / "python")
BLAST = str(Path(sys.executable).with_name("blast"))
PATIENCE = 240.0
"""Seconds, which only keep a cluster that hangs from staying."""


@contextmanager
def agent(folder: Path, limits: str = "") -> Iterator[str]:
    """A running agent, whose folder is called spark: its address."""
    folder.mkdir()
    config = folder.with_suffix(".toml")
    config.write_text(
        f'[agent]\nlisten = "127.0.0.1:0"\nlight_address = "127.0.0.1"\ndurable = false\n'
        f'[[folder]]\nname = "spark"\npath = "{folder}"\n[limits]\n{limits}\n'
    )
    command = [BLAST, "agent", "run", "--config", str(config), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            ready = json.loads(process.stdout.readline())
            yield f"127.0.0.1:{ready['port']}"
        finally:
            process.terminate()


@contextmanager
def program(given: dict[str, str], folder: Path) -> Iterator[subprocess.Popen[str]]:
    """The driver, in a group of its own with whatever it starts; all of it is gone afterwards."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "PYSPARK_PYTHON": PYTHON,
        "PYSPARK_DRIVER_PYTHON": PYTHON,
        "SPARK_LOCAL_IP": "127.0.0.1",
        # These JVMs live for half a minute: compiling for the long run would take most of that.
        "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "SPARK_HOME": str(spark_home(folder / "spark")),
    }
    command = [PYTHON, str(ROOT / "tests" / "support" / "spark_program.py"), json.dumps(given)]
    with (folder / "spark.log").open("w") as log:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=log, text=True, env=environment, cwd=folder, start_new_session=True
        )
        try:
            yield process
        finally:
            process.kill()
            # The JVMs of executors are in the session of the driver.
            for number in session_of(process.pid):
                os.kill(number, signal.SIGKILL)
            process.communicate()


def spark_home(folder: Path) -> Path:
    """Spark as it is installed, but that what executors write, its `work`, lies in this folder."""
    folder.mkdir()
    (installed,) = (ROOT / ".venv-spark" / "lib").glob("python3*/site-packages/pyspark")
    for path in installed.iterdir():
        if path.name != "work":
            (folder / path.name).symlink_to(path)
    return folder


def session_of(leader: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == leader and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found


@pytest.fixture(scope="module")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, dict[str, Any]]]:
    folder = tmp_path_factory.mktemp("spark")
    (folder / "local").mkdir()
    with ExitStack() as stack:
        _, host, port = stack.enter_context(serving(MemoryController()))
        given = {
            "folder": str(folder / "agent"),
            "address": stack.enter_context(agent(folder / "agent")),
            "small": stack.enter_context(agent(folder / "small", "file_bytes = 1000")),
            "controller": f"{host}:{port}",
            "local": str(folder / "local"),
        }
        process = stack.enter_context(program(given, folder))
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
