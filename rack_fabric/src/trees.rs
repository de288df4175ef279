//! Replication trees over surrogate ports (section 5): the content of the multicast tables (MCBC) of all ports.
//!
//! A frame takes a higher virtual lane of its class with every hop to a surrogate, and returns to the first lane with
//! the hop to its destination: a frame that holds space waits for space in a higher lane only, so that no cycle can
//! form.

use std::collections::{BTreeMap, BTreeSet};

use crate::scenario::{Destinations, Flow, Scenario, Spread, Terminal, Topology, Tree};
use crate::wrong::{Step, Wrong};

/// Virtual lanes of a class: that of sources and destinations, and one for each level of surrogates.
pub const LANES: u32 = 5;
/// Maximum number of surrogates that a frame passes.
pub const MAX_LEVELS: u32 = LANES - 1;
/// Maximum number of copies that one port makes of a frame; eight of them leave at full speed.
pub const MAX_COPIES: usize = 32;

/// A port of the fabric: leaf * ports of a leaf + number.
pub type Port = u32;

/// One copy that a port makes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Copy {
    pub to: Port,
    /// Of its header here and of its payload there.
    pub lane: u32,
    /// The node that copies it on; none at a destination.
    pub node: Option<u32>,
}

/// A port that copies the frames of a flow.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Node {
    pub flow: u32,
    pub port: Port,
    /// Of the payload here.
    pub lane: u32,
    /// Surrogates that a frame has passed when it is here, this one included.
    pub level: u32,
    pub copies: Vec<Copy>,
}

/// The nodes of all flows, and the node at the source of each flow.
#[derive(Clone, Debug, Default)]
pub struct Trees {
    pub nodes: Vec<Node>,
    pub roots: Vec<u32>,
    /// Of every flow, in ascending order.
    pub destinations: Vec<Vec<Port>>,
}

/// Leaves and the leaves to which they copy, before ports are considered.
type Children = BTreeMap<u32, Vec<u32>>;

impl Trees {
    /// Build the trees of all flows, or return the error of a flow without one.
    pub fn new(scenario: &Scenario) -> Result<Self, Wrong> {
        let mut trees = Self::default();
        for (number, flow) in scenario.flows.iter().enumerate() {
            let place = [Step::key("flows"), Step::Item(number)];
            trees.add(scenario, number as u32, flow).map_err(|wrong| wrong.below(&place))?;
        }
        Ok(trees)
    }

    fn add(&mut self, scenario: &Scenario, number: u32, flow: &Flow) -> Result<(), Wrong> {
        let topology = &scenario.topology;
        let named = destinations(topology, flow)?;
        let mut by_leaf: BTreeMap<u32, Vec<Port>> = BTreeMap::new();
        // The scenario decides whose surrogates come first in the tree.
        let mut order: Vec<u32> = Vec::new();
        for &port in &named {
            let leaf = port / topology.ports();
            let ports = by_leaf.entry(leaf).or_default();
            if ports.is_empty() && leaf != flow.source.0 {
                order.push(leaf);
            }
            ports.push(port);
        }
        let mut destinations = named;
        destinations.sort_unstable();
        let children = match flow.tree {
            Tree::Direct => Children::new(),
            Tree::Surrogates { first, remote } => spread_out(flow.source.0, &order, first, remote)?,
            Tree::Rack => racks(topology, flow.source.0, &by_leaf)?,
        };
        let direct = matches!(flow.tree, Tree::Direct);
        let root = self.node(scenario, number, Place { leaf: flow.source.0, level: 0 }, &children, &by_leaf)?;
        if direct {
            let lane = flow.class * LANES;
            self.nodes[root as usize].copies = destinations.iter().map(|&to| Copy { to, lane, node: None }).collect();
        }
        if flow.spread == Spread::Multicast {
            (root..self.nodes.len() as u32).try_for_each(|node| self.check_fanout(node))?;
        }
        self.roots.push(root);
        self.destinations.push(destinations);
        Ok(())
    }

