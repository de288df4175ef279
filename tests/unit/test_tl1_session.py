"""The session with a virtual clock: deadlines, acknowledgements, repeats, late and unknown answers, alarms."""

from __future__ import annotations

import pytest

from tl1_driver.errors import Busy, Denied, InvalidCommand, NotConfirmed, PartlyDone, SessionLost, TimedOut
from tl1_driver.messages import Command
from tl1_driver.session import (
    TRANSITIONS,
    Action,
    Answered,
    Deadlines,
    Failed,
    Notice,
    Phase,
    Session,
    Stimulus,
    Wire,
)

HDR = Command("RTRV-HDR")
DEADLINES = Deadlines(answer=2.0, acknowledged=10.0, longest=30.0, first_pause=0.25, repeats=2)


def message(second_line: str, *rows: str) -> bytes:
    body = "".join(f"   {row}\r\n" for row in rows)
    return f"\r\n\n   sw1 26-11-20 10:00:00\r\n{second_line}\r\n{body};".encode()


@pytest.fixture
def session() -> Session:
    return Session(DEADLINES)


def sent(session: Session, now: float = 0.0) -> str:
    ctag = session.send(HDR, now)
    session.data_to_send()
    return ctag


def failure(session: Session, data: bytes) -> Exception:
    [event] = session.receive(data, 0.0)
    assert isinstance(event, Failed)
    return event.error


def test_every_phase_knows_every_stimulus() -> None:
    assert set(TRANSITIONS) == set(Phase) - {Phase.OVER}
    for phase, row in TRANSITIONS.items():
        assert set(row) == set(Stimulus), phase
    used = {action for row in TRANSITIONS.values() for _, action in row.values()}
    assert used == set(Action)


def test_answers_find_their_commands_in_any_order(session: Session) -> None:
    first, second = session.send(HDR, 0.0), session.send(HDR, 0.0)
    assert session.data_to_send() == b"RTRV-HDR:::1;RTRV-HDR:::2;"
    assert session.data_to_send() == b""
    events = session.receive(message(f"M  {second} COMPLD", "b") + message(f"M  {first} COMPLD", "a"), 0.1)
    assert [(e.ctag, e.response.lines) for e in events] == [(second, ("b",)), (first, ("a",))]
    assert session.next_timer() is None


def test_ctag_1_is_not_taken_for_10(session: Session) -> None:
    ctags = [sent(session) for _ in range(10)]
    [event] = session.receive(message("M  10 COMPLD"), 0.1)
    assert event.ctag == ctags[9] == "10"


def test_deadline(session: Session) -> None:
    ctag = sent(session, 5.0)
    assert session.next_timer() == 7.0
    assert session.handle_timer(6.999) == []
    [event] = session.handle_timer(7.0)
    assert isinstance(event, Failed)
    assert event.ctag == ctag
    assert isinstance(event.error, TimedOut)
    assert session.next_timer() is None


def test_late_answer_goes_to_its_own_bin_and_to_no_other_command(session: Session) -> None:
    late = sent(session)
    session.handle_timer(2.0)
    sent(session, 2.0)
    assert session.receive(message(f"M  {late} COMPLD"), 2.1) == []
    assert [response.ctag for response in session.late] == [late]
    assert not session.unknown
    assert session.next_timer() == 4.0


def test_unknown_and_second_answers_are_kept_apart(session: Session) -> None:
    ctag = sent(session)
    assert session.receive(message("M  0 COMPLD") + message("M  manual COMPLD") + b"IP 99\r\n", 0.1) == []
    session.receive(message(f"M  {ctag} COMPLD") * 2, 0.2)
    assert [stray.ctag for stray in session.unknown] == ["0", "manual", "99", ctag]
    assert not session.late


def test_refusal_under_ctag_0_belongs_to_the_only_command(session: Session) -> None:
    ctag = sent(session)
    [event] = session.receive(message("M  0 DENY", "IICM"), 0.1)
    assert isinstance(event, Failed)
    assert event.ctag == ctag
    assert isinstance(event.error, Denied)
    assert event.error.code == "IICM"


def test_refusal_under_ctag_0_belongs_to_nobody_when_two_could_be_meant(session: Session) -> None:
    sent(session)
    sent(session)
    assert session.receive(message("M  0 DENY", "IICM"), 0.1) == []
    assert [stray.ctag for stray in session.unknown] == ["0"]


