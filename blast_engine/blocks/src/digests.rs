//! Digests of blocks: BLAKE3, cut to 16 bytes, as `blake3` of `blast_transport/blocks/digests.py`.

use std::os::fd::BorrowedFd;

use crate::block_map::BlockMap;
use crate::fault::Fault;
use crate::reading::read_whole;

pub const DIGEST_BYTES: usize = 16;
pub type Digest = [u8; DIGEST_BYTES];

/// Of one block.
pub fn digest(block: &[u8]) -> Digest {
    let mut cut = [0; DIGEST_BYTES];
    cut.copy_from_slice(&blake3::hash(block).as_bytes()[..DIGEST_BYTES]);
    cut
}

/// Split consecutive digests; drop an incomplete last one.
pub fn cut(digests: &[u8]) -> Vec<Digest> {
    digests.chunks_exact(DIGEST_BYTES).filter_map(|whole| whole.try_into().ok()).collect()
}

/// The digests of `count` blocks from `first` on, one after the other, of a file of `size` bytes, while each is hot.
pub fn digests_of_file(
    file: BorrowedFd<'_>,
    first: u64,
    count: u64,
    block_size: u64,
    size: u64,
) -> Result<Vec<u8>, Fault> {
    let mut buffer = vec![0; block_size as usize];
    let mut digests = Vec::with_capacity(count as usize * DIGEST_BYTES);
    for block in first..first + count {
        let offset = block * block_size;
        let piece = &mut buffer[..size.saturating_sub(offset).min(block_size) as usize];
        read_whole(file, piece, offset)?;
        digests.extend(digest(piece));
    }
    Ok(digests)
}

/// The digests of the blocks from the first on, as far as they are known, in any order.
#[derive(Clone, Debug, Default)]
pub struct DigestTable {
    table: Vec<Digest>,
    known: BlockMap,
}

impl DigestTable {
    /// Note that of one block.
    pub fn set(&mut self, block: u64, digest: Digest) {
        let place = block as usize;
        if place >= self.table.len() {
            self.table.resize(place + 1, [0; DIGEST_BYTES]);
        }
        self.table[place] = digest;
        self.known.insert(block);
    }

    pub fn get(&self, block: u64) -> Option<&Digest> {
        self.known.contains(block).then(|| &self.table[block as usize])
    }

    /// The first `blocks` are all known.
    pub fn complete(&self, blocks: u64) -> bool {
        self.known.first_missing(0) >= blocks
    }

    /// Those of the first `blocks`, one after the other; zeros where none is known.
    pub fn bytes(&self, blocks: u64) -> Vec<u8> {
        let mut bytes = self.table[..self.table.len().min(blocks as usize)].as_flattened().to_vec();
        bytes.resize(blocks as usize * DIGEST_BYTES, 0);
        bytes
    }
}
