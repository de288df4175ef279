//! Waiting for a time, unless a descriptor becomes readable.

use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

/// Seconds by the clock that Python's `time.monotonic` reads.
pub fn monotonic() -> f64 {
    let mut found = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: there is room for what the call writes; every Linux has this clock, so that it always does.
    let found = unsafe {
        libc::clock_gettime(libc::CLOCK_MONOTONIC, found.as_mut_ptr());
        found.assume_init()
    };
    let [seconds, nanos] = [found.tv_sec, found.tv_nsec].map(|part| u64::try_from(part).unwrap_or_default());
    (Duration::from_secs(seconds) + Duration::from_nanos(nanos)).as_secs_f64()
}

/// Wait for `time`, or until the descriptor is readable or a signal arrives; return whether the wait ended early.
pub fn woken_within(woken: BorrowedFd<'_>, time: Duration) -> bool {
    readable_within([woken], time) != Some([false])
}

/// Wait for `time`, and return which descriptors are readable. `None`: a signal arrived.
pub fn readable_within<const N: usize>(watched: [BorrowedFd<'_>; N], time: Duration) -> Option<[bool; N]> {
    let mut entries = watched.map(|one| libc::pollfd { fd: one.as_raw_fd(), events: libc::POLLIN, revents: 0 });
    let seconds = libc::time_t::try_from(time.as_secs()).unwrap_or(libc::time_t::MAX);
    let limit = libc::timespec { tv_sec: seconds, tv_nsec: time.subsec_nanos().into() };
    let count = entries.len() as libc::nfds_t;
    // SAFETY: the entries are writable, the limit is readable, and the null mask leaves signals unchanged.
    let found = unsafe { libc::ppoll(entries.as_mut_ptr(), count, &raw const limit, std::ptr::null()) };
    (found >= 0).then(|| entries.map(|entry| entry.revents != 0))
}
