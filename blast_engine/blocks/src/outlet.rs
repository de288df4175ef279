//! Read and send: a file's bytes into a chain's link, behind the frames that announce them.

use std::io;
use std::os::fd::BorrowedFd;

use blast_boundary::{send_file, send_more};

use crate::fault::Fault;
use crate::frames::{CHUNK_BYTES, announcing};
use crate::intake::lost;

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

/// Bytes of a file from `offset` on to before `stop`, of which `promised` are announced already.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    pub offset: u64,
    pub promised: u64,
    pub stop: u64,
}

/// Send up to `max_bytes` bytes of `span`, until the link accepts no more. `Fault::Shorter` if the file ends before.
pub fn give_to(link: BorrowedFd<'_>, file: BorrowedFd<'_>, span: Span, max_bytes: u64) -> Result<Given, Fault> {
    let mut given = Given { promised: span.promised, ..Given::default() };
    match given.go_on(link, file, span, max_bytes) {
        Ok(()) => Ok(given),
        Err(Fault::System(error)) => Ok(Given { lost: lost(error), ..given }),
        Err(fault) => Err(fault),
    }
}

impl Given {
    fn go_on(&mut self, link: BorrowedFd<'_>, file: BorrowedFd<'_>, span: Span, max_bytes: u64) -> Result<(), Fault> {
        while self.bytes < max_bytes {
            let from = span.offset + self.bytes;
            if self.promised == 0 && !self.announce(link, span.stop.saturating_sub(from).min(CHUNK_BYTES))? {
                break;
            }
            match send_file(link, file, from, self.promised as usize)? {
                0 => return Err(Fault::Shorter(from)),
                count => {
                    self.bytes += count as u64;
                    self.promised -= count as u64;
                }
            }
        }
        Ok(())
    }

    /// False if there is nothing to announce, or not all of the frame has gone.
    fn announce(&mut self, link: BorrowedFd<'_>, length: u64) -> Result<bool, Fault> {
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
