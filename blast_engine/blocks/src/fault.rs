//! Errors of this crate. The caller converts each into one of its own.

use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

#[derive(Debug)]
pub enum Fault {
    /// The system's own words.
    System(io::Error),
    /// The write would exceed the host's limit; bytes up to this offset were to be written.
    TooManyBytes(u64),
    /// A file ends at this offset, where it was longer.
    Shorter(u64),
    /// A caller violated a precondition, or this program has an error.
    Program(String),
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Fault::System(error)
    }
}

/// Do it; a panic is a fault like others, and never ends the process.
pub fn guarded<T>(work: impl FnOnce() -> Result<T, Fault>) -> Result<T, Fault> {
    // Half-done changes are behind locks, which the panic has poisoned.
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(Fault::Program(words_of(panic.as_ref()))))
}

fn words_of(panic: &(dyn Any + Send)) -> String {
    let message = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    message.unwrap_or("a panic without words").to_owned()
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
            assert!(matches!(fault, Err(Fault::Program(message)) if message == words));
        }
    }
}
