//! Reading of a file that the caller owns.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Read the file from `offset` on, up to the size of `room`; return 0 at its end.
pub fn read_at(file: BorrowedFd<'_>, room: &mut [u8], offset: u64) -> io::Result<usize> {
    let from = libc::off64_t::try_from(offset).map_err(|_| io::Error::from_raw_os_error(libc::EOVERFLOW))?;
    // SAFETY: `room` is writable for its whole length.
    let count = unsafe { libc::pread64(file.as_raw_fd(), room.as_mut_ptr().cast(), room.len(), from) };
    usize::try_from(count).map_err(|_| io::Error::last_os_error())
}
