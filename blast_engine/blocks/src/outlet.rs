//! Read and send: a file's bytes into a chain's link, behind the frames that announce them.

use std::io;
use std::os::fd::BorrowedFd;

use blast_boundary::{send_file, send_more};

use crate::fault::Fault;
use crate::frames::{CHUNK_BYTES, announcing};
use crate::intake::lost;

/// What one call has sent.
#[derive(Debug, Default)]
pub struct Given {
    pub bytes: u64,
    /// So many bytes are announced and still to go.
    pub promised: u64,
    /// What is left of the frame that announces them; it goes first.
    pub head: Vec<u8>,
    /// What is wrong with the link, after all this had gone.
    pub lost: Option<io::Error>,
}

/// Bytes of a file from `offset` on to before `stop`, of which `promised` are announced already.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    pub offset: u64,
    pub promised: u64,
    pub stop: u64,
}

/// Send up to `most` bytes of what is to go: until the link takes no more. `Fault::Shorter` if the file ends before.
pub fn give_to(link: BorrowedFd<'_>, file: BorrowedFd<'_>, span: Span, most: u64) -> Result<Given, Fault> {
    let mut given = Given { promised: span.promised, ..Given::default() };
    match given.go_on(link, file, span, most) {
        Ok(()) => Ok(given),
        Err(Fault::System(error)) => Ok(Given { lost: lost(error), ..given }),
        Err(fault) => Err(fault),
    }
}

impl Given {
    fn go_on(&mut self, link: BorrowedFd<'_>, file: BorrowedFd<'_>, span: Span, most: u64) -> Result<(), Fault> {
        while self.bytes < most {
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
