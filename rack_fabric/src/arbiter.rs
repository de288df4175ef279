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
    in_turn: bool,
}

impl Requester {
    /// A request for a frame leaves the VOQ.
    pub fn ask(&mut self, packets: u32) {
        self.frames.push_back(packets as u8);
    }
}

/// The credits of one buffer, and the VOQs that wait for them in their turn.
#[derive(Clone, Debug)]
pub struct Arbiter {
    credits: u32,
    size: u32,
    turns: VecDeque<u32>,
}

impl Arbiter {
    /// Create an arbiter for a buffer of `size` packets.
    pub fn new(size: u32) -> Self {
        Self { credits: size, size, turns: VecDeque::new() }
    }

    /// Packets for which there is space.
    pub fn credits(&self) -> u32 {
        self.credits
    }

    /// Record `count` received requests of this VOQ.
    pub fn hear(&mut self, voq: u32, requester: &mut Requester, count: usize) {
        if requester.known == 0 {
            self.turns.push_back(voq);
        }
        requester.known += count;
        debug_assert!(requester.known <= requester.frames.len());
    }

    /// Space has become free.
    pub fn give_back(&mut self, packets: u32) {
        self.credits += packets;
        debug_assert!(self.credits <= self.size, "more credits than space");
    }

    /// The next (VOQ, packets) that are granted, of several frames if they are granted together.
    pub fn grant(&mut self, requesters: &mut [Requester], quantum: u32) -> Option<(u32, u32)> {
        loop {
            let &voq = self.turns.front()?;
            let requester = &mut requesters[voq as usize];
            if !requester.in_turn {
                requester.in_turn = true;
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
                // Its turn is over; without requests there is nothing to save up for.
                requester.in_turn = false;
                self.turns.pop_front();
                if requester.known > 0 {
                    self.turns.push_back(voq);
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
    fn frames_of_any_size_get_the_same_share_of_packets() {
        let mut requesters = vec![Requester::default(); 2];
        let mut arbiter = Arbiter::new(40);
        for (voq, packets) in [(0, 36), (1, 2u32)] {
            for _ in 0..18_000 / packets {
                requesters[voq].ask(packets);
            }
            arbiter.hear(voq as u32, &mut requesters[voq], 18_000 / packets as usize);
        }
        let mut got = [0; 2];
        for _ in 0..700 {
            if let Some((voq, packets)) = arbiter.grant(&mut requesters, 6) {
                got[voq as usize] += packets;
                arbiter.give_back(packets);
            }
        }
        assert!((i64::from(got[0]) - i64::from(got[1])).abs() <= 42, "{got:?}");
    }

    proptest! {
        /// Nothing is granted that was not asked for or has no space, and all that fits is granted.
        #[test]
        fn credits_are_kept(
            size in 36u32..100,
            steps in prop::collection::vec((0usize..5, 1u32..37, any::<bool>()), 1..300),
        ) {
            let mut requesters = vec![Requester::default(); 5];
            let mut arbiter = Arbiter::new(size);
            let (mut asked, mut out) = (VecDeque::from(vec![]), 0);
            let mut waiting = 0;
            for (voq, packets, gives) in steps {
                if gives {
                    if let Some(packets) = asked.pop_front() {
                        arbiter.give_back(packets);
                        out -= packets;
                    }
                } else {
                    requesters[voq].ask(packets);
                    arbiter.hear(voq as u32, &mut requesters[voq], 1);
                    waiting += packets;
                }
                while let Some((_, granted)) = arbiter.grant(&mut requesters, 6) {
                    asked.push_back(granted);
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
