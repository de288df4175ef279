//! Computations of a sender on a file.

use std::os::fd::RawFd;

use blast_boundary::with_lent;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::waiting;

/// The digests of `count` blocks from `first` on of the file that is open and has `size` bytes, one after the other.
///
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
