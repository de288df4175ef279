//! Many datagrams by one call of the system: cut by the kernel out of one piece (`UDP_SEGMENT`), or each by itself.
//!
//! Where the socket's buffer is full the calls wait for our own interface, if the socket itself is made so.

use std::io::{self, IoSlice};
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Cut what is sent from now on into datagrams of `size` bytes; 0: not at all.
pub fn cut_into(light: BorrowedFd<'_>, size: u16) -> io::Result<()> {
    let value = libc::c_int::from(size);
    #[expect(clippy::cast_possible_truncation, reason = "a few bytes")]
    let length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: `value` is valid for reads of `length` bytes.
    let done = unsafe {
        libc::setsockopt(light.as_raw_fd(), libc::SOL_UDP, libc::UDP_SEGMENT, (&raw const value).cast(), length)
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Send these parts as one piece, all of it.
pub fn send_joined(light: BorrowedFd<'_>, parts: &[IoSlice<'_>]) -> io::Result<()> {
    let message = message_of(parts);
    // SAFETY: the message, and the memory that it refers to, are readable.
    let count = unsafe { libc::sendmsg(light.as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL) };
    if count < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Send a datagram of each `of` parts; how many have gone, which is at least one.
pub fn send_each(light: BorrowedFd<'_>, parts: &[IoSlice<'_>], of: usize) -> io::Result<usize> {
    let message = |parts| libc::mmsghdr { msg_hdr: message_of(parts), msg_len: 0 };
    let mut messages: Vec<libc::mmsghdr> = parts.chunks(of).map(message).collect();
    let length = libc::c_uint::try_from(messages.len()).unwrap_or(libc::c_uint::MAX);
    // SAFETY: `messages` has `length` writable entries, and the memory that they refer to is readable.
    let count = unsafe { libc::sendmmsg(light.as_raw_fd(), messages.as_mut_ptr(), length, libc::MSG_NOSIGNAL) };
    usize::try_from(count).map_err(|_| io::Error::last_os_error())
}

/// Return whether this error means that the kernel or the interface cannot segment datagrams.
pub fn refuses_to_cut(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EIO | libc::EINVAL | libc::EMSGSIZE | libc::EOPNOTSUPP))
}

/// The message refers to the parts, and is valid only while they stay in place.
fn message_of(parts: &[IoSlice<'_>]) -> libc::msghdr {
    // SAFETY: an all-zero `msghdr` is valid: numbers, and null pointers that are not followed.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    // An `IoSlice` is what the system calls iovec, which it only reads here.
    message.msg_iov = parts.as_ptr().cast_mut().cast();
    message.msg_iovlen = parts.len();
    message
}
