from __future__ import annotations

import pytest

from tl1_driver.errors import InvalidCommand
from tl1_driver.payload import parameters, quote, split_blocks, unquote
from tl1_driver.transcript import MASK, Mask


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


@pytest.mark.parametrize("text", ["plain", "", "with;semi", 'with"quote', "back\\slash", "colon:", "a b"])
def test_quote_and_unquote_are_inverse(text: str) -> None:
    assert unquote(quote(text)) == text


def test_control_characters_cannot_be_quoted() -> None:
    with pytest.raises(InvalidCommand):
        quote("a\nb")


def test_blocks_are_cut_outside_quotes_only() -> None:
    assert split_blocks('a:"b:c":d:') == ["a", '"b:c"', "d", ""]
    assert split_blocks("") == [""]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 100])
def test_mask_hides_the_secret_however_it_is_cut(size: int) -> None:
    data = b"ACT-USER::a:1::sesame;sesasesame sesam"
    mask = Mask(b"sesame")
    shown = b"".join(mask.feed(data[at : at + size]) for at in range(0, len(data), size)) + mask.rest()
    assert shown == data.replace(b"sesame", MASK)


def test_mask_without_secret_passes_everything() -> None:
    assert Mask(b"").feed(b"abc") == b"abc"
