//! Checks of a scenario: each refusal names the key and the bound.

use crate::frames::MAX_PACKETS;
use crate::scenario::{Flow, Scenario, Spread, Tree};
use crate::wrong::{Step, Wrong};

/// A packet's place in the bit mask of a frame.
const MAX_PORTS: u32 = 128;
/// Memory: a port takes some kilobytes (`reading.rs`), and 65,536 ports with their queues take a few hundred megabytes.
const MAX_TERMINALS: u64 = 65_536;
/// Time: every flow has events of its own, and a run should end within hours.
const MAX_FLOWS: usize = 20_000;

impl Scenario {
    pub(crate) fn check(&self) -> Result<(), Wrong> {
        self.check_run()?;
        self.check_topology()?;
        self.check_timing()?;
        self.check_mechanisms()?;
        if self.classes.is_empty() || self.classes.len() > 8 {
            return Err(Wrong::at("classes", "there are 1 to 8 classes"));
        }
        for (number, class) in self.classes.iter().enumerate() {
            if class.weight == 0 {
                return Err(Wrong::within(
                    &[Step::key("classes"), Step::Item(number), Step::key("weight")],
                    "a weight is 1 or more",
                ));
            }
        }
        if self.flows.len() > MAX_FLOWS {
            return Err(Wrong::at(
                "flows",
                format!("there are {} flows; no more than {MAX_FLOWS} are simulated", self.flows.len()),
            ));
        }
        self.flows.iter().enumerate().try_for_each(|(number, flow)| {
            self.check_flow(flow).map_err(|wrong| wrong.below(&[Step::key("flows"), Step::Item(number)]))
        })
    }

    fn check_run(&self) -> Result<(), Wrong> {
        // Times are kept in picoseconds, 64 bits of them.
        if self.duration_ns == 0 || self.duration_ns > 1_000_000_000_000 {
            return Err(Wrong::at("duration_ns", "a run lasts 1 ns to 1000 s of simulated time"));
        }
        if self.warmup_ns >= self.duration_ns {
            return Err(Wrong::at("warmup_ns", "the warm-up is shorter than the run"));
        }
        if self.sample_ns > 0 && self.duration_ns / self.sample_ns > 1_000_000 {
            return Err(Wrong::at("sample_ns", "a series has a million points at the most"));
        }
        Ok(())
    }

    fn check_topology(&self) -> Result<(), Wrong> {
        let topology = &self.topology;
        let inside =
            |word: &'static str| move |text: String| Wrong::within(&[Step::key("topology"), Step::key(word)], text);
        if topology.leaves == 0 {
            return Err(inside("leaves")("a fabric has one leaf or more".into()));
        }
        if topology.ethernet_ports == 0 || topology.ports() > MAX_PORTS {
            return Err(inside("ethernet_ports")(format!(
                "a leaf has 1 to {MAX_PORTS} ports, its surrogate and PCIe among them"
            )));
        }
        if u64::from(topology.leaves) * u64::from(topology.ports()) > MAX_TERMINALS {
            return Err(inside("leaves")(format!("no more than {MAX_TERMINALS} ports are simulated")));
        }
        if topology.spines > 128 {
            return Err(inside("spines")("there are 0 to 128 spines".into()));
        }
        Ok(())
    }

    fn check_timing(&self) -> Result<(), Wrong> {
        let timing = &self.timing;
        let inside =
            |word: &'static str, text: &str| Wrong::within(&[Step::key("timing"), Step::key(word)], text.to_owned());
        for (word, rate) in [("line_gbps", timing.line_gbps), ("uplink_gbps", timing.uplink_gbps)] {
            if !(rate.is_finite() && (0.001..=100_000.0).contains(&rate)) {
                return Err(inside(word, "a rate is 0.001 to 100000 Gb/s"));
            }
        }
        if !(timing.link_m.is_finite() && (0.0..=100_000.0).contains(&timing.link_m)) {
            return Err(inside("link_m", "a link has 0 to 100000 m"));
        }
        if timing.clock_ps == 0 || timing.clock_ps > 1_000_000 {
            return Err(inside("clock_ps", "a clock cycle has 1 to 1000000 ps"));
        }
        if timing.packet_cycles == 0 || timing.packet_cycles > 64 {
            return Err(inside("packet_cycles", "a packet takes 1 to 64 cycles"));
        }
        if !(64..=4096).contains(&timing.packet_bytes) {
            return Err(inside("packet_bytes", "a packet has 64 to 4096 bytes"));
        }
        if !(1..=1000).contains(&timing.egress_start_permille) {
            return Err(inside("egress_start_permille", "a share in thousandths is 1 to 1000"));
        }
        Ok(())
    }

