//! Store for Python: `blast_blocks::FileStore` with checked arguments.

use std::os::fd::RawFd;

use blast_blocks::{Books, DIGEST_BYTES, Fault, MAX_BLOCKS, Run, Shape, cut};
use blast_boundary::Lent;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::{at_once, fault, waiting};

/// Store into the files `data` and `records`, which are duplicated. Runs of blocks are pairs (first, stop).
#[pyclass(frozen, module = "blast_engine_native")]
pub struct FileStore(pub(crate) blast_blocks::FileStore);

#[expect(clippy::needless_pass_by_value, reason = "buffers of Python are released at the end of the call")]
#[pymethods]
impl FileStore {
    #[new]
    #[pyo3(signature = (data, records, *, block_size, size, ahead, max_bytes))]
    fn new(
        data: RawFd,
        records: RawFd,
        block_size: u64,
        size: Option<u64>,
        ahead: u64,
        max_bytes: Option<u64>,
    ) -> PyResult<Self> {
        at_once(|| {
            if block_size == 0 || block_size.checked_mul(MAX_BLOCKS).is_none() || ahead > MAX_BLOCKS {
                return Err(Fault::Program(format!("blocks of {block_size} bytes, {ahead} of them ahead")));
            }
            let shape = Shape { block_size, size, ahead };
            let [data, records] = [blast_boundary::duplicate(data)?, blast_boundary::duplicate(records)?];
            Ok(FileStore(blast_blocks::FileStore::new(data.into(), records.into(), shape, max_bytes)))
        })
    }

    #[getter]
    fn position(&self) -> PyResult<u64> {
        self.look(Books::position)
    }

    #[getter]
    fn corrupt(&self) -> PyResult<u64> {
        self.look(Books::corrupt)
    }

    #[getter]
    fn reach(&self) -> PyResult<u64> {
        self.look(Books::reach)
    }

    #[getter]
    fn complete(&self) -> PyResult<bool> {
        self.look(Books::complete)
    }

    #[getter]
    fn held(&self) -> PyResult<u64> {
        self.look(|books| books.held().held())
    }

    fn has(&self, block: u64) -> PyResult<bool> {
        self.look(|books| books.held().contains(block))
    }

    fn first_missing(&self, start: u64) -> PyResult<u64> {
        self.look(|books| books.held().first_missing(start))
    }

    /// Return at most `max_runs` runs of blocks that are held (`there`), or are not.
    fn runs(&self, there: bool, start: u64, stop: u64, max_runs: usize) -> PyResult<Vec<Run>> {
        self.look(|books| books.held().runs(there, start, stop).take(max_runs).collect())
    }

    fn put_all(&self, py: Python<'_>, first: u64, row: Vec<Lent>) -> PyResult<u64> {
        let row: Vec<&[u8]> = row.iter().map(Lent::bytes).collect();
        waiting(py, || self.0.put_all(first, &row))
    }

    fn put_row(&self, py: Python<'_>, first: u64, data: Lent) -> PyResult<()> {
        let data = data.bytes();
        waiting(py, || self.0.put_row(first, data))
    }

    fn claim(&self, py: Python<'_>, first: u64, stop: u64) -> PyResult<Vec<Run>> {
        waiting(py, || self.0.claim(first, stop))
    }

    fn written(&self, py: Python<'_>, first: u64, digests: &[u8]) -> PyResult<()> {
        waiting(py, || self.0.written(first, digests))
    }

    fn release(&self, first: u64, stop: u64) -> PyResult<()> {
        self.change(|books| books.release(first, stop))
    }

    fn resume(&self, block: u64, digest: [u8; DIGEST_BYTES]) -> PyResult<()> {
        self.change(|books| books.resume(block, digest))
    }

    fn expect(&self, first: u64, digests: &[u8]) -> PyResult<bool> {
        self.change(|books| books.expect(first, &cut(digests)))
    }

    fn refuse(&self, block: u64) -> PyResult<()> {
        self.change(|books| books.refuse(block))
    }

    fn take_wrong(&self) -> PyResult<Vec<Run>> {
        self.change(Books::take_wrong)
    }

    fn end_at(&self, py: Python<'_>, size: u64) -> PyResult<()> {
        waiting(py, || self.0.end_at(size))
    }

    /// Return the sender's digests of the first `blocks`, one after the other.
    fn sent<'py>(&self, py: Python<'py>, blocks: u64) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self.look(|books| books.sent().bytes(blocks.min(MAX_BLOCKS)))?;
        Ok(PyBytes::new(py, &bytes))
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        waiting(py, || self.0.close())
    }

    /// Call this before every write, with its offset and its size, and fail as it fails: for tests.
    fn before_writes(&self, called: Py<PyAny>) {
        self.0.before_writes(Box::new(move |offset, size| {
            Python::attach(|py| called.call1(py, (offset, size)).map(drop).map_err(|error| fault(py, &error)))
        }));
    }
}

impl FileStore {
    fn look<T>(&self, read: impl FnOnce(&Books) -> T) -> PyResult<T> {
        at_once(|| Ok(read(&*self.0.books()?)))
    }

    fn change<T>(&self, how: impl FnOnce(&mut Books) -> T) -> PyResult<T> {
        at_once(|| Ok(how(&mut *self.0.books()?)))
    }
}
