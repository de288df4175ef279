//! The crossbar of a leaf and the multicast cache before it (sections 2.1 and 3): the choice of packets in each slot.
//!
//! In a slot, eight cycles, a crossbar input and output pass one packet; a port issues a header in each cycle and the
//! payload of one packet; and one packet is written into the leaf's cache. A port sends copies of cached packets first.

use crate::cache::Packet;
use crate::fabric::{Event, Fabric};
use crate::frames::{Flight, Frame, NOWHERE};
use crate::scenario::Queueing;
use crate::trace::{Kind, NONE};
use crate::wheel::Ps;

/// Resources that are taken in a slot.
#[derive(Clone, Copy, Debug, Default)]
struct Taken {
    outputs: u128,
    inputs: u128,
    uplinks: u128,
    cache_written: bool,
}

/// A packet's path through the crossbar.
#[derive(Clone, Copy, Debug)]
struct Path {
    /// None for a link that no other port shares.
    input: Option<u32>,
    link: Option<usize>,
}

/// The service of a port in a slot.
#[derive(Clone, Copy, Debug)]
struct Service {
    leaf: u32,
    port: u32,
    slot: u64,
    headers: u32,
    payload: bool,
}

impl Fabric<'_> {
    /// Schedule the crossbar for the next slot.
    #[inline]
    pub(crate) fn wake(&mut self, leaf: u32) {
        if !self.leaves[leaf as usize].awake {
            self.leaves[leaf as usize].awake = true;
            let next = (self.now / self.times.slot + 1) * self.times.slot;
            self.wheel.add(next, leaf * self.times.ports, Event::Slot { leaf });
        }
    }

    pub(crate) fn slot(&mut self, leaf: u32) {
        let ports = self.times.ports;
        let slot = self.now / self.times.slot;
        let mut taken = Taken::default();
        self.leaves[leaf as usize].awake = false;
        if self.leaves[leaf as usize].down > 0 {
            self.pass_down(leaf, &mut taken);
        }
        let first = self.leaves[leaf as usize].first_port;
        self.leaves[leaf as usize].first_port = (first + 1) % ports;
        let mut busy = self.leaves[leaf as usize].down > 0;
        for offset in 0..ports {
            let port = leaf * ports + (first + offset) % ports;
            if !self.ingress[port as usize].ready.is_empty() {
                self.serve(Service { leaf, port, slot, headers: 0, payload: false }, &mut taken);
                busy |= !self.ingress[port as usize].ready.is_empty();
            }
        }
        self.evict(leaf, slot);
        if busy {
            self.wake(leaf);
        }
    }

    /// Pass packets from the spines first: their egress buffers have space reserved.
    fn pass_down(&mut self, leaf: u32, taken: &mut Taken) {
        for number in 0..self.times.ports {
            let port = leaf * self.times.ports + number;
            if let Some(flight) = self.egress[port as usize].down.pop_front() {
                self.leaves[leaf as usize].down -= 1;
                taken.outputs |= 1 << number;
                self.come_in(flight, self.now + self.times.slot);
            }
        }
    }

    fn evict(&mut self, leaf: u32, slot: u64) {
        for _ in 0..self.scenario.timing.packet_cycles {
            let Some(Packet { frame, packet }) = self.leaves[leaf as usize].cache.evict(slot) else { break };
            self.frames[frame].lines[packet as usize] = NOWHERE;
            let port = self.trees.nodes[self.frames[frame].node as usize].port;
            self.note(port, Kind::CacheEvicted, (frame, NONE), packet, 0);
            self.statistics.evictions += 1;
        }
    }

    fn serve(&mut self, mut service: Service, taken: &mut Taken) {
        let max_headers = self.scenario.timing.packet_cycles;
        if self.scenario.voq.queueing == Queueing::Fifo {
            self.serve_head(service, taken);
            return;
        }
        let count = self.ingress[service.port as usize].ready.len();
        let start = self.ingress[service.port as usize].first_ready % count;
        // A packet sent in one pass may change the ready VOQs.
        let mut order = std::mem::take(&mut self.statistics.scratch);
        order.clear();
        order.extend_from_slice(&self.ingress[service.port as usize].ready[start..]);
        order.extend_from_slice(&self.ingress[service.port as usize].ready[..start]);
        let mut missed = false;
        for &voq in &order {
            if service.headers < max_headers && self.cached(voq) {
                self.try_send(voq, &mut service, taken, false);
            } else {
                missed = true;
            }
        }
        if missed {
            for &voq in &order {
                if service.headers == max_headers {
                    break;
                }
                let waits = self.voqs[voq as usize].slot != service.slot && self.voqs[voq as usize].may_send();
                if waits && self.cached(voq) {
                    self.try_send(voq, &mut service, taken, false);
                } else if waits && !service.payload {
                    self.try_send(voq, &mut service, taken, true);
                }
            }
            // Copies of packets that were just written to the cache, for VOQs that were served before.
            for &voq in &order {
                let waits = service.headers < max_headers && self.voqs[voq as usize].slot != service.slot;
                if waits && self.voqs[voq as usize].may_send() && self.cached(voq) {
                    self.try_send(voq, &mut service, taken, false);
                }
            }
        }
        self.statistics.scratch = order;
        self.ingress[service.port as usize].first_ready = start + 1;
    }

    /// Serve a single queue, of which only the head may leave.
    fn serve_head(&mut self, mut service: Service, taken: &mut Taken) {
        while let Some(&voq) = self.ingress[service.port as usize].fifo.front() {
            let waits =
                service.headers < self.scenario.timing.packet_cycles && self.voqs[voq as usize].slot != service.slot;
            if !waits || !self.voqs[voq as usize].may_send() {
                return;
            }
            let payload = !self.cached(voq);
            if (payload && service.payload) || !self.try_send(voq, &mut service, taken, payload) {
                return;
            }
            if self.voqs[voq as usize].packet == 0 {
                self.ingress[service.port as usize].fifo.pop_front();
            }
        }
    }

    /// Return whether the next packet of a VOQ is in the cache.
    #[inline]
    fn cached(&self, voq: u32) -> bool {
        let queue = &self.voqs[voq as usize];
        match queue.headers.front() {
            Some(header) => self.frames[header.frame].lines[queue.packet as usize] != NOWHERE,
            None => false,
        }
    }

    /// Send the next packet of a VOQ, if the crossbar has a free path; return whether it was sent.
    fn try_send(&mut self, voq: u32, service: &mut Service, taken: &mut Taken, payload: bool) -> bool {
        let Some(path) = self.path(voq, service, taken, payload) else { return false };
        let number = self.voqs[voq as usize].to % self.times.ports;
        if let Some(link) = path.link {
            taken.uplinks |= 1 << (link / self.scenario.crossbar.links_per_output as usize);
        } else if self.voqs[voq as usize].local {
            taken.outputs |= 1 << number;
        }
        if let Some(input) = path.input {
            taken.inputs |= 1 << input;
        }
        service.headers += 1;
        service.payload |= payload;
        self.send(voq, *service, path, taken, payload);
        true
    }

    fn path(&mut self, voq: u32, service: &Service, taken: &Taken, payload: bool) -> Option<Path> {
        let (to, local) = (self.voqs[voq as usize].to, self.voqs[voq as usize].local);
        if local && taken.outputs & 1 << (to % self.times.ports) != 0 {
            return None;
        }
        let own = service.port % self.times.ports;
        let input = if local && self.scenario.crossbar.local_links && !payload {
            None
        } else if payload {
            (taken.inputs & 1 << own == 0).then_some(own)?.into()
        } else {
            Some(self.mirror(service.leaf, own, taken.inputs)?)
        };
        let link = if local || self.scenario.topology.spines == 0 {
            None
        } else {
            Some(self.uplink(service.leaf, taken.uplinks)?)
        };
        Some(Path { input, link })
    }

    /// Return a free crossbar input for a copy from the cache; the port's own input last, since payload may need it.
    fn mirror(&self, leaf: u32, own: u32, inputs: u128) -> Option<u32> {
        let (ports, weight) = (self.times.ports, self.scenario.crossbar.multicast_weight);
        let free = |input: &u32| inputs & 1 << input == 0;
        if weight == 100 {
            return (1..=ports).map(|offset| (own + offset) % ports).find(free);
        }
        (1..=ports).map(|offset| (own + offset) % ports).filter(free).find(|&input| {
            let contended = self.ingress[(leaf * ports + input) as usize].ready.iter().any(|&voq| self.unicast(voq));
            !contended || self.leaves[leaf as usize].balance[input as usize] < 0
        })
    }

    fn unicast(&self, voq: u32) -> bool {
        let first = self.voqs[voq as usize].headers.front();
        first.is_some_and(|header| self.voq_of[self.frames[header.frame].node as usize].len() == 1)
    }

    /// Return the next uplink with room, of an output that is not taken.
    fn uplink(&mut self, leaf: u32, taken: u128) -> Option<usize> {
        let crossbar = &self.scenario.crossbar;
        let (shared, from) = (crossbar.links_per_output as usize, &mut self.leaves[leaf as usize]);
        let bytes = self.times.packet_bytes + self.scenario.timing.uplink_overhead_bytes;
        let max_wait = self.times.uplink(bytes) * Ps::from(crossbar.uplink_packets);
        let count = from.uplinks.len();
        for offset in 0..count {
            let link = (from.next_uplink + offset) % count;
            if taken & 1 << (link / shared) == 0 && from.uplinks[link].takes(self.now + self.times.slot, max_wait) {
                from.next_uplink = (link + 1) % count;
                return Some(link);
            }
        }
        None
    }

    fn send(&mut self, voq: u32, service: Service, path: Path, taken: &mut Taken, payload: bool) {
        let queue = &self.voqs[voq as usize];
        let Some(&header) = queue.headers.front() else { return };
        if queue.packet == 0 {
            self.begin(voq, service.port);
        }
        let queue = &mut self.voqs[voq as usize];
        let (packet, flight) = (queue.packet, queue.flight);
        queue.packet += 1;
        queue.slot = service.slot;
        let last = queue.packet == header.packets;
        self.note_flagged(service.port, Kind::PacketSent, u8::from(payload), (header.frame, voq), packet, 0);
        self.count(service.leaf, path, header.frame, payload);
        let place = packet as usize;
        self.frames[header.frame].sent[place] += 1;
        if payload {
            self.write_cache(service, header.frame, place, taken);
        } else {
            let line = self.frames[header.frame].lines[place];
            self.leaves[service.leaf as usize].cache.touch(line, service.slot);
            self.forget_if_sent(service.port, header.frame, place);
        }
        let leaves = self.now + self.times.slot;
        let bytes = self.bytes_of(header.frame, packet);
        match path.link {
            Some(link) => self.leave(service.leaf, link, flight, bytes, leaves),
            None if self.voqs[voq as usize].local => self.come_in(flight, leaves),
            None => self.come_in(flight, leaves + self.times.constant),
        }
        if last {
            self.end(voq);
        }
    }

    /// Update the balance of multicast and unicast at a contended input.
    fn count(&mut self, leaf: u32, path: Path, frame: u32, payload: bool) {
        self.statistics.payload_packets += u64::from(payload);
        self.statistics.cached_packets += u64::from(!payload);
        let weight = i64::from(self.scenario.crossbar.multicast_weight);
        if let (Some(input), true) = (path.input, weight < 100) {
            let multicast = self.voq_of[self.frames[frame].node as usize].len() > 1;
            let balance = &mut self.leaves[leaf as usize].balance[input as usize];
            let change = if multicast { 100 - weight } else { -weight };
            *balance = (*balance + change).clamp(-1000, 1000);
        }
    }

    fn write_cache(&mut self, service: Service, frame: u32, packet: usize, taken: &mut Taken) {
        if self.frames[frame].all_sent(packet) || taken.cache_written || self.frames[frame].lines[packet] != NOWHERE {
            return;
        }
        let held = Packet { frame, packet: packet as u32 };
        if let Some(line) = self.leaves[service.leaf as usize].cache.write(held, service.slot) {
            taken.cache_written = true;
            self.frames[frame].lines[packet] = line;
            self.note(service.port, Kind::CacheWritten, (frame, NONE), packet as u32, 0);
        }
    }

    /// Begin to send the first copy of a VOQ.
    fn begin(&mut self, voq: u32, port: u32) {
        let queue = &mut self.voqs[voq as usize];
        let header = queue.headers[0];
        queue.backlog -= header.packets;
        queue.granted -= header.packets;
        let (to, lane) = (queue.to, queue.lane);
        let number = header.number.unwrap_or(queue.begun);
        queue.begun += u64::from(header.number.is_none());
        self.note(port, Kind::BeginFrame, (header.frame, voq), header.packets, u64::from(header.copy));
        let frame = &mut self.frames[header.frame];
        frame.begun |= 1 << header.copy;
        let last = frame.begun == frame.live;
        let Frame { flow, node, bytes, born, .. } = *frame;
        let copy = &self.trees.nodes[node as usize].copies;
        let next = if copy.len() > header.copy as usize { copy[header.copy as usize].node } else { None };
        let flight = Flight {
            flow,
            bytes,
            packets: header.packets,
            arrived: 0,
            born,
            to,
            lane,
            node: Self::destination(next),
            level: self.trees.nodes[node as usize].level,
            voq,
            frame: header.frame,
            copy: header.copy,
            number,
            overtaken: false,
        };
        self.voqs[voq as usize].flight = self.flights.add(flight);
        if !self.synchronizes(port) || header.number.is_some() {
            return;
        }
        if last {
            self.caught_up(port, header.frame, header.copy);
        } else {
            self.get_ahead(voq, port, header.packets);
        }
    }

    fn synchronizes(&self, port: u32) -> bool {
        let sync = &self.scenario.sync;
        sync.on && (sync.surrogates || !self.surrogate(port))
    }

    fn get_ahead(&mut self, voq: u32, port: u32, packets: u32) {
        let change = self.cams[port as usize].begin(voq, packets);
        if let Some((evicted, suspended)) = change.evicted {
            self.note(port, Kind::CamReleased, (NONE, evicted), 1, 0);
            if suspended {
                self.resume(evicted, 2);
            }
        }
        if change.allocated {
            self.note(port, Kind::CamAllocated, (NONE, voq), packets, 0);
        }
        if change.suspended {
            let queue = &mut self.voqs[voq as usize];
            queue.suspended = true;
            queue.suspensions += 1;
            let suspension = queue.suspensions;
            let ahead = self.cams[port as usize].ahead(voq).unwrap_or(0);
            self.note(port, Kind::Suspended, (NONE, voq), ahead, 0);
            self.statistics.suspensions += 1;
            let until = self.now + self.scenario.sync.timeout_ns * 1000;
            self.wheel.add(until, port, Event::SyncTimeout { voq, suspension });
        }
    }

    /// Remove a copy whose last packet has left.
    fn end(&mut self, voq: u32) {
        let queue = &mut self.voqs[voq as usize];
        queue.packet = 0;
        queue.headers.pop_front();
        self.return_surplus(voq);
        self.refresh(voq);
    }

    fn bytes_of(&self, frame: u32, packet: u32) -> u32 {
        let Frame { bytes, packets, .. } = self.frames[frame];
        // Packet sizes of a frame differ by one byte at most.
        bytes / packets + u32::from(packet < bytes % packets)
    }
}
