"""Retention drops a prefix of old entries, but never the latest one."""

from hypothesis import given
from hypothesis import strategies as st

from blast_controller.store.retention import SECONDS_PER_DAY, RetainedEntry, Retention

times = st.floats(min_value=-1e6, max_value=1e6)
sizes = st.integers(1, 50)


@given(st.lists(st.tuples(times, sizes), max_size=12), st.integers(0, 5), st.integers(1, 15), st.floats(0, 10), times)
def test_retention_drops_the_longest_expired_prefix(written, later, kept, days, at):
    oldest = [RetainedEntry(sequence, when, size) for sequence, (when, size) in enumerate(written, start=7)]
    newest = 6 + len(written) + later
    retention = Retention(kept, days, max_bytes=100)
    size = sum(line.size for line in oldest) + 10 * later
    last = retention.last_expired(oldest, newest, size, at)
    assert last < newest or not written

    def expired(line):
        too_old = at - line.at > days * SECONDS_PER_DAY
        with_later_ones = size - sum(other.size for other in oldest if other.sequence < line.sequence)
        return line.sequence != newest and (newest - line.sequence >= kept or too_old or with_later_ones > 100)

    dropped = [line for line in oldest if line.sequence <= last]
    assert all(map(expired, dropped))
    left = oldest[len(dropped) :]
    assert not left or not expired(left[0])
