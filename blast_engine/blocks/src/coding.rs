//! Erasure coding over the segments of a group of blocks: a systematic Reed-Solomon code.
//!
//! A group of `k` segments has `MAX_PARITY` parity segments of the same size; any `k` of all of them give the group.
//! The last segment of the data counts as filled with zeros. The header of a parity segment has a number above those of
//! all segments: `PARITY | group << 16 | index`.

use reed_solomon_simd::{Error, ReedSolomonDecoder, ReedSolomonEncoder};

use crate::fault::Fault;
use crate::layout::Cut;
use crate::masks::MAX_SEGMENTS;

/// Parity segments of every group: the code depends on their number. Twice the segments that the slowest of 32
/// receivers loses of a group of 352 at a loss of 5 %, so that a second round finds new ones.
pub const MAX_PARITY: usize = 64;
/// Blocks of a group at most: decoding a larger one delays the receiver's next read by more than a millisecond.
pub const MAX_GROUP_BLOCKS: usize = 16;

const PARITY: u64 = 1 << 63;
const GROUP_AT: u32 = 16;

/// Return the number in the header of the first parity segment of this group.
pub fn number_of(group: u64, index: usize) -> u64 {
    PARITY | group << GROUP_AT | index as u64
}

/// Return group and index of a parity segment with this number; `None` if it is the number of another segment.
pub fn parity_of(number: u64) -> Option<(u64, usize)> {
    let index = (number & ((1 << GROUP_AT) - 1)) as usize;
    (number & PARITY != 0).then_some(((number & !PARITY) >> GROUP_AT, index))
}

/// Groups of a file: `blocks` blocks each.
#[derive(Clone, Copy, Debug)]
pub struct Groups {
    pub cut: Cut,
    pub blocks: usize,
}

impl Groups {
    /// Groups of `blocks` blocks of this file, whose segments must have an even number of bytes.
    pub fn new(cut: Cut, blocks: usize) -> Result<Self, Fault> {
        let Cut { segment_size, block_segments, .. } = cut;
        let possible =
            (1..=MAX_GROUP_BLOCKS).contains(&blocks) && (1..=MAX_SEGMENTS as usize).contains(&block_segments);
        if possible && segment_size > 0 && segment_size % 2 == 0 {
            return Ok(Groups { cut, blocks });
        }
        Err(Fault::Program(format!("groups of {blocks} blocks of {block_segments} segments of {segment_size} bytes")))
    }

    /// Segments of a full group.
    pub fn segments(&self) -> u64 {
        (self.blocks * self.cut.block_segments) as u64
    }

    /// Return the segments (first, behind the last) of this group; none where the file has ended.
    pub fn span(&self, group: u64) -> (u64, u64) {
        let all = self.cut.size.div_ceil(self.cut.segment_size as u64);
        let first = group.saturating_mul(self.segments()).min(all);
        (first, first.saturating_add(self.segments()).min(all))
    }

    /// Return the group of this segment.
    pub fn of(&self, segment: u64) -> u64 {
        segment / self.segments()
    }

    /// Return the bytes of these segments of the file, of which the last may be shorter than the others.
    pub fn bytes(&self, first: u64, stop: u64) -> usize {
        let size = self.cut.segment_size as u64;
        (self.cut.size.min(stop.saturating_mul(size)).saturating_sub(first.saturating_mul(size))) as usize
    }
}

/// Call `take` for each of the parity segments from `first` to before `stop` of the data, which is filled with zeros to
/// whole segments of `size` bytes.
pub fn encode(
    data: &[u8],
    size: usize,
    (first, stop): (usize, usize),
    mut take: impl FnMut(usize, &[u8]),
) -> Result<(), Fault> {
    let mut work = || {
        let mut encoder = ReedSolomonEncoder::new(data.len() / size, MAX_PARITY, size)?;
        for segment in data.chunks_exact(size) {
            encoder.add_original_shard(segment)?;
        }
        let parity = encoder.encode()?;
        for (index, segment) in parity.recovery_iter().enumerate().take(stop).skip(first) {
            take(index, segment);
        }
        Ok(())
    };
    checked(work())
}

/// Compute the missing ones of the segments of `size` bytes in `data`, the bits of which in `there` are not set, from
/// the others and from as many parity segments (index, payload).
pub fn decode<'a>(
    data: &mut [u8],
    size: usize,
    there: &[bool],
    parity: impl IntoIterator<Item = (usize, &'a [u8])>,
) -> Result<(), Fault> {
    let work = || {
        let mut decoder = ReedSolomonDecoder::new(there.len(), MAX_PARITY, size)?;
        for (index, segment) in data.chunks_exact(size).enumerate().filter(|(index, _)| there[*index]) {
            decoder.add_original_shard(index, segment)?;
        }
        for (index, segment) in parity {
            decoder.add_recovery_shard(index, segment)?;
        }
        for (index, segment) in decoder.decode()?.restored_original_iter() {
            data[index * size..(index + 1) * size].copy_from_slice(segment);
        }
        Ok(())
    };
    checked(work())
}

fn checked(done: Result<(), Error>) -> Result<(), Fault> {
    done.map_err(|error| Fault::Program(format!("erasure coding: {error}")))
}
