//! Counters, and their output as results.

use serde::Serialize;

use crate::scenario::Scenario;
use crate::trees::{MAX_LEVELS, Trees};
use crate::wheel::Ps;

const LEVELS: usize = MAX_LEVELS as usize + 1;

/// The results of one destination of a flow.
#[derive(Clone, Debug, Default)]
struct Received {
    copies: u64,
    bytes: u64,
    delay: u128,
    longest: Ps,
    /// Bytes by point of the series.
    series: Vec<u64>,
    now: u64,
}

#[derive(Clone, Debug, Default)]
struct Sent {
    offered: u64,
    frames_dropped: u64,
    headers_dropped: u64,
    heads_dropped: u64,
    notifications: u64,
    levels: [(u64, u128); LEVELS],
    received: Vec<Received>,
}

/// Counters of a run.
#[derive(Debug, Default)]
pub struct Statistics {
    warmup: Ps,
    flows: Vec<Sent>,
    acks: (u64, u128, Ps),
    /// Leaves whose caches are recorded as series.
    pub watched: Vec<u32>,
    caches: Vec<Vec<u32>>,
    ingress: Vec<u32>,
    pub events: u64,
    pub messages: u64,
    pub payload_packets: u64,
    pub cached_packets: u64,
    pub evictions: u64,
    pub suspensions: u64,
    resumed: [u64; 3],
    pauses: u64,
    pub corrupted: u64,
    pub retransmitted: u64,
    /// Not a counter: room for a list that is made in every slot.
    pub scratch: Vec<u32>,
}

impl Statistics {
    pub fn new(scenario: &Scenario, trees: &Trees) -> Self {
        let received = |flow: usize| vec![Received::default(); trees.destinations[flow].len()];
        let flows = (0..scenario.flows.len()).map(|flow| Sent { received: received(flow), ..Sent::default() });
        let mut watched: Vec<u32> = scenario.flows.iter().map(|flow| flow.source.0).collect();
        watched.sort_unstable();
        watched.dedup();
        Self {
            warmup: scenario.warmup_ns * 1000,
            flows: flows.collect(),
            caches: vec![Vec::new(); watched.len()],
            watched,
            ..Self::default()
        }
    }

    #[inline]
    pub fn offered(&mut self, flow: u32, now: Ps) {
        self.flows[flow as usize].offered += u64::from(now >= self.warmup);
    }

    pub fn frame_dropped(&mut self, flow: u32) {
        self.flows[flow as usize].frames_dropped += 1;
    }

    pub fn header_dropped(&mut self, flow: u32) {
        self.flows[flow as usize].headers_dropped += 1;
    }

    pub fn head_dropped(&mut self, flow: u32) {
        self.flows[flow as usize].heads_dropped += 1;
    }

    pub fn notified(&mut self, flow: u32) {
        self.flows[flow as usize].notifications += 1;
    }

    pub fn resumed(&mut self, reason: u32) {
        self.resumed[reason as usize] += 1;
    }

    pub fn paused(&mut self, stop: bool) {
        self.pauses += u64::from(stop);
    }

    #[inline]
    pub fn acknowledged(&mut self, after: Ps) {
        self.acks.0 += 1;
        self.acks.1 += u128::from(after);
        self.acks.2 = self.acks.2.max(after);
    }

    /// Count a copy that reached its destination `delay` after its host had it ready.
    #[inline]
    pub fn delivered(&mut self, flow: u32, place: usize, bytes: u32, delay: Ps, level: u32, now: Ps) {
        let sent = &mut self.flows[flow as usize];
        let received = &mut sent.received[place];
        received.now += u64::from(bytes);
        if now < self.warmup {
            return;
        }
        received.copies += 1;
        received.bytes += u64::from(bytes);
        received.delay += u128::from(delay);
        received.longest = received.longest.max(delay);
        let (count, sum) = &mut sent.levels[level as usize];
        *count += 1;
        *sum += u128::from(delay);
    }

    /// End a point of the series.
    pub fn sample(&mut self, caches: &[usize], held: u32) {
        for (series, &occupied) in self.caches.iter_mut().zip(caches) {
            series.push(occupied as u32);
        }
        self.ingress.push(held);
        for received in self.flows.iter_mut().flat_map(|flow| &mut flow.received) {
            received.series.push(std::mem::take(&mut received.now));
        }
    }

    /// Return the number of copies that reached their destinations after the warm-up.
    pub fn delivered_copies(&self) -> u64 {
        self.flows.iter().flat_map(|flow| &flow.received).map(|received| received.copies).sum()
    }

