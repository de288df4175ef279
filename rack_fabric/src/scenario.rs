//! The scenario as JSON, with defaults of the paper's Table 1, and its validation.

use serde::{Deserialize, Serialize};

use crate::frames::MAX_PACKETS;
use crate::pause;
use crate::trees::Trees;
use crate::wrong::{Step, Wrong};

/// A packet's place in the bit mask of a frame.
const MAX_PORTS: u32 = 128;
const MAX_TERMINALS: u64 = 65_536;
const MAX_FLOWS: usize = 20_000;

/// All of a run. Times are nanoseconds, rates gigabits per second, sizes bytes or packets (buffer units) as named.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    #[serde(default)]
    pub name: String,
    #[serde(default = "one")]
    pub seed: u64,
    pub duration_ns: u64,
    /// Nothing before it counts in means; series show it.
    #[serde(default)]
    pub warmup_ns: u64,
    /// Width of a point in the series; 0: no series.
    #[serde(default)]
    pub sample_ns: u64,
    #[serde(default)]
    pub topology: Topology,
    #[serde(default)]
    pub timing: Timing,
    #[serde(default)]
    pub buffers: Buffers,
    #[serde(default)]
    pub cache: Cache,
    #[serde(default)]
    pub sync: Sync,
    #[serde(default)]
    pub headers: Headers,
    #[serde(default)]
    pub voq: Voqs,
    #[serde(default)]
    pub pause: Pause,
    #[serde(default)]
    pub qcn: Qcn,
    #[serde(default)]
    pub arbiter: Arbiter,
    #[serde(default)]
    pub crossbar: Crossbar,
    #[serde(default)]
    pub errors: Errors,
    #[serde(default = "one_class")]
    pub classes: Vec<Class>,
    pub flows: Vec<Flow>,
}

fn one() -> u64 {
    1
}

fn one_class() -> Vec<Class> {
    vec![Class::default()]
}

/// Leaves and spines (section 2.1). A leaf has Ethernet ports 0 ..., then one surrogate, then `PCIe` ports.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Topology {
    pub leaves: u32,
    pub ethernet_ports: u32,
    pub pcie_ports: u32,
    /// 0: leaves are joined by a network of constant delay that nothing fills.
    pub spines: u32,
    /// For Figure 14: leaves of a chassis interconnect element, such elements of a chassis, chassis of a rack.
    pub leaves_per_cie: u32,
    pub cies_per_chassis: u32,
    pub chassis_per_rack: u32,
}

impl Default for Topology {
    fn default() -> Self {
        Self {
            leaves: 128,
            ethernet_ports: 5,
            pcie_ports: 2,
            spines: 32,
            leaves_per_cie: 4,
            cies_per_chassis: 4,
            chassis_per_rack: 2,
        }
    }
}

impl Topology {
    /// Ports of a leaf.
    pub fn ports(&self) -> u32 {
        self.ethernet_ports + 1 + self.pcie_ports
    }

    /// Number of the surrogate among a leaf's ports.
    pub fn surrogate(&self) -> u32 {
        self.ethernet_ports
    }
}

/// Delays.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Timing {
    /// Of the leaf's crossbar, 454 MHz.
    pub clock_ps: u64,
    /// A packet's time at a crossbar input or output; as many headers can a port issue in it.
    pub packet_cycles: u32,
    pub packet_bytes: u32,
    /// Ethernet, and the loop of a surrogate.
    pub line_gbps: f64,
    pub uplink_gbps: f64,
    /// Bytes of a packet on an uplink besides its payload.
    pub uplink_overhead_bytes: u32,
    /// A request, grant or ACK.
    pub message_bytes: u32,
    pub link_m: f64,
    pub ps_per_m: u64,
    /// From a request to its grant when nothing is in the way: both ways together.
    pub grant_local_ns: u64,
    pub grant_remote_ns: u64,
    pub ack_local_ns: u64,
    pub ack_remote_ns: u64,
    /// Fitted: delay of a packet in a spine and the two leaves besides links and queues.
    pub spine_ns: u64,
    /// Fitted: thousandths of a frame that an egress port has when it starts to send it.
    pub egress_start_permille: u32,
    /// From a fabric port to its host's adapter and back: PAUSE and congestion notifications take it.
    pub adapter_ns: u64,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            clock_ps: 2203,
            packet_cycles: 8,
            packet_bytes: 256,
            line_gbps: 100.0,
            uplink_gbps: 25.0,
            uplink_overhead_bytes: 16,
            message_bytes: 10,
            link_m: 40.0,
            ps_per_m: 5000,
            grant_local_ns: 100,
            grant_remote_ns: 1100,
            ack_local_ns: 50,
            ack_remote_ns: 1330,
            spine_ns: 75,
            egress_start_permille: 600,
            adapter_ns: 50,
        }
    }
}

