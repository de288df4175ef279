//! The state of a host's network adapter (CNA): its flows, their rate limiters, and PAUSE.

use crate::congestion::RateLimiter;
use crate::random::Random;
use crate::scenario::{Flow, Process, Scenario};
use crate::wheel::Ps;

/// Times of flows are kept in femtoseconds: a gap is no whole number of picoseconds.
pub(crate) type Fs = u128;
pub(crate) const FS: Fs = 1000;

/// The adapter of a terminal.
#[derive(Debug)]
pub struct Adapter {
    pub(crate) flows: Vec<Offered>,
    /// By class.
    pub(crate) paused: Vec<bool>,
    /// The frame on the line.
    pub(crate) sending: Option<(usize, Ps)>,
    /// Time of the next `Offer` event.
    pub(crate) offer_at: Ps,
}

/// A flow at its source.
#[derive(Debug)]
pub(crate) struct Offered {
    pub(crate) flow: u32,
    pub(crate) class: usize,
    pub(crate) bytes: u32,
    pub(crate) process: Process,
    /// Mean gap between two frames.
    pub(crate) gap: Fs,
    /// Time of the next frame, and the time from which the rate limiter permits it.
    pub(crate) next: Fs,
    pub(crate) allowed: Fs,
    pub(crate) stop: Fs,
    pub(crate) random: Random,
    pub(crate) limiter: RateLimiter,
    /// Number of congestion notifications that the limiter has received.
    pub(crate) generation: u32,
}

impl Adapter {
    /// Create the adapter at this port, with the flows that begin there.
    pub fn new(scenario: &Scenario, port: u32) -> Self {
        let ports = scenario.topology.ports();
        let own = |(_, flow): &(usize, &Flow)| flow.source.0 * ports + flow.source.1 == port;
        let flows = scenario.flows.iter().enumerate().filter(own);
        Self {
            flows: flows.map(|(number, _)| Offered::new(scenario, number)).collect(),
            paused: vec![false; scenario.classes.len()],
            sending: None,
            offer_at: Ps::MAX,
        }
    }

    /// Return the flow that sends next, and its earliest time.
    pub(crate) fn next(&self) -> Option<(usize, Fs)> {
        let open = self.flows.iter().enumerate().filter(|(_, flow)| flow.next < flow.stop && !self.paused[flow.class]);
        open.map(|(place, flow)| (place, flow.next.max(flow.allowed))).min_by_key(|&(place, at)| (at, place))
    }
}

impl Offered {
    fn new(scenario: &Scenario, number: usize) -> Self {
        let flow = &scenario.flows[number];
        let gap = (f64::from(flow.frame_bytes) * 8_000_000.0 / flow.rate_gbps).round() as Fs;
        let mut offered = Self {
            flow: number as u32,
            class: flow.class as usize,
            bytes: flow.frame_bytes,
            process: flow.process,
            gap,
            next: Fs::from(flow.start_ns) * 1000 * FS,
            allowed: 0,
            stop: flow.stop_ns.map_or(Fs::MAX, |stop| Fs::from(stop) * 1000 * FS),
            random: Random::new(scenario.seed, number as u64 + 1),
            limiter: RateLimiter::new(scenario.timing.line_gbps),
            generation: 0,
        };
        if offered.process == Process::Poisson {
            offered.next += offered.draw();
        }
        offered
    }

    pub(crate) fn draw(&mut self) -> Fs {
        match self.process {
            Process::Constant => self.gap,
            Process::Poisson => (self.random.exponential() * self.gap as f64).round() as Fs,
        }
    }
}