def test_refusal_under_ctag_0_belongs_to_nobody_while_an_earlier_command_owes_its_answer(session: Session) -> None:
    late = sent(session)
    session.handle_timer(2.0)
    sent(session, 2.0)
    assert session.receive(message("M  0 DENY", "IICM"), 2.1) == []
    session.receive(message(f"M  {late} COMPLD"), 2.2)
    [event] = session.receive(message("M  0 DENY", "IICM"), 2.3)
    assert isinstance(event, Failed)


def test_acknowledgement_extends_the_deadline_up_to_a_limit(session: Session) -> None:
    ctag = sent(session)
    for now in (1.9, 11.0, 20.0, 29.0):
        assert session.receive(f"IP {ctag}\r\n<".encode(), now) == []
    assert session.next_timer() == 30.0
    [event] = session.receive(message(f"M  {ctag} COMPLD"), 29.5)
    assert isinstance(event, Answered)


def test_acknowledgement_then_silence(session: Session) -> None:
    ctag = sent(session)
    session.receive(f"PF {ctag}\r\n".encode(), 1.0)
    assert session.next_timer() == 11.0
    [event] = session.handle_timer(11.0)
    assert isinstance(event.error, TimedOut)


def test_ok_alone_confirms_at_the_deadline(session: Session) -> None:
    ctag = sent(session)
    assert session.receive(f"OK {ctag}\r\n<".encode(), 1.0) == []
    [event] = session.handle_timer(3.0)
    assert isinstance(event, Answered)
    assert event.response.code == "OK"


def test_denial_after_ok_counts(session: Session) -> None:
    ctag = sent(session)
    session.receive(f"OK {ctag}\r\n<".encode(), 1.0)
    error = failure(session, message(f"M  {ctag} DENY", "SROF"))
    assert isinstance(error, Denied)
    assert error.code == "SROF"


def test_repeat_later_backs_off_and_sends_the_same_again(session: Session) -> None:
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
    assert isinstance(failure(session, f"RL {ctag}\r\n".encode()), Busy)
    assert session.next_timer() is None


def test_answer_while_held_back_counts_and_nothing_is_sent_again(session: Session) -> None:
    ctag = sent(session)
    session.receive(f"RL {ctag}\r\n".encode(), 1.0)
    [event] = session.receive(message(f"M  {ctag} COMPLD"), 1.1)
    assert isinstance(event, Answered)
    assert session.handle_timer(5.0) == []
    assert session.data_to_send() == b""


@pytest.mark.parametrize(
    ("said", "error", "code"),
    [
        (message("M  1 DENY", "IIAC", "/* no port 10999 */"), Denied, "IIAC"),
        (message("M  1 DENY"), Denied, "DENY"),
        (message("M  1 PRTL", "/* 10002 failed */"), PartlyDone, "PRTL"),
        (message("M  1 DELAY"), NotConfirmed, None),
        (message("M  1 RTRV"), NotConfirmed, None),
        (message("M  1 WHAT"), NotConfirmed, None),
        (b"NG 1\r\n<", Denied, "NG"),
        (b"NA 1\r\n<", NotConfirmed, None),
    ],
)
def test_what_does_not_confirm(session: Session, said: bytes, error: type[Exception], code: str | None) -> None:
    sent(session)
    found = failure(session, said)
    assert type(found) is error
    assert getattr(found, "code", None) == code


def test_denial_keeps_its_text(session: Session) -> None:
    sent(session)
    error = failure(session, message("M  1 DENY", "IIAC", "/* no port 10999 */"))
    assert str(error) == "IIAC: no port 10999"


def test_alarms_become_events_with_the_gaps_of_their_sequence(session: Session) -> None:
    ctag = sent(session)
    alarms = [message(f"*C {atag} REPT ALM EQPT") for atag in (7, 8, 12, 3, "x.1", 4)]
    events = session.receive(b"".join(alarms) + message(f"M  {ctag} COMPLD"), 0.1)
    assert [event.missed for event in events if isinstance(event, Notice)] == [0, 0, 3, 0, 0, 0]
    assert isinstance(events[-1], Answered)


def test_lost_session_fails_all_that_is_awaited(session: Session) -> None:
    ctags = [sent(session), sent(session)]
    events = session.lose("cable pulled")
    assert [event.ctag for event in events] == ctags
    assert all(isinstance(event.error, SessionLost) and str(event.error) == "cable pulled" for event in events)
    assert session.next_timer() is None
    assert session.lose("again") == []


def test_refused_command_is_not_queued() -> None:
    session = Session(DEADLINES, Wire(send_limit=20))
    with pytest.raises(InvalidCommand):
        session.send(Command("RTRV-CRS-FIBER", "all"), 0.0)
    assert session.data_to_send() == b""
    assert session.next_timer() is None
