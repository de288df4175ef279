//! The side of a port toward its host: credits for its buffer, reassembly, order, and departures (sections 2.1, 2.2).
//!
//! At a surrogate, departing frames enter the ingress side of the same port.

use crate::fabric::{Event, Fabric};
use crate::frames::{Flight, NO_NODE};
use crate::ingress::Arrival;
use crate::scenario::Queueing;
use crate::trace::{Kind, NONE};
use crate::trees::LANES;
use crate::wheel::Ps;

/// Quantum of a class of weight 1: the packets of a jumbo frame.
const LANE_QUANTUM_PACKETS: u32 = 36;

impl Fabric<'_> {
    pub(crate) fn requested(&mut self, voq: u32, count: u32) {
        let (to, lane) = (self.voqs[voq as usize].to, self.voqs[voq as usize].lane);
        let arbiter = &mut self.egress[to as usize].arbiters[lane as usize];
        arbiter.record_requests(voq, &mut self.requesters[voq as usize], count as usize);
        self.grant(to, lane);
    }

    pub(crate) fn returned(&mut self, port: u32, lane: u32, packets: u32) {
        self.egress[port as usize].arbiters[lane as usize].release(packets);
        self.grant(port, lane);
    }

    fn grant(&mut self, port: u32, lane: u32) {
        let quantum = self.scenario.arbiter.quantum_packets;
        while let Some((voq, packets)) =
            self.egress[port as usize].arbiters[lane as usize].grant(&mut self.requesters, quantum)
        {
            let (to, local) = (self.voqs[voq as usize].port, self.voqs[voq as usize].local);
            self.message(port, local);
            self.wheel.add(self.now + self.times.message(local), to, Event::Grant { voq, packets });
        }
    }

    /// Add a packet that reaches the egress buffer at this time.
    #[inline]
    pub(crate) fn come_in(&mut self, flight: u32, at: Ps) {
        let start = self.scenario.timing.egress_start_permille;
        let exact = self.scenario.errors.probability > 0.0;
        let copy = &mut self.flights[flight];
        copy.arrived += 1;
        let enough = if exact { copy.packets } else { (copy.packets * start).div_ceil(1000) };
        let Flight { arrived, packets, to, overtaken, .. } = *copy;
        if arrived == packets && exact && self.random.chance(self.scenario.errors.probability) {
            self.corrupted(flight, at);
            return;
        }
        if arrived == enough {
            self.wheel.add(at, to, Event::Ready { flight });
        }
        if arrived == packets {
            self.acknowledge(flight, at);
            if overtaken {
                self.wheel.add(at, to, Event::Sent);
            }
        }
    }

    fn acknowledge(&mut self, flight: u32, at: Ps) {
        let Flight { voq, frame, copy, to, .. } = self.flights[flight];
        let (port, local) = (self.voqs[voq as usize].port, self.voqs[voq as usize].local);
        self.message(to, local);
        let delay = if local { self.times.ack_local } else { self.times.ack_remote };
        self.wheel.add(at + delay, port, Event::Ack { voq, frame, copy });
    }

    /// Handle a damaged copy: it is not acknowledged, and its sender times out. It keeps its space here.
    ///
    /// A timer that an ACK stops does nothing, so that only expiring ones are events.
    fn corrupted(&mut self, flight: u32, at: Ps) {
        let Flight { voq, frame, copy, .. } = self.flights[flight];
        let port = self.voqs[voq as usize].port;
        self.note(port, Kind::Corrupted, (frame, voq), 0, u64::from(copy));
        self.statistics.corrupted += 1;
        let until = at + self.scenario.errors.timeout_ns * 1000;
        self.wheel.add(until, port, Event::AckTimeout { voq, flight });
    }

    pub(crate) fn ack_timeout(&mut self, voq: u32, flight: u32) {
        let Flight { frame, copy, packets, number, .. } = self.flights[flight];
        self.flights.remove(flight);
        let port = self.voqs[voq as usize].port;
        self.note(port, Kind::Retransmitted, (frame, voq), packets, u64::from(copy));
        self.statistics.retransmitted += 1;
        let begun = usize::from(self.voqs[voq as usize].packet > 0);
        self.voqs[voq as usize].push_again(frame, copy, packets, number);
        if self.scenario.voq.queueing == Queueing::Fifo {
            let fifo = &mut self.ingress[port as usize].fifo;
            let place = begun.min(fifo.len());
            fifo.insert(place, voq);
        }
        self.refresh(voq);
    }

    /// Queue complete frames in the order in which their VOQ sent them: later frames wait for a retransmitted frame,
    /// and for a frame whose packets were delayed in the spines.
    pub(crate) fn ready(&mut self, flight: u32) {
        let Flight { voq, number, .. } = self.flights[flight];
        let mut next = Some(flight);
        if number != self.voqs[voq as usize].expected {
            self.voqs[voq as usize].early.insert(number, flight);
            return;
        }
        while let Some(flight) = next {
            self.queue(flight);
            let voq = &mut self.voqs[voq as usize];
            voq.expected += 1;
            next = voq.early.remove(&voq.expected);
        }
    }

    fn queue(&mut self, flight: u32) {
        let Flight { to, lane, flow, packets, bytes, .. } = self.flights[flight];
        let egress = &mut self.egress[to as usize];
        egress.queues[lane as usize].push_back(flight);
        egress.held[lane as usize] += packets;
        let held = u64::from(egress.held[lane as usize]) * u64::from(self.times.packet_bytes);
        if let Some(feedback) = egress.points.get_mut(lane as usize).and_then(|point| point.arrive(bytes, held)) {
            if !self.surrogate(to) {
                self.notify_flow(to, flow, flow, feedback);
            }
        }
        self.start_sending(to);
    }

    /// Send the next frame, if there is one and the port is free.
    pub(crate) fn start_sending(&mut self, port: u32) {
        if self.egress[port as usize].sending.is_some() {
            return;
        }
        let Some(lane) = self.next_lane(port) else { return };
        let egress = &mut self.egress[port as usize];
        let Some(flight) = egress.queues[lane].pop_front() else { return };
        let Flight { bytes, packets, .. } = self.flights[flight];
        egress.sending = Some(flight);
        egress.allowance = egress.allowance.saturating_sub(packets);
        self.wheel.add(self.now + self.times.line(bytes), port, Event::Sent);
    }

    /// Return the next lane by weight; a lane waits while the ingress side has no space for its next frame.
    fn next_lane(&mut self, port: u32) -> Option<usize> {
        let lanes = self.egress[port as usize].queues.len();
        self.egress[port as usize].held_back = false;
        for _ in 0..=lanes {
            let egress = &self.egress[port as usize];
            let lane = egress.current_lane;
            if let Some(&flight) = egress.queues[lane].front() {
                let Flight { node, bytes, .. } = self.flights[flight];
                let fits = node == NO_NODE || self.finds_space(port, node, bytes);
                self.egress[port as usize].held_back |= !fits;
                if fits && self.egress[port as usize].allowance > 0 {
                    return Some(lane);
                }
            }
            let egress = &mut self.egress[port as usize];
            egress.current_lane = (lane + 1) % lanes;
            egress.allowance =
                self.scenario.classes[egress.current_lane / LANES as usize].weight.saturating_mul(LANE_QUANTUM_PACKETS);
        }
        None
    }

    pub(crate) fn sent(&mut self, port: u32) {
        let Some(flight) = self.egress[port as usize].sending else { return };
        let Flight { arrived, packets, lane, .. } = self.flights[flight];
        if arrived < packets {
            self.flights[flight].overtaken = true;
            return;
        }
        self.egress[port as usize].sending = None;
        self.egress[port as usize].held[lane as usize] -= packets;
        self.deliver(port, flight);
        self.flights.remove(flight);
        self.returned(port, lane, packets);
        self.start_sending(port);
    }

    fn deliver(&mut self, port: u32, flight: u32) {
        let Flight { flow, bytes, born, node, level, frame, .. } = self.flights[flight];
        if node == NO_NODE {
            self.note(port, Kind::FrameOut, (frame, NONE), bytes, born);
            let place = self.trees.destinations[flow as usize].binary_search(&port).unwrap_or(0);
            self.statistics.delivered(flow, place, bytes, self.now - born, level, self.now);
        } else {
            self.take_in(port, Arrival { node, bytes, born });
        }
    }
}
