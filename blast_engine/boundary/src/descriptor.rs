//! Descriptors that belong to somebody else.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};

/// A descriptor of our own on what this one has open; the caller keeps his. `EBADF` if nothing is open there.
pub fn duplicate(descriptor: RawFd) -> io::Result<OwnedFd> {
    if descriptor < 0 {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: it is used for one call, fcntl(F_DUPFD_CLOEXEC), which refuses a number that is not open.
    let borrowed = unsafe { BorrowedFd::borrow_raw(descriptor) };
    borrowed.try_clone_to_owned()
}

/// Do something with what this descriptor has open, which its owner keeps open meanwhile. `EBADF` if nothing can be.
pub fn with_lent<T>(descriptor: RawFd, work: impl FnOnce(BorrowedFd<'_>) -> T) -> io::Result<T> {
    with_all_lent([descriptor], |[one]| work(one))
}

/// The same of several.
pub fn with_all_lent<T, const N: usize>(
    descriptors: [RawFd; N],
    work: impl FnOnce([BorrowedFd<'_>; N]) -> T,
) -> io::Result<T> {
    if descriptors.iter().any(|descriptor| *descriptor < 0) {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: they are used for no longer than the call lasts; that they stay open for so long is what their owner
    // promises, and who breaks that gets an error of the system, or reads and writes something else of his.
    Ok(work(descriptors.map(|descriptor| unsafe { BorrowedFd::borrow_raw(descriptor) })))
}
