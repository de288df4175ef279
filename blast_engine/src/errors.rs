//! Exceptions for Python: errors of the system as `OSError`, others as exceptions of this module.

use std::io;

use blast_blocks::{Fault, guarded};
use pyo3::create_exception;
use pyo3::exceptions::{PyEOFError, PyException, PyOSError};
use pyo3::prelude::*;

create_exception!(blast_engine_native, TooManyBytes, PyException, "More bytes were to be written than are taken.");
create_exception!(blast_engine_native, EngineFault, PyException, "An error of this program, or of its caller.");

/// Run `work` without the interpreter's lock.
pub fn waiting<T: Send>(py: Python<'_>, work: impl FnOnce() -> Result<T, Fault> + Send) -> PyResult<T> {
    py.detach(|| guarded(work)).map_err(exception)
}

/// Run `work`, which does not wait.
pub fn at_once<T>(work: impl FnOnce() -> Result<T, Fault>) -> PyResult<T> {
    guarded(work).map_err(exception)
}

fn exception(fault: Fault) -> PyErr {
    match fault {
        Fault::System(error) => match error.raw_os_error() {
            Some(number) => PyOSError::new_err((number, words_of(&error))),
            None => error.into(),
        },
        Fault::TooManyBytes(end) => TooManyBytes::new_err(end),
        Fault::Shorter(offset) => PyEOFError::new_err(offset),
        Fault::Program(words) => EngineFault::new_err(words),
    }
}

/// Convert an exception of Python; an `OSError` keeps its number.
pub fn fault(py: Python<'_>, error: &PyErr) -> Fault {
    match error.value(py).getattr("errno").and_then(|number| number.extract()) {
        Ok(number) => Fault::System(io::Error::from_raw_os_error(number)),
        Err(_) => Fault::Program(error.to_string()),
    }
}

/// The message without the number, as in Python.
fn words_of(error: &io::Error) -> String {
    let text = error.to_string();
    text.split_once(" (os error").map_or(text.clone(), |(words, _)| words.to_owned())
}
