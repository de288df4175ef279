//! Datagram of the optical transport, as `blast_transport/wire/datagram.py` describes it, and its permitted sender.

use std::net::SocketAddr;

use blast_boundary::Message;

/// {session u32, flags u32, segment u64}, little-endian.
pub const HEADER_BYTES: usize = 16;
/// Maximum UDP payload minus the header (`blast_transport/blocks/layout.py`).
pub const LARGEST_SEGMENT: usize = 65_491;

/// Sender of accepted datagrams, and the length of their payloads; the last one of a message may be shorter.
#[derive(Clone, Copy, Debug)]
pub struct Expected {
    pub source: SocketAddr,
    pub session: u32,
    pub segment_size: usize,
}

impl Expected {
    /// Return the segments of this message with these headers, or the number of its datagrams that are rejected.
    pub fn segments(&self, message: &Message, headers: &[u8]) -> Result<Vec<u64>, u64> {
        let datagram = HEADER_BYTES + self.segment_size;
        let count = message.length.div_ceil(datagram);
        if message.source != Some(self.source) {
            return Err(count as u64);
        }
        let of_last = message.length - count.saturating_sub(1) * datagram;
        if message.truncated || of_last <= HEADER_BYTES {
            return Err(1);
        }
        let headers = headers.chunks_exact(HEADER_BYTES).take(count);
        let segments: Option<Vec<u64>> = headers.map(|header| self.segment(header.try_into().ok()?)).collect();
        segments.filter(|segments| segments.len() == count).ok_or(count as u64)
    }

    /// Return the number of the segment behind this header, if its session is the expected one and it has no flag.
    fn segment(&self, header: [u8; HEADER_BYTES]) -> Option<u64> {
        let header = u128::from_le_bytes(header);
        (header as u64 == u64::from(self.session)).then_some((header >> 64) as u64)
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;

    const SOURCE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 4000);
    const EXPECTED: Expected = Expected { source: SOURCE, session: 7, segment_size: 10 };

    fn message(length: usize) -> Message {
        Message { length, truncated: false, source: Some(SOURCE) }
    }

    fn headers(all: &[(u32, u32, u64)]) -> Vec<u8> {
        let one = |(session, flags, segment): &(u32, u32, u64)| {
            [&session.to_le_bytes()[..], &flags.to_le_bytes(), &segment.to_le_bytes()].concat()
        };
        all.iter().flat_map(one).collect()
    }

    #[test]
    fn segments_accepts_datagrams_of_the_expected_session() {
        let good = headers(&[(7, 0, 3), (7, 0, u64::MAX), (7, 0, 3), (9, 9, 9)]);
        assert_eq!(EXPECTED.segments(&message(78), &good), Ok(vec![3, u64::MAX, 3]));
        assert_eq!(EXPECTED.segments(&message(69), &good), Ok(vec![3, u64::MAX, 3]));
        assert_eq!(EXPECTED.segments(&message(17), &good), Ok(vec![3]));
    }

    #[test]
    fn segments_counts_rejected_datagrams() {
        let good = headers(&[(7, 0, 3), (7, 0, 4)]);
        for length in [0, 1, 16, 27, 42] {
            assert_eq!(EXPECTED.segments(&message(length), &good), Err(1), "{length} bytes");
        }
        assert_eq!(EXPECTED.segments(&Message { truncated: true, ..message(26) }, &good), Err(1));
        let foreign = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 4001);
        for source in [None, Some(foreign)] {
            assert_eq!(EXPECTED.segments(&Message { source, ..message(52) }, &good), Err(2));
            assert_eq!(EXPECTED.segments(&Message { source, ..message(0) }, &good), Err(0));
        }
        for wrong in [(8, 0, 4), (7, 1, 4), (7, 1 << 31, 4)] {
            assert_eq!(EXPECTED.segments(&message(52), &headers(&[(7, 0, 3), wrong])), Err(2), "{wrong:?}");
        }
    }
}
