"""Real processes around a test in Spark: the driver's program, masters, workers, agents; all end with the test."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.support.interrupted import members
from tests.support.transport import transport_hosts

ROOT = Path(__file__).resolve().parents[3]
PYTHON = str(ROOT / ".venv-spark" / "bin" / "python")
BLAST = str(Path(sys.executable).with_name("blast"))


@contextmanager
def agent_process(folder: Path) -> Iterator[str]:
    """Run an agent with a folder named spark, and yield its address."""
    folder.mkdir()
    config = folder.with_suffix(".toml")
    config.write_text(
        f'[agent]\nlisten = "127.0.0.1:0"\noptical_address = "127.0.0.1"\ndurable = false\n'
        f'[[folder]]\nname = "spark"\npath = "{folder}"\nclaimed = true\n'
    )
    with transport_hosts.agent_process(config) as agent:
        yield f"127.0.0.1:{agent.port}"


@contextmanager
def in_spark(
    command: list[str], folder: Path, python: str = PYTHON, **environment: str
) -> Iterator[subprocess.Popen[str]]:
    """Run a process of Spark in its own session, and kill all processes of the session at the end.

    `python` is the interpreter of the environment that contains Spark.
    """
    home = folder / "spark"
    if not home.exists():
        make_spark_home(home, Path(python).parents[1])
    surroundings = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "PYSPARK_PYTHON": python,
        "PYSPARK_DRIVER_PYTHON": python,
        "SPARK_LOCAL_IP": "127.0.0.1",
        # These JVMs live for half a minute: compiling for the long run would take most of that.
        "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "SPARK_HOME": str(home),
        **environment,
    }
    with (folder / "spark.log").open("a") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, env=surroundings, cwd=folder,
            start_new_session=True,
        )  # fmt: skip
        try:
            yield process
        finally:
            process.kill()
            # The JVMs of executors are in the session of the process that started them.
            for number in members(process.pid, os.getsid):
                with suppress(ProcessLookupError):
                    os.kill(number, signal.SIGKILL)
            process.communicate()


def make_spark_home(folder: Path, environment: Path) -> None:
    """Link Spark's installation into this folder, in which executors then write their `work`."""
    folder.mkdir()
    (installed,) = (environment / "lib").glob("python3*/site-packages/pyspark")
    for path in installed.iterdir():
        if path.name != "work":
            (folder / path.name).symlink_to(path)
