//! The books of a store: which blocks are held, which somebody has claimed, and which digests are known of them.
//!
//! Nothing here reads or writes a file, and nothing waits.

use crate::block_map::{BlockMap, Run, append};
use crate::digests::{Digest, DigestTable};

/// More blocks no transfer has (`blast_transport/blocks/layout.py`).
pub const MAX_BLOCKS: u64 = 1 << 27;

/// How the data is cut. `size` is in bytes, `None` while a stream has not ended; of one, blocks that lie more than
/// `ahead` before what is held and told are not taken, for they could lie anywhere.
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
    told: u64,
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
            told: 0,
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

    /// How many blocks came with a wrong digest.
    pub fn corrupt(&self) -> u64 {
        self.corrupt
    }

    /// The sender's digests, as far as they were told.
    pub fn sent(&self) -> &DigestTable {
        &self.sent
    }

    /// Blocks from this one on are not taken yet.
    pub fn reach(&self) -> u64 {
        let blocks = self.shape.blocks();
        match self.shape.size {
            Some(_) => blocks,
            None => blocks.min(self.position.max(self.told) + self.shape.ahead),
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

    /// Of the free blocks from `first` to before `stop`, those that are what was sent, as far as that is known.
    ///
    /// Their digests stand in `digests`, from that of `first` on. The wrong ones are asked for again.
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

    /// What an earlier session has left was looked at: this block is held.
    pub fn resume(&mut self, block: u64, digest: Digest) {
        if block < self.shape.blocks() {
            self.own.set(block, digest);
            self.held.insert(block);
            self.position = self.held.first_missing(self.position);
        }
    }

    /// The sender's digests from `first` on; false where their turn has not come, or there are no such blocks.
    pub fn expect(&mut self, first: u64, digests: &[Digest]) -> bool {
        let stop = first + digests.len() as u64;
        if first > self.told || stop > self.shape.blocks() {
            return false;
        }
        self.told = self.told.max(stop);
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

    /// Whoever has claimed them is through with them.
    pub fn release(&mut self, first: u64, stop: u64) {
        for block in first..stop.min(self.claimed.end()) {
            self.claimed.remove(block);
        }
    }

    /// What came as this block is not what was sent; it has to be asked for again.
    pub fn refuse(&mut self, block: u64) {
        self.corrupt += 1;
        if block < MAX_BLOCKS {
            self.wrong.insert(block);
        }
    }

    /// Blocks that came with a wrong digest since the last call.
    pub fn take_wrong(&mut self) -> Vec<Run> {
        if self.wrong.held() == 0 {
            return Vec::new();
        }
        let wrong = std::mem::take(&mut self.wrong);
        wrong.runs(true, 0, wrong.end()).collect()
    }

    /// A stream turned out to have so many bytes: what seemed to lie behind is not of it.
    pub fn end_at(&mut self, size: u64) {
        self.shape.size = Some(size);
        self.held.cut(self.shape.blocks());
        self.position = self.held.first_missing(0);
    }
}
