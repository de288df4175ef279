//! Datagrams side by side in memory that does not move, so that sending copies nothing; the references are
//! `blast_transport/datagrams/burst.py` and `offload.py`.

use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;

use blast_boundary::{cut_into, refuses_to_cut, send_each, send_joined};

use crate::datagram::HEADER_BYTES;

const SEGMENT_AT: usize = 8;

/// Headers in one row, payloads in another.
#[derive(Debug)]
pub struct Burst {
    headers: Vec<u8>,
    payload: Vec<u8>,
    segment_size: usize,
}

impl Burst {
    /// Burst of up to `segments` segments of a session.
    pub fn new(session: u32, segments: usize, segment_size: usize) -> Self {
        let mut header = [0; HEADER_BYTES];
        header[..4].copy_from_slice(&session.to_le_bytes());
        Burst { headers: header.repeat(segments), payload: vec![0; segments * segment_size], segment_size }
    }

    /// Of all segments, one after the other.
    pub fn payload(&mut self) -> &mut [u8] {
        &mut self.payload
    }

    /// The `index`-th datagram and the `count - 1` after it carry the segments from `segment` on.
    pub fn number(&mut self, index: usize, count: usize, segment: u64) {
        let headers = self.headers.chunks_exact_mut(HEADER_BYTES).skip(index).take(count);
        for (header, number) in headers.zip(segment..) {
            header[SEGMENT_AT..].copy_from_slice(&number.to_le_bytes());
        }
    }

    /// Header and payload in turns, of the datagrams that hold the bytes from `begin`, where one begins, to `end`.
    pub fn parts(&self, begin: usize, end: usize) -> Vec<IoSlice<'_>> {
        let headers = self.headers.chunks_exact(HEADER_BYTES).skip(begin / self.segment_size);
        let payloads = self.payload[begin..end].chunks(self.segment_size);
        headers.zip(payloads).flat_map(|(header, payload)| [IoSlice::new(header), IoSlice::new(payload)]).collect()
    }
}

/// Send a datagram for each pair (header, payload) of `parts`: as a super-packet if `offload`, which is over where the
/// kernel refuses that; the same datagrams go each by itself from then on.
pub fn send(light: BorrowedFd<'_>, offload: &mut bool, parts: &[IoSlice<'_>]) -> io::Result<()> {
    if *offload {
        match send_joined(light, parts) {
            Err(error) if refuses_to_cut(&error) => {
                cut_into(light, 0)?;
                *offload = false;
            }
            done => return done,
        }
    }
    let mut rest = parts;
    while !rest.is_empty() {
        rest = &rest[2 * send_each(light, rest, 2)?..];
    }
    Ok(())
}
