//! `rack-fabric`: a scenario in JSON in, results in JSON out.

use std::process::ExitCode;

fn main() -> ExitCode {
    eprintln!("{{\"error\": \"this build has no simulator yet\"}}");
    ExitCode::FAILURE
}
