//! Read, digest and send blocks of a file over the optical path, in bursts, within given limits.
//!
//! `blast_transport/datagrams/bursts.py` is the reference, and documents each call.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use blast_boundary::{monotonic, woken_within};

use crate::burst::{Burst, send};
use crate::coding::{Groups, encode, number_of};
use crate::datagram::HEADER_BYTES;
use crate::digests::digest;
use crate::fault::Fault;
use crate::layout::Cut;
use crate::masks::runs_of;
use crate::pace::Pace;
use crate::reading::read_whole;

/// Bytes of a datagram on the wire besides its payload: Ethernet, IP, UDP, and the Blast header.
const WIRE_HEADERS: u64 = 14 + 20 + 8 + HEADER_BYTES as u64;
/// Maximum bytes of a super-packet; a receiver reads at most the datagrams of one block at once.
const MAX_BYTES: usize = 65_507;
/// Seconds, as in `blast_transport/datagrams/sender.py`: a shorter wait costs more than it saves.
const SHORTEST_WAIT: f64 = 0.00025;

/// Descriptors of the loop, which ends when `woken` is readable.
#[derive(Clone, Copy, Debug)]
pub struct Ends<'a> {
    pub light: BorrowedFd<'a>,
    pub file: BorrowedFd<'a>,
    pub woken: BorrowedFd<'a>,
}

/// The segment of the block that leaves next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spot {
    pub block: u64,
    pub segment: usize,
}

/// Limit of one step: at most `bursts` bursts from `now` on, without waiting until `until` or longer.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    pub bursts: usize,
    pub now: f64,
    pub until: f64,
}

/// Result of one call.
#[derive(Debug, Default)]
pub struct Sent {
    pub bursts: usize,
    pub datagrams: u64,
    pub wire_bytes: u64,
    /// Digests of the blocks that were digested, one after the other.
    pub digests: Vec<u8>,
    /// Error of the socket after the counted datagrams left, and the bytes of the datagrams that it rejected.
    pub refused: Option<(io::Error, usize)>,
}

/// The datagrams of one session. `offload`: they go as super-packets.
#[derive(Debug)]
pub struct Bursts {
    cut: Cut,
    offload: bool,
    block: Burst,
    /// Which one is in there, and how many bytes of it.
    loaded: Option<(u64, usize)>,
    again: Burst,
    max_again: usize,
}

impl Bursts {
    pub fn new(session: u32, cut: Cut, offload: bool) -> Self {
        let datagram = HEADER_BYTES + cut.segment_size;
        let max_again = (MAX_BYTES / datagram).clamp(1, cut.block_segments);
        Bursts {
            cut,
            offload,
            block: Burst::new(session, cut.block_segments, cut.segment_size),
            loaded: None,
            again: Burst::new(session, max_again, cut.segment_size),
            max_again: max_again * cut.segment_size,
        }
    }

    pub fn offload(&self) -> bool {
        self.offload
    }

    /// Send from `spot` on, and update it: bursts of `piece` segments, none across the end of a block, of blocks before
    /// `stop`; a block that has begun is sent to its end. Each burst leaves when `pace` permits, for which the call
    /// waits within `limits`, unless it is woken. Blocks from `digested` on are digested when they are read.
    ///
    /// An error of the file is returned only if nothing was sent before it; otherwise the result is returned first.
    pub fn go_on(
        &mut self,
        ends: Ends<'_>,
        spot: &mut Spot,
        (stop, piece): (u64, usize),
        pace: &mut Pace,
        mut limits: Step,
        digested: u64,
    ) -> Result<Sent, Fault> {
        let mut sent = Sent::default();
        while (spot.segment > 0 || spot.block < stop) && sent.bursts < limits.bursts {
            if pace.delay(limits.now) > 0.0 && !limits.comes(pace, ends.woken) {
                break;
            }
            let before = sent.wire_bytes;
            let length = match self.load(ends.file, spot.block, digested, &mut sent.digests) {
                Ok(length) => length,
                Err(_) if sent.bursts > 0 => break,
                Err(fault) => return Err(fault),
            };
            let begin = spot.segment.saturating_mul(self.cut.segment_size);
            if begin >= length || piece == 0 {
                return Err(Fault::Program(format!("{spot:?} in pieces of {piece}, in a file of {:?}", self.cut)));
            }
            let end = length.min(begin.saturating_add(piece.saturating_mul(self.cut.segment_size)));
            sent.burst(ends.light, &mut self.offload, &self.block, (begin, end));
            pace.sent(sent.wire_bytes - before, limits.now);
            if sent.refused.is_some() {
                break;
            } else if end < length {
                spot.segment += piece;
            } else {
                *spot = Spot { block: spot.block + 1, segment: 0 };
                self.loaded = None;
            }
        }
        Ok(sent)
    }

