"""No password in a transcript, however it is cut or wrapped."""

from __future__ import annotations

import pytest

from tl1_driver.transcript import LONGEST_WRAPPING, MASK, Mask

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
def test_everything_else_is_shown_as_it_is(size: int) -> None:
    data = b'"open "open\r\n"open sesam e; "ope'
    assert shown(Mask(SECRET), data, size) == data.replace(b'"open sesam e;', b'"open sesam e;')
    assert shown(Mask(b""), data, size) == data
    assert shown(Mask(b"aab"), b"aaaab aa", size) == b"aa" + MASK + b" aa"


def test_what_could_begin_the_secret_is_held_back_and_only_that() -> None:
    mask = Mask(SECRET)
    assert mask.feed(b'x"open\r\n') == b"x"
    assert mask.feed(b"ed") == b'"open\r\ned'
    assert mask.feed(b'"') == b""
    assert mask.rest() == b'"'
    assert mask.rest() == b""


def test_endless_blanks_are_not_held_back() -> None:
    mask = Mask(SECRET)
    data = b'"open' + b"\n" * (3 * LONGEST_WRAPPING)
    held = 0
    out = b""
    for at in range(0, len(data), 100):
        out += mask.feed(data[at : at + 100])
        held = max(held, len(mask._held))
    assert held <= LONGEST_WRAPPING + len(SECRET)
    assert out + mask.rest() == data
