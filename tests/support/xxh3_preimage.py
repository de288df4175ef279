"""Second preimages of XXH3-128, the digest of blocks that earlier versions believed: why it is not believed any more.

XXH3 takes long input in stripes of eight 64-bit words, sixteen stripes between two scramblings of its accumulators. Of
each word d in lane i, with the public secret's word k: acc[i ^ 1] += d, and acc[i] += low32(d ^ k) * high32(d ^ k). So
whoever replaces the twelve first words of a lane by anything can restore both sums with the last four of the sixteen:
two whose products are what is missing of the one, and two whose product is zero for what is missing of the other.
"""

from __future__ import annotations

import struct

_SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221"
    "b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb"
    "170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)
_LANES, _STRIPES, _FREE = 8, 16, 12
_ROUND_BYTES = 8 * _LANES * _STRIPES
_WORD, _HALF = 1 << 64, 1 << 32


def second_preimage(block: bytes, wanted: bytes) -> bytes:
    """Another block with the XXH3-128 of `block`, in which three quarters of the words are those of `wanted`."""
    forged = bytearray(block)
    # The end of the input is digested once more in another way, so the last round stays.
    for begin in range(0, len(block) - _ROUND_BYTES - 64, _ROUND_BYTES):
        for lane in range(_LANES):
            _forge(forged, wanted, begin, lane)
    return bytes(forged)


def _forge(data: bytearray, wanted: bytes, begin: int, lane: int) -> None:
    places = [begin + 64 * stripe + 8 * lane for stripe in range(_STRIPES)]
    keys = [_word(_SECRET, 8 * (stripe + lane)) for stripe in range(_STRIPES)]
    total, products = _sums([_word(data, place) for place in places], keys)
    words = [_word(wanted, place) for place in places[:_FREE]]
    so_far = _sums(words, keys)
    # product = most * quotient + rest, each factor in 32 bits.
    most = _HALF - 1
    quotient, rest = divmod((products - so_far[1]) % _WORD, most)
    words += [keys[_FREE] ^ (most << 32 | quotient), keys[_FREE + 1] ^ (1 << 32 | rest)]
    # Words whose other half is that of the key multiply to nothing.
    low_key, high_key = keys[_FREE + 2], keys[_FREE + 3]
    left = (total - _sums(words, keys)[0]) % _WORD
    low = (left - high_key) % _HALF
    high = ((left - (low_key >> 32 << 32 | low) - high_key % _HALF) % _WORD) >> 32
    words += [low_key >> 32 << 32 | low, high << 32 | high_key % _HALF]
    for place, word in zip(places, words, strict=True):
        struct.pack_into("<Q", data, place, word)


def _sums(words: list[int], keys: list[int]) -> tuple[int, int]:
    """(of the words, of the products of the halves of each with its key) modulo 2^64."""
    mixed = [word ^ key for word, key in zip(words, keys, strict=False)]
    return sum(words) % _WORD, sum((value >> 32) * (value % _HALF) for value in mixed) % _WORD


def _word(data: bytes | bytearray, place: int) -> int:
    word: int = struct.unpack_from("<Q", data, place)[0]
    return word
