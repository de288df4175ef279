"""A result is released once, after its records and all earlier ones are written, whatever fails."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blast_controller.core.model.records import Record
from blast_controller.runtime.group_commit import Batch, GroupCommit
from blast_controller.store.errors import JournalError

STEPS = st.lists(st.sampled_from(["record", "result", "write", "fail", "begin", "begin and fail", "collect"]))


class Disk:
    """A list of records; while it `fails`, a write raises and writes nothing."""

    def __init__(self) -> None:
        self.written: list[Record] = []
        self.fails = False

    def write(self, records) -> None:
        if self.fails:
            raise JournalError("no answer")
        self.written += records


def record(number: int) -> Record:
    return Record("element", str(number), {"reason": "x"})


@given(STEPS)
def test_results_are_released_in_order_after_their_records(steps: list[str]) -> None:
    disk, ended, released, count = Disk(), threading.Semaphore(0), [], 0
    journal = GroupCommit(disk.write, ended.release)

    def release(batch: Batch) -> None:
        for result in batch.results:
            result()

    def result_after(number: int):
        # Records are numbered as they are added: a result may leave once all before it are written.
        return lambda: released.append((number, len(disk.written)))

    def attempt(write) -> None:
        try:
            batch = write()
        except JournalError:
            return
        release(batch)

    for step in [*steps, "collect", "write"]:
        disk.fails = step in ("fail", "begin and fail")
        match step:
            case "record":
                journal.filling.add(Batch(records=[record(count)]))
                count += 1
            case "result":
                journal.filling.add(Batch(results=[result_after(count)]))
            case "write" | "fail" if not journal.is_writing:
                attempt(journal.take)
            case "begin" | "begin and fail" if not journal.is_writing:
                journal.begin()
                # A later step must not change how the write ends.
                ended.acquire()
            case "collect" if journal.is_writing:
                attempt(journal.collect)
    journal.close()
    assert disk.written == [record(number) for number in range(count)]
    assert all(written >= needed for needed, written in released)
    assert [needed for needed, _ in released] == sorted(needed for needed, _ in released)
    assert len(released) == steps.count("result")
    assert not journal.filling


def test_batch_accepts_records_while_another_is_written() -> None:
    gate, written = threading.Event(), []

    def write(records) -> None:
        gate.wait(60)
        written.append(len(records))

    journal = GroupCommit(write, lambda: None)
    journal.filling.add(Batch(records=[record(1)]))
    journal.begin()
    for number in (2, 3):
        journal.filling.add(Batch(records=[record(number)]))
    gate.set()
    journal.collect()
    assert len(journal.take().records) == 2
    assert written == [1, 2], "one write for all records that arrived during the first"
    journal.close()


def test_collect_without_a_started_write_raises() -> None:
    with pytest.raises(AssertionError):
        GroupCommit(lambda records: None, lambda: None).collect()
