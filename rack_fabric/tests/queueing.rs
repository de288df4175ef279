//! Queues whose behavior is known in closed form.

use rack_fabric::fabric::Fabric;
use rack_fabric::random::Random;
use rack_fabric::scenario::Scenario;
use rack_fabric::statistics::Results;
use serde_json::{Value, json};

fn run(scenario: &Value) -> Results {
    let (scenario, trees) = Scenario::read(&scenario.to_string()).unwrap_or_else(|wrong| panic!("{wrong}"));
    let mut fabric = Fabric::new(&scenario, &trees, None);
    assert!(!fabric.run(u64::MAX));
    fabric.finish().0.results(&scenario, &trees)
}

// --------------------------------------------------------------------------------------- Poisson frames on a line

/// Of 256 bytes at 100 Gb/s.
const FRAME_NS: f64 = 20.48;

/// Mean delay of frames of one size from a host to its neighbor. The crossbar is far faster than the lines, and all
/// frames take the same time from one line to the other: they wait for the first line, and for nothing after it.
fn delay_ns(load: f64, process: &str, frames: f64, seed: u64) -> f64 {
    let duration = frames * FRAME_NS / load;
    let results = run(&json!({
        "seed": seed, "duration_ns": duration as u64, "warmup_ns": (duration / 20.0) as u64,
        "topology": {"leaves": 1, "spines": 0, "ethernet_ports": 2, "pcie_ports": 0},
        "timing": {"clock_ps": 1, "adapter_ns": 0}, "sync": {"on": false},
        "flows": [{
            "source": [0, 0], "to": [[0, 1]], "frame_bytes": 256, "rate_gbps": 100.0 * load, "process": process,
        }],
    }));
    assert_eq!(results.flows[0].dropped_frames + results.flows[0].dropped_headers + results.flows[0].dropped_heads, 0);
    results.flows[0].destinations[0].mean_delay_ns
}

/// Pollaczek and Khinchine: with Poisson arrivals and a service time D, the mean wait is rho / (2 (1 - rho)) D.
///
/// Across seeds, means of these frame counts vary by 0.4, 0.7 and 0.9 percent.
#[test]
fn host_line_matches_the_m_d_1_queue() {
    let empty = delay_ns(0.01, "constant", 100.0, 1);
    for (load, frames, share) in [(0.3, 500_000.0, 0.015), (0.6, 500_000.0, 0.02), (0.8, 1_000_000.0, 0.025)] {
        let expected = load / (2.0 * (1.0 - load)) * FRAME_NS;
        let waited = delay_ns(load, "poisson", frames, 1) - empty;
        assert!((waited / expected - 1.0).abs() < share, "at {load}: {waited} instead of {expected}");
    }
}

/// A line below its capacity does not delay frames at a constant pace.
#[test]
fn frames_at_a_constant_pace_do_not_wait() {
    let empty = delay_ns(0.01, "constant", 100.0, 1);
    for load in [0.3, 0.8, 1.0] {
        assert!((delay_ns(load, "constant", 2000.0, 1) - empty).abs() < 0.1);
    }
}

// -------------------------------------------------------------------------------------------- saturated crossbar

/// At which a packet takes one slot of the crossbar.
const LINE_GBPS: f64 = 116.2;

/// Share of the crossbar's slots in which an output is used, when every port has packets for all others.
fn share(ports: u32, queueing: &str, duration_ns: u64) -> f64 {
    let but = |own: u32| (0..ports).filter(move |&port| port != own).map(|port| [0, port]).collect::<Vec<_>>();
    let flow = |port: u32| {
        json!({
            "source": [0, port], "to": but(port), "spread": "uniform", "frame_bytes": 256, "rate_gbps": LINE_GBPS,
        })
    };
    let results = run(&json!({
        "duration_ns": duration_ns, "warmup_ns": duration_ns / 4, "flows": (0..ports).map(flow).collect::<Vec<_>>(),
        "topology": {"leaves": 1, "spines": 0, "ethernet_ports": ports, "pcie_ports": 0},
        "timing": {"line_gbps": LINE_GBPS}, "sync": {"on": false}, "voq": {"queueing": queueing, "drop": "none"},
        "headers": {"high": 100_000, "low": 100_000},
        "buffers": {"ingress_terminal_lossy_bytes": 4_194_304, "egress_terminal_bytes": 1_048_576},
    }));
    let sum: f64 = results.flows.iter().flat_map(|flow| &flow.destinations).map(|one| one.gbps).sum();
    sum / f64::from(ports) / LINE_GBPS
}

/// The model of Karol, Hluchyj and Morgan: each served head gets a new random destination, and one of the heads for the
/// same output is served in each slot. `own`: packets for their own port are included.
fn heads_of_line(ports: u32, own: bool, slots: u32) -> f64 {
    let mut random = Random::new(5, u64::from(ports));
    let draw = |random: &mut Random, port: u32| {
        if own { random.below(ports) } else { (port + 1 + random.below(ports - 1)) % ports }
    };
    let mut heads: Vec<u32> = (0..ports).map(|port| draw(&mut random, port)).collect();
    let mut served = 0;
    for _ in 0..slots {
        let mut winners: Vec<Option<(u32, u32)>> = vec![None; ports as usize];
        for (port, &output) in heads.iter().enumerate() {
            let ticket = random.below(1 << 30);
            let best = &mut winners[output as usize];
            *best = (*best).max(Some((ticket, port as u32)));
        }
        for (_, port) in winners.into_iter().flatten() {
            heads[port as usize] = draw(&mut random, port);
            served += 1;
        }
    }
    f64::from(served) / f64::from(ports) / f64::from(slots)
}

/// Karol, Hluchyj, Morgan: Input versus output queueing on a space-division packet switch. 1987, Table I.
#[test]
fn head_of_line_model_matches_published_throughput() {
    for (ports, published) in [(1, 1.0), (2, 0.75), (3, 0.6825), (4, 0.6553), (8, 0.6184)] {
        let found = heads_of_line(ports, true, 40_000);
        assert!((found - published).abs() < 0.004, "{ports} ports: {found}");
    }
}

const PORTS: [u32; 5] = [8, 16, 32, 64, 127];

/// Return a duration with the same number of packets for each number of ports.
fn duration_ns(ports: u32) -> u64 {
    3_200_000 / u64::from(ports)
}

#[test]
fn saturated_fifo_crossbar_falls_to_58_6_percent() {
    let shares = PORTS.map(|ports| share(ports, "fifo", 2 * duration_ns(ports)));
    for (ports, fifo) in PORTS.into_iter().zip(shares) {
        let expected = heads_of_line(ports, false, 800_000 / ports);
        assert!((fifo - expected).abs() < 0.006, "{ports} ports: {fifo} instead of {expected}");
    }
    assert!(shares.windows(3).all(|sizes| sizes[2] < sizes[0] - 0.004), "{shares:?}");
    let limit = 2.0 - 2f64.sqrt();
    assert!((limit - 0.003..limit + 0.01).contains(&shares[4]), "{shares:?}");
}

#[test]
fn saturated_voq_crossbar_passes_over_95_percent() {
    for ports in PORTS {
        let voq = share(ports, "voq", duration_ns(ports));
        assert!(voq > 0.95, "{ports} ports: {voq}");
    }
}
