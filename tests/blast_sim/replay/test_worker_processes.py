"""Worker processes: results, failures and Ctrl-C."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from blast_sim.base.worker_processes import WorkerDiedError, computed
from tests.project.test_extras import INSTANCE
from tests.support.interrupted import TIMEOUT, ended, members, started
from tests.support.waiting import eventually

ROOT = Path(__file__).parents[3]


def square(number: int) -> int:
    return number * number


def sizes(data: bytes) -> int:
    return len(data)


def fail(number: int) -> int:
    if number:
        raise ValueError(f"not {number}")
    return number


def die(number: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return number


def never(folder: str) -> None:
    """Create a file as a sign of the start, and never end; a worker that handled Ctrl-C would print a traceback."""
    (Path(folder) / str(os.getpid())).touch()
    while True:
        time.sleep(60)  # the worker handles no messages


def test_every_item_has_its_result():
    assert dict(computed(square, range(20), 3)) == {number: number * number for number in range(20)}
    assert list(computed(square, [], 3)) == []
    assert multiprocessing.active_children() == []


def test_items_may_be_larger_than_a_pipe():
    assert dict(computed(sizes, [bytes(1 << 20)] * 5, 2)) == dict.fromkeys(range(5), 1 << 20)


def test_callback_is_called_while_the_caller_waits():
    calls = []
    assert len(list(computed(square, range(3), 1, lambda: calls.append(1)))) == 3
    assert calls


def test_error_of_the_work_is_raised_and_all_processes_end():
    with pytest.raises(ValueError, match="not 3"):
        list(computed(fail, [0, 0, 3, 0], 2))
    assert multiprocessing.active_children() == []


def test_killed_worker_raises_worker_died_error():
    with pytest.raises(
        WorkerDiedError, match="ended with status -9, perhaps for want of memory: try fewer --processes"
    ):
        list(computed(die, [1, 2], 2))
    assert multiprocessing.active_children() == []


def test_closing_the_iterator_ends_the_processes():
    with closing(computed(square, range(100), 2)) as coming:
        next(coming)
        assert multiprocessing.active_children() != []
    assert multiprocessing.active_children() == []


PROGRAM = """
import sys
from blast_sim.base.worker_processes import computed
from tests.blast_sim.replay.test_worker_processes import never

if __name__ == "__main__":
    try:
        list(computed(never, [sys.argv[1]] * 2, 2))
    except KeyboardInterrupt:
        sys.exit(130)
"""


@contextmanager
def running(program, text, *words):
    """Run a program in its own process group, and check that none of its processes outlives the block."""
    program.write_text(text)
    process = subprocess.Popen(
        ["env", "--default-signal=INT", sys.executable, program, *words], stderr=subprocess.PIPE, text=True,
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, start_new_session=True,
    )  # fmt: skip
    try:
        yield process
        eventually(lambda: not members(process.pid), "all of them to end")
    finally:
        if members(process.pid):
            os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.parametrize("send", [os.killpg, os.kill], ids=["as a terminal does", "to the first alone"])
def test_busy_workers_end_with_their_parent(tmp_path, send):
    folder = tmp_path / "begun"
    folder.mkdir()
    with running(tmp_path / "program.py", PROGRAM, folder) as process:
        eventually(lambda: len(list(folder.iterdir())) == 2, "both to begin", within=TIMEOUT)
        send(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=TIMEOUT)
    assert (process.returncode, err) == (130, "")


STARTING = """
import os, signal, sys, threading, time
from multiprocessing import resource_tracker, util
from blast_sim.base.worker_processes import computed
from tests.blast_sim.replay.test_worker_processes import square

start = util.spawnv_passfds

def interrupted_start(*words):
    pid = start(*words)
    os.kill(os.getpid(), signal.SIGINT)  # before the process receives its work
    time.sleep(0.2)
    return pid

if __name__ == "__main__":
    # Like a thread of a library, it masks no signals.
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    resource_tracker.ensure_running()
    util.spawnv_passfds = interrupted_start
    try:
        list(computed(square, [1, 2], 2))
    except KeyboardInterrupt:
        sys.exit(130)
"""


def test_interrupt_in_another_thread_waits_for_process_start(tmp_path):
    with running(tmp_path / "program.py", STARTING) as process:
        _, err = process.communicate(timeout=TIMEOUT)
    assert (process.returncode, err) == (130, "")


# ---------------------------------------------------------------------- the commands

SOLVING = """
import sqlite3, sys
from pathlib import Path
import pulp
from blast_client.cli.command import main

def solve(self, program):
    Path(sys.argv[1]).touch()
    # Like a solver in C++, it never checks for signals, and lets other threads run.
    endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"
    sqlite3.connect(":memory:").execute(endless).fetchone()

pulp.HiGHS.callSolver = solve
sys.exit(main(["plan", sys.argv[2], "--exact", "--time-limit", "3600"]))
"""


def test_interrupt_ends_a_solver_that_checks_no_signals(tmp_path):
    solving, instance = tmp_path / "solving", tmp_path / "instance.json"
    instance.write_text(json.dumps(INSTANCE))
    process = subprocess.Popen(
        ["env", "--default-signal=INT", sys.executable, "-c", SOLVING, solving, instance],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        eventually(solving.exists, "the solver to begin", within=TIMEOUT)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=TIMEOUT)
    finally:
        process.kill()
        process.communicate()
    assert (process.returncode, out, err) == (130, "", "")


def begun(process, count):
    return eventually(lambda: len(members(process.pid)) >= count, f"{count} processes", within=TIMEOUT)


@pytest.mark.parametrize(
    ("words", "processes"),
    [
        (("sim", "replay", "sample", "--policy", "all", "--processes", "2"), 4),
        (("figures", "blast", "--processes", "2", "--out", "figures"), 4),
    ],
    ids=lambda value: "-".join(value[:2]) if isinstance(value, tuple) else str(value),
)
def test_interrupt_ends_a_simulation_at_once_without_output(tmp_path, words, processes):
    words = [str(tmp_path / word) if word == "figures" and place else word for place, word in enumerate(words)]
    with started(*words) as process:
        # The two workers, the tracker of their resources, and the command itself: workers are still importing.
        begun(process, processes)
        status, out, err = ended(process)
    assert (status, out, err) == (130, "", "")