/// Payload buffers, in bytes (Table 1); a buffer unit holds one packet.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Buffers {
    pub ingress_terminal_lossy_bytes: u64,
    pub ingress_terminal_lossless_bytes: u64,
    pub ingress_surrogate_lossy_bytes: u64,
    pub ingress_surrogate_lossless_bytes: u64,
    pub egress_terminal_bytes: u64,
    pub egress_surrogate_bytes: u64,
    /// Of a spine, at each input and each output.
    pub spine_packets: u32,
}

impl Default for Buffers {
    fn default() -> Self {
        Self {
            // 740 units of 256 bytes, from section 4.1.
            ingress_terminal_lossy_bytes: 740 * 256,
            ingress_terminal_lossless_bytes: 227 * 1024,
            ingress_surrogate_lossy_bytes: 84 * 1024,
            ingress_surrogate_lossless_bytes: 32 * 1024,
            egress_terminal_bytes: 140 * 1024,
            egress_surrogate_bytes: 100 * 1024,
            spine_packets: 16,
        }
    }
}

/// The multicast cache (section 3).
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Cache {
    /// 0: there is none, and every copy takes the payload line.
    pub packets: u32,
    /// With fewer free ones an entry is evicted in every cycle; half of the cache at the most.
    pub reserve: u32,
}

impl Default for Cache {
    fn default() -> Self {
        Self { packets: 128, reserve: 10 }
    }
}

/// Loose synchronization of the VOQs of a flow (section 3.1).
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Sync {
    pub on: bool,
    /// Surrogates synchronize their VOQs too: "surrogates look and act like other ports" (section 2.2).
    pub surrogates: bool,
    pub entries: u32,
    /// A VOQ that is ahead by more packets is suspended ...
    pub block_packets: u32,
    /// ... until it is ahead by fewer packets than this.
    pub resume_packets: u32,
    pub timeout_ns: u64,
}

impl Default for Sync {
    fn default() -> Self {
        Self { on: true, surrogates: true, entries: 24, block_packets: 18, resume_packets: 12, timeout_ns: 3000 }
    }
}

/// The pools of multicast headers, each for one virtual lane of a port (section 4.1).
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Headers {
    /// Number from which a header is dropped.
    pub high: u32,
    /// Number from which it is dropped with `probability`.
    pub low: u32,
    pub probability: f64,
    /// Of a lossless lane.
    pub lossless: u32,
    /// Let the copies of a frame arrive in random order.
    pub shuffle: bool,
}

impl Default for Headers {
    fn default() -> Self {
        Self { high: 500, low: 470, probability: 0.5, lossless: 291, shuffle: false }
    }
}

/// The fate of copies for a VOQ that is too long (section 4.1).
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Drop {
    None,
    Tail,
    Head,
}

/// The queueing discipline of a port.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Queueing {
    /// A queue for each egress port and lane.
    Voq,
    /// One queue; its head alone can leave.
    Fifo,
}

/// Virtual output queues.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Voqs {
    pub queueing: Queueing,
    pub drop: Drop,
    /// Of a VOQ at a terminal, from which on copies are dropped, and of one at a surrogate.
    pub terminal_bytes: u64,
    pub surrogate_bytes: u64,
}

