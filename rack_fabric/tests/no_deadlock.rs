//! No frame waits forever: neither for VOQs that synchronization suspends (section 3.1), nor for space (section 5).
//!
//! Both claims hold for every order of events; these tests search every order of small cases.

use std::collections::{BTreeSet, HashSet};
use std::hash::Hash;

use proptest::prelude::*;
use rack_fabric::fabric::Fabric;
use rack_fabric::scenario::Scenario;
use rack_fabric::sync_cam::SyncCam;
use rack_fabric::trees::{Node, Trees};
use serde_json::{Value, json};

/// A model whose steps may happen in any order.
trait Model: Clone {
    type Key: Eq + Hash;

    /// Return the state that determines the further steps.
    fn key(&self) -> Self::Key;
    /// Return the states after steps that suffice for progress.
    fn progress_steps(&self) -> Vec<Self>;
    /// Return the states after other steps that may happen.
    fn other_steps(&self) -> Vec<Self>;
    /// Return whether nothing waits.
    fn is_done(&self) -> bool;
}

/// The reachable states, up to the first state without progress.
struct Searched<M> {
    states: usize,
    dead: Option<M>,
}

/// Search for a state without progress. Every progress step consumes something, so that a model without a dead state
/// completes when the other steps cease.
fn search<M: Model>(start: M) -> Searched<M> {
    let mut known = HashSet::from([start.key()]);
    let mut ahead = vec![start];
    while let Some(state) = ahead.pop() {
        let next_states = state.progress_steps();
        if next_states.is_empty() && !state.is_done() {
            return Searched { states: known.len(), dead: Some(state) };
        }
        for next in next_states.into_iter().chain(state.other_steps()) {
            if known.insert(next.key()) {
                ahead.push(next);
            }
        }
    }
    Searched { states: known.len(), dead: None }
}

// ---------------------------------------------------------------------------------------------- VOQs (section 3.1)

/// The numbers of the synchronization CAM.
#[derive(Clone, Copy, Debug)]
struct Sync {
    entries: u32,
    block: u32,
    resume: u32,
}

/// A port that has all its frames: only synchronization suspends its VOQs, and no timeout resumes them.
#[derive(Clone)]
struct Port<'a> {
    /// The frames of each VOQ, in its order.
    voqs: &'a [Vec<usize>],
    packets: &'a [u32],
    /// Heads may be dropped, whether their VOQ is suspended or not (section 4.1).
    drops: bool,
    next: Vec<usize>,
    /// By frame, as masks of VOQs.
    live: Vec<u32>,
    begun: Vec<u32>,
    suspended: u32,
    cam: SyncCam,
    /// VOQs with an entry, the one that was used least recently first.
    recent: Vec<u32>,
}

impl<'a> Port<'a> {
    fn new(voqs: &'a [Vec<usize>], packets: &'a [u32], sync: Sync, drops: bool) -> Self {
        let holders = |frame: usize| {
            let holds = voqs.iter().enumerate().filter(|(_, frames)| frames.contains(&frame));
            holds.fold(0, |mask, (voq, _)| mask | 1 << voq)
        };
        Self {
            voqs,
            packets,
            drops,
            next: vec![0; voqs.len()],
            live: (0..packets.len()).map(holders).collect(),
            begun: vec![0; packets.len()],
            suspended: 0,
            cam: SyncCam::new(sync.entries, sync.block, sync.resume),
            recent: Vec::new(),
        }
    }

    fn waiting(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.voqs.len()).filter(|&voq| self.next[voq] < self.voqs[voq].len())
    }

    fn take_head(&mut self, voq: usize) -> usize {
        self.next[voq] += 1;
        self.voqs[voq][self.next[voq] - 1]
    }

    fn begin(&mut self, voq: usize) {
        let frame = self.take_head(voq);
        let before = self.begun[frame];
        self.begun[frame] |= 1 << voq;
        if self.begun[frame] == self.live[frame] {
            self.catch_up(before, self.packets[frame]);
        } else {
            self.get_ahead(voq, self.packets[frame]);
        }
    }

    fn drop_head(&mut self, voq: usize) {
        let frame = self.take_head(voq);
        self.live[frame] &= !(1 << voq);
        if self.begun[frame] == self.live[frame] {
            self.catch_up(self.begun[frame], self.packets[frame]);
        }
    }

    fn get_ahead(&mut self, voq: usize, packets: u32) {
        let change = self.cam.begin(voq as u32, packets);
        self.recent.retain(|&other| other != voq as u32);
        if let Some((evicted, suspended)) = change.evicted {
            assert_eq!(self.recent.remove(0), evicted, "the least recently used entry is evicted");
            assert_eq!(suspended, self.suspended & 1 << evicted != 0);
            self.suspended &= !(1 << evicted);
        }
        self.recent.push(voq as u32);
        if change.suspended {
            self.suspended |= 1 << voq;
        }
    }

    fn catch_up(&mut self, voqs: u32, packets: u32) {
        for voq in (0..self.voqs.len() as u32).filter(|voq| voqs & 1 << voq != 0) {
            let change = self.cam.catch_up(voq, packets);
            if change.resumed {
                self.suspended &= !(1 << voq);
            }
            if change.released {
                self.recent.retain(|&other| other != voq);
            }
        }
    }

    fn stepped(&self, voq: usize, step: fn(&mut Self, usize)) -> Self {
        let mut next = self.clone();
        step(&mut next, voq);
        next
    }
}

