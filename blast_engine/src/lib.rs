//! The compiled data path of Blast's transport, for `blast_transport/store` and its transports.
//!
//! A call that may wait or compute for long releases the interpreter's lock; the others return at once.

mod assembly;
mod bursts;
mod errors;
mod light;
mod link;
mod sender;
mod store;

use pyo3::prelude::*;

/// Version of this interface. It increases with every change of calls or their meaning; Python accepts only its own.
const INTERFACE: u32 = 8;

#[pymodule]
mod blast_engine_native {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::assembly::Assembly;
    #[pymodule_export]
    use crate::bursts::Bursts;
    #[pymodule_export]
    use crate::errors::{EngineFault, TooManyBytes};
    #[pymodule_export]
    use crate::light::Light;
    #[pymodule_export]
    use crate::link::{give_to_link, take_from_link};
    #[pymodule_export]
    use crate::sender::{SentFile, digests_of_file};
    #[pymodule_export]
    use crate::store::FileStore;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("INTERFACE", super::INTERFACE)?;
        module.add("VERSION", env!("CARGO_PKG_VERSION"))
    }

    /// Panics, so that a test sees what becomes of it.
    #[pyfunction]
    fn panic(py: Python<'_>) -> PyResult<()> {
        crate::errors::waiting(py, || -> Result<(), blast_blocks::Fault> { panic!("as asked for") })
    }
}
