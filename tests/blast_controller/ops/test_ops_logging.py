"""Log records: one line each, whatever they contain, with known fields and a budget of lines of one kind."""

from __future__ import annotations

import io
import json
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blast_controller.ops.line_budget import ALL_PARTIES, BURST, MAX_PARTIES, PER_SECOND, REPORT_EVERY, LineBudget
from blast_controller.ops.logging import LINES_OF_TRACEBACK, LONGEST_MESSAGE, LogOutput, fields

log = logging.getLogger("blast.test")


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def written(clock):
    """Yield (output, stream) of a log in JSON on a virtual clock."""
    stream = io.StringIO()
    output = LogOutput(stream, clock)
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    output.install()
    output.set("info", "json")
    yield output, stream
    output.remove()
    root.handlers[:] = handlers
    root.setLevel(level)


def lines(stream):
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_json_line_has_time_level_message_and_fields(written):
    output, stream = written
    output.set_epoch(513)
    log.info("granted %s", "k", extra=fields(event="grant", request="k", reservation=7, reason=None))
    (line,) = lines(stream)
    assert line["message"] == "granted k" and line["level"] == "info" and line["logger"] == "blast.test"
    assert (line["event"], line["request"], line["reservation"], line["epoch"]) == ("grant", "k", 7, 513)
    assert "reason" not in line and line["time"].endswith("Z") and "T" in line["time"]


def test_error_has_its_traceback_on_the_same_line(written):
    _output, stream = written
    try:
        raise ValueError("two\nlines")
    except ValueError:
        log.exception("failed")
    (line,) = lines(stream)
    assert line["level"] == "error" and "ValueError: two\nlines" in line["error"]


def test_fields_do_not_overwrite_standard_keys(written):
    _output, stream = written
    log.warning("real", extra=fields(message="forged", level="debug", time="never", request={"a": object}))
    (line,) = lines(stream)
    assert (line["message"], line["level"]) == ("real", "warning") and line["time"] != "never"


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize(
    "nasty",
    ["a\nERROR forged", "a\r\x1b[2Jb", "a\u2028b\x85c", "ü"],
    ids=["line", "escape", "separator", "umlaut"],
)
def test_client_cannot_forge_lines(written, form, nasty):
    output, stream = written
    # Alone: pytest would capture the line too, and xdist can carry no surrogate to its other side.
    output.install()
    output.set("info", form)
    log.info("granted %s", nasty, extra=fields(request=nasty))
    text = stream.getvalue()
    assert len(text.splitlines()) == 1 and "\x1b" not in text


def test_text_line_ends_with_its_fields(written):
    output, stream = written
    output.set("info", "text")
    output.set_epoch(3)
    log.info("granted k", extra=fields(request="k"))
    log.info("nothing known")
    first, second = stream.getvalue().splitlines()
    assert first.endswith(" INFO blast.test: granted k (request=k epoch=3)")
    assert second.endswith("nothing known (epoch=3)")


def test_level_and_format_change_at_run_time(written):
    output, stream = written
    output.set("warning", "text")
    output.set_epoch(9)
    log.info("too_dark")
    output.set("info", "json")
    log.info("logged")
    (line,) = lines(stream)
    assert line["message"] == "logged" and line["epoch"] == 9


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize("secret", ["open-sesame", 'with"quote\\', "sésame"])
def test_secret_is_never_written(written, form, secret):
    output, stream = written
    output.hide(["", secret])
    output.set("info", form)
    try:
        raise ValueError(f"the switch sent {secret}")
    except ValueError:
        log.exception("sent %s", secret, extra=fields(reason=f"<{secret}>"))
    text = stream.getvalue()
    assert secret not in text and json.dumps(secret)[1:-1] not in text and text.count("********") >= 3


# ----------------------------------------------------------------------------------------------- budgets


def test_lines_beyond_burst_and_rate_are_suppressed_and_counted():
    budget = LineBudget()
    written = sum(budget.allows("kind", "peer", 0.0) for _ in range(1000))
    assert written == BURST
    assert not list(budget.take_due(REPORT_EVERY / 2))
    assert list(budget.take_due(REPORT_EVERY)) == [(("kind", "peer"), 1000 - BURST)]
    assert not list(budget.take_due(1e9)), "reported once"
    assert sum(budget.allows("kind", "peer", 1.0) for _ in range(1000)) == PER_SECOND