impl Model for Port<'_> {
    type Key = (Vec<usize>, Vec<u32>, u32, Vec<Option<u32>>, Vec<u32>);

    fn key(&self) -> Self::Key {
        let ahead = (0..self.voqs.len() as u32).map(|voq| self.cam.ahead(voq)).collect();
        (self.next.clone(), self.live.clone(), self.suspended, ahead, self.recent.clone())
    }

    fn progress_steps(&self) -> Vec<Self> {
        let free = self.waiting().filter(|voq| self.suspended & 1 << voq == 0);
        free.map(|voq| self.stepped(voq, Self::begin)).collect()
    }

    fn other_steps(&self) -> Vec<Self> {
        if self.drops { self.waiting().map(|voq| self.stepped(voq, Self::drop_head)).collect() } else { Vec::new() }
    }

    fn is_done(&self) -> bool {
        self.waiting().next().is_none()
    }
}

/// Return the frames of each VOQ, in order of arrival; a mask has the VOQs that get a copy of a frame.
fn in_order(masks: &[u32], voqs: usize) -> Vec<Vec<usize>> {
    let of = |voq: usize| (0..masks.len()).filter(|&frame| masks[frame] & 1 << voq != 0).collect();
    (0..voqs).map(of).collect()
}

/// Return whether a VOQ gets suspended when each VOQ in sequence sends all permitted frames.
fn suspends(voqs: &[Vec<usize>], packets: &[u32], sync: Sync) -> bool {
    let mut port = Port::new(voqs, packets, sync, false);
    (0..voqs.len()).any(|voq| {
        while port.suspended & 1 << voq == 0 && port.next[voq] < voqs[voq].len() {
            port.begin(voq);
        }
        port.suspended & 1 << voq != 0
    })
}

const TIGHT: Sync = Sync { entries: 24, block: 1, resume: 1 };

#[test]
fn three_voqs_do_not_deadlock_with_any_copies_of_five_frames() {
    let (mut cases, mut suspending) = (0, 0);
    let looser = Sync { block: 3, resume: 2, ..TIGHT };
    for (frames, sync) in [(1, TIGHT), (2, TIGHT), (3, TIGHT), (4, TIGHT), (5, TIGHT), (3, looser), (4, looser)] {
        for case in 0..7u32.pow(frames) {
            let masks: Vec<u32> = (0..frames).map(|frame| 1 + case / 7u32.pow(frame) % 7).collect();
            let (voqs, packets) = (in_order(&masks, 3), vec![2; masks.len()]);
            let searched = search(Port::new(&voqs, &packets, sync, false));
            assert!(searched.dead.is_none(), "VOQs of {masks:?} wait for each other");
            cases += 1;
            suspending += u32::from(suspends(&voqs, &packets, sync));
        }
    }
    assert!(suspending > cases / 2, "{suspending} of {cases} cases suspend a VOQ");
}

