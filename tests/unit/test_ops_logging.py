"""Log lines: one line each, whatever is in them, with the fields that are known."""

from __future__ import annotations

import io
import json
import logging

import pytest

from blast_controller.ops.logging import LogOutput, fields

log = logging.getLogger("blast.test")


@pytest.fixture
def written():
    """Run with an output of our own; gives (output, the stream)."""
    stream = io.StringIO()
    output = LogOutput(stream)
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    output.install()
    yield output, stream
    output.remove()
    root.handlers[:] = handlers
    root.setLevel(level)


def lines(stream):
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_json_line_has_time_level_message_and_fields(written):
    output, stream = written
    output.set("info", "json")
    output.set_epoch(513)
    log.info("granted %s", "k", extra=fields(event="grant", request="k", reservation=7, reason=None))
    (line,) = lines(stream)
    assert line["message"] == "granted k" and line["level"] == "info" and line["logger"] == "blast.test"
    assert (line["event"], line["request"], line["reservation"], line["epoch"]) == ("grant", "k", 7, 513)
    assert "reason" not in line and line["time"].endswith("Z") and "T" in line["time"]


def test_an_error_carries_its_traceback_on_the_same_line(written):
    output, stream = written
    output.set("info", "json")
    try:
        raise ValueError("two\nlines")
    except ValueError:
        log.exception("failed")
    (line,) = lines(stream)
    assert line["level"] == "error" and "ValueError: two\nlines" in line["error"]


def test_a_field_hides_nothing_that_every_line_has(written):
    output, stream = written
    output.set("info", "json")
    log.warning("real", extra=fields(message="forged", level="debug", time="never", request={"a": object}))
    (line,) = lines(stream)
    assert (line["message"], line["level"]) == ("real", "warning") and line["time"] != "never"


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize(
    "nasty",
    ["a\nERROR forged", "a\r\x1b[2Jb", "a\u2028b\x85c", "ü"],
    ids=["line", "escape", "separator", "umlaut"],
)
def test_a_client_cannot_forge_lines(written, form, nasty):
    output, stream = written
    # Alone: pytest would capture the line too, and xdist can carry no surrogate to its other side.
    output.install()
    output.set("info", form)
    log.info("granted %s", nasty, extra=fields(request=nasty))
    text = stream.getvalue()
    assert len(text.splitlines()) == 1 and "\x1b" not in text


def test_text_names_the_fields(written):
    output, stream = written
    output.set("info", "text")
    output.set_epoch(3)
    log.info("granted k", extra=fields(request="k"))
    log.info("nothing known")
    first, second = stream.getvalue().splitlines()
    assert first.endswith(" INFO blast.test: granted k (request=k epoch=3)")
    assert second.endswith("nothing known (epoch=3)")


def test_level_and_form_change_while_it_runs(written):
    output, stream = written
    output.set("warning", "text")
    output.set_epoch(9)
    log.info("unheard")
    output.set("info", "json")
    log.info("heard")
    (line,) = lines(stream)
    assert line["message"] == "heard" and line["epoch"] == 9


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize("secret", ["open-sesame", 'with"quote\\', "sésame"])
def test_a_secret_is_never_written(written, form, secret):
    output, stream = written
    output.hide(["", secret])
    output.set("info", form)
    try:
        raise ValueError(f"the switch said {secret}")
    except ValueError:
        log.exception("said %s", secret, extra=fields(reason=f"<{secret}>"))
    text = stream.getvalue()
    assert secret not in text and json.dumps(secret)[1:-1] not in text and text.count("********") >= 3
