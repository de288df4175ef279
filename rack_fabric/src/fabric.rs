//! The fabric: its ports, leaves and links, and the events that lead from one to the next.
//!
//! Each mechanism works in a file of its own: `adapters` (hosts), `ingress`, `crossbar`, `spines`, `egress`.

use std::collections::VecDeque;

use crate::adapter::Adapter;
use crate::arbiter::{Arbiter, Requester};
use crate::cache::Cache;
use crate::congestion::CongestionPoint;
use crate::frames::{Flight, Frame, Pool};
use crate::pause::{Thresholds, thresholds};
use crate::random::Random;
use crate::scenario::{CongestionPoint as Points, Scenario};
use crate::spine_links::{SpineOutput, Uplink};
use crate::statistics::Statistics;
use crate::sync_cam::SyncCam;
use crate::trace::{Kind, NONE, Record, Trace};
use crate::trees::{LANES, Trees};
use crate::voq::Voq;
use crate::wheel::{Ps, Wheel};

/// Events between two checks of all invariants, in builds that check them.
const CHECKED: u64 = 50_000;

/// The next event, at the port that the wheel names.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// The adapter may have something to send.
    Offer,
    /// The adapter's frame has come to the ingress side.
    Arrive,
    Request {
        voq: u32,
        count: u32,
    },
    Grant {
        voq: u32,
        packets: u32,
    },
    /// A VOQ returns credits that it does not need to the lane's arbiter.
    Return {
        lane: u32,
        packets: u32,
    },
    /// The leaf's crossbar passes packets on.
    Slot {
        leaf: u32,
    },
    /// A packet is at a spine, over this uplink of its leaf.
    AtSpine {
        flight: u32,
        uplink: u32,
        bytes: u32,
    },
    /// A packet is at its leaf.
    AtLeaf {
        flight: u32,
    },
    /// Enough of a frame is in the egress buffer for it to be sent.
    Ready {
        flight: u32,
    },
    /// The egress port has sent a frame.
    Sent,
    Ack {
        voq: u32,
        frame: u32,
        copy: u32,
    },
    /// A VOQ has been suspended for long.
    SyncTimeout {
        voq: u32,
        suspension: u32,
    },
    /// No ACK has come for a copy.
    AckTimeout {
        voq: u32,
        flight: u32,
    },
    Notify {
        flow: u32,
        feedback: u32,
    },
    Recover {
        flow: u32,
        generation: u32,
    },
    Pause {
        class: u32,
        stop: bool,
    },
    /// A point of the series is over.
    Sample,
}

/// The side of a terminal or surrogate toward the crossbar.
#[derive(Debug)]
pub struct Ingress {
    /// Packets in payload memory, by lane.
    pub held: Vec<u32>,
    /// Headers, by lane.
    pub headers: Vec<u32>,
    /// VOQs that may be served, and the index of the first one to serve.
    pub ready: Vec<u32>,
    pub first_ready: usize,
    /// VOQs of all copies in order, if the port has one queue only.
    pub fifo: VecDeque<u32>,
    /// By class: the host has been asked to stop, and the time at which it stops.
    pub stopped: Vec<bool>,
    pub thresholds: Vec<Thresholds>,
    /// By lane.
    pub points: Vec<CongestionPoint>,
    /// By lane: packets of each flow there, if flows are notified by occupancy.
    pub flows: Vec<Vec<(u32, u32)>>,
}

/// The side of a port toward its host, or toward its own ingress side at a surrogate.
#[derive(Debug)]
pub struct Egress {
    /// By lane.
    pub arbiters: Vec<Arbiter>,
    pub queues: Vec<VecDeque<u32>>,
    /// Packets that have come to each lane's buffer and are still in it.
    pub held: Vec<u32>,
    pub points: Vec<CongestionPoint>,
    pub sending: Option<u32>,
    /// The lane that is served, and packets that it may still send before the next lane.
    pub current_lane: usize,
    pub allowance: u32,
    /// Copies of which a packet has come from the spines.
    pub down: VecDeque<u32>,
    /// A frame that its ingress side cannot take waits here.
    pub held_back: bool,
}

