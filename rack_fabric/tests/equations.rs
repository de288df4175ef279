//! The reach of trees (section 5, Equation 1) and their load on the links (section 5.1, Equation 2).

use std::collections::BTreeMap;

use proptest::prelude::*;
use rack_fabric::fabric::Fabric;
use rack_fabric::scenario::Scenario;
use rack_fabric::trace::{Kind, Trace};
use rack_fabric::trees::{LANES, MAX_LEVELS, Port, Trees};
use serde_json::{Value, json};

/// A topology and one flow in it.
#[derive(Clone, Debug)]
struct Case {
    topology: Value,
    ports: u32,
    source: (u32, u32),
    to: Value,
    tree: Value,
    class: u32,
}

impl Case {
    fn scenario(&self) -> Value {
        json!({
            "duration_ns": 200_000, "topology": self.topology, "classes": vec![json!({"lossless": true}); 3],
            "flows": [{
                "source": self.source, "to": self.to, "tree": self.tree, "class": self.class, "frame_bytes": 700,
                "rate_gbps": 5, "stop_ns": 20_000,
            }],
        })
    }

    fn trees(&self) -> Option<Trees> {
        Scenario::read(&self.scenario().to_string()).ok().map(|(_, trees)| trees)
    }

    fn leaf(&self, port: Port) -> u32 {
        port / self.ports
    }

    /// Count the copies that reach each leaf through the spines; the spines receive as many.
    fn crossings(&self, trees: &Trees) -> BTreeMap<u32, u64> {
        let mut of_leaf = BTreeMap::new();
        for node in &trees.nodes {
            let far = node.copies.iter().map(|copy| self.leaf(copy.to)).filter(|leaf| *leaf != self.leaf(node.port));
            far.for_each(|leaf| *of_leaf.entry(leaf).or_default() += 1);
        }
        of_leaf
    }

    /// Count the copies that an ideal switch sends to each leaf: one, for all destinations there.
    fn ideal(&self, trees: &Trees) -> BTreeMap<u32, u64> {
        let leaves = trees.destinations[0].iter().map(|&port| self.leaf(port));
        leaves.filter(|&leaf| leaf != self.source.0).map(|leaf| (leaf, 1)).collect()
    }
}

fn levels(trees: &Trees) -> u32 {
    trees.nodes.iter().map(|node| node.level).max().unwrap_or(0)
}

/// Return the number of leaves that `levels` levels of surrogates reach.
fn leaves_reached(first: u64, remote: u64, levels: u32) -> u64 {
    first * (0..levels).map(|level| remote.pow(level)).sum::<u64>()
}

fn broadcast(leaves: u64, ports: u32, first: u64, remote: u64) -> Option<Trees> {
    let case = Case {
        topology: json!({"leaves": leaves, "ethernet_ports": ports, "pcie_ports": 0}),
        ports: ports + 1,
        source: (0, 0),
        to: json!("all"),
        tree: json!({"surrogates": {"first": first, "remote": remote}}),
        class: 0,
    };
    case.trees()
}

#[test]
fn surrogate_trees_reach_the_terminals_of_equation_1() {
    for (levels_used, terminals) in [(1, 24), (2, 84), (3, 264), (4, 804)] {
        assert_eq!(4 + 5 * leaves_reached(4, 3, levels_used), terminals);
        let trees = broadcast(1 + leaves_reached(4, 3, levels_used), 5, 4, 3).expect("is reached");
        assert_eq!(trees.destinations[0].len() as u64, terminals);
        assert_eq!(levels(&trees), levels_used);
        assert!(trees.nodes.iter().all(|node| node.copies.len() == 8 || node.level == levels_used));
    }
}

