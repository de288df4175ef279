"""A switch that says far more than it is asked for is given up; one with much to tell is not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tl1_driver.messages import Command
from tl1_driver.session import Answered, Flooded, Notice, Session
from tl1_driver.unasked import BURST, PER_SECOND, UnaskedBudget

ALARM = b'\r\n\r\n   ocs 26-01-01 00:00:00\r\n*C 7 REPT ALM EQPT\r\n   "I1:CR,LOS,SA,,,RCV"\r\n;\r\n'
STRAY = b"\r\n\r\n   ocs 26-01-01 00:00:00\r\nM  99 COMPLD\r\n;\r\n"


def answer(ctag: str, rows: int) -> bytes:
    lines = b"".join(b'   "row %06d of a long list of cross-connects"\r\n' % n for n in range(rows))
    return b"\r\n\r\n   ocs 26-01-01 00:00:00\r\nM  %s COMPLD\r\n%s;\r\n" % (ctag.encode(), lines)


def test_a_storm_of_alarms_has_room():
    session = Session()
    events = session.receive(ALARM * 1500, 0.0)
    assert len(events) == 1500 and all(isinstance(event, Notice) for event in events)


@pytest.mark.parametrize("said", [ALARM, STRAY, b"nonsense without any sense\r\n", b"\r\n", b"IP 1\r\n<", b"\0" * 64])
def test_a_flood_ends_the_session_whatever_it_is_made_of(said):
    session, sent = Session(), 0
    session.send(Command("RTRV-HDR"), 0.0)
    events = []
    while not any(isinstance(event, Flooded) for event in events):
        assert sent < 2 * BURST
        chunk = said * (65_536 // len(said))
        events, sent = session.receive(chunk, 0.001), sent + len(chunk)
    assert session.receive(ALARM, 0.002) == [], "and nothing more is listened to"


def test_long_answers_to_what_was_asked_are_no_flood():
    session = Session()
    for number in range(8):
        ctag = session.send(Command("RTRV-CRS-FIBER", "", "ALL"), number * 0.001)
        events = session.receive(answer(ctag, 8000), number * 0.001)
        assert [type(event) for event in events] == [Answered]


def test_stray_answers_are_remembered_without_what_they_say():
    session = Session()
    session.receive(answer("99", 1000), 0.0)
    assert [stray.ctag for stray in session.unknown] == ["99"] and session.unknown[0].lines == ()


@given(st.lists(st.tuples(st.floats(0, 10), st.integers(0, 1 << 20)), max_size=50))
def test_no_more_is_taken_than_a_burst_and_what_time_has_brought(said):
    budget, now, taken = UnaskedBudget(), 0.0, 0
    for pause, size in said:
        now += pause
        budget.spend(size, now)
        if budget.overdrawn:
            break
        taken += size
    assert taken <= BURST + now * PER_SECOND