/// A switch at the edge.
#[derive(Debug)]
pub struct Leaf {
    pub cache: Cache,
    pub uplinks: Vec<Uplink>,
    /// The uplink that is tried first.
    pub next_uplink: usize,
    /// The port that is served first in the next slot.
    pub first_port: u32,
    /// A slot is due.
    pub awake: bool,
    /// Ports with packets from the spines.
    pub down: u32,
    /// Bytes of requests, grants and ACKs that the next packet shares its uplink with.
    pub message_bytes: u32,
    /// By crossbar input: use by copies beyond their share.
    pub balance: Vec<i64>,
}

/// A run.
pub struct Fabric<'a> {
    pub scenario: &'a Scenario,
    pub trees: &'a Trees,
    pub wheel: Wheel<Event>,
    pub now: Ps,
    pub frames: Pool<Frame>,
    pub flights: Pool<Flight>,
    pub voqs: Vec<Voq>,
    pub requesters: Vec<Requester>,
    /// The VOQ of each copy of each node.
    pub voq_of: Vec<Vec<u32>>,
    pub ingress: Vec<Ingress>,
    pub egress: Vec<Egress>,
    pub adapters: Vec<Adapter>,
    pub cams: Vec<SyncCam>,
    pub leaves: Vec<Leaf>,
    pub spine_outputs: Vec<SpineOutput>,
    pub statistics: Statistics,
    pub random: Random,
    pub times: Times,
    pub trace: Option<Trace<'a>>,
    pub events: u64,
    end: Ps,
}

/// Times and sizes of the scenario, as the model uses them.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    pub ports: u32,
    pub slot: Ps,
    pub packet_bytes: u32,
    /// One way.
    pub message_local: Ps,
    pub message_remote: Ps,
    pub ack_local: Ps,
    pub ack_remote: Ps,
    pub fiber: Ps,
    pub spine: Ps,
    pub adapter: Ps,
    pub line_ps_a_byte: f64,
    pub uplink_ps_a_byte: f64,
    /// From the crossbar of a leaf to that of another one, where nothing fills the network.
    pub constant: Ps,
}

impl Times {
    fn new(scenario: &Scenario) -> Self {
        let timing = &scenario.timing;
        let fiber = (timing.link_m * timing.ps_per_m as f64).round() as Ps;
        let uplink_ps_a_byte = 8000.0 / timing.uplink_gbps;
        let packet = f64::from(timing.packet_bytes + timing.uplink_overhead_bytes) * uplink_ps_a_byte;
        Self {
            ports: scenario.topology.ports(),
            slot: timing.clock_ps * u64::from(timing.packet_cycles),
            packet_bytes: timing.packet_bytes,
            message_local: timing.grant_local_ns * 500,
            message_remote: timing.grant_remote_ns * 500,
            ack_local: timing.ack_local_ns * 1000,
            ack_remote: timing.ack_remote_ns * 1000,
            fiber,
            spine: timing.spine_ns * 1000,
            adapter: timing.adapter_ns * 1000,
            line_ps_a_byte: 8000.0 / timing.line_gbps,
            uplink_ps_a_byte,
            constant: 2 * (fiber + packet.round() as Ps) + timing.spine_ns * 1000,
        }
    }

    /// Return the time of a frame on an Ethernet line.
    #[inline]
    pub fn line(&self, bytes: u32) -> Ps {
        (f64::from(bytes) * self.line_ps_a_byte).round() as Ps
    }

    /// Return the time of bytes on an uplink.
    #[inline]
    pub fn uplink(&self, bytes: u32) -> Ps {
        (f64::from(bytes) * self.uplink_ps_a_byte).round() as Ps
    }

    /// Return the one-way delay of a request or grant.
    #[inline]
    pub fn message(&self, local: bool) -> Ps {
        if local { self.message_local } else { self.message_remote }
    }
}