/// A terminal with two flows, one with copies for all VOQs and one for some, and a CAM with room for all.
#[test]
fn two_flows_in_five_voqs_do_not_deadlock() {
    let masks = [0b11111, 0b00110, 0b11111, 0b11000, 0b11111];
    let voqs = in_order(&masks, 5);
    for (block, resume) in [(5, 1), (5, 5), (7, 4), (11, 7)] {
        let sync = Sync { entries: 24, block, resume };
        let searched = search(Port::new(&voqs, &[6, 6, 6, 2, 6], sync, false));
        assert!(searched.dead.is_none());
        assert!(searched.states > 500, "{}", searched.states);
        assert!(suspends(&voqs, &[6, 6, 6, 2, 6], sync));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// With a CAM that is too small for all VOQs, frames of several sizes, and heads that are dropped.
    #[test]
    fn random_voqs_do_not_deadlock(
        frames in prop::collection::vec((1u32..16, 1u32..5), 2..5),
        (entries, block, behind) in (1u32..5, 1u32..6, 0u32..5),
        drops in any::<bool>(),
    ) {
        let (masks, packets): (Vec<u32>, Vec<u32>) = frames.into_iter().unzip();
        let voqs = in_order(&masks, 4);
        let sync = Sync { entries, block, resume: block.saturating_sub(behind).max(1) };
        prop_assert!(search(Port::new(&voqs, &packets, sync, drops)).dead.is_none());
    }
}

/// Figure 3b: three VOQs, each with two of three frames. Without FIFO order, two of the eight orders form a circle.
#[test]
fn voqs_without_a_common_order_deadlock() {
    let pairs = [[2, 0], [0, 1], [1, 2]];
    let mut dead = Vec::new();
    for swapped in 0..8u32 {
        let ordered = |(voq, pair): (usize, &[usize; 2])| {
            if swapped & 1 << voq == 0 { pair.to_vec() } else { vec![pair[1], pair[0]] }
        };
        let voqs: Vec<Vec<usize>> = pairs.iter().enumerate().map(ordered).collect();
        if let Some(state) = search(Port::new(&voqs, &[2, 2, 2], TIGHT, false)).dead {
            assert_eq!(state.suspended, 0b111, "all three are suspended");
            assert_eq!(state.next, [1, 1, 1]);
            dead.push(swapped);
        }
    }
    assert_eq!(dead, [0, 7], "the circle, in both directions");
}

/// Section 3.1: a VOQ is restored when its entry is released, whatever the lower threshold.
#[test]
fn voq_resumes_when_its_cam_entry_is_released() {
    let mut cam = SyncCam::new(24, 5, 0);
    assert!(cam.begin(1, 6).suspended);
    let change = cam.catch_up(1, 6);
    assert!(change.released && change.resumed);
    let voqs = in_order(&[0b11, 0b11], 2);
    assert!(search(Port::new(&voqs, &[2, 2], Sync { resume: 0, ..TIGHT }, false)).dead.is_none());
}

// ------------------------------------------------------------------------------------------- lanes (section 5)

/// The lane in which a frame holds space.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Lanes {
    /// The lane of the tables: higher with every surrogate.
    Rising,
    /// The lane of its source, everywhere.
    One,
}

/// The header pools that must have space for an arriving frame.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum HeaderPools {
    /// The pools of its copies.
    Own,
    /// The pools of all lanes.
    All,
}

#[derive(Clone, Copy, Debug)]
struct Pools {
    lanes: Lanes,
    required: HeaderPools,
    /// Capacity of a pool.
    frames: usize,
    headers: usize,
}

impl Default for Pools {
    fn default() -> Self {
        Self { lanes: Lanes::Rising, required: HeaderPools::Own, frames: 1, headers: 32 }
    }
}

/// A frame at a node, and the copies that it has still to send.
type Held = (u32, u32);

/// The content of ports while their sources send without end.
#[derive(Clone)]
struct Credits<'a> {
    trees: &'a Trees,
    pools: Pools,
    held: Vec<Held>,
}

impl<'a> Credits<'a> {
    fn new(trees: &'a Trees, pools: Pools) -> Self {
        Self { trees, pools, held: Vec::new() }
    }

    fn node(&self, number: u32) -> &'a Node {
        &self.trees.nodes[number as usize]
    }

    fn lane(&self, lane: u32) -> u32 {
        if self.pools.lanes == Lanes::One { 0 } else { lane }
    }

    /// Return the mask of copies for other surrogates; a destination always accepts its copy.
    fn onward(&self, number: u32) -> u32 {
        let copies = self.node(number).copies.iter().enumerate();
        copies.filter(|(_, copy)| copy.node.is_some()).fold(0, |mask, (place, _)| mask | 1 << place)
    }

    fn headers(&self, (number, left): Held, lane: u32) -> usize {
        let copied = self.node(number).copies.iter().enumerate();
        copied.filter(|(place, copy)| left & 1 << place != 0 && self.lane(copy.lane) == lane).count()
    }

    fn fits(&self, number: u32) -> bool {
        let node = self.node(number);
        let here: Vec<Held> =
            self.held.iter().copied().filter(|&(other, _)| self.node(other).port == node.port).collect();
        let lane = self.lane(node.lane);
        let frames = here.iter().filter(|&&(other, _)| self.lane(self.node(other).lane) == lane).count();
        frames < self.pools.frames && self.headers_fit(number, &here)
    }

    fn headers_fit(&self, number: u32, here: &[Held]) -> bool {
        let lanes: BTreeSet<u32> =
            self.trees.nodes.iter().flat_map(|node| &node.copies).map(|copy| self.lane(copy.lane)).collect();
        lanes.into_iter().all(|lane| {
            let needed = self.headers((number, self.onward(number)), lane);
            let taken: usize = here.iter().map(|&held| self.headers(held, lane)).sum();
            let matters = needed > 0 || self.pools.required == HeaderPools::All;
            !matters || taken + needed.max(1) <= self.pools.headers
        })
    }

    fn entered(&self, number: u32) -> Self {
        let mut next = self.clone();
        let copies = self.onward(number);
        if copies != 0 {
            next.held.push((number, copies));
            next.held.sort_unstable();
        }
        next
    }

    fn moved(&self, place: usize, copy: usize) -> Option<Self> {
        let (number, copies) = self.held[place];
        let target = self.node(number).copies[copy].node?;
        if copies & 1 << copy == 0 || !self.fits(target) {
            return None;
        }
        let mut next = self.clone();
        next.held[place].1 &= !(1 << copy);
        next.held.retain(|&(_, copies)| copies != 0);
        Some(next.entered(target))
    }
}

