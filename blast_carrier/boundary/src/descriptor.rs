//! Descriptors that belong to somebody else.

use std::fs::File;
use std::io;
use std::os::fd::{BorrowedFd, RawFd};

/// A file of our own on what this descriptor has open; the caller keeps his. `EBADF` if nothing is open there.
pub fn duplicate(descriptor: RawFd) -> io::Result<File> {
    if descriptor < 0 {
        return Err(io::Error::from_raw_os_error(EBADF));
    }
    // SAFETY: it is used for one call, fcntl(F_DUPFD_CLOEXEC), which refuses a number that is not open.
    let borrowed = unsafe { BorrowedFd::borrow_raw(descriptor) };
    Ok(borrowed.try_clone_to_owned()?.into())
}

/// The system's word for a descriptor that is not open.
const EBADF: i32 = 9;