    /// Return the results, in nanoseconds and Gb/s.
    pub fn results(&self, scenario: &Scenario, trees: &Trees) -> Results {
        let seconds_ps = scenario.duration_ns * 1000 - self.warmup;
        let flows = self.flows.iter().enumerate().map(|(number, sent)| {
            let ports = scenario.topology.ports();
            let of = trees.destinations[number].iter().zip(&sent.received);
            FlowResult {
                name: scenario.flows[number].name.clone(),
                offered_frames: sent.offered,
                dropped_frames: sent.frames_dropped,
                dropped_headers: sent.headers_dropped,
                dropped_heads: sent.heads_dropped,
                notifications: sent.notifications,
                destinations: of
                    .map(|(&port, received)| Destination {
                        leaf: port / ports,
                        port: port % ports,
                        gbps: received.bytes as f64 * 8000.0 / seconds_ps as f64,
                        copies: received.copies,
                        mean_delay_ns: mean(received.copies, received.delay),
                        longest_delay_ns: received.longest as f64 / 1000.0,
                        series_gbps: received
                            .series
                            .iter()
                            .map(|&bytes| bytes as f64 * 8.0 / scenario.sample_ns as f64)
                            .collect(),
                    })
                    .collect(),
                levels: sent
                    .levels
                    .iter()
                    .enumerate()
                    .filter(|(_, (count, _))| *count > 0)
                    .map(|(level, &(copies, delay))| Level {
                        surrogates: level,
                        copies,
                        mean_delay_ns: mean(copies, delay),
                    })
                    .collect(),
            }
        });
        Results {
            name: scenario.name.clone(),
            seed: scenario.seed,
            duration_ns: scenario.duration_ns,
            delivered_copies: self.delivered_copies(),
            events: self.events,
            flows: flows.collect(),
            series: Series {
                sample_ns: scenario.sample_ns,
                cache_packets: self
                    .watched
                    .iter()
                    .zip(&self.caches)
                    .map(|(&leaf, packets)| CacheSeries { leaf, packets: packets.clone() })
                    .collect(),
                fullest_ingress_packets: self.ingress.clone(),
            },
            counters: Counters {
                messages: self.messages,
                payload_packets: self.payload_packets,
                cached_packets: self.cached_packets,
                evictions: self.evictions,
                suspensions: self.suspensions,
                resumed_by_count: self.resumed[0],
                resumed_by_timeout: self.resumed[1],
                resumed_by_eviction: self.resumed[2],
                pauses: self.pauses,
                corrupted: self.corrupted,
                retransmitted: self.retransmitted,
                mean_ack_ns: mean(self.acks.0, self.acks.1),
                longest_ack_ns: self.acks.2 as f64 / 1000.0,
            },
        }
    }
}

fn mean(count: u64, sum: u128) -> f64 {
    if count == 0 { 0.0 } else { sum as f64 / count as f64 / 1000.0 }
}

/// Results of a run; delays are from the host that sends to the host that receives.
#[derive(Debug, Serialize)]
pub struct Results {
    pub name: String,
    pub seed: u64,
    pub duration_ns: u64,
    pub delivered_copies: u64,
    pub events: u64,
    pub flows: Vec<FlowResult>,
    pub series: Series,
    pub counters: Counters,
}

/// Results of a flow. Drops are counted from the start, all else after the warm-up.
#[derive(Debug, Serialize)]
pub struct FlowResult {
    pub name: String,
    pub offered_frames: u64,
    pub dropped_frames: u64,
    pub dropped_headers: u64,
    pub dropped_heads: u64,
    pub notifications: u64,
    pub destinations: Vec<Destination>,
    pub levels: Vec<Level>,
}

#[derive(Debug, Serialize)]
pub struct Destination {
    pub leaf: u32,
    pub port: u32,
    pub gbps: f64,
    pub copies: u64,
    pub mean_delay_ns: f64,
    pub longest_delay_ns: f64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub series_gbps: Vec<f64>,
}

/// Copies by the number of surrogates that they passed.
#[derive(Debug, Serialize)]
pub struct Level {
    pub surrogates: usize,
    pub copies: u64,
    pub mean_delay_ns: f64,
}

#[derive(Debug, Serialize)]
pub struct Series {
    pub sample_ns: u64,
    pub cache_packets: Vec<CacheSeries>,
    pub fullest_ingress_packets: Vec<u32>,
}

#[derive(Debug, Serialize)]
pub struct CacheSeries {
    pub leaf: u32,
    pub packets: Vec<u32>,
}

#[derive(Debug, Serialize)]
pub struct Counters {
    pub messages: u64,
    pub payload_packets: u64,
    pub cached_packets: u64,
    pub evictions: u64,
    pub suspensions: u64,
    pub resumed_by_count: u64,
    pub resumed_by_timeout: u64,
    pub resumed_by_eviction: u64,
    pub pauses: u64,
    pub corrupted: u64,
    pub retransmitted: u64,
    pub mean_ack_ns: f64,
    pub longest_ack_ns: f64,
}
