//! What can go wrong here. Whoever calls gives each its name among his own errors.

use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

#[derive(Debug)]
pub enum Fault {
    /// The system's own words.
    System(io::Error),
    /// Bytes up to this offset were to be written, which is more than the host takes.
    TooManyBytes(u64),
    /// A file ends at this offset, where it was longer.
    Shorter(u64),
    /// A caller broke a rule of ours, or an error of this program.
    Program(String),
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Fault::System(error)
    }
}

/// Do it; a panic is a fault like others, and never ends the process.
pub fn guarded<T>(work: impl FnOnce() -> Result<T, Fault>) -> Result<T, Fault> {
    // What it may have left half done is behind locks, which it has poisoned.
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(Fault::Program(words_of(panic.as_ref()))))
}

fn words_of(panic: &(dyn Any + Send)) -> String {
    let said = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    said.unwrap_or("a panic without words").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_a_fault_with_its_words() {
        for (fault, words) in [
            (guarded::<()>(|| panic!("plain")), "plain"),
            (guarded::<()>(|| panic!("{} {}", "put", "together")), "put together"),
            (guarded::<()>(|| std::panic::panic_any(7)), "a panic without words"),
        ] {
            assert!(matches!(fault, Err(Fault::Program(said)) if said == words));
        }
    }
}
