//! Reading of a scenario, with the trees of its flows and an estimate of its size.

use crate::pause;
use crate::scenario::Scenario;
use crate::trees::Trees;
use crate::wrong::Wrong;

/// Bytes of a port with its pools, queues and adapter.
const PORT_BYTES: u64 = 4096;
/// Of a frame that waits, of a copy that waits or is on its way, and of an event.
const FRAME_BYTES: u64 = 512;
const COPY_BYTES: u64 = 160;
const EVENT_BYTES: u64 = 48;
/// Memory of the wheel and the program.
const BASE_BYTES: u64 = 16 << 20;

impl Scenario {
    /// Read and validate a scenario; an error names the position.
    pub fn read(text: &str) -> Result<(Self, Trees), Wrong> {
        let scenario: Self = serde_path_to_error::deserialize(&mut serde_json::Deserializer::from_str(text))
            .map_err(|error| Wrong::unreadable(&error))?;
        scenario.check()?;
        let trees = Trees::new(&scenario)?;
        pause::check(&scenario, &trees)?;
        Ok((scenario, trees))
    }

    /// Return an upper bound on the memory of a run, estimated from the capacity of the buffers.
    pub fn memory_bytes(&self, trees: &Trees) -> u64 {
        let ports = u64::from(self.topology.leaves) * u64::from(self.topology.ports());
        let buffers = &self.buffers;
        let largest = buffers.ingress_terminal_lossy_bytes.max(buffers.ingress_terminal_lossless_bytes);
        let used = trees.nodes.iter().map(|node| node.port).collect::<std::collections::BTreeSet<_>>().len() as u64;
        let min_packets = self.flows.iter().map(|flow| self.packets(flow.frame_bytes)).min().unwrap_or(1);
        let frames = used * u64::from(self.units(largest)) / u64::from(min_packets);
        let copies = frames * trees.nodes.iter().map(|node| node.copies.len().min(32)).max().unwrap_or(1) as u64;
        let points = self.duration_ns.checked_div(self.sample_ns).map_or(0, |points| points + 1);
        let destinations: u64 = trees.destinations.iter().map(|ports| ports.len() as u64).sum();
        BASE_BYTES
            + ports * PORT_BYTES
            + u64::from(self.topology.spines) * u64::from(self.topology.leaves) * 400
            + frames * FRAME_BYTES
            + copies * (COPY_BYTES + EVENT_BYTES)
            + destinations * (64 + points * 16)
    }

    /// Estimate the number of events of a run.
    pub fn events(&self, trees: &Trees) -> u64 {
        let mut events = 0.0;
        for (number, flow) in self.flows.iter().enumerate() {
            let frames = self.duration_ns as f64 * flow.rate_gbps / 8.0 / f64::from(flow.frame_bytes);
            let of_flow = trees.nodes.iter().filter(|node| node.flow as usize == number);
            let copies: usize = of_flow.map(|node| node.copies.len()).sum();
            events += frames * copies as f64 * (6.0 + 2.0 * f64::from(self.packets(flow.frame_bytes)));
        }
        events as u64
    }
}
