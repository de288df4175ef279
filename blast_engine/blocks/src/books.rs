//! Books of a store: held blocks, claimed blocks, and known digests.
//!
//! No function reads or writes a file, and none waits.

use crate::block_map::{BlockMap, Run, append};
use crate::digests::{Digest, DigestTable};

/// Maximum blocks of a transfer (`blast_transport/blocks/layout.py`).
pub const MAX_BLOCKS: u64 = 1 << 27;

/// Layout of the data. `size` is in bytes, `None` while a stream has not ended; blocks of a stream more than `ahead`
/// beyond the held and announced ones are rejected, because they could lie anywhere.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub block_size: u64,
    pub size: Option<u64>,
    pub ahead: u64,
}

impl Shape {
    pub fn blocks(&self) -> u64 {
        self.size.map_or(MAX_BLOCKS, |size| size.div_ceil(self.block_size).min(MAX_BLOCKS))
    }
}

#[derive(Debug)]
pub struct Books {
    shape: Shape,
    held: BlockMap,
    claimed: BlockMap,
    wrong: BlockMap,
    own: DigestTable,
    sent: DigestTable,
    announced: u64,
    position: u64,
    corrupt: u64,
}

impl Books {
    pub fn new(shape: Shape) -> Self {
        Books {
            shape,
            held: BlockMap::default(),
            claimed: BlockMap::default(),
            wrong: BlockMap::default(),
            own: DigestTable::default(),
            sent: DigestTable::default(),
            announced: 0,
            position: 0,
            corrupt: 0,
        }
    }

    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    pub fn held(&self) -> &BlockMap {
        &self.held
    }

    /// The first block that is not held.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// The number of blocks received with a wrong digest.
    pub fn corrupt(&self) -> u64 {
        self.corrupt
    }

    /// The sender's digests, as far as they are announced.
    pub fn sent(&self) -> &DigestTable {
        &self.sent
    }

    /// Blocks from this one on are not accepted yet.
    pub fn reach(&self) -> u64 {
        let blocks = self.shape.blocks();
        match self.shape.size {
            Some(_) => blocks,
            None => blocks.min(self.position.max(self.announced) + self.shape.ahead),
        }
    }

    /// Every block is held and is what was sent.
    pub fn complete(&self) -> bool {
        let blocks = self.shape.blocks();
        self.shape.size.is_some() && self.position >= blocks && self.sent.complete(blocks)
    }

    /// The blocks from `first` to before `stop` that are neither held nor claimed.
    pub fn free(&self, first: u64, stop: u64) -> Vec<Run> {
        let missing = self.held.runs(false, first, stop);
        missing.flat_map(|(begin, end)| self.claimed.runs(false, begin, end)).collect()
    }

    /// Return those of the free blocks from `first` to before `stop` that match the sender's digests, as far as known.
    ///
    /// `digests` begins with that of `first`. Wrong blocks are requested again.
    pub fn good(&mut self, first: u64, digests: &[Digest], stop: u64) -> Vec<Run> {
        let mut good = Vec::<Run>::new();
        for (begin, end) in self.free(first, stop) {
            for block in begin..end {
                if self.sent.get(block).is_some_and(|sent| *sent != digests[(block - first) as usize]) {
                    self.refuse(block);
                    continue;
                }
                append(&mut good, block, block + 1);
            }
        }
        good
    }

    /// These blocks lie in the file, with these digests.
    pub fn hold(&mut self, first: u64, digests: &[Digest]) {
        let stop = first + digests.len() as u64;
        for (block, digest) in (first..stop).zip(digests) {
            self.own.set(block, *digest);
        }
        self.held.insert_run(first, stop);
        if first == self.position {
            self.position = self.held.first_missing(first);
        }
    }

    /// Hold this block, which an earlier session left and the caller has verified.
    pub fn resume(&mut self, block: u64, digest: Digest) {
        if block < self.shape.blocks() {
            self.own.set(block, digest);
            self.held.insert(block);
            self.position = self.held.first_missing(self.position);
        }
    }

    /// Add the sender's digests from `first` on; return false if they are out of order, or beyond the last block.
    pub fn expect(&mut self, first: u64, digests: &[Digest]) -> bool {
        let stop = first + digests.len() as u64;
        if first > self.announced || stop > self.shape.blocks() {
            return false;
        }
        self.announced = self.announced.max(stop);
        for (block, digest) in (first..stop).zip(digests) {
            self.sent.set(block, *digest);
            if self.own.get(block).is_some_and(|own| own != digest) {
                self.held.remove(block);
                self.position = self.position.min(block);
                self.refuse(block);
            }
        }
        true
    }

    /// Let the caller write the free ones of these blocks by himself.
    pub fn claim(&mut self, first: u64, stop: u64) -> Vec<Run> {
        let free = self.free(first, stop.min(self.reach()));
        for (begin, end) in &free {
            self.claimed.insert_run(*begin, *end);
        }
        free
    }

    /// Return claims of blocks.
    pub fn release(&mut self, first: u64, stop: u64) {
        for block in first..stop.min(self.claimed.end()) {
            self.claimed.remove(block);
        }
    }

    /// Mark this block as received with wrong data; it has to be requested again.
    pub fn refuse(&mut self, block: u64) {
        self.corrupt += 1;
        if block < MAX_BLOCKS {
            self.wrong.insert(block);
        }
    }

    /// Return the blocks received with a wrong digest since the last call.
    pub fn take_wrong(&mut self) -> Vec<Run> {
        if self.wrong.held() == 0 {
            return Vec::new();
        }
        let wrong = std::mem::take(&mut self.wrong);
        wrong.runs(true, 0, wrong.end()).collect()
    }

    /// Set the size of a stream, and drop blocks behind it.
    pub fn end_at(&mut self, size: u64) {
        self.shape.size = Some(size);
        self.held.cut(self.shape.blocks());
        self.position = self.held.first_missing(0);
    }
}
