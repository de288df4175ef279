//! Blocks and segments of a file: `blast_transport/blocks/layout.py`.

/// A file of `size` bytes in blocks of segments.
#[derive(Clone, Copy, Debug)]
pub struct Cut {
    pub size: u64,
    pub segment_size: usize,
    pub block_segments: usize,
}

impl Cut {
    pub fn block_size(&self) -> usize {
        self.segment_size * self.block_segments
    }

    pub fn offset(&self, block: u64) -> u64 {
        block.saturating_mul(self.block_size() as u64)
    }

    /// Bytes of this block; 0 where there is none.
    pub fn length(&self, block: u64) -> usize {
        self.size.saturating_sub(self.offset(block)).min(self.block_size() as u64) as usize
    }
}
