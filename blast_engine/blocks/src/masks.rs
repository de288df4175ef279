//! Segments of a block as bits of a word: `blast_transport/blocks/masks.py`.

use crate::block_map::Run;

/// More segments no block has (`blast_transport/blocks/layout.py`): a bit of a word for each.
pub const MAX_SEGMENTS: u64 = u64::BITS as u64;

/// The lowest bits of a word.
pub fn bits(count: u64) -> u64 {
    u64::MAX.checked_shr((MAX_SEGMENTS - count.min(MAX_SEGMENTS)) as u32).unwrap_or(0)
}

/// The runs of set bits.
pub fn runs_of(mask: u64) -> impl Iterator<Item = Run> {
    let mut rest = mask;
    std::iter::from_fn(move || {
        if rest == 0 {
            return None;
        }
        let first = u64::from(rest.trailing_zeros());
        let stop = first + u64::from((rest >> first).trailing_ones());
        rest &= !bits(stop);
        Some((first, stop))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_as_many_as_are_asked_for() {
        for (count, mask) in [(0, 0), (1, 1), (5, 31), (63, u64::MAX >> 1), (64, u64::MAX)] {
            assert_eq!(bits(count), mask);
        }
    }

    #[test]
    fn runs_are_those_of_set_bits() {
        for (mask, found) in [
            (0, vec![]),
            (1, vec![(0, 1)]),
            (0b1101_1000, vec![(3, 5), (6, 8)]),
            (1 << 63, vec![(63, 64)]),
            (1 << 63 | 1, vec![(0, 1), (63, 64)]),
            (u64::MAX, vec![(0, 64)]),
            (u64::MAX << 1 ^ 1 << 40, vec![(1, 40), (41, 64)]),
        ] {
            assert_eq!(runs_of(mask).collect::<Vec<_>>(), found, "{mask:b}");
        }
    }
}