/// Generate flows from any source to any terminals in any order.
fn cases() -> impl Strategy<Value = Case> {
    let surrogates = (1u32..6, 0u32..5).prop_map(|(first, remote)| json!({"first": first, "remote": remote}));
    let tree = prop_oneof![surrogates.prop_map(|both| json!({"surrogates": both})), Just(json!("rack"))];
    (2u32..24, 1u32..6, 0u32..3, (1u32..5, 1u32..5, 1u32..3))
        .prop_flat_map(move |(leaves, ports, pcie, rack)| {
            let terminals: Vec<(u32, u32)> =
                (0..leaves).flat_map(|leaf| (0..ports).map(move |port| (leaf, port))).collect();
            let chosen = (Just(terminals.clone()).prop_shuffle(), 2..=terminals.len());
            (Just((leaves, ports, pcie, rack)), chosen, tree.clone(), 0u32..3)
        })
        .prop_map(|((leaves, ports, pcie, (leaf, cie, chassis)), (terminals, count), tree, class)| Case {
            topology: json!({
                "leaves": leaves, "ethernet_ports": ports, "pcie_ports": pcie, "spines": 8, "leaves_per_cie": leaf,
                "cies_per_chassis": cie, "chassis_per_rack": chassis,
            }),
            ports: ports + 1 + pcie,
            source: terminals[0],
            to: json!(terminals[1..count]),
            tree,
            class,
        })
}

/// Check that every node but the root has one parent, whose copy names its port and lane.
fn check_nodes(case: &Case, trees: &Trees) -> Result<(), TestCaseError> {
    let base = case.class * LANES;
    let mut parents = vec![0; trees.nodes.len()];
    for node in &trees.nodes {
        prop_assert_eq!(node.lane, base + node.level);
        for copy in &node.copies {
            let Some(child) = copy.node else {
                prop_assert_eq!(copy.lane, base, "the last hop returns to the first lane");
                continue;
            };
            let target = &trees.nodes[child as usize];
            parents[child as usize] += 1;
            prop_assert!(copy.lane > node.lane, "every other hop takes a higher one");
            prop_assert_eq!((copy.to, copy.lane), (target.port, target.lane));
        }
    }
    parents.remove(trees.roots[0] as usize);
    prop_assert!(parents.iter().all(|&count| count == 1), "{:?}", parents);
    prop_assert_eq!(trees.nodes[trees.roots[0] as usize].port, case.source.0 * case.ports + case.source.1);
    Ok(())
}

fn reached(trees: &Trees) -> Vec<Port> {
    let copies = trees.nodes.iter().flat_map(|node| &node.copies).filter(|copy| copy.node.is_none());
    let mut ports: Vec<Port> = copies.map(|copy| copy.to).collect();
    ports.sort_unstable();
    ports
}

fn destinations(case: &Case) -> Vec<Port> {
    let terminals: Vec<(u32, u32)> = serde_json::from_value(case.to.clone()).expect("terminals");
    let mut ports: Vec<Port> = terminals.into_iter().map(|(leaf, port)| leaf * case.ports + port).collect();
    ports.sort_unstable();
    ports
}

/// Return whether the lanes suffice for all leaves of the case.
fn is_reachable(case: &Case) -> bool {
    let Some(tree) = case.tree.get("surrogates") else { return true };
    let max_leaves = leaves_reached(
        tree["first"].as_u64().expect("a number"),
        tree["remote"].as_u64().expect("a number"),
        MAX_LEVELS,
    );
    let mut leaves: Vec<u32> = destinations(case).into_iter().map(|port| case.leaf(port)).collect();
    leaves.dedup();
    leaves.retain(|&leaf| leaf != case.source.0);
    leaves.len() as u64 <= max_leaves
}