impl Model for Credits<'_> {
    type Key = Vec<Held>;

    fn key(&self) -> Self::Key {
        self.held.clone()
    }

    fn progress_steps(&self) -> Vec<Self> {
        let copies = |place: usize| (0..self.node(self.held[place].0).copies.len()).map(move |copy| (place, copy));
        (0..self.held.len()).flat_map(copies).filter_map(|(place, copy)| self.moved(place, copy)).collect()
    }

    fn other_steps(&self) -> Vec<Self> {
        let roots = self.trees.roots.iter().copied();
        roots.filter(|&root| self.fits(root)).map(|root| self.entered(root)).collect()
    }

    fn is_done(&self) -> bool {
        self.held.is_empty()
    }
}

/// Return a flow from a leaf to a port of each of these leaves, in the order of their surrogates.
fn flow(source: u32, leaves: &[u32], first: u32, remote: u32) -> Value {
    let to: Vec<(u32, u32)> = leaves.iter().map(|&leaf| (leaf, 0)).collect();
    json!({
        "source": [source, 1], "to": to, "tree": {"surrogates": {"first": first, "remote": remote}},
        "frame_bytes": 512, "rate_gbps": 1,
    })
}

fn trees(leaves: u32, flows: &[Value]) -> Trees {
    let topology = json!({"leaves": leaves, "ethernet_ports": 2});
    let text = json!({"duration_ns": 1, "topology": topology, "flows": flows}).to_string();
    Scenario::read(&text).unwrap_or_else(|wrong| panic!("{wrong}")).1
}

/// Build trees around leaves 0 .. `size`: each flow begins at a separate leaf and a different surrogate.
fn circle(size: u32, flows: u32) -> Trees {
    let around = |first: u32| {
        let leaves: Vec<u32> = (0..size).map(|step| (first + step) % size).collect();
        flow(size + first, &leaves, 1, 1)
    };
    trees(size + flows, &(0..flows).map(around).collect::<Vec<_>>())
}

/// Build flows, each to the surrogate of one leaf, which copies to the surrogates of all others.
fn stars(size: u32) -> Trees {
    let from = |head: u32| {
        let mut leaves: Vec<u32> = (0..size).collect();
        leaves.swap(0, head as usize);
        flow(size + head, &leaves, 1, size - 1)
    };
    trees(2 * size, &(0..size).map(from).collect::<Vec<_>>())
}

fn deadlocks(trees: &Trees, pools: Pools) -> bool {
    search(Credits::new(trees, pools)).dead.is_some()
}

#[test]
fn trees_around_a_circle_of_surrogates_do_not_deadlock() {
    for (trees, frames) in [(circle(2, 2), 1), (circle(2, 2), 3), (circle(3, 3), 1), (circle(4, 2), 1), (stars(3), 1)] {
        let searched = search(Credits::new(&trees, Pools { frames, ..Pools::default() }));
        assert!(searched.dead.is_none(), "frames wait for each other");
        assert!(searched.states > 8, "{}", searched.states);
    }
}

#[test]
fn trees_around_a_circle_of_surrogates_deadlock_in_one_lane() {
    for (trees, frames) in [(circle(2, 2), 1), (circle(2, 2), 3), (circle(3, 3), 1), (circle(4, 2), 1), (stars(3), 1)] {
        let one = Pools { lanes: Lanes::One, frames, ..Pools::default() };
        let dead = search(Credits::new(&trees, one)).dead.expect("a circle of frames that wait");
        let ports: BTreeSet<u32> = dead.held.iter().map(|&(number, _)| dead.node(number).port).collect();
        assert!(ports.len() > 1, "more than one port takes part");
    }
}

