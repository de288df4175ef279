//! Complete runs: every frame is delivered once and in order, and results are reproducible.

use proptest::prelude::*;
use rack_fabric::fabric::Fabric;
use rack_fabric::scenario::Scenario;
use rack_fabric::statistics::Results;
use serde_json::{Value, json};

fn run(scenario: &Value) -> Results {
    let (scenario, trees) = Scenario::read(&scenario.to_string()).unwrap_or_else(|wrong| panic!("{wrong}"));
    let mut fabric = Fabric::new(&scenario, &trees, None);
    assert!(!fabric.run(u64::MAX));
    let (statistics, written) = fabric.finish();
    written.expect("nothing is written");
    statistics.results(&scenario, &trees)
}

fn text(results: &Results) -> String {
    serde_json::to_string(results).expect("results are JSON")
}

/// Generate small fabrics with flows of all kinds, which are empty at the end.
fn scenarios() -> impl Strategy<Value = Value> {
    let flow = (0u32..3, 0u32..3, 64u32..9023, 1u32..100, any::<bool>(), any::<bool>(), 0u32..2);
    let drop = prop::sample::select(vec!["none", "tail", "head"]);
    let errors = prop::sample::select(vec![0.0, 0.0, 0.02]);
    let points = prop::sample::select(vec!["none", "inputs", "outputs"]);
    (
        prop::collection::vec(flow, 1..5),
        (drop, errors, points, any::<bool>(), any::<bool>()),
        (prop::sample::select(vec![0, 16, 40]), prop::sample::select(vec![0, 2, 8]), 1u64..1000),
    )
        .prop_map(|(flows, (drop, errors, points, sync, lossless), (cache, spines, seed))| {
            let flows: Vec<Value> = flows
                .into_iter()
                .map(|(leaf, port, bytes, rate, surrogates, poisson, class)| {
                    let tree =
                        if surrogates { json!({"surrogates": {"first": 1, "remote": 1}}) } else { json!("direct") };
                    let process = if poisson { "poisson" } else { "constant" };
                    json!({
                        "source": [leaf, port], "to": "all", "tree": tree, "frame_bytes": bytes, "rate_gbps": rate,
                        "process": process, "class": class, "stop_ns": 20_000,
                    })
                })
                .collect();
            json!({
                "seed": seed, "duration_ns": 3_000_000, "flows": flows,
                "topology": {"leaves": 3, "ethernet_ports": 3, "pcie_ports": 2, "spines": spines},
                "classes": [{}, {"lossless": lossless, "weight": 3}],
                "cache": {"packets": cache}, "sync": {"on": sync}, "voq": {"drop": drop},
                "errors": {"probability": errors}, "qcn": {"points": points},
            })
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_copy_is_delivered_or_dropped(scenario in scenarios()) {
        let results = run(&scenario);
        for (number, flow) in results.flows.iter().enumerate() {
            let lossless = scenario["classes"][scenario["flows"][number]["class"].as_u64().unwrap_or(0) as usize]["lossless"] == json!(true);
            let received: u64 = flow.destinations.iter().map(|destination| destination.copies).sum();
            let expected = flow.offered_frames * flow.destinations.len() as u64;
            let dropped = flow.dropped_frames + flow.dropped_headers + flow.dropped_heads;
            prop_assert!(received <= expected, "copies were delivered twice");
            if dropped == 0 {
                prop_assert_eq!(received, expected, "copies were lost");
            }
            if lossless {
                prop_assert_eq!(dropped, 0);
            }
            if scenario["flows"][number]["tree"] == json!("direct") {
                let frames = flow.dropped_frames * flow.destinations.len() as u64;
                prop_assert_eq!(received + frames + flow.dropped_headers + flow.dropped_heads, expected);
            }
        }
        prop_assert_eq!(results.counters.corrupted, results.counters.retransmitted);
    }

    #[test]
    fn repeated_run_gives_identical_results(scenario in scenarios()) {
        prop_assert_eq!(text(&run(&scenario)), text(&run(&scenario)));
    }
}

fn to_one(probability: f64) -> Value {
    json!({
        "duration_ns": 1_200_000, "topology": {"leaves": 2, "spines": 4}, "errors": {"probability": probability},
        "flows": [{"source": [0, 0], "to": [[0, 1], [1, 0]], "frame_bytes": 1522, "rate_gbps": 10, "stop_ns": 1_000_000}],
    })
}

#[test]
fn damaged_copies_are_retransmitted_and_all_delivered() {
    let results = run(&to_one(0.05));
    let flow = &results.flows[0];
    assert!(results.counters.retransmitted > 20, "{}", results.counters.retransmitted);
    assert!(flow.destinations.iter().all(|destination| destination.copies == flow.offered_frames));
    let whole = run(&to_one(0.0));
    assert_eq!(whole.counters.retransmitted, 0);
    assert!(whole.flows[0].destinations[1].longest_delay_ns < flow.destinations[1].longest_delay_ns);
}

/// Run one flow over a surrogate whose first local copy is congested; return the number of suspensions.
fn suspensions(sync: &Value) -> u64 {
    let unicast = json!({"source": [1, 1], "to": [[1, 0]], "frame_bytes": 1522, "rate_gbps": 60});
    let tree = json!({"surrogates": {"first": 1, "remote": 0}});
    let flow = json!({"source": [0, 0], "to": {"leaves": [1]}, "frame_bytes": 1522, "rate_gbps": 90, "tree": tree});
    run(&json!({"duration_ns": 100_000, "topology": {"leaves": 2}, "flows": [flow, unicast], "sync": sync}))
        .counters
        .suspensions
}

#[test]
fn surrogates_synchronize_like_other_ports_unless_the_scenario_excludes_them() {
    assert!(suspensions(&json!({})) > 0);
    assert_eq!(suspensions(&json!({"surrogates": false})), 0);
    assert_eq!(suspensions(&json!({"on": false})), 0);
}

/// Fowler, Noll, Vo: FNV-1a, 64 bits.
fn digest(text: &str) -> u64 {
    text.bytes().fold(0xCBF2_9CE4_8422_2325, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3))
}

#[test]
fn results_match_the_recorded_digest() {
    let scenario: Value = serde_json::from_str(include_str!("repeated.json")).expect("is JSON");
    let found = format!("{:016x}", digest(&text(&run(&scenario))));
    assert_eq!(found, include_str!("repeated.digest").trim(), "if the model was meant to change, so is this digest");
}

#[test]
fn scenario_errors_name_their_position() {
    let error = |scenario: Value| match Scenario::read(&scenario.to_string()) {
        Ok(_) => panic!("nothing is wrong"),
        Err(wrong) => wrong.to_string(),
    };
    let flow = json!({"source": [0, 0], "to": [[1, 0]], "frame_bytes": 1522, "rate_gbps": 10});
    let with = |key: &str, value: Value| {
        let mut flow = flow.clone();
        flow[key] = value;
        error(json!({"duration_ns": 10, "flows": [flow]}))
    };
    assert!(with("rate_gbps", json!(101)).starts_with("flows[0].rate_gbps: "));
    assert!(with("frame_bytes", json!(100_000)).starts_with("flows[0].frame_bytes: "));
    assert!(with("frame_bytes", json!("x")).starts_with("flows[0].frame_bytes: "));
    assert!(with("class", json!(1)).contains("there is no class 1"));
    let tree = json!({"surrogates": {"first": 1, "remote": 0}});
    let drawn =
        json!({"source": [0, 0], "to": "all", "frame_bytes": 64, "rate_gbps": 1, "spread": "uniform", "tree": tree});
    assert!(error(json!({"duration_ns": 10, "flows": [drawn]})).starts_with("flows[0].tree: a frame that goes to one"));
    assert!(with("sourc", json!(1)).contains("sourc"));
    assert!(error(json!({"duration_ns": 0, "flows": []})).starts_with("duration_ns: "));
    assert!(error(json!({"duration_ns": 10, "flows": [flow], "cache": {"packet": 1}})).starts_with("cache"));
    let small = json!({"duration_ns": 10, "flows": [flow], "buffers": {"egress_terminal_bytes": 1024}});
    assert!(error(small).contains("do not fit into a buffer of 4"));
}