fn run_traced(case: &Case) -> (u64, BTreeMap<u32, u64>) {
    let (scenario, trees) = Scenario::read(&case.scenario().to_string()).unwrap_or_else(|wrong| panic!("{wrong}"));
    let mut bytes = Vec::new();
    let trace = Trace::new(Box::new(&mut bytes)).expect("is written");
    let mut fabric = Fabric::new(&scenario, &trees, Some(trace));
    let ends: Vec<(u32, u32)> = fabric.voqs.iter().map(|voq| (case.leaf(voq.port), case.leaf(voq.to))).collect();
    assert!(!fabric.run(u64::MAX));
    let (statistics, written) = fabric.finish();
    written.expect("is written");
    let frames = statistics.results(&scenario, &trees).flows[0].offered_frames;
    let mut arrived = BTreeMap::new();
    for record in bytes[16..].chunks_exact(32).filter(|record| record[8] == Kind::PacketSent as u8) {
        let (from, to) = ends[u32::from_le_bytes([record[16], record[17], record[18], record[19]]) as usize];
        if from != to {
            *arrived.entry(to).or_default() += 1;
        }
    }
    (frames, arrived)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Equation 1 for other fan-outs: one leaf beyond a full level needs another level, or is rejected.
    #[test]
    fn trees_fill_a_level_before_they_begin_another(
        ports in 1u32..6, first in 1u64..6, remote in 1u64..4, levels_used in 1..=MAX_LEVELS,
    ) {
        let others = leaves_reached(first, remote, levels_used);
        let full = broadcast(1 + others, ports, first, remote).expect("is reached");
        prop_assert_eq!(full.destinations[0].len() as u64, u64::from(ports) * (1 + others) - 1);
        prop_assert_eq!(levels(&full), levels_used);
        let more = broadcast(2 + others, ports, first, remote).map(|trees| levels(&trees));
        prop_assert_eq!(more, (levels_used < MAX_LEVELS).then_some(levels_used + 1));
    }

    #[test]
    fn trees_reach_every_destination_once_over_rising_lanes(case in cases()) {
        let trees = case.trees();
        prop_assert_eq!(trees.is_some(), is_reachable(&case));
        if let Some(trees) = trees {
            prop_assert_eq!(reached(&trees), destinations(&case));
            prop_assert!(levels(&trees) <= MAX_LEVELS);
            check_nodes(&case, &trees)?;
        }
    }

    /// Equation 2: L <= 2 L*, and from the spines on the load is that of the ideal switch.
    #[test]
    fn links_carry_no_more_than_twice_the_ideal(case in cases()) {
        if let Some(trees) = case.trees() {
            let (real, ideal) = (case.crossings(&trees), case.ideal(&trees));
            prop_assert_eq!(&real, &ideal);
            let load = 2 * real.values().sum::<u64>();
            let ideal_load = ideal.values().sum::<u64>() + u64::from(!ideal.is_empty());
            prop_assert!(load <= 2 * ideal_load, "{} against {}", load, ideal_load);
        }
    }
}

/// Without surrogates there is no such bound: each of five ports of a leaf gets a copy of its own.
#[test]
fn copies_without_surrogates_take_more_than_twice_the_ideal() {
    let case = Case {
        topology: json!({"leaves": 2, "spines": 8}),
        ports: 8,
        source: (0, 0),
        to: json!((0..5).map(|port| (1, port)).collect::<Vec<_>>()),
        tree: json!("direct"),
        class: 0,
    };
    let trees = case.trees().expect("is reached");
    let load = 2 * case.crossings(&trees).values().sum::<u64>();
    assert_eq!(load, 10);
    assert!(load > 2 * (1 + case.ideal(&trees).values().sum::<u64>()));
    let (frames, arrived) = run_traced(&case);
    assert_eq!(arrived, BTreeMap::from([(1, frames * 3 * 5)]));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The packets between leaves match the multicast tables: a frame has three packets.
    #[test]
    fn simulator_sends_the_packets_that_the_trees_predict(case in cases()) {
        if let Some(trees) = case.trees() {
            let (frames, arrived) = run_traced(&case);
            prop_assert!(frames > 10);
            let predicted: BTreeMap<u32, u64> =
                case.crossings(&trees).into_iter().map(|(leaf, copies)| (leaf, copies * 3 * frames)).collect();
            prop_assert_eq!(arrived, predicted);
        }
    }
}
