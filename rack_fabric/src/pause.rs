//! PAUSE of a lossless class at a terminal (section 4.2): the thresholds at which its host stops and continues.
//!
//! Payload has the thresholds of Table 1. Headers have a pool too, for which the paper gives no thresholds: a host is
//! stopped while there is still room for the headers that arrive before it has stopped.

use std::collections::BTreeSet;

use crate::scenario::{Scenario, Spread};
use crate::trees::{Node, Trees};
use crate::wheel::Ps;
use crate::wrong::{Step, Wrong};

/// The thresholds of one class at one terminal; more than `stop` stops its host, no more than `go` lets it go on.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Thresholds {
    pub stop_packets: u32,
    pub go_packets: u32,
    pub stop_headers: u32,
    pub go_headers: u32,
}

impl Thresholds {
    /// Return whether a sending host must stop.
    pub fn full(&self, packets: u32, headers: u32) -> bool {
        packets > self.stop_packets || headers > self.stop_headers
    }

    /// Return whether a stopped host may continue.
    pub fn empty(&self, packets: u32, headers: u32) -> bool {
        packets < self.go_packets && headers <= self.go_headers
    }

    /// Compute the thresholds for the flows that begin at these nodes.
    fn new(scenario: &Scenario, roots: &[&Node]) -> Self {
        let ahead = Ahead::new(scenario, roots);
        let stop_headers = scenario.headers.lossless.saturating_sub(ahead.headers);
        Self {
            stop_packets: scenario.units(scenario.pause.stop_bytes),
            go_packets: scenario.units(scenario.pause.go_bytes),
            stop_headers,
            go_headers: stop_headers - ahead.headers.min(stop_headers / 2),
        }
    }
}

/// Data that still arrives after a threshold was reached: the frame that has reached it, one on the line, and the data
/// on the line until the host has stopped.
#[derive(Clone, Copy, Debug)]
struct Ahead {
    packets: u32,
    headers: u32,
}

impl Ahead {
    fn new(scenario: &Scenario, roots: &[&Node]) -> Self {
        let delay = (scenario.timing.adapter_ns * 1000) as f64;
        let (mut packets, mut headers) = ((0, 0.0_f64), (0, 0.0_f64));
        for root in roots {
            let flow = &scenario.flows[root.flow as usize];
            let line: Ps = (f64::from(flow.frame_bytes) * 8000.0 / scenario.timing.line_gbps).round() as Ps;
            let of_frame = scenario.packets(flow.frame_bytes);
            let copies = if flow.spread == Spread::Uniform { 1 } else { root.copies.len() as u32 };
            packets = (packets.0.max(of_frame), packets.1.max(f64::from(of_frame) / line.max(1) as f64));
            headers = (headers.0.max(copies), headers.1.max(f64::from(copies) / line.max(1) as f64));
        }
        let total = |(of_frame, rate): (u32, f64)| 2 * of_frame + (rate * delay).ceil() as u32;
        Self { packets: total(packets), headers: total(headers) }
    }
}

/// Return the thresholds of every class at a port.
pub fn thresholds(scenario: &Scenario, trees: &Trees, port: u32) -> Vec<Thresholds> {
    (0..scenario.classes.len()).map(|class| Thresholds::new(scenario, &roots(scenario, trees, port, class))).collect()
}

/// Reject a scenario whose buffers have no room for data that arrives before a host has stopped.
pub fn check(scenario: &Scenario, trees: &Trees) -> Result<(), Wrong> {
    let ports: BTreeSet<u32> = trees.roots.iter().map(|&root| trees.nodes[root as usize].port).collect();
    for port in ports {
        for (class, settings) in scenario.classes.iter().enumerate() {
            let roots = roots(scenario, trees, port, class);
            if settings.lossless && !roots.is_empty() {
                check_room(scenario, Ahead::new(scenario, &roots))?;
            }
        }
    }
    Ok(())
}

fn check_room(scenario: &Scenario, ahead: Ahead) -> Result<(), Wrong> {
    let pool = scenario.units(scenario.buffers.ingress_terminal_lossless_bytes);
    let stop = scenario.units(scenario.pause.stop_bytes);
    if stop + ahead.packets > pool {
        return Err(Wrong::within(
            &[Step::key("pause"), Step::key("stop_bytes")],
            format!(
                "{} packets may come after {stop} have stopped a host, and a buffer of {pool} has no room for both: stop earlier",
                ahead.packets
            ),
        ));
    }
    if ahead.headers > scenario.headers.lossless {
        return Err(Wrong::within(
            &[Step::key("headers"), Step::key("lossless")],
            format!("{} headers may arrive before a host has stopped: set at least this number", ahead.headers),
        ));
    }
    Ok(())
}

fn roots<'a>(scenario: &Scenario, trees: &'a Trees, port: u32, class: usize) -> Vec<&'a Node> {
    let nodes = trees.roots.iter().map(|&root| &trees.nodes[root as usize]);
    nodes.filter(|node| node.port == port && scenario.flows[node.flow as usize].class as usize == class).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(bytes: u32, other: &serde_json::Value) -> Result<Thresholds, Wrong> {
        let mut scenario = json!({
            "duration_ns": 1, "classes": [{"lossless": true}],
            "flows": [{"source": [0, 0], "to": [[0, 1], [1, 0]], "frame_bytes": bytes, "rate_gbps": 99}],
        });
        scenario.as_object_mut().expect("is a table").extend(other.as_object().expect("is a table").clone());
        Scenario::read(&scenario.to_string()).map(|(scenario, trees)| thresholds(&scenario, &trees, 0)[0])
    }

    #[test]
    fn stop_threshold_leaves_room_for_headers_in_flight() {
        let jumbo = read(9022, &json!({})).expect("fits");
        assert_eq!((jumbo.stop_packets, jumbo.stop_headers), (640, 291 - 4 - 1));
        // 50 ns of frames that take 5.12 ns each, two copies each, and two frames more.
        let small = read(64, &json!({})).expect("fits");
        assert_eq!(small.stop_headers, 291 - 4 - 20);
        assert!(small.go_headers < small.stop_headers);
        assert!(small.full(0, 268) && !small.full(640, 267) && small.empty(0, small.go_headers));
    }

    #[test]
    fn read_rejects_pools_without_room_for_data_in_flight() {
        let error = |other: serde_json::Value| read(64, &other).expect_err("wrong").to_string();
        assert!(
            error(json!({"pause": {"stop_bytes": 232_448, "go_bytes": 1}})).starts_with("pause.stop_bytes: 12 packets")
        );
        assert!(error(json!({"headers": {"lossless": 20}})).starts_with("headers.lossless: 24 headers may arrive"));
    }
}