    /// Send once more those segments of each (block, mask) that there are, together: as few super-packets as hold them.
    pub fn again(&mut self, ends: Ends<'_>, retransmissions: &[(u64, u64)]) -> Result<Sent, Fault> {
        let (mut sent, mut filled) = (Sent::default(), 0);
        let size = self.cut.segment_size;
        for (block, (first, stop)) in
            retransmissions.iter().flat_map(|(block, mask)| runs_of(*mask).map(|run| (*block, run)))
        {
            let length = self.cut.length(block);
            let (mut begin, end) = ((first as usize * size).min(length), (stop as usize * size).min(length));
            while begin < end && sent.refused.is_none() {
                let part = (end - begin).min(self.max_again - filled);
                let room = &mut self.again.payload()[filled..filled + part];
                read_whole(ends.file, room, self.cut.offset(block) + begin as u64)?;
                let segment = block * self.cut.block_segments as u64 + (begin / size) as u64;
                self.again.number(filled / size, part.div_ceil(size), segment);
                filled += part;
                begin += part;
                // None but the last of a super-packet may be a short one.
                if filled == self.max_again || filled % size != 0 {
                    sent.burst(ends.light, &mut self.offload, &self.again, (0, filled));
                    filled = 0;
                }
            }
        }
        if filled > 0 && sent.refused.is_none() {
            sent.burst(ends.light, &mut self.offload, &self.again, (0, filled));
        }
        Ok(sent)
    }

    /// Send the parity segments from `first` to before `stop` of this group of blocks.
    pub fn parity(
        &mut self,
        ends: Ends<'_>,
        groups: Groups,
        group: u64,
        (first, stop): (usize, usize),
    ) -> Result<Sent, Fault> {
        let (size, (begin, end)) = (self.cut.segment_size, groups.span(group));
        let mut data = vec![0; (end - begin) as usize * size];
        read_whole(ends.file, &mut data[..groups.bytes(begin, end)], begin * size as u64)?;
        let (mut sent, mut filled) = (Sent::default(), 0);
        encode(&data, size, (first, stop), |index, segment| {
            self.again.payload()[filled..filled + size].copy_from_slice(segment);
            self.again.number(filled / size, 1, number_of(group, index));
            filled += size;
            if sent.refused.is_none() && (filled == self.max_again || index + 1 == stop) {
                sent.burst(ends.light, &mut self.offload, &self.again, (0, filled));
            }
            filled %= self.max_again;
        })?;
        Ok(sent)
    }

    /// Load this block, and digest it if required; return its length.
    fn load(&mut self, file: BorrowedFd<'_>, block: u64, digested: u64, digests: &mut Vec<u8>) -> Result<usize, Fault> {
        if let Some((_, length)) = self.loaded.filter(|(there, _)| *there == block) {
            return Ok(length);
        }
        let length = self.cut.length(block);
        if length == 0 {
            return Err(Fault::Program(format!("no block {block} in a file of {:?}", self.cut)));
        }
        self.loaded = None;
        read_whole(file, &mut self.block.payload()[..length], self.cut.offset(block))?;
        self.block.number(0, self.cut.block_segments, block * self.cut.block_segments as u64);
        self.loaded = Some((block, length));
        if block >= digested {
            digests.extend(digest(&self.block.payload()[..length]));
        }
        Ok(length)
    }
}

impl Step {
    /// Wait until the next burst may leave; return whether the limits still hold then.
    fn comes(&mut self, pace: &Pace, woken: BorrowedFd<'_>) -> bool {
        while self.now < self.until {
            self.now = monotonic();
            let delay = pace.delay(self.now);
            if delay <= 0.0 {
                return self.now < self.until;
            }
            let wait = delay.max(SHORTEST_WAIT);
            if self.now + wait >= self.until || woken_within(woken, Duration::from_secs_f64(wait)) {
                return false;
            }
        }
        false
    }
}

impl Sent {
    /// Send the datagrams that hold these bytes of a burst, and count them if all have gone.
    fn burst(&mut self, light: BorrowedFd<'_>, offload: &mut bool, burst: &Burst, (begin, end): (usize, usize)) {
        let parts = burst.parts(begin, end);
        match send(light, offload, &parts) {
            Ok(()) => {
                let datagrams = (parts.len() / 2) as u64;
                self.bursts += 1;
                self.datagrams += datagrams;
                self.wire_bytes += (end - begin) as u64 + datagrams * WIRE_HEADERS;
            }
            Err(error) => self.refused = Some((error, parts[0].len() + parts[1].len())),
        }
    }
}
