//! Allocation of an egress buffer (section 2.1): credits for its space, by deficit round robin over the requesting
//! VOQs.
//!
//! Shreedhar, Varghese: Efficient fair queuing using deficit round robin. SIGCOMM 1995. A frame is granted whole:
//! partial frames would fill the buffer with packets that cannot be sent.

use std::collections::VecDeque;

/// The requests of a VOQ; the VOQ stores them, and the arbiter of its target processes them.
#[derive(Clone, Debug, Default)]
pub struct Requester {
    /// Packets of each frame, in order; frames that the arbiter knows come first.
    frames: VecDeque<u8>,
    known: usize,
    deficit: u32,
    in_service: bool,
}

impl Requester {
    /// Record a request for a frame that leaves the VOQ.
    pub fn ask(&mut self, packets: u32) {
        self.frames.push_back(packets as u8);
    }
}

/// The credits of one buffer, and the VOQs that wait for them, in the order of the round.
#[derive(Clone, Debug)]
pub struct Arbiter {
    credits: u32,
    size: u32,
    round: VecDeque<u32>,
}

impl Arbiter {
    /// Create an arbiter for a buffer of `size` packets.
    pub fn new(size: u32) -> Self {
        Self { credits: size, size, round: VecDeque::new() }
    }

    /// Return the number of packets for which there is space.
    pub fn credits(&self) -> u32 {
        self.credits
    }

    /// Record `count` received requests of this VOQ.
    pub fn record_requests(&mut self, voq: u32, requester: &mut Requester, count: usize) {
        if requester.known == 0 {
            self.round.push_back(voq);
        }
        requester.known += count;
        debug_assert!(requester.known <= requester.frames.len());
    }

    /// Return credits for space that has become free.
    pub fn release(&mut self, packets: u32) {
        self.credits += packets;
        debug_assert!(self.credits <= self.size, "more credits than space");
    }

    /// Return the next (VOQ, packets) that are granted; one grant may cover several frames.
    pub fn grant(&mut self, requesters: &mut [Requester], quantum: u32) -> Option<(u32, u32)> {
        loop {
            let &voq = self.round.front()?;
            let requester = &mut requesters[voq as usize];
            if !requester.in_service {
                requester.in_service = true;
                requester.deficit += quantum;
            }
            let mut granted = 0;
            while requester.known > 0 {
                let packets = u32::from(requester.frames[0]);
                if packets > requester.deficit || packets > self.credits {
                    break;
                }
                requester.frames.pop_front();
                requester.known -= 1;
                requester.deficit -= packets;
                self.credits -= packets;
                granted += packets;
            }
            let short = requester.known > 0 && u32::from(requester.frames[0]) <= requester.deficit;
            if !short {
                // Its service ends. A VOQ without requests keeps no deficit (deficit round robin).
                requester.in_service = false;
                self.round.pop_front();
                if requester.known > 0 {
                    self.round.push_back(voq);
                } else {
                    requester.deficit = 0;
                }
            }
            if granted > 0 {
                return Some((voq, granted));
            }
            if short {
                return None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn arbiter_grants_equal_packet_shares_to_small_and_large_frames() {
        let mut requesters = vec![Requester::default(); 2];
        let mut arbiter = Arbiter::new(40);
        for (voq, packets) in [(0, 36), (1, 2u32)] {
            for _ in 0..18_000 / packets {
                requesters[voq].ask(packets);
            }
            arbiter.record_requests(voq as u32, &mut requesters[voq], 18_000 / packets as usize);
        }
        let mut granted = [0; 2];
        for _ in 0..700 {
            if let Some((voq, packets)) = arbiter.grant(&mut requesters, 6) {
                granted[voq as usize] += packets;
                arbiter.release(packets);
            }
        }
        assert!((i64::from(granted[0]) - i64::from(granted[1])).abs() <= 42, "{granted:?}");
    }

    proptest! {
        /// Grants never exceed requests or space, and every request that fits is granted.
        #[test]
        fn arbiter_grants_every_requested_frame_that_fits(
            size in 36u32..100,
            steps in prop::collection::vec((0usize..5, 1u32..37, any::<bool>()), 1..300),
        ) {
            let mut requesters = vec![Requester::default(); 5];
            let mut arbiter = Arbiter::new(size);
            let (mut outstanding, mut out) = (VecDeque::from(vec![]), 0);
            let mut waiting = 0;
            for (voq, packets, releases) in steps {
                if releases {
                    if let Some(packets) = outstanding.pop_front() {
                        arbiter.release(packets);
                        out -= packets;
                    }
                } else {
                    requesters[voq].ask(packets);
                    arbiter.record_requests(voq as u32, &mut requesters[voq], 1);
                    waiting += packets;
                }
                while let Some((_, granted)) = arbiter.grant(&mut requesters, 6) {
                    outstanding.push_back(granted);
                    out += granted;
                    waiting -= granted;
                }
                prop_assert_eq!(arbiter.credits() + out, size);
                let known: u32 = requesters.iter().flat_map(|one| one.frames.iter()).map(|&one| u32::from(one)).sum();
                prop_assert_eq!(known, waiting);
                // The next VOQ in the round waits for space, if any VOQ waits.
                prop_assert!(waiting == 0 || arbiter.credits() < 36);
            }
        }
    }
}