impl Default for Voqs {
    fn default() -> Self {
        Self { queueing: Queueing::Voq, drop: Drop::Head, terminal_bytes: 60 * 1024, surrogate_bytes: 50 * 1024 }
    }
}

/// PAUSE of a lossless lane at an ingress terminal (section 4.2).
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Pause {
    pub stop_bytes: u64,
    pub go_bytes: u64,
}

impl Default for Pause {
    fn default() -> Self {
        Self { stop_bytes: 160 * 1024, go_bytes: 90 * 1024 }
    }
}

/// Where congestion is looked for.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CongestionPoint {
    None,
    Inputs,
    Outputs,
}

/// The flow that is notified.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Marking {
    /// That of the frame that was sampled (IEEE 802.1Qau).
    Arrival,
    /// That which has most in the buffer (section 4.2).
    Occupancy,
}

/// Quantized congestion notification (IEEE 802.1Qau); values that the paper does not give are those of the standard.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Qcn {
    pub points: CongestionPoint,
    pub marking: Marking,
    pub equilibrium_ingress_bytes: u64,
    pub equilibrium_egress_bytes: u64,
    pub weight: f64,
    pub sample_bytes: u64,
    /// The rate falls by this share for each step of the feedback, which has 64.
    pub decrease_gain: f64,
    pub byte_counter_bytes: u64,
    pub timer_ns: u64,
    pub fast_recovery_cycles: u32,
    pub increase_gbps: f64,
    pub hyper_increase_gbps: f64,
    pub min_gbps: f64,
}

impl Default for Qcn {
    fn default() -> Self {
        Self {
            points: CongestionPoint::None,
            marking: Marking::Occupancy,
            equilibrium_ingress_bytes: 90 * 1024,
            equilibrium_egress_bytes: 50 * 1024,
            weight: 2.0,
            sample_bytes: 150 * 1024,
            decrease_gain: 1.0 / 128.0,
            // The standard's 150 KB were meant for a tenth of the rate; a cycle of the timer is about as long.
            byte_counter_bytes: 1500 * 1024,
            timer_ns: 150_000,
            fast_recovery_cycles: 5,
            increase_gbps: 0.05,
            hyper_increase_gbps: 0.5,
            min_gbps: 0.1,
        }
    }
}

/// The arbiter of an egress port.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Arbiter {
    /// Additional quantum of a VOQ in each round.
    pub quantum_packets: u32,
    /// A VOQ waits until this number of packets is to be requested or granted, and one message carries all; 1: at once.
    pub coalesce_packets: u32,
}

impl Default for Arbiter {
    fn default() -> Self {
        Self { quantum_packets: 6, coalesce_packets: 1 }
    }
}

/// The crossbar of a leaf (sections 2.1, 3 and 6).
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Crossbar {
    /// Uplinks that share one output.
    pub links_per_output: u32,
    /// Packets that may wait for an uplink.
    pub uplink_packets: u32,
    /// Copies for the same leaf take links of their own, and no input of a neighbor.
    pub local_links: bool,
    /// Percent of an input that copies may take while its own port has unicast frames; 100: all of it.
    pub multicast_weight: u32,
}

impl Default for Crossbar {
    fn default() -> Self {
        Self { links_per_output: 4, uplink_packets: 2, local_links: false, multicast_weight: 100 }
    }
}

/// Soft errors of a link (section 2.1).
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Errors {
    /// Of a copy of a frame, on each link.
    pub probability: f64,
    pub timeout_ns: u64,
}

impl Default for Errors {
    fn default() -> Self {
        Self { probability: 0.0, timeout_ns: 20_000 }
    }
}

/// An Ethernet priority.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Class {
    pub lossless: bool,
    /// Of its frames at an egress port.
    pub weight: u32,
}

impl Default for Class {
    fn default() -> Self {
        Self { lossless: false, weight: 1 }
    }
}

