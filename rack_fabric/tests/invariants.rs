//! Invariants of every trace: each copy that a port accepts is delivered once and in order, each frame frees its space
//! once, and a fabric whose flows have stopped is empty in the end (sections 2.1, 2.2 and 4).

use std::collections::{BTreeMap, HashMap};

use proptest::prelude::*;
use proptest::sample::select;
use rack_fabric::fabric::Fabric;
use rack_fabric::scenario::Scenario;
use rack_fabric::trace::{Kind, NONE, Trace};
use rack_fabric::trees::{LANES, Port, Trees};
use serde_json::{Value, json};

// ------------------------------------------------------------------------------------------------------- trace

#[derive(Clone, Copy, Debug)]
struct Record {
    time: u64,
    kind: u8,
    port: Port,
    frame: u32,
    voq: u32,
    value: u32,
    extra: u64,
}

fn records(trace: &[u8]) -> impl Iterator<Item = Record> + '_ {
    assert_eq!(&trace[..8], b"BLASTRF1");
    let records = trace[16..].chunks_exact(32);
    assert!(records.remainder().is_empty());
    records.map(|bytes| {
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        Record {
            time: long(0),
            kind: bytes[8],
            port: u32::from(u16::from_le_bytes([bytes[10], bytes[11]])),
            frame: word(12),
            voq: word(16),
            value: word(20),
            extra: long(24),
        }
    })
}

/// The ports and lane of a VOQ.
#[derive(Clone, Copy, Debug)]
struct VoqEnds {
    from: Port,
    to: Port,
    lane: u32,
}

/// The progress of a copy.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Copied {
    Waits,
    /// Packets that have left.
    Begun(u32),
    Lost,
    Acked,
    Dropped,
}

#[derive(Clone, Debug)]
struct Held {
    flow: u32,
    port: Port,
    packets: u32,
    copies: BTreeMap<u64, (u32, Copied)>,
    /// Time of the last change to a copy.
    touched: u64,
}

/// A run that is reconstructed from its trace and checked record by record.
struct Replay<'a> {
    scenario: &'a Scenario,
    trees: &'a Trees,
    voqs: Vec<VoqEnds>,
    frames: HashMap<u32, Held>,
    /// By port and lane.
    headers: BTreeMap<(Port, u32), u32>,
    max_headers: BTreeMap<(Port, u32), u32>,
    /// Copies that were dropped for the copy that arrives.
    heads_dropped: u32,
    payload: BTreeMap<(Port, u32), u32>,
    /// Copies of a flow that their target has acknowledged, by target.
    acked: BTreeMap<(u32, Port), u64>,
    /// Frames of a flow that came to a surrogate.
    looped: BTreeMap<(u32, Port), u64>,
    /// Times at which hosts had the frames of a flow ready, by destination.
    delivered: BTreeMap<(u32, Port), Vec<u64>>,
}

/// The handler of a kind of record.
type Handler<'a> = fn(&mut Replay<'a>, &Record);

impl<'a> Replay<'a> {
    fn new(scenario: &'a Scenario, trees: &'a Trees, voqs: Vec<VoqEnds>) -> Self {
        Self {
            scenario,
            trees,
            voqs,
            frames: HashMap::new(),
            headers: BTreeMap::new(),
            max_headers: BTreeMap::new(),
            heads_dropped: 0,
            payload: BTreeMap::new(),
            acked: BTreeMap::new(),
            looped: BTreeMap::new(),
            delivered: BTreeMap::new(),
        }
    }

