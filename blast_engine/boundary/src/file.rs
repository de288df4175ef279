//! Reading of a file that belongs to somebody else.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// What the file has from `offset` on, as much as there is room for; 0 where it ends.
pub fn read_at(file: BorrowedFd<'_>, room: &mut [u8], offset: u64) -> io::Result<usize> {
    let from = libc::off64_t::try_from(offset).map_err(|_| io::Error::from_raw_os_error(libc::EOVERFLOW))?;
    // SAFETY: the room is ours to write to, and as long as we say.
    let count = unsafe { libc::pread64(file.as_raw_fd(), room.as_mut_ptr().cast(), room.len(), from) };
    usize::try_from(count).map_err(|_| io::Error::last_os_error())
}
