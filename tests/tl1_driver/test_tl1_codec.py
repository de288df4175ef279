"""The codec against the behavior of real switches and known errors of public clients."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tl1_driver.protocol.codec import UNFINISHED_PARTS, UNPARSED_BYTES, Tl1Decoder, encode_command
from tl1_driver.protocol.errors import InvalidCommandError, MessageTooLongError, NotTl1Error, TruncatedResponseError
from tl1_driver.protocol.messages import Acknowledgment, Autonomous, Message, Response, Tl1Command, Unparsed
from tl1_driver.protocol.payload import parameters, quote, split_blocks, unquote

HEADER = b"\r\n\n   sw1 26-11-20 10:00:00\r\n"


def answer(ctag: str, *rows: str, end: str = ";") -> bytes:
    return HEADER + f"M  {ctag} COMPLD\r\n".encode() + "".join(f"   {row}\r\n" for row in rows).encode() + end.encode()


def decode(data: bytes, limit: int = 1 << 20) -> list[Message]:
    """Decode the data whole and byte by byte; check that both results are equal."""
    whole = Tl1Decoder(limit).feed(data)
    decoder = Tl1Decoder(limit)
    single = [message for at in range(len(data)) for message in decoder.feed(data[at : at + 1])]
    assert [described(message) for message in whole] == [described(message) for message in single]
    return whole


def described(message: Message) -> object:
    return (message.text, type(message.error)) if isinstance(message, Unparsed) else message


def responses(data: bytes) -> list[Response]:
    return [message for message in decode(data) if isinstance(message, Response)]


def test_semicolon_inside_quotes_does_not_end_the_answer() -> None:
    assert responses(answer("1", '"NAME=a;b"', '"NAME=c"'))[0].lines == ('"NAME=a;b"', '"NAME=c"')


def test_terminator_need_not_stand_alone_on_its_line() -> None:
    data = HEADER + b"M  1 COMPLD;" + HEADER + b'M  2 COMPLD\r\n   "x";'
    assert [(r.ctag, r.lines) for r in responses(data)] == [("1", ()), ("2", ('"x"',))]


@pytest.mark.parametrize("sid", ["sw1.example.org", "site-4", '"AB0123C"', "( nil )", ""])
def test_sid_may_have_dots_hyphens_quotes_or_be_missing(sid: str) -> None:
    data = f"\r\n\n   {sid} 26-11-20 10:00:00\r\nM  1 COMPLD\r\n;".encode()
    assert responses(data)[0].sid == sid.strip('"')


def test_ctag_is_text_and_compared_whole() -> None:
    data = answer("10") + answer("1") + answer("run.7") + answer("0") + answer("007")
    assert [r.ctag for r in responses(data)] == ["10", "1", "run.7", "0", "007"]


def test_line_breaks_inside_quotes_are_kept() -> None:
    assert responses(answer("1", '"two\r\nlines"'))[0].lines == ('"two\r\nlines"',)


def test_parts_are_joined_and_alarms_between_them_come_at_once() -> None:
    alarm = HEADER + b"*C 9 REPT ALM EQPT\r\n;"
    messages = decode(answer("1", "a", end=">\r\n") + alarm + answer("1", "b"))
    assert [type(message) for message in messages] == [Autonomous, Response]
    assert messages[1] == Response("sw1", "1", "COMPLD", ("a", "b"), "26-11-20 10:00:00")


def test_greater_than_is_a_continuation_only_alone_at_the_start_of_a_line() -> None:
    assert responses(answer("1", "a > b", ">c", "d>"))[0].lines == ("a > b", ">c", "d>")


def test_prompt_after_an_acknowledgment_is_not_needed_and_does_not_matter() -> None:
    prompted = decode(b"<ent-crs-fiber::1,2:5;\r\nIP 5\r\n<")
    bare = decode(b"IP 5\r\n")
    assert prompted == bare == [Acknowledgment("IP", "5")]


def test_every_acknowledgment_and_completion_code() -> None:
    for code in ("IP", "PF", "OK", "NA", "NG", "RL"):
        assert decode(f"{code} 5\r\n<".encode()) == [Acknowledgment(code, "5")]
    for code in ("COMPLD", "DENY", "PRTL", "DELAY", "RTRV", "compld"):
        assert responses(HEADER + f"M  1 {code}\r\n;".encode())[0].code == code.upper()


def test_echo_is_dropped_even_with_a_quoted_semicolon() -> None:
    [message] = decode(b'<ed-name::10001:1:::name="a;b\\";c";\r\n' + answer("1"))
    assert message.ctag == "1"


def test_echo_directly_before_the_header() -> None:
    assert [r.ctag for r in responses(b"rtrv-hdr:::1;   sw1 26-11-20 10:00:00\r\nM  1 COMPLD\r\n;")] == ["1"]


def test_answer_with_damaged_header_is_decoded() -> None:
    data = b"\x1b[2Jxx 26-11-2 noise\r\nM  1 COMPLD\r\n;"
    assert [r.ctag for r in responses(data)] == ["1"]


def test_stray_quote_between_messages_loses_no_message() -> None:
    messages = decode(b'welcome to "switch\r\n' + answer("1"))
    assert isinstance(messages[0], Unparsed)
    assert isinstance(messages[0].error, NotTl1Error)
    assert [m.ctag for m in messages[1:]] == ["1"]


def test_comment_may_hold_terminators_and_quotes() -> None:
    data = HEADER + b'M  1 DENY\r\n   IICM\r\n   /* see manual; page "4 */\r\n;'
    response = responses(data)[0]
    assert (response.error_code, response.error_text) == ("IICM", 'see manual; page "4')


def test_stars_inside_a_comment_do_not_end_it() -> None:
    assert responses(answer("1", "/* 2 * 3; **/", "a"))[0].lines == ("/* 2 * 3; **/", "a")


def test_unclosed_comment_ends_with_its_line() -> None:
    assert [r.ctag for r in responses(answer("1", "/* no end") + answer("2"))] == ["1", "2"]


def test_denial_without_comment_and_without_code() -> None:
    bare = responses(HEADER + b"M  1 DENY\r\n;")[0]
    assert (bare.error_code, bare.error_text) == ("", "")
    text_only = responses(HEADER + b"M  1 DENY\r\n   port busy, sorry\r\n;")[0]
    assert (text_only.error_code, text_only.error_text) == ("", "port busy, sorry")
    several = responses(HEADER + b"M  1 DENY\r\n   MERR\r\n   /* a */\r\n   /* b */\r\n;")[0]
    assert (several.error_code, several.error_text) == ("MERR", "a; b")


def test_lost_terminator_costs_one_message() -> None:
    messages = decode(HEADER + b"M  1 COMPLD\r\n   a\r\n" + answer("2", "b"))
    assert isinstance(messages[0], Unparsed)
    assert isinstance(messages[0].error, TruncatedResponseError)
    assert messages[1] == Response("sw1", "2", "COMPLD", ("b",), "26-11-20 10:00:00")


def test_message_that_lost_a_part_is_not_reported_as_complete() -> None:
    cut = HEADER + b"M  1 COMPLD\r\n   b\r\n"
    messages = decode(answer("1", "a", end=">\r\n") + cut + answer("2") + answer("1", "c"))
    assert [m.ctag for m in messages if isinstance(m, Response)] == ["2"]


def test_message_over_the_limit_is_dropped_and_the_next_one_read() -> None:
    messages = decode(answer("1", *["x" * 50] * 40) + answer("2"), limit=1000)
    assert isinstance(messages[0], Unparsed)
    assert isinstance(messages[0].error, MessageTooLongError)
    assert len(messages[0].text) <= UNPARSED_BYTES
    assert [m.ctag for m in messages[1:]] == ["2"]


def test_unclosed_quote_ends_at_the_limit() -> None:
    open_quote = HEADER + b'M  1 COMPLD\r\n   "never closed' + b"z" * 700
    messages = decode(open_quote + answer("3"), limit=600)
    assert isinstance(messages[0].error, MessageTooLongError)
    assert [m.ctag for m in messages if isinstance(m, Response)] == ["3"]


@pytest.mark.parametrize("second", ["M  2 COMPLD", "m 2 deny", "*C 2 REPT ALM EQPT", "A  2 REPT EVT", "** 2 REPT ALM"])
@pytest.mark.parametrize("sid", ["sw1", '"AB0123C"', "( nil )", ""])
def test_unclosed_quote_ends_where_the_next_message_begins(second: str, sid: str) -> None:
    following = f'\r\n\n   {sid} 26-11-20 10:00:00\r\n{second}\r\n   "a;b"\r\n;'.encode()
    messages = decode(answer("1", '"a"', '"never closed') + following + answer("3", '"c"'))
    assert isinstance(messages[0], Unparsed)
    assert isinstance(messages[0].error, TruncatedResponseError)
    assert messages[1].lines == ('"a;b"',)
    assert messages[2] == Response("sw1", "3", "COMPLD", ('"c"',), "26-11-20 10:00:00")


@pytest.mark.parametrize(
    "line", ["26-11-20 10:00:00", "M  2 COMPLD", "   sw1 26-11-20 10:00:00\r\nnext", "a\r\nM 2 DENY"]
)
def test_half_a_heading_inside_quotes_is_data(line: str) -> None:
    assert responses(answer("1", f'"x\r\n{line}\r\ny"'))[0].lines == (f'"x\r\n{line}\r\ny"',)


def test_date_and_time_without_a_message_are_reported() -> None:
    messages = decode(HEADER + b"rtrv-hdr:::1;" + answer("1"))
    assert isinstance(messages[0].error, TruncatedResponseError)
    assert [m.ctag for m in messages[1:]] == ["1"]


@pytest.mark.parametrize(
    ("data", "texts"),
    [
        (b"", []),
        (answer("1") + b"\r\n<", []),
        (HEADER + b"M  1 COMPLD\r\n   a\r\n   b", ["a\nb"]),
        (HEADER + b'M  1 COMPLD\r\n   "a\r\nb', ['"a\r\nb']),
        (answer("1", "a", end=">\r\n") + answer("2", "b", end=">\r\n"), ["a", "b"]),
        (HEADER, ["sw1 26-11-20 10:00:00"]),
        (b'open "quote', ['open "quote']),
    ],
)
def test_finish_reports_incomplete_messages(data: bytes, texts: list[str]) -> None:
    decoder = Tl1Decoder()
    for at in range(len(data)):
        decoder.feed(data[at : at + 1])
    unfinished = decoder.finish()
    assert [message.text for message in unfinished] == texts
    assert decoder.finish() == []


def test_last_line_needs_no_end() -> None:
    decoder = Tl1Decoder()
    assert decoder.feed(b"<IP 5") == []
    assert decoder.finish() == [Acknowledgment("IP", "5")]


def test_end_of_a_quoted_text_over_the_limit_does_not_open_another() -> None:
    messages = decode(answer("1", '"' + "y" * 700 + '"') + answer("2"), limit=600)
    assert isinstance(messages[0].error, MessageTooLongError)
    assert [m.ctag for m in messages[1:]] == ["2"]


def test_limit_applies_to_all_parts_and_leaves_no_partial_answer() -> None:
    part = answer("1", "x" * 400, end=">\r\n")
    messages = decode(part * 3 + answer("1", "end") + answer("2"), limit=1000)
    assert [type(m) for m in messages] == [Unparsed, Response]
    assert messages[1].ctag == "2"


def test_endless_line_between_messages_is_dropped() -> None:
    messages = decode(b"z" * 2500 + b"\r\n" + answer("1"), limit=1000)
    assert [type(m) for m in messages] == [Unparsed, Unparsed, Unparsed, Response]


def test_endless_unfinished_messages_are_bounded() -> None:
    decoder = Tl1Decoder()
    count = UNFINISHED_PARTS + 10
    given_up = [m for n in range(count) for m in decoder.feed(answer(f"t{n}", "row", end=">\r\n"))]
    assert len(given_up) == 10
    assert all(isinstance(m, Unparsed) for m in given_up)


def test_memory_held_stays_below_twice_the_limit() -> None:
    decoder = Tl1Decoder(limit=10_000)
    for _ in range(100):
        decoder.feed(answer("1", *["w" * 90] * 10, end=">\r\n"))
        assert sum(part.size for part in decoder._parts.values()) <= 10_000
        assert len(decoder._scanner._buffer) <= 10_000


@pytest.mark.parametrize(
    ("command", "wire"),
    [
        (Tl1Command("RTRV-HDR"), b"RTRV-HDR:::7;"),
        (Tl1Command("ent-crs-fiber", "10001,20005"), b"ent-crs-fiber::10001,20005:7;"),
        (Tl1Command("ent-crs-fiber", "1,2", ("", "", "opmode=sync")), b"ent-crs-fiber::1,2:7:::opmode=sync;"),
        (Tl1Command("ACT-USER", "admin", ("", "pw")), b"ACT-USER::admin:7::pw;"),
        (Tl1Command("RTRV-NE", tid="sw1", blocks=("", "")), b"RTRV-NE:sw1::7;"),
        (Tl1Command("ed-name", "1", ("", 'NAME="a;b:c"')), b'ed-name::1:7::NAME="a;b:c";'),
    ],
)
def test_encode(command: Tl1Command, wire: bytes) -> None:
    assert encode_command(command, "7", limit=100) == wire


@pytest.mark.parametrize(
    "command",
    [
        Tl1Command("RTRV HDR"),
        Tl1Command("", "1"),
        Tl1Command("a", "1;b"),
        Tl1Command("a", "1:b"),
        Tl1Command("a", '"open'),
        Tl1Command("a", "1\n"),
        Tl1Command("a", blocks=('"x\r\n"',)),
        Tl1Command("a", "x" * 100),
    ],
)
def test_encode_rejects_invalid_commands(command: Tl1Command) -> None:
    with pytest.raises(InvalidCommandError):
        encode_command(command, "7", limit=100)
    with pytest.raises(InvalidCommandError):
        encode_command(Tl1Command("RTRV-HDR"), "7;", limit=100)


def test_a_command_does_not_show_its_secret() -> None:
    assert "hunter2" not in repr(Tl1Command("ACT-USER", "admin", ("", "hunter2"), secret="hunter2"))


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ('"GGN:IPORTID=10001,IPORTNAME=,OPORTID=0"', {"IPORTID": "10001", "IPORTNAME": "", "OPORTID": "0"}),
        ('"GGN:NAME=rack 4, port 2: west,PORTDIR=input"', {"NAME": "rack 4, port 2: west", "PORTDIR": "input"}),
        ('"A=1,B="', {"A": "1", "B": ""}),
        ("a=1, b = 2", {"A": "1, b = 2"}),
        ("inpwr=-12.6,outpwr=NONE", {"INPWR": "-12.6", "OUTPWR": "NONE"}),
        ('"NAME=the \\"north\\" rack,X=1"', {"NAME": 'the "north" rack', "X": "1"}),
        ('"10001,20001"', {}),
        ("", {}),
    ],
)
def test_parameters(row: str, expected: dict[str, str]) -> None:
    assert parameters(row) == expected


def test_control_characters_cannot_be_quoted() -> None:
    with pytest.raises(InvalidCommandError):
        quote("a\nb")


def test_blocks_are_cut_outside_quotes_only() -> None:
    assert split_blocks('a:"b:c":d:') == ["a", '"b:c"', "d", ""]
    assert split_blocks("") == [""]


NAMES = st.text(string.ascii_uppercase, min_size=1, max_size=8)
PRINTABLE = st.text(st.characters(blacklist_categories=["Cc", "Cs"]), max_size=30)


@given(st.lists(PRINTABLE, max_size=6), st.integers(0, 10**9))
def test_quoted_rows_arrive_unchanged_and_end_nothing(texts: list[str], ctag: int) -> None:
    [response] = Tl1Decoder().feed(answer(str(ctag), *(quote(text) if text else '""' for text in texts)))
    assert isinstance(response, Response)
    assert response.ctag == str(ctag)
    assert [unquote(line) for line in response.lines] == texts


@given(st.dictionaries(NAMES, st.text(string.ascii_letters + string.digits + " .:;-_/#<>", max_size=12), min_size=1))
def test_parameters_round_trip(pairs: dict[str, str]) -> None:
    row = '"GGN:' + ",".join(f"{name}={value}" for name, value in pairs.items()) + '"'
    assert parameters(row) == {name: value.strip() for name, value in pairs.items()}
