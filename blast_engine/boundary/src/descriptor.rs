//! Descriptors that the caller owns.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};

/// Duplicate the descriptor; the caller keeps its own. `EBADF` if it is not open.
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
    // SAFETY: they are used only during the call; their owner keeps them open for that time. A violation causes an
    // error of the system, or an access to another file of the owner.
    Ok(work(descriptors.map(|descriptor| unsafe { BorrowedFd::borrow_raw(descriptor) })))
}
