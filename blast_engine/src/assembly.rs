//! An assembly as Python sees it: `blast_blocks::Assembly` with the store that it fills.

use std::sync::Mutex;

use blast_blocks::{Fault, Piece, Run};
use blast_boundary::Lent;
use pyo3::prelude::*;

use crate::errors::{at_once, waiting};
use crate::store::FileStore;

/// Of one session: its calls are made by one thread.
#[pyclass(frozen, module = "blast_engine_native")]
pub struct Assembly {
    store: Py<FileStore>,
    inner: Mutex<blast_blocks::Assembly>,
}

#[expect(clippy::needless_pass_by_value, reason = "buffers of Python are released at the end of the call")]
#[pymethods]
impl Assembly {
    /// Assembly of blocks of `segments` segments of `size` bytes, of which at most `max_open` may be incomplete.
    #[new]
    #[pyo3(signature = (store, *, segments, size, max_open))]
    fn new(store: Py<FileStore>, segments: u64, size: usize, max_open: usize) -> PyResult<Self> {
        let inner = at_once(|| blast_blocks::Assembly::new(&store.get().0, segments, size, max_open))?;
        Ok(Assembly { store, inner: Mutex::new(inner) })
    }

    #[getter]
    fn duplicates(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |inner, _| Ok(inner.duplicates()))
    }

    #[getter]
    fn refused(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |inner, _| Ok(inner.refused()))
    }

    fn refuse(&self, py: Python<'_>, count: u64) -> PyResult<()> {
        self.with(py, |inner, _| {
            inner.refuse(count);
            Ok(())
        })
    }

    /// Pieces are (first segment, number of segments, payload).
    fn add_all(&self, py: Python<'_>, pieces: Vec<(u64, u64, Lent)>) -> PyResult<u64> {
        let pieces: Vec<Piece<'_>> = pieces
            .iter()
            .map(|(first, count, payload)| Piece { first: *first, count: *count, payload: payload.bytes() })
            .collect();
        self.with(py, |inner, store| inner.add_all(store, pieces))
    }

    /// Rows are (first segment, payload).
    fn repair(&self, py: Python<'_>, rows: Vec<(u64, Lent)>) -> PyResult<u64> {
        let rows: Vec<(u64, &[u8])> = rows.iter().map(|(first, payload)| (*first, payload.bytes())).collect();
        self.with(py, |inner, store| inner.repair(store, &rows))
    }

    fn settle(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, blast_blocks::Assembly::settle)
    }

    fn missing(&self, py: Python<'_>, first: u64, stop: u64) -> PyResult<Vec<Run>> {
        self.with(py, |inner, store| inner.missing(store, first, stop))
    }

    fn take_wrong(&self, py: Python<'_>) -> PyResult<Vec<Run>> {
        self.with(py, blast_blocks::Assembly::take_wrong)
    }
}

impl Assembly {
    /// Do it without the interpreter's lock.
    pub fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut blast_blocks::Assembly, &blast_blocks::FileStore) -> Result<T, Fault> + Send,
    ) -> PyResult<T> {
        let store = &self.store.get().0;
        waiting(py, || {
            let broken = |_| Fault::Program("an earlier panic has left this assembly half changed".to_owned());
            work(&mut *self.inner.lock().map_err(broken)?, store)
        })
    }
}
