//! The way of a packet from leaf to leaf through a spine (section 2.1): packets are sprayed over all links.

use crate::fabric::{Event, Fabric};
use crate::wheel::Ps;

impl Fabric<'_> {
    /// Send a packet of this copy from the crossbar of its leaf over an uplink, at this time.
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
        from.uplinks[spine as usize].return_credit(enters + self.times.fiber);
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
