//! State of the links between leaves and spines, and of the spines' buffers (section 2.1): flow control by credits.
//!
//! Links serve packets in the order in which they come, so that a packet's departure is known when it comes: neither
//! links nor spine outputs need events of their own.

use std::collections::VecDeque;

use crate::wheel::Ps;

/// A link from a leaf to a spine, with the credits for the spine's input buffer.
#[derive(Clone, Debug)]
pub struct Uplink {
    free_at: Ps,
    credits: u32,
    /// Times at which credits return, in ascending order.
    returns: VecDeque<Ps>,
}

impl Uplink {
    /// Create an input buffer of `packets` packets.
    pub fn new(packets: u32) -> Self {
        Self { free_at: 0, credits: packets, returns: VecDeque::new() }
    }

    /// Return whether a packet may use it at this time and wait at most `max_wait` for earlier ones.
    #[inline]
    pub fn takes(&mut self, now: Ps, max_wait: Ps) -> bool {
        while self.returns.front().is_some_and(|&at| at <= now) {
            self.returns.pop_front();
            self.credits += 1;
        }
        self.credits > 0 && self.free_at <= now + max_wait
    }

    /// Occupy it for a packet; return the time of departure.
    #[inline]
    pub fn send(&mut self, now: Ps, duration: Ps) -> Ps {
        self.credits -= 1;
        self.free_at = self.free_at.max(now) + duration;
        self.free_at
    }

    pub(crate) fn return_credit(&mut self, at: Ps) {
        let place = self.returns.partition_point(|&other| other <= at);
        self.returns.insert(place, at);
    }
}

/// The link from a spine to a leaf, and the buffer before it.
#[derive(Clone, Debug)]
pub struct SpineOutput {
    free_at: Ps,
    room: usize,
    /// Departures of the packets that came last.
    departures: VecDeque<Ps>,
}

impl SpineOutput {
    /// Create it with a buffer of `packets` packets.
    pub fn new(packets: u32) -> Self {
        Self { free_at: 0, room: packets as usize, departures: VecDeque::new() }
    }

    /// Add a packet; return when it enters the output's buffer from the input's buffer, and when it has left.
    pub(crate) fn pass(&mut self, now: Ps, duration: Ps) -> (Ps, Ps) {
        let enters = if self.departures.len() < self.room {
            now
        } else {
            self.departures.pop_front().map_or(now, |departed| departed.max(now))
        };
        self.free_at = self.free_at.max(now) + duration;
        self.departures.push_back(self.free_at);
        (enters, self.free_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Compare with a queue in which packets are moved one by one.
        #[test]
        fn spine_output_behaves_like_a_packet_queue(gaps in prop::collection::vec(0u64..200, 1..100), room in 1usize..6, duration in 1u64..150) {
            let mut output = SpineOutput::new(room as u32);
            let (mut now, mut departures) = (0, Vec::<u64>::new());
            for gap in gaps {
                now += gap;
                let number = departures.len();
                let left = departures.last().map_or(now, |&last| last.max(now)) + duration;
                let enters = if number >= room { departures[number - room].max(now) } else { now };
                departures.push(left);
                prop_assert_eq!(output.pass(now, duration), (enters, left));
            }
        }
    }
}