    fn replay_record(&mut self, record: &Record) {
        let kinds: [(Kind, Handler<'a>); 12] = [
            (Kind::FrameIn, Self::frame_in),
            (Kind::FrameDropped, Self::frame_dropped),
            (Kind::HeaderAccepted, Self::header_accepted),
            (Kind::HeaderDropped, Self::header_dropped),
            (Kind::BeginFrame, Self::begin_frame),
            (Kind::PacketSent, Self::packet_sent),
            (Kind::HeadDropped, Self::head_dropped),
            (Kind::Corrupted, Self::corrupted),
            (Kind::Retransmitted, Self::retransmitted),
            (Kind::Acked, Self::acknowledged),
            (Kind::PayloadFreed, Self::payload_freed),
            (Kind::FrameOut, Self::frame_out),
        ];
        if let Some((_, handle)) = kinds.iter().find(|(kind, _)| *kind as u8 == record.kind) {
            handle(self, record);
        }
    }

    fn is_lossless(&self, flow: u32) -> bool {
        self.scenario.classes[self.scenario.flows[flow as usize].class as usize].lossless
    }

    fn is_surrogate(&self, port: Port) -> bool {
        port % self.scenario.topology.ports() == self.scenario.topology.surrogate()
    }

    /// Lane of a flow's payload at a port.
    fn lane(&self, flow: u32, port: Port) -> u32 {
        let node = self.trees.nodes.iter().find(|node| node.flow == flow && node.port == port);
        node.expect("a port with frames of a flow is in its tree").lane
    }

    fn frame_in(&mut self, record: &Record) {
        let flow = record.extra as u32;
        let held =
            Held { flow, port: record.port, packets: record.value, copies: BTreeMap::new(), touched: record.time };
        assert!(self.frames.insert(record.frame, held).is_none(), "a number is used for two frames: {record:?}");
        *self.payload.entry((record.port, self.lane(flow, record.port))).or_default() += record.value;
        if self.is_surrogate(record.port) {
            *self.looped.entry((flow, record.port)).or_default() += 1;
        }
    }

    fn frame_dropped(&mut self, record: &Record) {
        let held = self.frames.remove(&record.frame).expect("a frame that is dropped has come");
        assert!(!self.is_lossless(held.flow) && held.copies.is_empty(), "{record:?}");
        self.release_payload(&held);
    }

    fn release_payload(&mut self, held: &Held) {
        let lane = self.lane(held.flow, held.port);
        *self.payload.get_mut(&(held.port, lane)).expect("was counted") -= held.packets;
    }

    /// Check that the pool has space for accepted payload.
    fn check_payload_pool(&self, flow: u32, port: Port) {
        let buffers = &self.scenario.buffers;
        let lossless = self.is_lossless(flow);
        let bytes = match (self.is_surrogate(port), lossless) {
            (false, false) => buffers.ingress_terminal_lossy_bytes,
            (false, true) => buffers.ingress_terminal_lossless_bytes,
            (true, false) => buffers.ingress_surrogate_lossy_bytes,
            (true, true) => buffers.ingress_surrogate_lossless_bytes,
        };
        let shares = |lane: u32| {
            let class = (lane / LANES) as usize;
            if lossless { lane == self.lane(flow, port) } else { !self.scenario.classes[class].lossless }
        };
        let held: u32 = self
            .payload
            .iter()
            .filter(|((at, lane), _)| *at == port && shares(*lane))
            .map(|(_, packets)| packets)
            .sum();
        assert!(held <= self.scenario.units(bytes), "{held} packets in a pool of {bytes} bytes");
    }

    fn header_accepted(&mut self, record: &Record) {
        let voq = self.voqs[record.voq as usize];
        let held = self.frames.get_mut(&record.frame).expect("a header has a frame");
        let flow = held.flow;
        assert_eq!((held.port, voq.from), (record.port, record.port));
        let known = held.copies.insert(record.extra, (record.voq, Copied::Waits));
        assert!(known.is_none(), "a copy is accepted twice: {record:?}");
        let lossy = !self.is_lossless(flow);
        let headers = self.headers.entry((record.port, voq.lane)).or_default();
        let before = *headers + std::mem::take(&mut self.heads_dropped);
        assert_eq!(before, record.value, "headers of a pool are counted otherwise");
        *headers += 1;
        let max_headers = self.max_headers.entry((record.port, voq.lane)).or_default();
        *max_headers = (*max_headers).max(*headers);
        assert!(!lossy || *headers <= self.scenario.headers.high);
        self.check_payload_pool(flow, record.port);
    }

    fn header_dropped(&mut self, record: &Record) {
        assert!(!self.is_lossless(self.frames[&record.frame].flow), "a lossless lane drops a header");
    }

    /// Advance a copy from its expected state; return its flow.
    fn advance(&mut self, record: &Record, to: impl Fn(Copied, u32) -> Option<Copied>) -> u32 {
        let held = self.frames.get_mut(&record.frame).unwrap_or_else(|| panic!("the frame is gone: {record:?}"));
        held.touched = record.time;
        let named = held.copies.iter_mut().filter(|(copy, (voq, _))| {
            *voq == record.voq && (record.kind == Kind::PacketSent as u8 || **copy == record.extra)
        });
        let [(_, (_, copied))] = &mut named.collect::<Vec<_>>()[..] else { panic!("no such copy: {record:?}") };
        *copied = to(*copied, held.packets).unwrap_or_else(|| panic!("{record:?} of a copy that is {copied:?}"));
        held.flow
    }

    fn begin_frame(&mut self, record: &Record) {
        self.advance(record, |copied, packets| {
            (copied == Copied::Waits && packets == record.value).then_some(Copied::Begun(0))
        });
    }

    fn packet_sent(&mut self, record: &Record) {
        self.advance(record, |copied, packets| {
            (copied == Copied::Begun(record.value) && record.value < packets).then_some(Copied::Begun(record.value + 1))
        });
    }

    fn corrupted(&mut self, record: &Record) {
        self.advance(record, |copied, packets| (copied == Copied::Begun(packets)).then_some(Copied::Lost));
    }

    fn retransmitted(&mut self, record: &Record) {
        self.advance(record, |copied, _| (copied == Copied::Lost).then_some(Copied::Waits));
    }

    fn head_dropped(&mut self, record: &Record) {
        let flow = self.advance(record, |copied, _| (copied == Copied::Waits).then_some(Copied::Dropped));
        assert!(!self.is_lossless(flow), "a lossless lane drops a copy");
        self.heads_dropped += 1;
        self.release_header(record);
    }

    fn acknowledged(&mut self, record: &Record) {
        let flow = self.advance(record, |copied, packets| (copied == Copied::Begun(packets)).then_some(Copied::Acked));
        *self.acked.entry((flow, self.voqs[record.voq as usize].to)).or_default() += 1;
        self.release_header(record);
    }

    fn release_header(&mut self, record: &Record) {
        let lane = self.voqs[record.voq as usize].lane;
        *self.headers.get_mut(&(record.port, lane)).expect("was counted") -= 1;
    }

    fn payload_freed(&mut self, record: &Record) {
        let held = self.frames.remove(&record.frame).unwrap_or_else(|| panic!("freed twice: {record:?}"));
        let is_finished = |(_, copied): &(u32, Copied)| matches!(copied, Copied::Acked | Copied::Dropped);
        assert!(held.copies.values().all(is_finished), "freed before its last copy is acknowledged: {held:?}");
        assert_eq!((held.port, held.packets, held.touched), (record.port, record.value, record.time));
        self.release_payload(&held);
    }

    /// Record a delivery; frame sizes identify flows.
    fn frame_out(&mut self, record: &Record) {
        assert_eq!(record.voq, NONE);
        let flow = self.scenario.flows.iter().position(|flow| flow.frame_bytes == record.value).expect("is known");
        self.delivered.entry((flow as u32, record.port)).or_default().push(record.extra);
    }

    /// Check that every accepted copy was finished and delivered to its target.
    fn end(&self) {
        assert!(self.frames.is_empty(), "{} frames were never freed: {:?}", self.frames.len(), self.frames);
        assert!(self.headers.values().chain(self.payload.values()).all(|&count| count == 0));
        let mut received = self.looped.clone();
        received.extend(self.delivered.iter().map(|(&target, born)| (target, born.len() as u64)));
        assert_eq!(received, self.acked, "received copies are the acknowledged ones");
    }

    /// Count overtaken frames; two frames of a Poisson process may have the same picosecond.
    fn overtaken(&self) -> usize {
        let later = |born: &Vec<u64>| born.windows(2).filter(|pair| pair[0] > pair[1]).count();
        self.delivered.values().map(later).sum()
    }
}

/// Measurements of a run whose records passed all checks.
struct Replayed {
    delivered: usize,
    /// Deliveries of a frame after a later one of the same flow at the same destination.
    overtaken: usize,
    /// The largest number of headers in a pool of a lossless lane.
    max_lossless_headers: u32,
}

fn replayed(scenario: &Value) -> Replayed {
    let (scenario, trees) = Scenario::read(&scenario.to_string()).unwrap_or_else(|wrong| panic!("{wrong}"));
    let mut bytes = Vec::new();
    let trace = Trace::new(Box::new(&mut bytes)).expect("is written");
    let mut fabric = Fabric::new(&scenario, &trees, Some(trace));
    let voqs = fabric.voqs.iter().map(|voq| VoqEnds { from: voq.port, to: voq.to, lane: voq.lane }).collect();
    assert!(!fabric.run(u64::MAX));
    fabric.finish().1.expect("is written");
    let mut replay = Replay::new(&scenario, &trees, voqs);
    records(&bytes).for_each(|record| replay.replay_record(&record));
    replay.end();
    let lossless = |(_, lane): &(Port, u32)| scenario.classes[(lane / LANES) as usize].lossless;
    let headers = replay.max_headers.iter().filter(|(pool, _)| lossless(pool)).map(|(_, &headers)| headers);
    Replayed {
        delivered: replay.delivered.values().map(Vec::len).sum(),
        overtaken: replay.overtaken(),
        max_lossless_headers: headers.max().unwrap_or(0),
    }
}

// --------------------------------------------------------------------------------------------------- scenarios

/// Generate flows that stop early, each with a unique frame size.
fn flows() -> impl Strategy<Value = Vec<Value>> {
    let tree = select(vec!["direct", "chain", "star", "uniform"]);
    let flow = (0u32..3, 0u32..3, 0u32..1790, 1u32..100, tree, any::<bool>(), 0u32..2);
    prop::collection::vec(flow, 1..5).prop_map(|flows| {
        let flow = |(number, (leaf, port, size, rate, tree, poisson, class))| {
            let trees = match tree {
                "chain" => json!({"surrogates": {"first": 1, "remote": 1}}),
                "star" => json!({"surrogates": {"first": 2, "remote": 1}}),
                _ => json!("direct"),
            };
            json!({
                "source": [leaf, port], "to": "all", "tree": trees, "frame_bytes": 64 + 5 * size + number,
                "rate_gbps": rate, "process": if poisson { "poisson" } else { "constant" }, "class": class,
                "spread": if tree == "uniform" { "uniform" } else { "multicast" }, "stop_ns": 15_000,
            })
        };
        (0u32..).zip(flows).map(flow).collect()
    })
}

/// Generate pools that are often full and pools that are never full.
fn pools() -> impl Strategy<Value = Value> {
    let drop = select(vec![
        ("none", 10_240),
        ("none", 102_400),
        ("tail", 10_240),
        ("tail", 102_400),
        ("head", 10_240),
        ("head", 102_400),
    ]);
    (
        select(vec![(500, 470), (40, 20)]),
        any::<bool>(),
        drop,
        select(vec![10_240, 61_440]),
        select(vec![20_480, 189_440]),
    )
        .prop_map(|((high, low), shuffle, (drop, egress), voq, ingress)| {
            json!({
                "voq": {"drop": drop, "terminal_bytes": voq, "surrogate_bytes": voq},
                "headers": {"high": high, "low": low, "shuffle": shuffle},
                "buffers": {
                    "ingress_terminal_lossy_bytes": ingress, "ingress_surrogate_lossy_bytes": ingress,
                    "ingress_surrogate_lossless_bytes": egress, "egress_terminal_bytes": egress,
                    "egress_surrogate_bytes": egress,
                },
            })
        })
}

/// Generate every combination of mechanisms.
fn mechanisms() -> impl Strategy<Value = Value> {
    let small = json!({"entries": 2, "block_packets": 4, "resume_packets": 1});
    let sync = select(vec![json!({"on": false}), json!({}), small]);
    let points = select(vec!["none", "inputs", "outputs"]);
    (sync, points, select(vec![0, 16, 128]), any::<bool>()).prop_map(|(sync, points, cache, lossless)| {
        json!({
            "sync": sync, "qcn": {"points": points}, "cache": {"packets": cache},
            "classes": [{"lossless": lossless}, {"lossless": true, "weight": 3}],
        })
    })
}

/// Generate small fabrics with time to drain; `networks` lists (spines, error probability).
fn scenarios(networks: Vec<(u32, f64)>) -> impl Strategy<Value = Value> {
    (flows(), pools(), mechanisms(), select(networks), 1u64..1000).prop_map(
        |(flows, pools, mechanisms, (spines, errors), seed)| {
            let mut scenario = json!({
                "seed": seed, "duration_ns": 60_000_000, "flows": flows, "errors": {"probability": errors},
                "topology": {"leaves": 3, "ethernet_ports": 3, "pcie_ports": 1, "spines": spines},
            });
            extend(&mut scenario, &pools);
            extend(&mut scenario, &mechanisms);
            scenario
        },
    )
}

fn extend(scenario: &mut Value, groups: &Value) {
    let groups = groups.as_object().expect("groups of settings").clone();
    scenario.as_object_mut().expect("a scenario").extend(groups);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn every_accepted_copy_is_delivered_once_and_every_frame_freed_once(
        scenario in scenarios(vec![(0, 0.0), (2, 0.0), (8, 0.0), (0, 0.03), (8, 0.03)]),
    ) {
        replayed(&scenario);
    }

    /// Retransmitted copies included: later copies wait for them.
    #[test]
    fn frames_of_a_flow_are_delivered_in_order(scenario in scenarios(vec![(0, 0.0), (0, 0.03), (2, 0.03), (8, 0.03)])) {
        prop_assert_eq!(replayed(&scenario).overtaken, 0);
    }

    #[test]
    fn frames_of_a_flow_are_delivered_in_order_over_spines(scenario in scenarios(vec![(2, 0.0), (8, 0.0), (32, 0.0)])) {
        prop_assert_eq!(replayed(&scenario).overtaken, 0);
    }
}

fn one_flow(flow: &Value, others: &Value) -> Value {
    let mut scenario = json!({"duration_ns": 3_000_000, "topology": {"leaves": 5, "spines": 32}, "flows": [flow]});
    extend(&mut scenario, others);
    scenario
}

/// The first frame shares its uplink with requests, the second one does not.
#[test]
fn small_frames_do_not_overtake_each_other_on_an_idle_fabric() {
    let flow = json!({"source": [0, 0], "to": [[1, 0]], "frame_bytes": 64, "rate_gbps": 10, "stop_ns": 2000});
    assert_eq!(replayed(&one_flow(&flow, &json!({}))).overtaken, 0);
}

/// Table 1: 291 headers per lossless lane.
#[test]
fn lossless_lane_stays_within_its_header_pool() {
    let to: Vec<(u32, u32)> = (1..5).map(|leaf| (leaf, 0)).chain((1..5).map(|port| (0, port))).collect();
    for frame_bytes in [64, 256, 1522] {
        let flow = json!({
            "source": [0, 0], "to": to, "frame_bytes": frame_bytes, "rate_gbps": 100, "stop_ns": 50_000,
        });
        let max_headers = replayed(&one_flow(&flow, &json!({"classes": [{"lossless": true}]}))).max_lossless_headers;
        assert!(max_headers <= 291, "{max_headers} headers of frames of {frame_bytes} bytes");
    }
}

#[test]
fn fifo_port_delivers_uniform_traffic_and_drains() {
    let flow = json!({
        "source": [0, 0], "to": "all", "spread": "uniform", "frame_bytes": 1522, "rate_gbps": 99, "stop_ns": 20_000,
    });
    let run = replayed(&one_flow(&flow, &json!({"voq": {"queueing": "fifo", "drop": "tail"}})));
    assert!(run.delivered > 100);
}

#[test]
fn fifo_port_drains_after_link_errors() {
    let flow =
        json!({"source": [0, 0], "to": [[0, 1], [1, 0]], "frame_bytes": 1522, "rate_gbps": 50, "stop_ns": 50_000});
    let others = json!({
        "voq": {"queueing": "fifo", "drop": "none"}, "errors": {"probability": 0.02}, "sync": {"on": false},
    });
    replayed(&one_flow(&flow, &others));
}

#[test]
fn fifo_port_drains_after_head_drops() {
    let flow = |port: u32, to: u32, frame_bytes: u32, rate: u32, stop: u32| json!({"source": [0, port], "to": [[0, to]], "frame_bytes": frame_bytes, "rate_gbps": rate, "stop_ns": stop});
    replayed(&json!({
        "duration_ns": 3_000_000, "topology": {"leaves": 1, "spines": 0}, "sync": {"on": false},
        "voq": {"queueing": "fifo", "drop": "head"},
        "flows": [
            flow(0, 1, 1522, 60, 150_000), flow(0, 2, 1521, 10, 400_000), flow(3, 1, 1520, 100, 150_000),
            flow(4, 1, 1519, 100, 150_000),
        ],
    }));
}

/// Two VOQs with partial grants would each wait for the credits that the other holds.
#[test]
fn head_drops_leave_no_partial_grants() {
    let flow = |frame_bytes: u32, process: &str, rate: u32, tree: Value| {
        json!({
            "source": [1, 0], "to": "all", "tree": tree, "frame_bytes": frame_bytes, "process": process,
            "rate_gbps": rate, "stop_ns": 15_000,
        })
    };
    replayed(&json!({
        "seed": 197, "duration_ns": 3_000_000, "cache": {"packets": 0}, "sync": {"on": false},
        "topology": {"leaves": 3, "ethernet_ports": 3, "pcie_ports": 1, "spines": 0},
        "buffers": {"egress_terminal_bytes": 10_240, "egress_surrogate_bytes": 10_240},
        "voq": {"drop": "head", "terminal_bytes": 10_240, "surrogate_bytes": 10_240},
        "flows": [
            flow(3074, "constant", 5, json!({"surrogates": {"first": 1, "remote": 1}})),
            flow(7885, "poisson", 58, json!("direct")),
            flow(1476, "constant", 64, json!("direct")),
        ],
    }));
}
