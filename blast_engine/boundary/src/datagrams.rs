//! Many datagrams in one call, each of them scattered over two rows of memory. It never waits for any.

use std::io;
use std::mem;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

#[expect(clippy::cast_possible_truncation, reason = "it is 28 bytes")]
const ADDRESS_BYTES: libc::socklen_t = size_of::<libc::sockaddr_in6>() as libc::socklen_t;

/// Received message: a datagram, or several that the kernel has combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Bytes that were scattered.
    pub length: usize,
    /// There were more, which are gone.
    pub truncated: bool,
    /// `None` if it has no address of IPv4 or IPv6.
    pub source: Option<SocketAddr>,
}

/// Scattering of a message: `parts` pairs of `head` bytes and `body` bytes.
#[derive(Clone, Copy, Debug)]
pub struct Scatter {
    pub head: usize,
    pub body: usize,
    pub parts: usize,
}

/// Take the messages that have come, as many as there is room for: heads into the one row, bodies into the other, where
/// the n-th message has the n-th `parts` of each. `WouldBlock` if there are none.
pub fn receive_scattered(
    socket: BorrowedFd<'_>,
    heads: &mut [u8],
    bodies: &mut [u8],
    scatter: Scatter,
) -> io::Result<Vec<Message>> {
    let mut parts: Vec<libc::iovec> = heads
        .chunks_exact_mut(scatter.head)
        .zip(bodies.chunks_exact_mut(scatter.body))
        .flat_map(|(head, body)| [head, body])
        .map(|part| libc::iovec { iov_base: part.as_mut_ptr().cast(), iov_len: part.len() })
        .collect();
    let number = parts.len() / (2 * scatter.parts);
    // SAFETY: all bytes zero are a value of this, that of an address of no family.
    let mut sources: Vec<libc::sockaddr_in6> = vec![unsafe { mem::zeroed() }; number];
    let mut messages: Vec<libc::mmsghdr> = parts
        .chunks_exact_mut(2 * scatter.parts)
        .zip(&mut sources)
        .map(|(parts, source)| {
            // SAFETY: an all-zero value is valid: a message without any buffer.
            let mut message: libc::mmsghdr = unsafe { mem::zeroed() };
            message.msg_hdr.msg_name = ptr::from_mut(source).cast();
            message.msg_hdr.msg_namelen = ADDRESS_BYTES;
            message.msg_hdr.msg_iov = parts.as_mut_ptr();
            message.msg_hdr.msg_iovlen = parts.len();
            message
        })
        .collect();
    let max_messages = libc::c_uint::try_from(messages.len()).unwrap_or(libc::c_uint::MAX);
    // SAFETY: `messages` has `max_messages` writable entries, and all memory that they refer to is exclusive and
    // writable, each piece once, and stays in place: the parts lie within the two rows, which are borrowed mutably
    // until the return.
    let count = unsafe {
        libc::recvmmsg(socket.as_raw_fd(), messages.as_mut_ptr(), max_messages, libc::MSG_DONTWAIT, ptr::null_mut())
    };
    let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
    Ok(messages[..count].iter().zip(&sources).map(|(message, source)| parsed(message, source)).collect())
}

fn parsed(message: &libc::mmsghdr, source: &libc::sockaddr_in6) -> Message {
    Message {
        length: message.msg_len as usize,
        truncated: message.msg_hdr.msg_flags & libc::MSG_TRUNC != 0,
        source: address(source),
    }
}

/// Return the address that the kernel wrote, without flow and scope.
fn address(source: &libc::sockaddr_in6) -> Option<SocketAddr> {
    match i32::from(source.sin6_family) {
        libc::AF_INET6 => {
            let address = Ipv6Addr::from(source.sin6_addr.s6_addr);
            Some(SocketAddrV6::new(address, u16::from_be(source.sin6_port), 0, 0).into())
        }
        libc::AF_INET => {
            // SAFETY: of this family the kernel wrote a `sockaddr_in`, which is smaller and no more aligned.
            let source: libc::sockaddr_in = unsafe { ptr::from_ref(source).cast::<libc::sockaddr_in>().read() };
            let address = Ipv4Addr::from_bits(u32::from_be(source.sin_addr.s_addr));
            Some(SocketAddrV4::new(address, u16::from_be(source.sin_port)).into())
        }
        _ => None,
    }
}
