//! The file of a sender: each of its blocks is read once, digested, and sent from memory.
//!
//! Sending it from its pages would save a copy, but its digests need all data in the processor's cache anyway: then the
//! copy costs less than another thread that reads and digests the same data.

use std::io;
use std::os::fd::BorrowedFd;

use blast_boundary::send;

use crate::digests::digest;
use crate::fault::Fault;
use crate::outlet::{Given, Origin, Span, give_to};
use crate::reading::read_whole;

/// Blocks that are read at once: they fit into the processor's cache.
const HOT_BLOCKS: u64 = 4;

/// A file of `size` bytes, and its blocks in memory. The file itself is an argument of each call.
#[derive(Debug)]
pub struct SentFile {
    block_size: u64,
    size: u64,
    /// Its first `filled` bytes are those of the file from `begin` on.
    row: Vec<u8>,
    begin: u64,
    filled: usize,
    /// Blocks before this one are digested.
    digested: u64,
}

/// Digests of the blocks from `first` on, one after the other.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Digested {
    pub first: u64,
    pub digests: Vec<u8>,
}

impl SentFile {
    pub fn new(block_size: u64, size: u64) -> Self {
        SentFile { block_size, size, row: Vec::new(), begin: 0, filled: 0, digested: 0 }
    }

    /// Do as `outlet::give_to`, and return the digests of the blocks that are read for the first time as well.
    ///
    /// Blocks that are not sent, because all receivers hold them, have no digests. `Fault::Shorter` if the file ends
    /// before its size.
    pub fn give_to(
        &mut self,
        link: BorrowedFd<'_>,
        file: BorrowedFd<'_>,
        span: Span,
        max_bytes: u64,
    ) -> Result<(Given, Digested), Fault> {
        let mut reading = Reading { sent: self, file, found: Digested::default() };
        let given = give_to(link, &mut reading, span, max_bytes)?;
        Ok((given, reading.found))
    }

    /// Return the data in memory from `offset` on.
    fn held(&self, offset: u64) -> Option<&[u8]> {
        let place = usize::try_from(offset.checked_sub(self.begin)?).ok()?;
        self.row[..self.filled].get(place..).filter(|rest| !rest.is_empty())
    }
}

/// One call.
struct Reading<'a> {
    sent: &'a mut SentFile,
    file: BorrowedFd<'a>,
    found: Digested,
}

impl Origin for Reading<'_> {
    fn send(&mut self, link: BorrowedFd<'_>, offset: u64, count: usize) -> Result<io::Result<usize>, Fault> {
        if self.sent.held(offset).is_none() {
            self.read(offset)?;
        }
        let rest = self.sent.held(offset).ok_or(Fault::Shorter(offset))?;
        Ok(send(link, &rest[..rest.len().min(count)]))
    }
}

impl Reading<'_> {
    /// Read and digest the blocks from the one with this byte on.
    fn read(&mut self, offset: u64) -> Result<(), Fault> {
        let SentFile { block_size, size, row, begin, filled, digested } = &mut *self.sent;
        let block = offset / *block_size;
        let length = size.saturating_sub(block * *block_size).min(HOT_BLOCKS * *block_size) as usize;
        row.resize(length.max(row.len()), 0);
        // After an error it holds nothing.
        (*begin, *filled) = (block * *block_size, 0);
        read_whole(self.file, &mut row[..length], *begin)?;
        *filled = length;
        for (number, piece) in (block..).zip(row[..length].chunks(*block_size as usize)) {
            // A successor that was lost may have taken blocks that go to the next one again.
            if number >= *digested {
                if self.found.digests.is_empty() {
                    self.found.first = number;
                }
                self.found.digests.extend(digest(piece));
                *digested = number + 1;
            }
        }
        Ok(())
    }
}
