//! Which blocks lie in a file, with the digest of each, for a session that goes on: as `file_target.py` reads them.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};

use crate::digests::{DIGEST_BYTES, Digest};

const RECORD_BYTES: usize = size_of::<u64>() + DIGEST_BYTES;
const RECORDS_PER_WRITE: usize = 64;

#[derive(Debug)]
pub struct Records {
    file: File,
    pending: Vec<u8>,
}

impl Records {
    pub fn new(file: File) -> Self {
        Records { file, pending: Vec::with_capacity(2 * RECORDS_PER_WRITE * RECORD_BYTES) }
    }

    /// Queue the records of these written blocks.
    pub fn note(&mut self, first: u64, digests: &[Digest]) -> io::Result<()> {
        for (block, digest) in (first..).zip(digests) {
            self.pending.extend(block.to_le_bytes());
            self.pending.extend(digest);
        }
        if self.pending.len() >= RECORDS_PER_WRITE * RECORD_BYTES { self.flush() } else { Ok(()) }
    }

    /// Write the pending records; drop records that cannot be written: their blocks are received again.
    pub fn flush(&mut self) -> io::Result<()> {
        let written = self.file.seek(SeekFrom::End(0)).and_then(|_| self.file.write_all(&self.pending));
        self.pending.clear();
        written
    }
}
