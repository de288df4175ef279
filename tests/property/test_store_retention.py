"""What is dropped is a prefix, never the latest, never what is both young and among the latest."""

from hypothesis import given
from hypothesis import strategies as st

from blast_controller.store.retention import SECONDS_PER_DAY, Retention

times = st.floats(min_value=-1e6, max_value=1e6)


@given(st.lists(times, max_size=12), st.integers(0, 5), st.integers(1, 15), st.floats(0, 10), times)
def test_what_expires(written, later, kept, days, at):
    oldest = list(enumerate(written, start=7))
    newest = 6 + len(written) + later
    last = Retention(kept, days).last_expired(oldest, newest, at)
    assert last < newest or not written

    def expired(sequence, when):
        return sequence != newest and (newest - sequence >= kept or at - when > days * SECONDS_PER_DAY)

    dropped = [entry for entry in oldest if entry[0] <= last]
    assert all(expired(*entry) for entry in dropped)
    left = oldest[len(dropped) :]
    assert not left or not expired(*left[0])
