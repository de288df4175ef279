"""How many log lines of one kind are written: a budget on a virtual clock, and the log that goes by it."""

from __future__ import annotations

import io
import json
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blast_controller.ops.line_budget import ALL_PARTIES, BURST, MOST_PARTIES, PER_SECOND, TELL_EVERY, LineBudget
from blast_controller.ops.logging import LONGEST_MESSAGE, LogOutput, fields

log = logging.getLogger("blast.test")


def test_a_burst_is_written_then_a_trickle_and_what_is_left_out_is_counted():
    budget = LineBudget()
    written = sum(budget.allows("kind", "peer", 0.0) for _ in range(1000))
    assert written == BURST
    assert not list(budget.told(TELL_EVERY / 2))
    assert list(budget.told(TELL_EVERY)) == [(("kind", "peer"), 1000 - BURST)]
    assert not list(budget.told(1e9)), "told once"
    assert sum(budget.allows("kind", "peer", 1.0) for _ in range(1000)) == PER_SECOND


def test_one_party_s_flood_leaves_the_others_their_lines():
    budget = LineBudget()
    for _ in range(10_000):
        budget.allows("kind", "flood", 0.0)
    assert budget.allows("kind", "other", 0.0)
    assert budget.allows("another kind", "flood", 0.0)


def test_many_parties_together_have_a_bound_too_and_so_has_what_is_remembered():
    budget = LineBudget()
    written = sum(budget.allows("kind", str(n), 0.0) for n in range(10 * MOST_PARTIES) for _ in range(2))
    assert written == BURST * ALL_PARTIES
    assert len(budget._buckets) <= MOST_PARTIES and len(budget._left_out) <= MOST_PARTIES + 1
    assert sum(count for _, count in budget.told(1e9)) == 20 * MOST_PARTIES - written


@given(st.lists(st.tuples(st.sampled_from(["a", "b", ""]), st.floats(0, 5), st.integers(1, 400)), max_size=30))
def test_every_line_is_written_or_counted_and_the_rate_holds(visits):
    budget, now, written, asked = LineBudget(), 0.0, 0, 0
    told = 0
    for party, pause, lines in visits:
        now += pause
        asked += lines
        written += sum(budget.allows("kind", party, now) for _ in range(lines))
        told += sum(count for _, count in budget.told(now))
    told += sum(count for _, count in budget.told(now, all_of_it=True))
    assert written + told == asked
    assert written <= (BURST + now * PER_SECOND) * (ALL_PARTIES + 1) + 1


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def written():
    """An output of our own on a virtual clock; gives (output, the stream, the clock)."""
    stream, clock = io.StringIO(), Clock()
    output = LogOutput(stream, clock)
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    output.install()
    output.set("info", "json")
    yield output, stream, clock
    output.remove()
    root.handlers[:] = handlers
    root.setLevel(level)


def lines(stream):
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_flood_of_lines_is_cut_and_told_later(written):
    output, stream, clock = written
    for port in range(2000):
        log.warning("%s closed: %s", f"192.0.2.7:{port}", "x" * port)
    assert len(lines(stream)) == BURST
    clock.now = TELL_EVERY
    output.tell_left_out()
    told = lines(stream)[-1]
    assert (told["event"], told["left_out"], told["peer"]) == ("left_out", 2000 - BURST, "192.0.2.7")
    assert "closed" in told["message"]


def test_what_was_left_out_is_told_before_the_next_line_and_at_the_end(written):
    output, stream, clock = written
    for _ in range(int(BURST) + 100):
        log.warning("grant", extra=fields(event="grant", tenant="physics"))
    clock.now = 2 * TELL_EVERY
    log.warning("something else")
    assert [line["message"] for line in lines(stream)[-2:]][1] == "something else"
    assert lines(stream)[-2]["left_out"] == 100
    for _ in range(int(TELL_EVERY * 2 * PER_SECOND) + 300):
        log.warning("grant", extra=fields(event="grant", tenant="physics"))
    output.tell_left_out(all_of_it=True)
    assert lines(stream)[-1]["left_out"] == 300


def test_critical_lines_are_always_written(written):
    _, stream, _ = written
    for _ in range(1000):
        log.critical("the controller ends")
    assert len(lines(stream)) == 1000


def test_text_of_a_peer_s_making_makes_no_kinds_of_its_own(written):
    _, stream, _ = written
    for number in range(1000):
        log.warning(f"from a peer: {number}")
    assert len(lines(stream)) == BURST


@pytest.mark.parametrize("form", ["json", "text"])
def test_a_long_line_is_cut(written, form):
    output, stream, _ = written
    output.set("info", form)
    log.warning("%s", "x" * 1_000_000)
    assert len(stream.getvalue()) < LONGEST_MESSAGE + 500 and "more characters" in stream.getvalue()
