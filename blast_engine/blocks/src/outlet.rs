//! Send: data into a chain's link, behind the frames that announce it.

use std::io;
use std::os::fd::BorrowedFd;

use blast_boundary::{send_file, send_more};

use crate::fault::Fault;
use crate::frames::{CHUNK_BYTES, announcing};
use crate::intake::lost;

/// Where a link's data comes from.
pub trait Origin {
    /// Send up to `count` bytes from `offset` on; return the number that the link accepted.
    ///
    /// Inside: the link's errors; outside: those of the origin, `Fault::Shorter` if it ends before `offset`.
    fn send(&mut self, link: BorrowedFd<'_>, offset: u64, count: usize) -> Result<io::Result<usize>, Fault>;
}

/// A file, from its pages: without a copy, but also without a look at the data.
impl Origin for BorrowedFd<'_> {
    fn send(&mut self, link: BorrowedFd<'_>, offset: u64, count: usize) -> Result<io::Result<usize>, Fault> {
        match send_file(link, *self, offset, count) {
            Ok(0) => Err(Fault::Shorter(offset)),
            sent => Ok(sent),
        }
    }
}

/// Result of one call.
#[derive(Debug, Default)]
pub struct Given {
    pub bytes: u64,
    /// Announced bytes that are still to be sent.
    pub promised: u64,
    /// Rest of the frame head that announces them, which precedes them.
    pub head: Vec<u8>,
    /// Error of the link after these bytes.
    pub lost: Option<io::Error>,
}

/// Bytes from `offset` on to before `stop`, of which `promised` are announced already.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    pub offset: u64,
    pub promised: u64,
    pub stop: u64,
}

/// Send up to `max_bytes` bytes of `span`, until the link accepts no more.
pub fn give_to(link: BorrowedFd<'_>, origin: &mut impl Origin, span: Span, max_bytes: u64) -> Result<Given, Fault> {
    let mut given = Given { promised: span.promised, ..Given::default() };
    if let Err(error) = given.go_on(link, origin, span, max_bytes)? {
        given.lost = lost(error);
    }
    Ok(given)
}

impl Given {
    fn go_on(
        &mut self,
        link: BorrowedFd<'_>,
        origin: &mut impl Origin,
        span: Span,
        max_bytes: u64,
    ) -> Result<io::Result<()>, Fault> {
        while self.bytes < max_bytes {
            let from = span.offset + self.bytes;
            if self.promised == 0 {
                match self.announce(link, span.stop.saturating_sub(from).min(CHUNK_BYTES)) {
                    Ok(true) => (),
                    Ok(false) => break,
                    Err(error) => return Ok(Err(error)),
                }
            }
            match origin.send(link, from, self.promised as usize)? {
                Ok(count) => {
                    self.bytes += count as u64;
                    self.promised -= count as u64;
                }
                Err(error) => return Ok(Err(error)),
            }
        }
        Ok(Ok(()))
    }

    /// False if there is nothing to announce, or not all of the frame has gone.
    fn announce(&mut self, link: BorrowedFd<'_>, length: u64) -> io::Result<bool> {
        if length == 0 {
            return Ok(false);
        }
        let head = announcing(length);
        let sent = send_more(link, &head)?;
        self.promised = length;
        self.head = head[sent..].to_vec();
        Ok(self.head.is_empty())
    }
}