    fn check_mechanisms(&self) -> Result<(), Wrong> {
        let inside = |group: &str, word: &str, text: &str| {
            Err(Wrong::within(&[Step::key(group), Step::key(word)], text.to_owned()))
        };
        if self.cache.packets > 1 << 20 {
            return inside("cache", "packets", "a cache has no more than 1048576 packets");
        }
        if self.sync.on && self.sync.entries == 0 {
            return inside("sync", "entries", "synchronization needs an entry or more");
        }
        if self.sync.resume_packets > self.sync.block_packets {
            return inside(
                "sync",
                "resume_packets",
                "a VOQ resumes when it is ahead by no more than what suspended it",
            );
        }
        if self.headers.low > self.headers.high {
            return inside("headers", "low", "the low threshold is not above the high one");
        }
        for (group, word, share) in
            [("headers", "probability", self.headers.probability), ("errors", "probability", self.errors.probability)]
        {
            if !(0.0..=1.0).contains(&share) {
                return inside(group, word, "a probability is 0 to 1");
            }
        }
        if self.errors.probability > 0.9 {
            return inside("errors", "probability", "with more than 0.9 hardly a frame arrives");
        }
        if self.pause.go_bytes > self.pause.stop_bytes {
            return inside("pause", "go_bytes", "the threshold of GO is not above that of STOP");
        }
        if self.arbiter.quantum_packets == 0 {
            return inside("arbiter", "quantum_packets", "a quantum is 1 packet or more");
        }
        if self.arbiter.coalesce_packets == 0 {
            return inside("arbiter", "coalesce_packets", "1 packet is the least: nothing is coalesced then");
        }
        if self.crossbar.links_per_output == 0 || self.crossbar.uplink_packets == 0 {
            return inside("crossbar", "links_per_output", "links and packets that wait for them are 1 or more");
        }
        if !(1..=100).contains(&self.crossbar.multicast_weight) {
            return inside("crossbar", "multicast_weight", "a weight is 1 to 99, or 100: no limit");
        }
        self.check_qcn()
    }

    fn check_qcn(&self) -> Result<(), Wrong> {
        let qcn = &self.qcn;
        let inside = |word: &str, text: &str| Err(Wrong::within(&[Step::key("qcn"), Step::key(word)], text.to_owned()));
        for (word, number) in [
            ("weight", qcn.weight),
            ("decrease_gain", qcn.decrease_gain),
            ("increase_gbps", qcn.increase_gbps),
            ("hyper_increase_gbps", qcn.hyper_increase_gbps),
            ("min_gbps", qcn.min_gbps),
        ] {
            if !(number.is_finite() && number >= 0.0) {
                return inside(word, "a finite number from 0 on is needed");
            }
        }
        if qcn.min_gbps == 0.0 {
            return inside("min_gbps", "a flow that may send nothing never recovers");
        }
        if qcn.decrease_gain > 1.0 / 64.0 {
            return inside("decrease_gain", "64 steps of feedback would stop a flow: use at most 1/64");
        }
        if qcn.sample_bytes == 0 || qcn.byte_counter_bytes == 0 || qcn.timer_ns == 0 {
            return inside("sample_bytes", "sample_bytes, byte_counter_bytes and timer_ns must be 1 or more");
        }
        Ok(())
    }

    fn check_flow(&self, flow: &Flow) -> Result<(), Wrong> {
        let (leaf, port) = flow.source;
        if leaf >= self.topology.leaves || port >= self.topology.ethernet_ports {
            return Err(Wrong::at("source", format!("there is no Ethernet port {port} of leaf {leaf}")));
        }
        if flow.class as usize >= self.classes.len() {
            return Err(Wrong::at("class", format!("there is no class {}", flow.class)));
        }
        if !(flow.rate_gbps.is_finite() && flow.rate_gbps > 0.0 && flow.rate_gbps <= self.timing.line_gbps) {
            return Err(Wrong::at(
                "rate_gbps",
                format!("a flow has more than 0 and up to {} Gb/s", self.timing.line_gbps),
            ));
        }
        let packets = self.packets(flow.frame_bytes);
        if flow.frame_bytes < 64 || packets as usize > MAX_PACKETS {
            return Err(Wrong::at("frame_bytes", format!("a frame has 64 bytes to {MAX_PACKETS} packets")));
        }
        if flow.spread == Spread::Uniform && !matches!(flow.tree, Tree::Direct) {
            return Err(Wrong::at("tree", "a frame that goes to one of its destinations needs no tree: leave it out"));
        }
        if flow.stop_ns.is_some_and(|stop| stop <= flow.start_ns) {
            return Err(Wrong::at("stop_ns", "a flow stops after it has started"));
        }
        self.check_pools(packets, self.classes[flow.class as usize].lossless)
    }

    fn check_pools(&self, packets: u32, lossless: bool) -> Result<(), Wrong> {
        let buffers = &self.buffers;
        let (terminal, surrogate) = if lossless {
            (buffers.ingress_terminal_lossless_bytes, buffers.ingress_surrogate_lossless_bytes)
        } else {
            (buffers.ingress_terminal_lossy_bytes, buffers.ingress_surrogate_lossy_bytes)
        };
        let pools = [terminal, surrogate, buffers.egress_terminal_bytes, buffers.egress_surrogate_bytes];
        let min_pool = pools.into_iter().map(|bytes| self.units(bytes)).min().unwrap_or(0);
        if min_pool < packets {
            return Err(Wrong::at(
                "frame_bytes",
                format!("its {packets} packets do not fit into a buffer of {min_pool}"),
            ));
        }
        Ok(())
    }
}
