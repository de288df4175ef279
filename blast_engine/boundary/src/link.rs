//! Non-blocking calls on a connection: they return `WouldBlock` instead of waiting for the other side.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Receive available data up to the size of `room`; return 0 at the end of the connection.
pub fn receive(link: BorrowedFd<'_>, room: &mut [u8]) -> io::Result<usize> {
    receive_by(link, room, libc::MSG_DONTWAIT)
}

/// Receive as `receive` does, without consuming the data.
pub fn peek(link: BorrowedFd<'_>, room: &mut [u8]) -> io::Result<usize> {
    receive_by(link, room, libc::MSG_DONTWAIT | libc::MSG_PEEK)
}

fn receive_by(link: BorrowedFd<'_>, room: &mut [u8], flags: libc::c_int) -> io::Result<usize> {
    // SAFETY: `room` is writable for its whole length.
    counted(unsafe { libc::recv(link.as_raw_fd(), room.as_mut_ptr().cast(), room.len(), flags) })
}

/// Send these bytes.
pub fn send(link: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    send_by(link, bytes, libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL)
}

/// Send these bytes, which more will follow at once.
pub fn send_more(link: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    send_by(link, bytes, libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL | libc::MSG_MORE)
}

fn send_by(link: BorrowedFd<'_>, bytes: &[u8], flags: libc::c_int) -> io::Result<usize> {
    // SAFETY: `bytes` is readable for its whole length.
    counted(unsafe { libc::send(link.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), flags) })
}

/// Send up to `count` bytes of the file from `offset` on; 0 where it ends. It waits if the link itself is made so.
pub fn send_file(link: BorrowedFd<'_>, file: BorrowedFd<'_>, offset: u64, count: usize) -> io::Result<usize> {
    let mut from = libc::off64_t::try_from(offset).map_err(|_| io::Error::from_raw_os_error(libc::EOVERFLOW))?;
    // SAFETY: the offset is writable during the call; nothing else is a pointer.
    counted(unsafe { libc::sendfile64(link.as_raw_fd(), file.as_raw_fd(), &raw mut from, count) })
}

fn counted(count: isize) -> io::Result<usize> {
    usize::try_from(count).map_err(|_| io::Error::last_os_error())
}
