"""The benchmark of a bottleneck that changes: its results from given samples, and the relay that loses and delays."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

LIMIT = 1000.0
"""Bytes per second."""


def samples(rates, limits=(LIMIT, LIMIT)):
    """Return samples of two parts of 20 s with these limits, at rates of goodput: (seconds, bytes per second)."""
    from benchmarks.transfers.multicast_changes import GoodputSample

    found = [GoodputSample(100.0, 0, 0.0)]
    for seconds, rate in rates:
        for _ in range(round(seconds * 10)):
            moment, stored, possible = found[-1]
            found.append(
                GoodputSample(moment + 0.1, round(stored + rate / 10), possible + limits[moment > 119.95] / 10)
            )
    return found


def measured(found):
    from benchmarks.transfers.multicast_changes import goodput

    return goodput(found, 100.0, 20.0, 0, "multicast")


def test_changes_begin_and_end_with_second_part():
    from benchmarks.transfers.multicast_changes import CHANGES

    assert [(step.at, step.share) for step in CHANGES["halves"].steps(20.0)] == [(20.0, 0.5), (40.0, 1.0)]
    bursts = CHANGES["bursts"].steps(20.0)
    assert [step.at for step in bursts] == [20.0 + 2.0 * number for number in range(10)]
    assert {(step.share, step.burst) for step in bursts} == {(1.0, 0.2)}
    assert [(step.at, step.burst) for step in CHANGES["outage"].steps(20.0)] == [(20.0, 1.0)]


def test_goodput_settles_with_first_second_that_fits_the_limit():
    found = measured(samples([(2, 0), (18, 480), (3, 500), (17, 950)], limits=(500, LIMIT)))
    # The first second at the new rate may begin a fifth of a second before the rate does.
    assert found.settled == (pytest.approx(2.9, abs=0.11), pytest.approx(3.7, abs=0.11))
    assert found.shares == (pytest.approx(0.864, abs=0.01), pytest.approx(0.8825, abs=0.01))


def test_goodput_above_the_limit_or_far_below_does_not_settle():
    assert measured(samples([(20, 700), (20, 1100)])).settled == (None, None)


def test_longest_time_below_a_tenth_spans_moments_of_goodput():
    found = samples([(3, 1000), (2, 0), (0.2, 400), (3, 0), (31.8, 1000)])
    # 80 bytes in 5.2 s are below a tenth, and so are 480 bytes in 5.6 s, with 0.4 s of goodput before or after.
    assert measured(found).below == pytest.approx(5.6, abs=0.11)
    assert measured(samples([(40, 200)])).below == 0.0


@pytest.mark.parametrize(
    ("settled", "below", "transport", "kept"),
    [
        ((1.0, 4.9), 4.9, "multicast", True),
        ((1.0, 5.1), 0.0, "multicast", False),
        ((None, 1.0), 0.0, "multicast", False),
        ((1.0, 1.0), 5.1, "multicast", False),
        ((1.0, 1.0), 0.0, "pipeline", False),
    ],
)
def test_row_keeps_bars_only_if_every_run_does(settled, below, transport, kept):
    from benchmarks.transfers.multicast_changes import Goodput, _line, _row

    good = Goodput((0.9, 0.9), (1.0, 1.0), 0.0, 3, "multicast")
    row = _row("halves, 2 ms", [good, Goodput((0.5, 0.9), settled, below, 4, transport), good], settles=True)
    assert row["kept"] is kept and ("MISSED" in _line(row)) is not kept
    assert row["lost"] == [3, 4, 3] and row["shares"] == [0.9, 0.9]
    loses = _row("bursts, 2 ms", [Goodput((0.5, 0.9), settled, 0.0, 4, "multicast")], settles=False)
    assert loses["kept"], "bursts have no bar for the new rate"


def frame(number: int, size: int = 1000) -> bytes:
    # The header of the device does not count for the rate.
    return bytes([number]) * (size + 10)


def emulated_path(milliseconds: float = 0.0):
    from benchmarks.transfers.bed.programs.delay_relay import EmulatedPath

    return EmulatedPath(milliseconds)


def taken(path, now):
    return [one[0] for one in path.take_due(now)]


def test_relay_delays_frames_and_keeps_their_order():
    path = emulated_path(10.0)
    path.accept(frame(1), 0.0)
    assert path.due() == pytest.approx(0.01)
    assert path.follow("delay 1", 0.005) == "ok 1 0"
    path.accept(frame(2), 0.005)
    assert taken(path, 0.0099) == []
    assert taken(path, 0.0101) == [1, 2]
    assert path.due() == float("inf")


def test_relay_limits_rate_also_of_frames_that_wait_already():
    path = emulated_path()
    path.follow("rate 80000", 0.0)
    for number in range(4):
        path.accept(frame(number), 0.0)
    # Each takes 0.1 s, and twice that after the rate has halved.
    assert taken(path, 0.11) == [0]
    path.follow("rate 40000", 0.15)
    assert taken(path, 0.21) == [1]
    assert taken(path, 0.39) == []
    assert taken(path, 0.41) == [2]
    assert taken(path, 0.61) == [3]


def test_relay_loses_frames_beyond_its_queue():
    path = emulated_path()
    path.follow("rate 80000", 0.0)
    path.follow("queue 2100", 0.0)
    for number in range(5):
        path.accept(frame(number), 0.0)
    assert [number for moment in range(9) for number in taken(path, moment / 10)] == [0, 1, 2]
    assert path.follow("rate inf", 1.0) == "ok 5 2"


def test_relay_loses_all_frames_of_a_burst_and_a_share_of_others():
    path = emulated_path()
    path.follow("burst 0.2", 1.0)
    for number in range(4):
        path.accept(frame(number), 1.0 + number / 10)
    assert taken(path, 2.0) == [2, 3]
    assert path.follow("loss 0.1", 2.0) == "ok 4 2"
    for _ in range(2000):
        path.accept(frame(0), 2.0)
    # 200 expected, standard deviation 13.
    assert 150 < path.lost - 2 < 250
    path.follow("burst 9", 3.0)
    path.follow("burst 0", 3.0)
    path.follow("loss 0", 3.0)
    path.accept(frame(7), 3.0)
    assert taken(path, 3.0)[-1] == 7


@pytest.mark.parametrize(
    "line", ["", "rate", "speed 1", "rate fast", "rate 0", "rate -1", "loss 1.1", "loss nan", "delay 1 2", "queue inf"]
)
def test_relay_answers_line_that_is_no_command_with_the_commands(line):
    path = emulated_path(3.0)
    answer = path.follow(line, 0.0)
    assert answer.startswith(f"error: {line!r} is not a command: give delay MILLISECONDS, rate")
    path.accept(frame(1), 0.0)
    assert path.due() == pytest.approx(0.003), "nothing has changed"


RELAY = "from benchmarks.transfers.bed.programs.delay_relay import *; relay(int(sys.argv[1]), 0, EmulatedPath(0.0))"


def test_relay_follows_lines_while_frames_pass():
    device, hosts = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    device.setblocking(False)
    hosts.settimeout(30)
    command = [sys.executable, "-c", f"import sys; {RELAY}", str(device.fileno())]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with device, hosts, subprocess.Popen(command, env=environment, pass_fds=[device.fileno()], **pipes) as running:
        try:
            hosts.send(frame(1))
            assert hosts.recv(2000) == frame(1)
            running.stdin.write(b"delay 1\nbogus 1\n")
            running.stdin.close()
            assert running.stdout.readline() == b"ok 1 0\n"
            assert running.stdout.readline().startswith(b"error: 'bogus 1' is not a command")
            hosts.send(frame(2))
            assert hosts.recv(2000) == frame(2)
        finally:
            running.terminate()