impl<'a> Fabric<'a> {
    /// Create an empty fabric at time 0.
    pub fn new(scenario: &'a Scenario, trees: &'a Trees, trace: Option<Trace<'a>>) -> Self {
        let topology = &scenario.topology;
        let ports = topology.leaves * topology.ports();
        let lanes = scenario.classes.len() as u32 * LANES;
        let mut fabric = Self {
            scenario,
            trees,
            wheel: Wheel::default(),
            now: 0,
            frames: Pool::default(),
            flights: Pool::default(),
            voqs: Vec::new(),
            requesters: Vec::new(),
            voq_of: Vec::new(),
            ingress: (0..ports).map(|port| ingress(scenario, lanes, thresholds(scenario, trees, port))).collect(),
            egress: (0..ports).map(|port| egress(scenario, lanes, port)).collect(),
            adapters: (0..ports).map(|port| Adapter::new(scenario, port)).collect(),
            cams: (0..ports)
                .map(|_| {
                    let sync = &scenario.sync;
                    SyncCam::new(sync.entries, sync.block_packets, sync.resume_packets)
                })
                .collect(),
            leaves: (0..topology.leaves).map(|_| leaf(scenario)).collect(),
            spine_outputs: vec![
                SpineOutput::new(scenario.buffers.spine_packets);
                (topology.spines * topology.leaves) as usize
            ],
            statistics: Statistics::new(scenario, trees),
            random: Random::new(scenario.seed, 0),
            times: Times::new(scenario),
            trace,
            events: 0,
            end: scenario.duration_ns * 1000,
        };
        fabric.open_voqs();
        for port in 0..ports {
            fabric.start_adapter(port);
        }
        if scenario.sample_ns > 0 {
            fabric.wheel.add(scenario.sample_ns * 1000, 0, Event::Sample);
        }
        fabric
    }

    fn open_voqs(&mut self) {
        let mut known = std::collections::BTreeMap::new();
        for node in &self.trees.nodes {
            let mut of_node = Vec::with_capacity(node.copies.len());
            for copy in &node.copies {
                let local = node.port / self.times.ports == copy.to / self.times.ports;
                let voq = *known.entry((node.port, copy.to, copy.lane)).or_insert_with(|| {
                    self.voqs.push(Voq::new(node.port, copy.to, copy.lane, local));
                    self.requesters.push(Requester::default());
                    self.voqs.len() as u32 - 1
                });
                of_node.push(voq);
            }
            self.voq_of.push(of_node);
        }
    }

    /// Simulate up to this time, or to the end; return whether the end is still ahead.
    pub fn run(&mut self, until: Ps) -> bool {
        let until = until.min(self.end);
        while let Some(entry) = self.wheel.next(until) {
            debug_assert!(entry.time >= self.now);
            self.now = entry.time;
            self.events += 1;
            self.handle(entry.port, entry.event);
            if cfg!(debug_assertions) && self.events % CHECKED == 0 {
                self.check();
            }
        }
        self.now = until;
        until < self.end
    }

    /// End the simulation and return the results.
    pub fn finish(mut self) -> (Statistics, std::io::Result<()>) {
        self.check();
        self.statistics.events = self.events;
        let written = self.trace.map_or(Ok(()), Trace::finish);
        (self.statistics, written)
    }

    #[inline]
    fn handle(&mut self, port: u32, event: Event) {
        match event {
            Event::Offer => self.offer(port),
            Event::Arrive => self.arrive(port),
            Event::Request { voq, count } => self.requested(voq, count),
            Event::Grant { voq, packets } => self.granted(voq, packets),
            Event::Return { lane, packets } => self.returned(port, lane, packets),
            Event::Slot { leaf } => self.slot(leaf),
            Event::AtSpine { flight, uplink, bytes } => self.at_spine(flight, uplink, bytes),
            Event::AtLeaf { flight } => self.at_leaf(flight),
            Event::Ready { flight } => self.ready(flight),
            Event::Sent => self.sent(port),
            Event::Ack { voq, frame, copy } => self.acknowledged(voq, frame, copy),
            Event::SyncTimeout { voq, suspension } => self.sync_timeout(voq, suspension),
            Event::AckTimeout { voq, flight } => self.ack_timeout(voq, flight),
            Event::Notify { flow, feedback } => self.notify(flow, feedback),
            Event::Recover { flow, generation } => self.recover(flow, generation),
            Event::Pause { class, stop } => self.pause(port, class, stop),
            Event::Sample => self.sample(),
        }
    }

    fn sample(&mut self) {
        let caches: Vec<usize> =
            self.statistics.watched.iter().map(|&leaf| self.leaves[leaf as usize].cache.occupied()).collect();
        let held = self.ingress.iter().map(|port| port.held.iter().sum::<u32>()).max().unwrap_or(0);
        self.statistics.sample(&caches, held);
        self.wheel.add(self.now + self.scenario.sample_ns * 1000, 0, Event::Sample);
    }