/// When frames come.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Process {
    Constant,
    Poisson,
}

/// To whom a frame of a flow goes.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spread {
    /// A copy to every destination.
    Multicast,
    /// To one of them, drawn for each frame.
    Uniform,
}

/// The paths of copies to their destinations.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tree {
    /// The source sends them all.
    Direct,
    /// The source serves `first` other leaves, and the surrogate of each of them its own leaf and `remote` more.
    Surrogates { first: u32, remote: u32 },
    /// Figure 14.
    Rack,
}

/// A terminal, as [leaf, port].
pub type Terminal = (u32, u32);

/// Destinations: terminals one by one, or all of some leaves.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(untagged)]
pub enum Destinations {
    Terminals(Vec<Terminal>),
    Leaves { leaves: Vec<u32> },
    All(All),
}

/// The word "all".
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum All {
    All,
}

/// Frames of one source.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    #[serde(default)]
    pub name: String,
    pub source: Terminal,
    pub to: Destinations,
    pub frame_bytes: u32,
    pub rate_gbps: f64,
    #[serde(default = "constant")]
    pub process: Process,
    #[serde(default = "multicast")]
    pub spread: Spread,
    #[serde(default = "direct")]
    pub tree: Tree,
    #[serde(default)]
    pub class: u32,
    #[serde(default)]
    pub start_ns: u64,
    #[serde(default)]
    pub stop_ns: Option<u64>,
}

fn constant() -> Process {
    Process::Constant
}

fn multicast() -> Spread {
    Spread::Multicast
}

fn direct() -> Tree {
    Tree::Direct
}

impl Scenario {
    /// Read and check. Fails with what is wrong and where.
    pub fn read(text: &str) -> Result<(Self, Trees), Wrong> {
        let scenario: Self = serde_path_to_error::deserialize(&mut serde_json::Deserializer::from_str(text))
            .map_err(|error| Wrong::unreadable(&error))?;
        scenario.check()?;
        let trees = Trees::new(&scenario)?;
        pause::check(&scenario, &trees)?;
        Ok((scenario, trees))
    }

    /// Buffer units that a size holds.
    pub fn units(&self, bytes: u64) -> u32 {
        u32::try_from(bytes / u64::from(self.timing.packet_bytes)).unwrap_or(u32::MAX)
    }

    /// Packets of a frame.
    pub fn packets(&self, frame_bytes: u32) -> u32 {
        frame_bytes.div_ceil(self.timing.packet_bytes)
    }

    fn check(&self) -> Result<(), Wrong> {
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
        let least = pools.into_iter().map(|bytes| self.units(bytes)).min().unwrap_or(0);
        if least < packets {
            return Err(Wrong::at("frame_bytes", format!("its {packets} packets do not fit into a buffer of {least}")));
        }
        Ok(())
    }
}

/// Bytes of a port with its pools, queues and adapter.
const PORT_BYTES: u64 = 4096;
/// Of a frame that waits, of a copy that waits or is on its way, and of an event.
const FRAME_BYTES: u64 = 512;
const COPY_BYTES: u64 = 160;
const EVENT_BYTES: u64 = 48;
/// Memory of the wheel and the program.
const BASE_BYTES: u64 = 16 << 20;

impl Scenario {
    /// Memory that a run takes at the most, estimated from what the buffers can hold.
    pub fn memory_bytes(&self, trees: &Trees) -> u64 {
        let ports = u64::from(self.topology.leaves) * u64::from(self.topology.ports());
        let buffers = &self.buffers;
        let largest = buffers.ingress_terminal_lossy_bytes.max(buffers.ingress_terminal_lossless_bytes);
        let used = trees.nodes.iter().map(|node| node.port).collect::<std::collections::BTreeSet<_>>().len() as u64;
        let least = self.flows.iter().map(|flow| self.packets(flow.frame_bytes)).min().unwrap_or(1);
        let frames = used * u64::from(self.units(largest)) / u64::from(least);
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

    /// Events of a run, roughly.
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
