"""The session with a virtual clock: deadlines, repeats, late and unknown answers, alarms, floods, and transcripts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optical_switch.unsolicited import BURST, PER_SECOND, UnsolicitedBudget
from tl1_driver.protocol.errors import (
    CommandDeniedError,
    InvalidCommandError,
    PartialCompletionError,
    SessionLostError,
    SwitchBusyError,
    SwitchTimeoutError,
    UnconfirmedCommandError,
)
from tl1_driver.protocol.messages import Tl1Command
from tl1_driver.protocol.session import (
    TRANSITIONS,
    Answered,
    CommandFailed,
    ExchangeDeadlines,
    ExchangePhase,
    Flooded,
    Notice,
    SessionAction,
    Stimulus,
    Tl1Session,
    Wire,
)
from tl1_driver.transcript import LONGEST_WRAPPING, MASK, Mask

HDR = Tl1Command("RTRV-HDR")
DEADLINES = ExchangeDeadlines(answer=2.0, acknowledged=10.0, longest=30.0, first_pause=0.25, repeats=2)


def message(second_line: str, *rows: str) -> bytes:
    body = "".join(f"   {row}\r\n" for row in rows)
    return f"\r\n\n   sw1 26-11-20 10:00:00\r\n{second_line}\r\n{body};".encode()


@pytest.fixture
def session() -> Tl1Session:
    return Tl1Session(DEADLINES)


def sent(session: Tl1Session, now: float = 0.0) -> str:
    ctag = session.send(HDR, now)
    session.data_to_send()
    return ctag


def failure(session: Tl1Session, data: bytes) -> Exception:
    [event] = session.receive(data, 0.0)
    assert isinstance(event, CommandFailed)
    return event.error


def test_every_phase_knows_every_stimulus() -> None:
    assert set(TRANSITIONS) == set(ExchangePhase) - {ExchangePhase.OVER}
    for phase, row in TRANSITIONS.items():
        assert set(row) == set(Stimulus), phase
    used = {action for row in TRANSITIONS.values() for _, action in row.values()}
    assert used == set(SessionAction)


def test_answers_find_their_commands_in_any_order(session: Tl1Session) -> None:
    first, second = session.send(HDR, 0.0), session.send(HDR, 0.0)
    assert session.data_to_send() == b"RTRV-HDR:::1;RTRV-HDR:::2;"
    assert session.data_to_send() == b""
    events = session.receive(message(f"M  {second} COMPLD", "b") + message(f"M  {first} COMPLD", "a"), 0.1)
    assert [(e.ctag, e.response.lines) for e in events] == [(second, ("b",)), (first, ("a",))]
    assert session.next_timer() is None


def test_ctag_1_is_not_taken_for_10(session: Tl1Session) -> None:
    ctags = [sent(session) for _ in range(10)]
    [event] = session.receive(message("M  10 COMPLD"), 0.1)
    assert event.ctag == ctags[9] == "10"


def test_deadline(session: Tl1Session) -> None:
    ctag = sent(session, 5.0)
    assert session.next_timer() == 7.0
    assert session.handle_timer(6.999) == []
    [event] = session.handle_timer(7.0)
    assert isinstance(event, CommandFailed) and event.ctag == ctag
    assert isinstance(event.error, SwitchTimeoutError)
    assert session.next_timer() is None


def test_late_answer_is_recorded_and_matches_no_other_command(session: Tl1Session) -> None:
    late = sent(session)
    session.handle_timer(2.0)
    sent(session, 2.0)
    assert session.receive(message(f"M  {late} COMPLD"), 2.1) == []
    assert [response.ctag for response in session.late] == [late] and not session.unknown
    assert session.next_timer() == 4.0


def test_unknown_and_second_answers_are_kept_apart(session: Tl1Session) -> None:
    ctag = sent(session)
    assert session.receive(message("M  0 COMPLD") + message("M  manual COMPLD") + b"IP 99\r\n", 0.1) == []
    session.receive(message(f"M  {ctag} COMPLD") * 2, 0.2)
    assert [stray.ctag for stray in session.unknown] == ["0", "manual", "99", ctag]
    assert not session.late


def test_refusal_under_ctag_0_belongs_to_the_only_command(session: Tl1Session) -> None:
    ctag = sent(session)
    [event] = session.receive(message("M  0 DENY", "IICM"), 0.1)
    assert isinstance(event, CommandFailed) and event.ctag == ctag
    assert isinstance(event.error, CommandDeniedError) and event.error.code == "IICM"


def test_refusal_under_ctag_0_is_unknown_with_two_pending_commands(session: Tl1Session) -> None:
    sent(session)
    sent(session)
    assert session.receive(message("M  0 DENY", "IICM"), 0.1) == []
    assert [stray.ctag for stray in session.unknown] == ["0"]


def test_refusal_under_ctag_0_is_unknown_while_earlier_answer_is_missing(session: Tl1Session) -> None:
    late = sent(session)
    session.handle_timer(2.0)
    sent(session, 2.0)
    assert session.receive(message("M  0 DENY", "IICM"), 2.1) == []
    session.receive(message(f"M  {late} COMPLD"), 2.2)
    [event] = session.receive(message("M  0 DENY", "IICM"), 2.3)
    assert isinstance(event, CommandFailed)


def test_acknowledgment_extends_the_deadline_up_to_a_limit(session: Tl1Session) -> None:
    ctag = sent(session)
    for now in (1.9, 11.0, 20.0, 29.0):
        assert session.receive(f"IP {ctag}\r\n<".encode(), now) == []
    assert session.next_timer() == 30.0
    [event] = session.receive(message(f"M  {ctag} COMPLD"), 29.5)
    assert isinstance(event, Answered)


def test_acknowledgment_then_silence(session: Tl1Session) -> None:
    ctag = sent(session)
    session.receive(f"PF {ctag}\r\n".encode(), 1.0)
    assert session.next_timer() == 11.0
    [event] = session.handle_timer(11.0)
    assert isinstance(event.error, SwitchTimeoutError)


def test_ok_alone_confirms_at_the_deadline(session: Tl1Session) -> None:
    ctag = sent(session)
    assert session.receive(f"OK {ctag}\r\n<".encode(), 1.0) == []
    [event] = session.handle_timer(3.0)
    assert isinstance(event, Answered)
    assert event.response.code == "OK"


def test_denial_after_ok_counts(session: Tl1Session) -> None:
    ctag = sent(session)
    session.receive(f"OK {ctag}\r\n<".encode(), 1.0)
    error = failure(session, message(f"M  {ctag} DENY", "SROF"))
    assert isinstance(error, CommandDeniedError)
    assert error.code == "SROF"
    sent(session)
    denied = failure(session, message("M  2 DENY", "IIAC", "/* no port 10999 */"))
    assert str(denied) == "IIAC: no port 10999"


def test_repeat_later_backs_off_and_sends_the_same_again(session: Tl1Session) -> None:
    ctag = sent(session)
    session.receive(f"RL {ctag}\r\n".encode(), 1.0)
    assert session.next_timer() == 1.25
    assert session.handle_timer(1.25) == []
    assert session.data_to_send() == f"RTRV-HDR:::{ctag};".encode()
    assert session.next_timer() == 3.25
    session.receive(f"RL {ctag}\r\n".encode(), 2.0)
    assert session.next_timer() == 2.5
    session.handle_timer(2.5)
    assert session.data_to_send() == f"RTRV-HDR:::{ctag};".encode()
    assert isinstance(failure(session, f"RL {ctag}\r\n".encode()), SwitchBusyError)
    assert session.next_timer() is None


def test_answer_during_back_off_counts_and_prevents_repeat(session: Tl1Session) -> None:
    ctag = sent(session)
    session.receive(f"RL {ctag}\r\n".encode(), 1.0)
    [event] = session.receive(message(f"M  {ctag} COMPLD"), 1.1)
    assert isinstance(event, Answered)
    assert session.handle_timer(5.0) == []
    assert session.data_to_send() == b""


@pytest.mark.parametrize(
    ("answer", "error", "code"),
    [
        (message("M  1 DENY", "IIAC", "/* no port 10999 */"), CommandDeniedError, "IIAC"),
        (message("M  1 DENY"), CommandDeniedError, "DENY"),
        (message("M  1 PRTL", "/* 10002 failed */"), PartialCompletionError, "PRTL"),
        (message("M  1 DELAY"), UnconfirmedCommandError, None),
        (message("M  1 RTRV"), UnconfirmedCommandError, None),
        (message("M  1 WHAT"), UnconfirmedCommandError, None),
        (b"NG 1\r\n<", CommandDeniedError, "NG"),
        (b"NA 1\r\n<", UnconfirmedCommandError, None),
    ],
)
def test_answer_without_confirmation_raises_error(
    session: Tl1Session, answer: bytes, error: type[Exception], code: str | None
) -> None:
    sent(session)
    found = failure(session, answer)
    assert type(found) is error
    assert getattr(found, "code", None) == code


def test_alarms_become_events_with_the_gaps_of_their_sequence(session: Tl1Session) -> None:
    ctag = sent(session)
    alarms = [message(f"*C {atag} REPT ALM EQPT") for atag in (7, 8, 12, 3, "x.1", 4)]
    events = session.receive(b"".join(alarms) + message(f"M  {ctag} COMPLD"), 0.1)
    assert [event.missed for event in events if isinstance(event, Notice)] == [0, 0, 3, 0, 0, 0]
    assert isinstance(events[-1], Answered)


def test_lost_session_fails_every_pending_command(session: Tl1Session) -> None:
    ctags = [sent(session), sent(session)]
    events = session.lose("cable pulled")
    assert [event.ctag for event in events] == ctags
    assert all(isinstance(event.error, SessionLostError) and str(event.error) == "cable pulled" for event in events)
    assert session.next_timer() is None
    assert session.lose("again") == []


def test_refused_command_is_not_queued() -> None:
    session = Tl1Session(DEADLINES, Wire(send_limit=20))
    with pytest.raises(InvalidCommandError):
        session.send(Tl1Command("RTRV-CRS-FIBER", "all"), 0.0)
    assert session.data_to_send() == b""
    assert session.next_timer() is None


# ------------------------------------------------------------------------------------------------ floods

ALARM = b'\r\n\r\n   ocs 26-01-01 00:00:00\r\n*C 7 REPT ALM EQPT\r\n   "I1:CR,LOS,SA,,,RCV"\r\n;\r\n'
STRAY = b"\r\n\r\n   ocs 26-01-01 00:00:00\r\nM  99 COMPLD\r\n;\r\n"


def long_answer(ctag: str, rows: int) -> bytes:
    lines = b"".join(b'   "row %06d of a long list of cross-connects"\r\n' % n for n in range(rows))
    return b"\r\n\r\n   ocs 26-01-01 00:00:00\r\nM  %s COMPLD\r\n%s;\r\n" % (ctag.encode(), lines)


def test_session_accepts_burst_of_alarms():
    session = Tl1Session()
    events = session.receive(ALARM * 1500, 0.0)
    assert len(events) == 1500 and all(isinstance(event, Notice) for event in events)


@pytest.mark.parametrize("data", [ALARM, STRAY, b"nonsense without any sense\r\n", b"\r\n", b"IP 1\r\n<", b"\0" * 64])
def test_flood_of_any_content_ends_session(data):
    session, sent = Tl1Session(), 0
    session.send(Tl1Command("RTRV-HDR"), 0.0)
    events = []
    while not any(isinstance(event, Flooded) for event in events):
        assert sent < 2 * BURST
        chunk = data * (65_536 // len(data))
        events, sent = session.receive(chunk, 0.001), sent + len(chunk)
    assert session.receive(ALARM, 0.002) == [], "later data is ignored"


def test_long_solicited_answers_are_no_flood():
    session = Tl1Session()
    for number in range(8):
        ctag = session.send(Tl1Command("RTRV-CRS-FIBER", "", "ALL"), number * 0.001)
        events = session.receive(long_answer(ctag, 8000), number * 0.001)
        assert [type(event) for event in events] == [Answered]


def test_stray_answers_are_kept_without_their_lines():
    session = Tl1Session()
    session.receive(long_answer("99", 1000), 0.0)
    assert [stray.ctag for stray in session.unknown] == ["99"] and session.unknown[0].lines == ()


@given(st.lists(st.tuples(st.floats(0, 10), st.integers(0, 1 << 20)), max_size=50))
def test_unsolicited_bytes_are_limited_to_burst_plus_rate(arrivals):
    budget, now, taken = UnsolicitedBudget(), 0.0, 0
    for pause, size in arrivals:
        now += pause
        budget.spend(size, now)
        if budget.overdrawn:
            break
        taken += size
    assert taken <= BURST + now * PER_SECOND


# ------------------------------------------------------------------------------------------- transcripts

SECRET = b'"open sesame"'


def shown(mask: Mask, data: bytes, size: int) -> bytes:
    return b"".join(mask.feed(data[at : at + size]) for at in range(0, len(data), size)) + mask.rest()


@pytest.mark.parametrize("size", [1, 2, 5, 1000])
@pytest.mark.parametrize(
    "echo",
    [SECRET, b'"open \r\nsesame"', b'"op\r\nen ses\r\n  ame"', b'"open sesame\r\n"', b'"open ses \b\r\0ame"'],
)
def test_secret_is_masked_though_the_echo_is_wrapped(echo: bytes, size: int) -> None:
    data = b"ACT-USER::admin:1::" + echo + b";\r\n" + echo + echo + b" end"
    masked = shown(Mask(SECRET), data, size)
    assert masked == b"ACT-USER::admin:1::" + MASK + b";\r\n" + MASK + MASK + b" end"


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_mask_passes_other_text_unchanged(size: int) -> None:
    data = b'"open "open\r\n"open sesam e; "ope'
    assert shown(Mask(SECRET), data, size) == data.replace(b'"open sesam e;', b'"open sesam e;')
    assert shown(Mask(b""), data, size) == data
    assert shown(Mask(b"aab"), b"aaaab aa", size) == b"aa" + MASK + b" aa"


def test_mask_holds_back_only_possible_beginning_of_secret() -> None:
    mask = Mask(SECRET)
    assert mask.feed(b'x"open\r\n') == b"x"
    assert mask.feed(b"ed") == b'"open\r\ned'
    assert mask.feed(b'"') == b""
    assert mask.rest() == b'"'
    assert mask.rest() == b""


def test_mask_does_not_hold_back_endless_blanks() -> None:
    mask = Mask(SECRET)
    data = b'"open' + b"\n" * (3 * LONGEST_WRAPPING)
    held = 0
    out = b""
    for at in range(0, len(data), 100):
        out += mask.feed(data[at : at + 100])
        held = max(held, len(mask._held))
    assert held <= LONGEST_WRAPPING + len(SECRET)
    assert out + mask.rest() == data
