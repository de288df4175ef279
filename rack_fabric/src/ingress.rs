//! The side of a port toward the crossbar: acceptance, queueing, drops, requests and release (sections 2.2, 4.1).

use crate::fabric::{Event, Fabric};
use crate::frames::{Frame, NO_NODE, NOWHERE};
use crate::scenario::{CongestionPoint, Drop, Queueing, Spread};
use crate::trace::{Kind, NONE};
use crate::trees::LANES;
use crate::voq::{Header, Voq};
use crate::wheel::Ps;

/// A frame that comes to a port, from its host or from its egress side.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    pub node: u32,
    pub bytes: u32,
    pub born: Ps,
}

impl Fabric<'_> {
    /// Accept a frame if there is space for it, then its copies one by one.
    pub(crate) fn take_in(&mut self, port: u32, arrival: Arrival) {
        let node = &self.trees.nodes[arrival.node as usize];
        let (flow, lane) = (node.flow, node.lane as usize);
        let packets = self.scenario.packets(arrival.bytes);
        let lossless = self.lossless(lane);
        let frame = self.frames.add(Frame::new(flow, arrival.node, arrival.bytes, packets, arrival.born, self.now));
        self.note(port, Kind::FrameIn, (frame, NONE), packets, u64::from(flow));
        let pool = self.payload_pool(port, lossless);
        let held: u32 = if lossless { self.ingress[port as usize].held[lane] } else { self.lossy_held(port) };
        if held + packets > pool {
            assert!(!lossless, "a lossless lane has no space for a frame");
            self.note(port, Kind::FrameDropped, (frame, NONE), packets, u64::from(flow));
            self.statistics.frame_dropped(flow);
            self.frames.remove(frame);
            return;
        }
        self.ingress[port as usize].held[lane] += packets;
        self.hold(port, (flow, lane), packets);
        self.accept_copies(port, frame);
        if self.frames[frame].unacknowledged == 0 {
            self.free_payload(port, frame);
        }
        self.watch_ingress(port, lane, flow, arrival.bytes);
        self.stop_or_go(port, lane);
    }

    fn accept_copies(&mut self, port: u32, frame: u32) {
        let (node, flow) = (self.frames[frame].node, self.frames[frame].flow);
        let count = self.voq_of[node as usize].len() as u32;
        if self.scenario.flows[flow as usize].spread == Spread::Uniform {
            let drawn = self.random.below(count);
            // Of such a frame there is one copy, whatever its number.
            self.accept_copy(port, frame, 0, drawn);
        } else if self.scenario.headers.shuffle {
            let mut order: Vec<u32> = (0..count).collect();
            for place in (1..count).rev() {
                order.swap(place as usize, self.random.below(place + 1) as usize);
            }
            for copy in order {
                self.accept_copy(port, frame, copy, copy);
            }
        } else {
            for copy in 0..count {
                self.accept_copy(port, frame, copy, copy);
            }
        }
    }

    fn accept_copy(&mut self, port: u32, frame: u32, copy: u32, place: u32) {
        let voq = self.voq_of[self.frames[frame].node as usize][place as usize];
        let (lane, packets) = (self.voqs[voq as usize].lane as usize, self.frames[frame].packets);
        let before = self.ingress[port as usize].headers[lane];
        let rejected = self.no_header(lane, before) || (!self.lossless(lane) && self.too_long(voq));
        if rejected {
            self.note(port, Kind::HeaderDropped, (frame, voq), before, u64::from(copy));
            self.statistics.header_dropped(self.frames[frame].flow);
            return;
        }
        self.note(port, Kind::HeaderAccepted, (frame, voq), before, u64::from(copy));
        self.ingress[port as usize].headers[lane] += 1;
        let stored = &mut self.frames[frame];
        stored.live |= 1 << copy;
        stored.unacknowledged += 1;
        self.voqs[voq as usize].push(Header { frame, copy, packets, number: None });
        if self.scenario.voq.queueing == Queueing::Fifo {
            self.ingress[port as usize].fifo.push_back(voq);
        }
        self.ask(voq);
        self.refresh(voq);
    }

    fn no_header(&mut self, lane: usize, before: u32) -> bool {
        let headers = &self.scenario.headers;
        if self.lossless(lane) {
            return false;
        }
        before >= headers.high || (before >= headers.low && self.random.chance(headers.probability))
    }

    /// Return whether a full VOQ rejects a copy: it drops its tail, or its head.
    fn too_long(&mut self, voq: u32) -> bool {
        let port = self.voqs[voq as usize].port;
        let voqs = &self.scenario.voq;
        let bytes = if self.surrogate(port) { voqs.surrogate_bytes } else { voqs.terminal_bytes };
        let max_packets = self.scenario.units(bytes);
        match voqs.drop {
            Drop::None => false,
            Drop::Tail => self.voqs[voq as usize].backlog >= max_packets,
            Drop::Head => {
                while self.voqs[voq as usize].backlog >= max_packets {
                    let Some(header) = self.voqs[voq as usize].drop_head() else { break };
                    self.dropped(voq, header);
                }
                false
            }
        }
    }

    /// Account for a copy that was dropped from its queue: for all other copies it counts as sent.
    fn dropped(&mut self, voq: u32, header: Header) {
        let Header { frame, copy, packets, .. } = header;
        let (port, lane) = (self.voqs[voq as usize].port, self.voqs[voq as usize].lane);
        self.note(port, Kind::HeadDropped, (frame, voq), packets, u64::from(copy));
        self.statistics.head_dropped(self.frames[frame].flow);
        let stored = &mut self.frames[frame];
        stored.live &= !(1 << copy);
        if stored.begun != 0 && stored.begun == stored.live {
            self.caught_up(port, frame, NOWHERE);
        }
        for packet in 0..packets as usize {
            self.forget_if_sent(port, frame, packet);
        }
        if self.scenario.voq.queueing == Queueing::Fifo {
            self.leave_fifo(voq);
        }
        self.release_copy(port, lane, frame);
        self.return_part(voq);
        self.refresh(voq);
    }

    /// Remove the entry of a dropped copy, the first one of its VOQ that is not begun.
    fn leave_fifo(&mut self, voq: u32) {
        let Voq { port, packet, .. } = self.voqs[voq as usize];
        let fifo = &mut self.ingress[port as usize].fifo;
        let mut places = fifo.iter().enumerate().filter(|&(_, &other)| other == voq).map(|(place, _)| place);
        if let Some(place) = places.nth(usize::from(packet > 0)) {
            fifo.remove(place);
        }
    }

    /// Record that all copies of a frame are begun: other VOQs are no longer ahead by it.
    pub(crate) fn caught_up(&mut self, port: u32, frame: u32, last: u32) {
        let Frame { node, packets, begun, .. } = self.frames[frame];
        for copy in (0..self.voq_of[node as usize].len() as u32).filter(|copy| begun & 1 << copy != 0 && *copy != last)
        {
            let voq = self.voq_of[node as usize][copy as usize];
            let change = self.cams[port as usize].catch_up(voq, packets);
            if change.released {
                self.note(port, Kind::CamReleased, (frame, voq), 0, 0);
            }
            if change.resumed {
                self.resume(voq, 0);
            }
        }
    }

    /// Resume a VOQ; `reason` as in the trace.
    pub(crate) fn resume(&mut self, voq: u32, reason: u32) {
        self.voqs[voq as usize].suspended = false;
        let port = self.voqs[voq as usize].port;
        self.note(port, Kind::Resumed, (NONE, voq), reason, 0);
        self.statistics.resumed(reason);
        self.refresh(voq);
    }

    pub(crate) fn sync_timeout(&mut self, voq: u32, suspension: u32) {
        let queue = &self.voqs[voq as usize];
        let port = queue.port as usize;
        if queue.suspended && queue.suspensions == suspension && self.cams[port].expire(voq) {
            self.resume(voq, 1);
        }
    }

    /// Request space for queued copies, in whole frames.
    fn ask(&mut self, voq: u32) {
        let queue = &self.voqs[voq as usize];
        let packets = queue.to_ask();
        let waits = queue.asked > 0 && packets < self.scenario.arbiter.coalesce_packets;
        if packets > 0 && !waits {
            let of_frame = queue.headers.back().map_or(packets, |header| header.packets);
            self.request(voq, packets.div_ceil(of_frame), of_frame);
        }
    }

    fn request(&mut self, voq: u32, frames: u32, of_frame: u32) {
        let queue = &mut self.voqs[voq as usize];
        let (port, to, local) = (queue.port, queue.to, queue.local);
        for _ in 0..frames {
            queue.request(of_frame);
            self.requesters[voq as usize].ask(of_frame);
        }
        self.note(port, Kind::Request, (NONE, voq), frames * of_frame, u64::from(frames));
        self.message(port, local);
        self.wheel.add(self.now + self.times.message(local), to, Event::Request { voq, count: frames });
    }

    pub(crate) fn granted(&mut self, voq: u32, packets: u32) {
        let queue = &mut self.voqs[voq as usize];
        let port = queue.port;
        queue.grant(packets);
        self.note(port, Kind::Grant, (NONE, voq), packets, 0);
        self.return_surplus(voq);
        self.ask(voq);
        self.refresh(voq);
    }

    /// Return grants of a VOQ that has nothing left to send, or grants for a part of its next frame only.
    pub(crate) fn return_surplus(&mut self, voq: u32) {
        let queue = &self.voqs[voq as usize];
        if queue.surplus() > 0 && queue.backlog == 0 {
            self.return_credits(voq, queue.surplus());
        }
        self.return_part(voq);
    }

    /// Grants of dropped copies may be part of the grants for a larger frame. VOQs that kept such parts would deadlock:
    /// the part is returned, and the frame is requested as a whole.
    fn return_part(&mut self, voq: u32) {
        let Some(packets) = self.voqs[voq as usize].lacks() else { return };
        self.return_credits(voq, self.voqs[voq as usize].granted);
        if self.voqs[voq as usize].requests.iter().all(|&request| u32::from(request) < packets) {
            self.request(voq, 1, packets);
        }
        self.ask(voq);
    }

    fn return_credits(&mut self, voq: u32, packets: u32) {
        let queue = &mut self.voqs[voq as usize];
        queue.granted -= packets;
        let (port, to, lane, local) = (queue.port, queue.to, queue.lane, queue.local);
        self.message(port, local);
        self.wheel.add(self.now + self.times.message(local), to, Event::Return { lane, packets });
    }

    pub(crate) fn acknowledged(&mut self, voq: u32, frame: u32, copy: u32) {
        let (port, lane) = (self.voqs[voq as usize].port, self.voqs[voq as usize].lane);
        self.note(port, Kind::Acked, (frame, voq), 0, u64::from(copy));
        self.statistics.acknowledged(self.now - self.frames[frame].arrived);
        self.release_copy(port, lane, frame);
    }

    /// Release the header of a copy, and with the last copy the payload of the frame.
    fn release_copy(&mut self, port: u32, lane: u32, frame: u32) {
        self.ingress[port as usize].headers[lane as usize] -= 1;
        let stored = &mut self.frames[frame];
        stored.unacknowledged -= 1;
        let of_frame = self.trees.nodes[stored.node as usize].lane as usize;
        if stored.unacknowledged == 0 {
            self.free_payload(port, frame);
        }
        self.stop_or_go(port, of_frame);
        if self.egress[port as usize].held_back {
            self.start_sending(port);
        }
    }

    fn free_payload(&mut self, port: u32, frame: u32) {
        let Frame { node, packets, flow, .. } = self.frames[frame];
        for packet in 0..packets as usize {
            self.forget(port, frame, packet);
        }
        let lane = self.trees.nodes[node as usize].lane as usize;
        self.ingress[port as usize].held[lane] -= packets;
        self.let_go(port, (flow, lane), packets);
        self.note(port, Kind::PayloadFreed, (frame, NONE), packets, 0);
        self.frames.remove(frame);
    }

    /// Remove a packet from the cache after its last copy has left.
    pub(crate) fn forget_if_sent(&mut self, port: u32, frame: u32, packet: usize) {
        if self.frames[frame].all_sent(packet) {
            self.forget(port, frame, packet);
        }
    }

    fn forget(&mut self, port: u32, frame: u32, packet: usize) {
        let line = std::mem::replace(&mut self.frames[frame].lines[packet], NOWHERE);
        if line != NOWHERE {
            self.leaves[(port / self.times.ports) as usize].cache.release(line);
            self.note_flagged(port, Kind::CacheEvicted, 1, (frame, NONE), packet as u32, 0);
        }
    }

    // ------------------------------------------------------------------------------------------------ pools

    pub(crate) fn lossless(&self, lane: usize) -> bool {
        self.scenario.classes[lane / LANES as usize].lossless
    }

    pub(crate) fn surrogate(&self, port: u32) -> bool {
        port % self.times.ports == self.scenario.topology.surrogate()
    }

    fn payload_pool(&self, port: u32, lossless: bool) -> u32 {
        let buffers = &self.scenario.buffers;
        self.scenario.units(match (self.surrogate(port), lossless) {
            (false, false) => buffers.ingress_terminal_lossy_bytes,
            (false, true) => buffers.ingress_terminal_lossless_bytes,
            (true, false) => buffers.ingress_surrogate_lossy_bytes,
            (true, true) => buffers.ingress_surrogate_lossless_bytes,
        })
    }

    fn lossy_held(&self, port: u32) -> u32 {
        let held = &self.ingress[port as usize].held;
        held.iter().enumerate().filter(|(lane, _)| !self.lossless(*lane)).map(|(_, packets)| packets).sum()
    }

    /// Return whether a lossless frame for this node finds space, and its copies headers; always true for a lossy
    /// frame, which is dropped otherwise.
    pub(crate) fn finds_space(&self, port: u32, node: u32, bytes: u32) -> bool {
        let node = &self.trees.nodes[node as usize];
        let (lane, ingress) = (node.lane as usize, &self.ingress[port as usize]);
        if !self.lossless(lane) {
            return true;
        }
        let of_lane = |lane: u32| node.copies.iter().filter(|copy| copy.lane == lane).count() as u32;
        ingress.held[lane] + self.scenario.packets(bytes) <= self.payload_pool(port, true)
            && node
                .copies
                .iter()
                .all(|copy| ingress.headers[copy.lane as usize] + of_lane(copy.lane) <= self.scenario.headers.lossless)
    }

    /// Ask the host of a terminal to stop, or to continue.
    fn stop_or_go(&mut self, port: u32, lane: usize) {
        if !self.lossless(lane) || self.surrogate(port) {
            return;
        }
        let class = lane / LANES as usize;
        let of_class = class * LANES as usize..(class + 1) * LANES as usize;
        let ingress = &self.ingress[port as usize];
        let held: u32 = ingress.held[of_class.clone()].iter().sum();
        let headers = ingress.headers[of_class].iter().copied().max().unwrap_or(0);
        let (stopped, thresholds) = (ingress.stopped[class], &ingress.thresholds[class]);
        let (full, empty) = (thresholds.full(held, headers), thresholds.empty(held, headers));
        if (!stopped && full) || (stopped && empty) {
            self.ingress[port as usize].stopped[class] = full;
            let kind = if full { Kind::Pause } else { Kind::Go };
            self.note_port(port, kind, class as u32, 0);
            self.statistics.paused(full);
            let event = Event::Pause { class: class as u32, stop: full };
            self.wheel.add(self.now + self.times.adapter, port, event);
        }
    }

    // ------------------------------------------------------------------------------------------ congestion

    fn hold(&mut self, port: u32, (flow, lane): (u32, usize), packets: u32) {
        if self.scenario.qcn.points != CongestionPoint::Inputs {
            return;
        }
        let flows = &mut self.ingress[port as usize].flows[lane];
        match flows.iter_mut().find(|(known, _)| *known == flow) {
            Some((_, held)) => *held += packets,
            None => flows.push((flow, packets)),
        }
    }

    fn let_go(&mut self, port: u32, (flow, lane): (u32, usize), packets: u32) {
        if let Some((_, held)) = self.ingress[port as usize].flows[lane].iter_mut().find(|(known, _)| *known == flow) {
            *held -= packets;
        }
    }

    fn watch_ingress(&mut self, port: u32, lane: usize, flow: u32, bytes: u32) {
        let packet_bytes = u64::from(self.times.packet_bytes);
        let ingress = &mut self.ingress[port as usize];
        let held = u64::from(ingress.held[lane]) * packet_bytes;
        if let Some(feedback) = ingress.points.get_mut(lane).and_then(|point| point.arrive(bytes, held)) {
            let largest = ingress.flows[lane].iter().max_by_key(|(flow, held)| (*held, std::cmp::Reverse(*flow)));
            let occupies = largest.map_or(flow, |(flow, _)| *flow);
            self.notify_flow(port, flow, occupies, feedback);
        }
    }

    // -------------------------------------------------------------------------------------------- ready VOQs

    /// Update whether the port may serve a VOQ.
    #[inline]
    pub(crate) fn refresh(&mut self, voq: u32) {
        let queue = &mut self.voqs[voq as usize];
        let ready = queue.may_send();
        if ready == queue.ready {
            return;
        }
        queue.ready = ready;
        let port = queue.port;
        let ingress = &mut self.ingress[port as usize];
        if ready {
            ingress.ready.push(voq);
            self.wake(port / self.times.ports);
        } else if let Some(place) = ingress.ready.iter().position(|&other| other == voq) {
            ingress.ready.remove(place);
            if place < ingress.first_ready {
                ingress.first_ready -= 1;
            }
        }
    }

    /// Account for a request, grant or ACK that takes the links.
    pub(crate) fn message(&mut self, port: u32, local: bool) {
        self.statistics.messages += 1;
        if !local {
            self.leaves[(port / self.times.ports) as usize].message_bytes += self.scenario.timing.message_bytes;
        }
    }

    /// Return the node that replicates a copy.
    pub(crate) fn destination(node: Option<u32>) -> u32 {
        node.unwrap_or(NO_NODE)
    }
}
