from __future__ import annotations

import pytest

from blast_transport.bitmap import Bitmap


def test_add_says_whether_new_and_counts() -> None:
    bitmap = Bitmap(4)
    assert bitmap.add(2)
    assert not bitmap.add(2)
    assert bitmap.held == 1
    assert 2 in bitmap
    assert 1 not in bitmap


def test_missing_ranges_within_limits() -> None:
    bitmap = Bitmap(10)
    for index in (0, 3, 4, 9):
        bitmap.add(index)
    assert list(bitmap.missing(0, 10)) == [(1, 2), (5, 4)]
    assert list(bitmap.missing(2, 7)) == [(2, 1), (5, 2)]
    assert list(bitmap.missing(3, 5)) == []


def test_searches_end_at_size() -> None:
    bitmap = Bitmap(3)
    assert bitmap.first_held() == 3
    bitmap.add_range(0, 3)
    assert bitmap.first_missing() == 3
    assert bitmap.held == 3


def test_add_range_counts_only_new_ones_and_discard_undoes() -> None:
    bitmap = Bitmap(5)
    bitmap.add(1)
    bitmap.add_range(0, 3)
    assert bitmap.held == 3
    bitmap.discard(1)
    bitmap.discard(1)
    assert bitmap.held == 2
    assert list(bitmap.missing(0, 3)) == [(1, 1)]


@pytest.mark.parametrize(("first", "count"), [(4, 2), (-1, 2), (6, 0)])
def test_range_outside_is_refused(first: int, count: int) -> None:
    with pytest.raises(IndexError):
        Bitmap(5).add_range(first, count)


def test_empty_bitmap() -> None:
    assert list(Bitmap(0).missing(0, 0)) == []
