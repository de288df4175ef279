//! `rack-fabric`: a scenario as JSON in, results as JSON out.
#![forbid(unsafe_code)]

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use rack_fabric::fabric::Fabric;
use rack_fabric::scenario::Scenario;
use rack_fabric::trace::Trace;
use rack_fabric::trees::Trees;
use serde_json::json;

const EXAMPLE: &str = r#"example:
  echo '{"duration_ns": 100000, "flows": [{"source": [0, 0], "to": [[1, 0]], "frame_bytes": 1522, "rate_gbps": 50}]}' |
      rack-fabric run -"#;

/// Simulates a server-rack fabric that copies frames itself.
#[derive(Parser)]
#[command(version, after_help = EXAMPLE)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Simulate a scenario and print its results.
    Run {
        /// A JSON file, or - for standard input.
        scenario: PathBuf,
        /// Write action happens at ports there, in binary form.
        #[arg(long)]
        trace: Option<PathBuf>,
        /// Print progress on standard error.
        #[arg(long)]
        progress: bool,
    },
    /// See whether a scenario can be simulated, and in how much memory.
    Check {
        /// A JSON file, or - for standard input.
        scenario: PathBuf,
    },
}

/// Number of progress reports of a run.
const PARTS: u64 = 100;

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Run { scenario, trace, progress } => run(&scenario, trace.as_deref(), progress),
        Command::Check { scenario } => check(&scenario),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err((message, status)) => {
            eprintln!("{message}");
            ExitCode::from(status)
        }
    }
}

type Failure = (serde_json::Value, u8);

fn failed(action: &str, path: &std::path::Path, error: &io::Error) -> Failure {
    (json!({"error": format!("{action} {}: {error}", path.display())}), 1)
}

fn read(path: &std::path::Path) -> Result<(Scenario, Trees), Failure> {
    let mut text = String::new();
    let found = if path.as_os_str() == "-" {
        io::stdin().read_to_string(&mut text)
    } else {
        File::open(path).and_then(|mut file| file.read_to_string(&mut text))
    };
    found.map_err(|error| failed("cannot read", path, &error))?;
    Scenario::read(&text).map_err(|wrong| (wrong.as_json(), 2))
}

fn run(path: &std::path::Path, trace: Option<&std::path::Path>, progress: bool) -> Result<(), Failure> {
    let (scenario, trees) = read(path)?;
    let opened = trace.map(|path| {
        let file = File::create(path)?;
        Trace::new(Box::new(BufWriter::with_capacity(1 << 20, file)))
    });
    let written = opened.transpose().map_err(|error| failed("cannot write", trace.unwrap_or(path), &error))?;
    let mut fabric = Fabric::new(&scenario, &trees, written);
    let (mut part, parts) = (0, if progress { PARTS } else { 1 });
    loop {
        part += 1;
        let more = fabric.run(scenario.duration_ns * 1000 / parts * part + if part == parts { 1000 } else { 0 });
        if progress {
            eprintln!("{}", json!({"done": fabric.now / 1000, "of": scenario.duration_ns}));
        }
        if !more {
            break;
        }
    }
    let (statistics, traced) = fabric.finish();
    traced.map_err(|error| failed("cannot write", trace.unwrap_or(path), &error))?;
    print(&statistics.results(&scenario, &trees), path)
}

fn check(path: &std::path::Path) -> Result<(), Failure> {
    let (scenario, trees) = read(path)?;
    print(&json!({"memory_bytes": scenario.memory_bytes(&trees), "events": scenario.events(&trees)}), path)
}

fn print(value: &impl serde::Serialize, path: &std::path::Path) -> Result<(), Failure> {
    let value = serde_json::to_string(value).map_err(|error| failed("cannot write", path, &error.into()))?;
    let mut out = io::stdout().lock();
    writeln!(out, "{value}")
        .and_then(|()| out.flush())
        .map_err(|error| failed("cannot print the results of", path, &error))
}
