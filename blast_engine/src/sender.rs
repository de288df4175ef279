//! Computations of a sender on a file.

use std::os::fd::RawFd;
use std::sync::Mutex;

use blast_blocks::Fault;
use blast_boundary::with_lent;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::{at_once, waiting};
use crate::link::{Given, parts_of, span_of};

/// Return the digests of `count` blocks from `first` on of the open file of `size` bytes, one after the other.
///
/// Raises `EOFError` with the end of the file, if it became shorter.
#[pyfunction]
pub fn digests_of_file(
    py: Python<'_>,
    descriptor: RawFd,
    first: u64,
    count: u64,
    block_size: u64,
    size: u64,
) -> PyResult<Bound<'_, PyBytes>> {
    let digests = waiting(py, || {
        with_lent(descriptor, |file| blast_blocks::digests_of_file(file, first, count, block_size, size))?
    })?;
    Ok(PyBytes::new(py, &digests))
}

/// `blast_blocks::SentFile`, for one thread.
#[pyclass(frozen, module = "blast_engine_native")]
pub struct SentFile(Mutex<blast_blocks::SentFile>);

#[pymethods]
impl SentFile {
    #[new]
    fn new(block_size: u64, size: u64) -> PyResult<Self> {
        at_once(|| match block_size {
            0 => Err(Fault::Program("blocks of 0 bytes".to_owned())),
            _ => Ok(SentFile(Mutex::new(blast_blocks::SentFile::new(block_size, size)))),
        })
    }

    /// `give_to_link`, besides the first block whose digest is new, and the digests from there on.
    fn give_to<'py>(
        &self,
        py: Python<'py>,
        link: RawFd,
        file: RawFd,
        run: (u64, u64, u64),
        max_bytes: u64,
    ) -> PyResult<(Given, u64, Bound<'py, PyBytes>)> {
        let (given, found) = waiting(py, || {
            let broken = |_| Fault::Program("an earlier panic has left this file half read".to_owned());
            let mut sent = self.0.lock().map_err(broken)?;
            with_lent(link, |link| with_lent(file, |file| sent.give_to(link, file, span_of(run), max_bytes)))??
        })?;
        Ok((parts_of(given), found.first, PyBytes::new(py, &found.digests)))
    }
}
