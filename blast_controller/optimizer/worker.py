"""The optimizer's process: reads questions from standard input and writes answers to standard output.

Started only by `process`. Questions (contention, seconds, seed) are answered in order by tuples of `Chosen`. The first
message reports that the process is ready, and its memory.
"""

from __future__ import annotations

import os
import pickle
import random
import resource
import signal
import sys
import time
from typing import BinaryIO

from algorithms.b_matching.budget import Spent
from algorithms.b_matching.optimizer import warm_up
from algorithms.scheduling.choosing import choose
from algorithms.scheduling.contention import Chosen, Contention
from blast_controller.optimizer.frames import LENGTH, frame

NICENESS = 5
"""The deciding process has precedence where processors are scarce."""
Question = tuple[Contention, float, int]


def read(stream: BinaryIO) -> Question:
    """Return the next message. Raises EOFError when there are no more."""
    head = stream.read(LENGTH.size)
    if len(head) < LENGTH.size:
        raise EOFError
    size = LENGTH.unpack(head)[0]
    body = stream.read(size)
    if len(body) < size:
        raise EOFError
    question: Question = pickle.loads(body)
    return question


def answer(question: Question) -> tuple[Chosen, ...]:
    """Return the best answer found within a question's time."""
    contention, seconds, seed = question
    return choose(contention, _clock(seconds), random.Random(seed))


def _clock(seconds: float) -> Spent:
    began = time.perf_counter()
    return lambda: (time.perf_counter() - began) / seconds


def main() -> None:
    """Answer until standard input ends, which it does when the controller does."""
    # Ctrl-C in the controller's terminal reaches this process too; the controller ends it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    questions, answers = sys.stdin.buffer, os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=0)
    # Whatever a library prints must not get between the answers.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    os.nice(NICENESS)
    warm_up()
    answers.write(frame(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024))
    while True:
        try:
            question = read(questions)
        except EOFError:
            return
        answers.write(frame(answer(question)))


if __name__ == "__main__":
    main()