    /// Note an event for the trace.
    #[inline]
    pub fn note(&mut self, port: u32, kind: Kind, (frame, voq): (u32, u32), value: u32, extra: u64) {
        self.note_flagged(port, kind, 0, (frame, voq), value, extra);
    }

    /// Note an event with flags for the trace.
    #[inline]
    pub fn note_flagged(&mut self, port: u32, kind: Kind, flags: u8, (frame, voq): (u32, u32), value: u32, extra: u64) {
        if let Some(trace) = &mut self.trace {
            trace.write(&Record { time: self.now, kind, flags, port, frame, voq, value, extra });
        }
    }

    /// Note an event of a port without a frame or VOQ.
    #[inline]
    pub fn note_port(&mut self, port: u32, kind: Kind, value: u32, extra: u64) {
        self.note(port, kind, (NONE, NONE), value, extra);
    }

    /// Panic if an invariant of the model is violated, which is a bug.
    fn check(&self) {
        let mut held = vec![0; self.ingress.len()];
        for port in &self.ingress {
            debug_assert!(port.ready.iter().all(|&voq| self.voqs[voq as usize].ready));
        }
        for voq in &self.voqs {
            let backlog: u32 = voq.headers.iter().skip(usize::from(voq.packet > 0)).map(|header| header.packets).sum();
            assert_eq!(backlog, voq.backlog, "the backlog of a VOQ is that of its headers");
            assert!(
                voq.granted + voq.asked >= voq.backlog || self.scenario.arbiter.coalesce_packets > 1,
                "a VOQ waits without asking"
            );
            for header in &voq.headers {
                let frame = &self.frames[header.frame];
                assert!(frame.live & 1 << header.copy != 0, "a VOQ holds a copy that has no header");
                held[voq.port as usize] += 1;
            }
        }
        for (port, ingress) in self.ingress.iter().enumerate() {
            assert!(held[port] <= ingress.headers.iter().sum::<u32>(), "a queued copy has no header");
        }
    }
}

fn ingress(scenario: &Scenario, lanes: u32, thresholds: Vec<Thresholds>) -> Ingress {
    let points = if scenario.qcn.points == Points::Inputs {
        vec![CongestionPoint::new(&scenario.qcn, scenario.qcn.equilibrium_ingress_bytes); lanes as usize]
    } else {
        Vec::new()
    };
    Ingress {
        held: vec![0; lanes as usize],
        headers: vec![0; lanes as usize],
        ready: Vec::new(),
        first_ready: 0,
        fifo: VecDeque::new(),
        stopped: vec![false; scenario.classes.len()],
        thresholds,
        points,
        flows: vec![Vec::new(); lanes as usize],
    }
}

fn egress(scenario: &Scenario, lanes: u32, port: u32) -> Egress {
    let topology = &scenario.topology;
    let bytes = if port % topology.ports() == topology.surrogate() {
        scenario.buffers.egress_surrogate_bytes
    } else {
        scenario.buffers.egress_terminal_bytes
    };
    let points = if scenario.qcn.points == Points::Outputs {
        vec![CongestionPoint::new(&scenario.qcn, scenario.qcn.equilibrium_egress_bytes); lanes as usize]
    } else {
        Vec::new()
    };
    Egress {
        arbiters: (0..lanes).map(|_| Arbiter::new(scenario.units(bytes))).collect(),
        queues: (0..lanes).map(|_| VecDeque::new()).collect(),
        held: vec![0; lanes as usize],
        points,
        sending: None,
        current_lane: 0,
        allowance: 0,
        down: VecDeque::new(),
        held_back: false,
    }
}

fn leaf(scenario: &Scenario) -> Leaf {
    let topology = &scenario.topology;
    Leaf {
        cache: Cache::new(scenario.cache.packets, scenario.cache.reserve),
        uplinks: (0..topology.spines).map(|_| Uplink::new(scenario.buffers.spine_packets)).collect(),
        next_uplink: 0,
        first_port: 0,
        awake: false,
        down: 0,
        message_bytes: 0,
        balance: vec![0; topology.ports() as usize],
    }
}