    fn node(
        &mut self,
        scenario: &Scenario,
        number: u32,
        place: Place,
        children: &Children,
        by_leaf: &BTreeMap<u32, Vec<Port>>,
    ) -> Result<u32, Wrong> {
        if place.level > MAX_LEVELS {
            return Err(Wrong::at(
                "tree",
                format!("a frame would pass more than {MAX_LEVELS} surrogates: there is no lane for it"),
            ));
        }
        let flow = &scenario.flows[number as usize];
        let (topology, base) = (&scenario.topology, flow.class * LANES);
        let own = if place.level == 0 { flow.source.1 } else { topology.surrogate() };
        let node = self.nodes.len() as u32;
        let port = place.leaf * topology.ports() + own;
        self.nodes.push(Node { flow: number, port, lane: base + place.level, level: place.level, copies: Vec::new() });
        let here = by_leaf.get(&place.leaf).map_or(&[][..], Vec::as_slice);
        let mut copies: Vec<Copy> = here.iter().map(|&to| Copy { to, lane: base, node: None }).collect();
        for &leaf in children.get(&place.leaf).map_or(&[][..], Vec::as_slice) {
            let next = Place { leaf, level: place.level + 1 };
            let child = self.node(scenario, number, next, children, by_leaf)?;
            let to = leaf * topology.ports() + topology.surrogate();
            copies.push(Copy { to, lane: base + next.level, node: Some(child) });
        }
        self.nodes[node as usize].copies = copies;
        Ok(node)
    }

    fn check_fanout(&self, node: u32) -> Result<(), Wrong> {
        let count = self.nodes[node as usize].copies.len();
        if count > MAX_COPIES {
            return Err(Wrong::at(
                "tree",
                format!("one port would make {count} copies of a frame, and {MAX_COPIES} are the most"),
            ));
        }
        Ok(())
    }
}

#[derive(Clone, Copy)]
struct Place {
    leaf: u32,
    level: u32,
}

fn destinations(topology: &Topology, flow: &Flow) -> Result<Vec<Port>, Wrong> {
    let known = |&(leaf, port): &Terminal| leaf < topology.leaves && port < topology.ethernet_ports;
    let terminals: Vec<Terminal> = match &flow.to {
        Destinations::Terminals(terminals) => terminals.clone(),
        Destinations::Leaves { leaves } => all_of(topology, leaves.iter().copied()),
        Destinations::All(_) => all_of(topology, 0..topology.leaves),
    };
    if let Some((leaf, port)) = terminals.iter().find(|terminal| !known(terminal)) {
        return Err(Wrong::at("to", format!("there is no Ethernet port {port} of leaf {leaf}")));
    }
    let named = matches!(flow.to, Destinations::Terminals(_));
    if named && terminals.contains(&flow.source) {
        return Err(Wrong::at("to", "the source is among its destinations"));
    }
    let ports: Vec<Port> = terminals
        .iter()
        .filter(|terminal| **terminal != flow.source)
        .map(|&(leaf, port)| leaf * topology.ports() + port)
        .collect();
    if BTreeSet::from_iter(&ports).len() < ports.len() {
        return Err(Wrong::at("to", "a destination is there twice"));
    }
    if ports.is_empty() {
        return Err(Wrong::at("to", "a flow has one destination or more"));
    }
    Ok(ports)
}

fn all_of(topology: &Topology, leaves: impl Iterator<Item = u32>) -> Vec<Terminal> {
    leaves.flat_map(|leaf| (0..topology.ethernet_ports).map(move |port| (leaf, port))).collect()
}

/// Let the source serve `first` leaves and each surrogate `remote` more, level by level, in this order of leaves.
fn spread_out(source: u32, order: &[u32], first: u32, remote: u32) -> Result<Children, Wrong> {
    let mut children = Children::new();
    let mut ahead = order.iter().copied().peekable();
    let mut reached = vec![source];
    let mut next = 0;
    while ahead.peek().is_some() {
        let Some(&parent) = reached.get(next) else {
            return Err(Wrong::at("tree", "the source and its surrogates serve too few other leaves to reach all"));
        };
        let max_served = if next == 0 { first } else { remote } as usize;
        let served: Vec<u32> = ahead.by_ref().take(max_served).collect();
        reached.extend(&served);
        children.insert(parent, served);
        next += 1;
    }
    Ok(children)
}

/// Figure 14: a surrogate for the rack, for three of its chassis interconnect elements (CIEs), for one CIE, for one leaf.
fn racks(topology: &Topology, source: u32, by_leaf: &BTreeMap<u32, Vec<Port>>) -> Result<Children, Wrong> {
    let cie = topology.leaves_per_cie;
    let rack = cie * topology.cies_per_chassis * topology.chassis_per_rack;
    if rack == 0 {
        return Err(Wrong::at("tree", "a rack has a leaf or more: see topology"));
    }
    let mut children = Children::new();
    for first in (0..topology.leaves).step_by(rack as usize) {
        let mut elements: Vec<Vec<u32>> = Vec::new();
        for start in (first..(first + rack).min(topology.leaves)).step_by(cie as usize) {
            let there = (start..(start + cie).min(topology.leaves))
                .filter(|leaf| *leaf != source && by_leaf.contains_key(leaf));
            elements.push(there.collect());
        }
        elements.retain(|element| !element.is_empty());
        if elements.is_empty() {
            continue;
        }
        let head = elements[0].remove(0);
        children.entry(source).or_default().push(head);
        // The rest of the head's own element and one more, then three at a time.
        let (near, far) = elements.split_at(elements.len().min(2));
        for triplet in std::iter::once(near).chain(far.chunks(3)) {
            triple(head, triplet, &mut children);
        }
    }
    Ok(children)
}