/// A chain contains no circle and needs one lane only.
#[test]
fn chain_of_surrogates_does_not_deadlock_in_one_lane() {
    let chain = trees(5, &[flow(4, &[0, 1, 2, 3], 1, 1), flow(3, &[0, 1, 2], 1, 1)]);
    for lanes in [Lanes::Rising, Lanes::One] {
        assert!(!deadlocks(&chain, Pools { lanes, frames: 2, ..Pools::default() }));
    }
}

/// Figure 14 on two racks of four leaves.
#[test]
fn rack_trees_from_two_sources_do_not_deadlock() {
    let flow = |source: u32| {
        let to: Vec<(u32, u32)> = (0..8).filter(|&leaf| leaf != source).map(|leaf| (leaf, 0)).collect();
        json!({"source": [source, 0], "to": to, "tree": "rack", "frame_bytes": 512, "rate_gbps": 1})
    };
    let topology = json!({
        "leaves": 8, "ethernet_ports": 1, "leaves_per_cie": 2, "cies_per_chassis": 1, "chassis_per_rack": 2,
    });
    let text = json!({"duration_ns": 1, "topology": topology, "flows": [flow(0), flow(7)]}).to_string();
    let (_, trees) = Scenario::read(&text).unwrap_or_else(|wrong| panic!("{wrong}"));
    assert!(trees.nodes.iter().any(|node| node.level > 1));
    assert!(!deadlocks(&trees, Pools::default()));
}

/// Header pools are ordered by lanes, too: waiting for the pools of other lanes breaks this order.
#[test]
fn frames_that_wait_for_the_headers_of_all_lanes_deadlock() {
    let tight = Pools { frames: 2, headers: 2, ..Pools::default() };
    assert!(!deadlocks(&stars(3), tight));
    assert!(deadlocks(&stars(3), Pools { required: HeaderPools::All, ..tight }));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn random_trees_do_not_deadlock(
        orders in prop::collection::vec((Just(vec![0u32, 1, 2, 3]).prop_shuffle(), 2usize..5, 1u32..3), 2..4),
        room in 1usize..3,
    ) {
        let flows: Vec<Value> = orders
            .iter()
            .enumerate()
            .map(|(number, (leaves, count, remote))| flow(4 + number as u32, &leaves[..*count], 1, *remote))
            .collect();
        let trees = trees(4 + flows.len() as u32, &flows);
        let frames = if flows.len() > 2 { 1 } else { room };
        let pools = Pools { frames, ..Pools::default() };
        prop_assert!(!deadlocks(&trees, pools));
    }
}

/// Return the number of destinations that miss frames after ample time.
fn short_destinations(leaves: u32, frame_bytes: u32) -> usize {
    let from = |head: u32| {
        let mut to = vec![(head, 0)];
        to.extend((0..leaves).filter(|&leaf| leaf != head).map(|leaf| (leaf, 1)));
        json!({
            "source": [leaves + head, 0], "to": to, "tree": {"surrogates": {"first": 1, "remote": leaves - 1}},
            "frame_bytes": frame_bytes, "rate_gbps": 100, "stop_ns": 25_000,
        })
    };
    let scenario = json!({
        "duration_ns": 20_000_000, "topology": {"leaves": 2 * leaves, "spines": 32}, "classes": [{"lossless": true}],
        "flows": (0..leaves).map(from).collect::<Vec<_>>(),
    });
    let (scenario, trees) = Scenario::read(&scenario.to_string()).unwrap_or_else(|wrong| panic!("{wrong}"));
    let mut fabric = Fabric::new(&scenario, &trees, None);
    assert!(!fabric.run(u64::MAX));
    let results = fabric.finish().0.results(&scenario, &trees);
    let short = |flow: &rack_fabric::statistics::FlowResult| {
        flow.destinations.iter().filter(|one| one.copies < flow.offered_frames).count()
    };
    results.flows.iter().map(short).sum()
}

/// The simulator itself, with all surrogates overloaded and each of them both before and after every other one.
#[test]
fn lossless_trees_over_each_others_surrogates_drain() {
    for (leaves, frame_bytes) in [(3, 1522), (4, 512), (6, 1522)] {
        assert_eq!(short_destinations(leaves, frame_bytes), 0, "{leaves} leaves, {frame_bytes} bytes");
    }
}

#[test]
fn lossless_trees_of_small_frames_drain() {
    for frame_bytes in [64, 256] {
        assert_eq!(short_destinations(6, frame_bytes), 0, "{frame_bytes} bytes");
    }
}