def test_traceback_counts_as_several_lines():
    stream = io.StringIO()
    output = LogOutput(stream, lambda: 0.0)
    error = ValueError("x" * 1000)
    records = [logging.LogRecord("ours", logging.ERROR, "", 1, "failed", None, (ValueError, error, None))] * 1000
    for record in records:
        output._handler.handle(record)
    assert stream.getvalue().count("failed") == BURST / LINES_OF_TRACEBACK


def test_flood_of_one_peer_leaves_the_budget_of_others():
    budget = LineBudget()
    for _ in range(10_000):
        budget.allows("kind", "flood", 0.0)
    assert budget.allows("kind", "other", 0.0)
    assert budget.allows("another kind", "flood", 0.0)


def test_lines_and_memory_of_all_peers_together_are_bounded():
    budget = LineBudget()
    written = sum(budget.allows("kind", str(n), 0.0) for n in range(10 * MAX_PARTIES) for _ in range(2))
    assert written == BURST * ALL_PARTIES
    assert len(budget._buckets) <= MAX_PARTIES and len(budget._left_out) <= MAX_PARTIES + 1
    assert sum(count for _, count in budget.take_due(1e9)) == 20 * MAX_PARTIES - written


@given(st.lists(st.tuples(st.sampled_from(["a", "b", ""]), st.floats(0, 5), st.integers(1, 400)), max_size=30))
def test_every_line_is_written_or_counted_and_the_rate_holds(visits):
    budget, now, written, asked = LineBudget(), 0.0, 0, 0
    reported = 0
    for party, pause, lines in visits:
        now += pause
        asked += lines
        written += sum(budget.allows("kind", party, now) for _ in range(lines))
        reported += sum(count for _, count in budget.take_due(now))
    reported += sum(count for _, count in budget.take_due(now, all_of_it=True))
    assert written + reported == asked
    assert written <= (BURST + now * PER_SECOND) * (ALL_PARTIES + 1) + 1


def test_suppressed_lines_of_a_flood_are_reported_later(written, clock):
    output, stream = written
    for port in range(2000):
        log.warning("%s closed: %s", f"192.0.2.7:{port}", "x" * port)
    assert len(lines(stream)) == BURST
    clock.now = REPORT_EVERY
    output.report_suppressed()
    report = lines(stream)[-1]
    assert (report["event"], report["left_out"], report["peer"]) == ("left_out", 2000 - BURST, "192.0.2.7")
    assert "closed" in report["message"]


def test_suppressed_lines_are_reported_before_the_next_and_at_exit(written, clock):
    output, stream = written
    for _ in range(int(BURST) + 100):
        log.warning("grant", extra=fields(event="grant", tenant="physics"))
    clock.now = 2 * REPORT_EVERY
    log.warning("something else")
    assert [line["message"] for line in lines(stream)[-2:]][1] == "something else"
    assert lines(stream)[-2]["left_out"] == 100
    for _ in range(int(REPORT_EVERY * 2 * PER_SECOND) + 300):
        log.warning("grant", extra=fields(event="grant", tenant="physics"))
    output.report_suppressed(all_of_it=True)
    assert lines(stream)[-1]["left_out"] == 300


def test_critical_lines_are_always_written(written):
    _, stream = written
    for _ in range(1000):
        log.critical("the controller exits")
    assert len(lines(stream)) == 1000


def test_message_text_of_a_peer_creates_no_new_kind(written):
    _, stream = written
    for number in range(1000):
        log.warning(f"from a peer: {number}")
    assert len(lines(stream)) == BURST


@pytest.mark.parametrize("form", ["json", "text"])
def test_long_line_is_truncated(written, form):
    output, stream = written
    output.set("info", form)
    log.warning("%s", "x" * 1_000_000)
    assert len(stream.getvalue()) < LONGEST_MESSAGE + 500 and "more characters" in stream.getvalue()
