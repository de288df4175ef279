//! The hosts' network adapters (CNAs) at work: frames that flows offer, the line to the fabric, rate limiters and PAUSE.

use crate::adapter::{FS, Fs, Offered};
use crate::fabric::{Event, Fabric};
use crate::ingress::Arrival;
use crate::scenario::{CongestionPoint, Marking};
use crate::trace::Kind;
use crate::wheel::Ps;

impl Fabric<'_> {
    pub(crate) fn start_adapter(&mut self, port: u32) {
        if !self.adapters[port as usize].flows.is_empty() {
            self.offer(port);
        }
    }

    /// Send the next frame, or schedule the time at which there may be one.
    pub(crate) fn offer(&mut self, port: u32) {
        let adapter = &mut self.adapters[port as usize];
        if adapter.offer_at <= self.now {
            adapter.offer_at = Ps::MAX;
        }
        if adapter.sending.is_some() {
            return;
        }
        let Some((place, at)) = adapter.next() else { return };
        let at = at.div_ceil(FS) as Ps;
        if at > self.now {
            if at < adapter.offer_at {
                adapter.offer_at = at;
                self.wheel.add(at, port, Event::Offer);
            }
            return;
        }
        let flow = &mut adapter.flows[place];
        let born = flow.next.div_ceil(FS) as Ps;
        adapter.sending = Some((place, born));
        flow.next += flow.draw();
        if flow.limiter.active() {
            flow.limiter.sent(flow.bytes, &self.scenario.qcn);
            let gap = f64::from(flow.bytes) * 8_000_000.0 / flow.limiter.rate();
            flow.allowed = Fs::from(self.now) * FS + gap.round() as Fs;
        }
        let (bytes, flow) = (flow.bytes, flow.flow);
        self.statistics.offered(flow, self.now);
        self.wheel.add(self.now + self.times.line(bytes), port, Event::Arrive);
    }

    pub(crate) fn arrive(&mut self, port: u32) {
        if let Some((place, born)) = self.adapters[port as usize].sending.take() {
            let Offered { flow, bytes, .. } = self.adapters[port as usize].flows[place];
            self.take_in(port, Arrival { node: self.trees.roots[flow as usize], bytes, born });
        }
        self.offer(port);
    }

    pub(crate) fn pause(&mut self, port: u32, class: u32, stop: bool) {
        self.adapters[port as usize].paused[class as usize] = stop;
        self.offer(port);
    }

    /// Notify a flow of congestion at a port: the flow that arrived, or the flow with the largest occupancy.
    pub(crate) fn notify_flow(&mut self, port: u32, arrived: u32, occupies: u32, feedback: u32) {
        let qcn = &self.scenario.qcn;
        let by_occupancy = qcn.marking == Marking::Occupancy && qcn.points == CongestionPoint::Inputs;
        let flow = if by_occupancy { occupies } else { arrived };
        self.note_port(port, Kind::Cnm, feedback, u64::from(flow));
        self.statistics.notified(flow);
        let source = self.trees.nodes[self.trees.roots[flow as usize] as usize].port;
        let far = source / self.times.ports != port / self.times.ports;
        let delay = self.times.adapter + if far { self.times.message_remote } else { 0 };
        self.wheel.add(self.now + delay, source, Event::Notify { flow, feedback });
    }

    pub(crate) fn notify(&mut self, flow: u32, feedback: u32) {
        let port = self.source_of(flow);
        let qcn = &self.scenario.qcn;
        let Some(offered) = self.adapters[port as usize].flows.iter_mut().find(|one| one.flow == flow) else { return };
        offered.limiter.notify(feedback, qcn);
        offered.generation += 1;
        let generation = offered.generation;
        self.wheel.add(self.now + qcn.timer_ns * 1000, port, Event::Recover { flow, generation });
    }

    pub(crate) fn recover(&mut self, flow: u32, generation: u32) {
        let port = self.source_of(flow);
        let qcn = &self.scenario.qcn;
        let Some(offered) = self.adapters[port as usize].flows.iter_mut().find(|one| one.flow == flow) else { return };
        if offered.generation != generation || !offered.limiter.active() {
            return;
        }
        let again = offered.limiter.tick(qcn);
        if offered.limiter.active() {
            self.wheel.add(self.now + again * 1000, port, Event::Recover { flow, generation });
        }
    }

    fn source_of(&self, flow: u32) -> u32 {
        self.trees.nodes[self.trees.roots[flow as usize] as usize].port
    }
}