fn triple(head: u32, elements: &[Vec<u32>], children: &mut Children) {
    let mut elements: Vec<&[u32]> = elements.iter().map(Vec::as_slice).filter(|element| !element.is_empty()).collect();
    let Some(last) = elements.last_mut() else { return };
    let (triplet, rest) = (last[0], &last[1..]);
    *last = rest;
    children.entry(head).or_default().push(triplet);
    for element in elements {
        if let [chief, others @ ..] = element {
            children.entry(triplet).or_default().push(*chief);
            children.entry(*chief).or_default().extend(others);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn trees(topology: &serde_json::Value, flow: &serde_json::Value) -> Result<Trees, Wrong> {
        let text = json!({"duration_ns": 1, "topology": topology, "flows": [flow]}).to_string();
        Scenario::read(&text).map(|(_, trees)| trees)
    }

    fn flow(to: &serde_json::Value, tree: &serde_json::Value) -> serde_json::Value {
        json!({"source": [0, 0], "to": to, "tree": tree, "frame_bytes": 512, "rate_gbps": 1})
    }

    /// Check that a tree reaches every destination once; return its levels and maximum copies.
    fn checked(trees: &Trees) -> (u32, usize) {
        let mut reached: Vec<Port> = trees
            .nodes
            .iter()
            .flat_map(|node| &node.copies)
            .filter(|copy| copy.node.is_none())
            .map(|copy| copy.to)
            .collect();
        reached.sort_unstable();
        assert_eq!(reached, trees.destinations[0]);
        for node in &trees.nodes {
            for copy in &node.copies {
                match copy.node {
                    Some(child) => assert_eq!(copy.lane, trees.nodes[child as usize].lane),
                    None => assert_eq!(copy.lane, 0),
                }
                assert!(copy.node.is_none() || copy.lane > node.lane);
            }
        }
        let levels = trees.nodes.iter().map(|node| node.level).max().unwrap_or(0);
        (levels, trees.nodes.iter().map(|node| node.copies.len()).max().unwrap_or(0))
    }

    #[test]
    fn surrogate_trees_reach_the_terminals_of_equation_1() {
        for (levels, terminals) in [(1, 24), (2, 84), (3, 264), (4, 804)] {
            let leaves = 1 + (terminals - 4) / 5;
            let tree = json!({"surrogates": {"first": 4, "remote": 3}});
            let full = trees(&json!({"leaves": leaves}), &flow(&json!("all"), &tree)).expect("fits");
            assert_eq!(full.destinations[0].len(), terminals as usize);
            assert_eq!(checked(&full), (levels, 8));
            let more = trees(&json!({"leaves": leaves + 1}), &flow(&json!("all"), &tree));
            assert!(levels < 4 || more.is_err());
        }
    }

    #[test]
    fn rack_tree_reaches_all_terminals_over_four_levels() {
        let broadcast = trees(&json!({}), &flow(&json!("all"), &json!("rack"))).expect("fits");
        assert_eq!(broadcast.destinations[0].len(), 639);
        assert_eq!(checked(&broadcast), (4, 8));
        assert_eq!(broadcast.nodes.len(), 128);
    }

    #[test]
    fn read_rejects_invalid_destinations_and_trees() {
        let direct = json!("direct");
        let error = |to: serde_json::Value, tree: &serde_json::Value| {
            trees(&json!({}), &flow(&to, tree)).expect_err("wrong").to_string()
        };
        assert!(error(json!([[128, 0]]), &direct).starts_with("flows[0].to: there is no Ethernet port 0 of leaf 128"));
        assert!(error(json!([[0, 5]]), &direct).contains("no Ethernet port 5"));
        assert!(error(json!([[0, 0]]), &direct).contains("source is among"));
        assert!(error(json!([[0, 1], [0, 1]]), &direct).contains("twice"));
        assert!(error(json!([]), &direct).contains("one destination"));
        assert!(error(json!("all"), &direct).contains("639 copies"));
        assert!(error(json!("all"), &json!({"surrogates": {"first": 4, "remote": 0}})).contains("too few"));
        assert!(
            error(json!("all"), &json!({"surrogates": {"first": 1, "remote": 2}})).contains("more than 4 surrogates")
        );
    }
}
