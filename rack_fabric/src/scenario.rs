//! The scenario as JSON, with defaults of the paper's Table 1. `checks.rs` validates it.

use serde::{Deserialize, Serialize};

/// The input of a run. Times are nanoseconds, rates gigabits per second, sizes bytes or packets (buffer units).
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

/// Location of the congestion points.
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
    /// The flow of the frame that was sampled (IEEE 802.1Qau).
    Arrival,
    /// The flow with the largest occupancy of the buffer (section 4.2).
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

/// The arrival process of frames.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Process {
    Constant,
    Poisson,
}

/// The destinations of each frame of a flow.
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
    /// Buffer units that a size holds.
    pub fn units(&self, bytes: u64) -> u32 {
        u32::try_from(bytes / u64::from(self.timing.packet_bytes)).unwrap_or(u32::MAX)
    }

    /// Packets of a frame.
    pub fn packets(&self, frame_bytes: u32) -> u32 {
        frame_bytes.div_ceil(self.timing.packet_bytes)
    }
}
