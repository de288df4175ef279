//! Links between leaves and spines, and the spines' buffers (section 2.1): packets sprayed over all links, flow control by
//! credits.
//!
//! Links serve packets in the order in which they come, so that a packet's departure is known when it comes: neither
//! links nor spine outputs need events of their own.

use std::collections::VecDeque;

use crate::fabric::{Event, Fabric};
use crate::wheel::Ps;

/// A link from a leaf to a spine, with the credits for the spine's input buffer.
#[derive(Clone, Debug)]
pub struct Uplink {
    free_at: Ps,
    credits: u32,
    /// When credits come back, the first one first.
    returns: VecDeque<Ps>,
}

impl Uplink {
    /// Create an input buffer of `packets` packets.
    pub fn new(packets: u32) -> Self {
        Self { free_at: 0, credits: packets, returns: VecDeque::new() }
    }

    /// Whether a packet may use it at this time and wait at most `patience` for earlier ones.
    #[inline]
    pub fn takes(&mut self, now: Ps, patience: Ps) -> bool {
        while self.returns.front().is_some_and(|&at| at <= now) {
            self.returns.pop_front();
            self.credits += 1;
        }
        self.credits > 0 && self.free_at <= now + patience
    }

    /// Occupy it for a packet; return the time of departure.
    #[inline]
    pub fn send(&mut self, now: Ps, duration: Ps) -> Ps {
        self.credits -= 1;
        self.free_at = self.free_at.max(now) + duration;
        self.free_at
    }

    fn give_back(&mut self, at: Ps) {
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

    /// A packet comes: when it enters the output's buffer, out of that of its input, and when it has left.
    fn pass(&mut self, now: Ps, duration: Ps) -> (Ps, Ps) {
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

impl Fabric<'_> {
    /// A packet of this copy leaves the crossbar of its leaf over an uplink, at this time.
    pub(crate) fn leave(&mut self, leaf: u32, link: usize, flight: u32, bytes: u32, now: Ps) {
        let from = &mut self.leaves[leaf as usize];
        // Requests, grants and ACKs take their share of the links.
        let wire = bytes + self.scenario.timing.uplink_overhead_bytes + std::mem::take(&mut from.message_bytes);
        let left = from.uplinks[link].send(now, self.times.uplink(wire));
        let uplink = leaf * self.scenario.topology.spines + link as u32;
        self.wheel.add(left + self.times.fiber, leaf * self.times.ports, Event::AtSpine { flight, uplink, bytes });
    }

    pub(crate) fn at_spine(&mut self, flight: u32, uplink: u32, bytes: u32) {
        let to = self.flights[flight].to;
        let (leaf, spine) = (to / self.times.ports, uplink % self.scenario.topology.spines);
        let output = (spine * self.scenario.topology.leaves + leaf) as usize;
        let duration = self.times.uplink(bytes + self.scenario.timing.uplink_overhead_bytes);
        let (enters, left) = self.spine_outputs[output].pass(self.now + self.times.spine, duration);
        let from = &mut self.leaves[(uplink / self.scenario.topology.spines) as usize];
        from.uplinks[spine as usize].give_back(enters + self.times.fiber);
        self.wheel.add(left + self.times.fiber, to, Event::AtLeaf { flight });
    }

    pub(crate) fn at_leaf(&mut self, flight: u32) {
        let to = self.flights[flight].to;
        self.egress[to as usize].down.push_back(flight);
        let leaf = to / self.times.ports;
        self.leaves[leaf as usize].down += 1;
        self.wake(leaf);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Beside a queue in which packets are moved one by one.
        #[test]
        fn a_spine_output_is_a_queue(gaps in prop::collection::vec(0u64..200, 1..100), room in 1usize..6, duration in 1u64..150) {
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
