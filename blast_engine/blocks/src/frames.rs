//! DATA, the one frame of a chain's link that is parsed here:
//! `blast_transport/transports/pipeline/protocol/messages.py`.

use std::io;
use std::os::fd::BorrowedFd;

use blast_boundary::{peek, receive};

/// {body length u32, type u16, version u16}, little-endian.
pub const HEAD_BYTES: usize = 8;
/// Maximum data after one sent DATA head, as in `link.py`.
pub const CHUNK_BYTES: u64 = 1 << 20;

const DATA: u16 = 36;
const VERSION: u16 = 9;
const LARGEST_CHUNK: u64 = 16 << 20;

/// Return the bytes that this data frame announces; `None` for other and invalid frames.
pub fn announced(head: [u8; HEAD_BYTES]) -> Option<u64> {
    let [l0, l1, l2, l3, t0, t1, v0, v1] = head;
    let length = u64::from(u32::from_le_bytes([l0, l1, l2, l3]));
    let is_data = u16::from_le_bytes([t0, t1]) == DATA && u16::from_le_bytes([v0, v1]) == VERSION;
    (is_data && (1..=LARGEST_CHUNK).contains(&length)).then_some(length)
}

/// Return the frame that announces `length` bytes, at most a chunk.
pub fn announcing(length: u64) -> [u8; HEAD_BYTES] {
    let mut head = [0; HEAD_BYTES];
    head[..4].copy_from_slice(&(length as u32).to_le_bytes());
    head[4..6].copy_from_slice(&DATA.to_le_bytes());
    head[6..].copy_from_slice(&VERSION.to_le_bytes());
    head
}

/// Consume the next frame head if it is a complete DATA head; leave anything else in the link.
pub fn next_data(link: BorrowedFd<'_>) -> io::Result<Option<u64>> {
    let mut head = [0; HEAD_BYTES];
    if peek(link, &mut head)? < HEAD_BYTES {
        return Ok(None);
    }
    let length = announced(head);
    if length.is_some() {
        receive(link, &mut head)?;
    }
    Ok(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn announced_returns_the_length_of_a_data_head() {
        for length in [1, 255, 70_000, CHUNK_BYTES] {
            assert_eq!(announced(announcing(length)), Some(length));
        }
    }

    #[test]
    fn announced_rejects_every_other_head() {
        let good = announcing(5);
        for (place, value) in [(4, 37), (5, 1), (6, VERSION as u8 + 1), (7, 1), (0, 0), (3, 1)] {
            let mut head = good;
            head[place] = value;
            assert_eq!(announced(head), None, "byte {place} of {value}");
        }
    }
}
