//! Memory of a Python object, for as long as a call takes that does without the interpreter's lock.

use std::slice;

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The bytes of `bytes`, `bytearray`, or a contiguous `memoryview` of bytes.
///
/// Python keeps them where they are until this is dropped. Whoever lends does not write to them meanwhile, as with
/// `hashlib` and `socket.send`, which read memory in the same way; what he does write may or may not be seen, and is
/// then not what was digested.
pub struct Lent(PyBuffer<u8>);

impl Lent {
    pub fn bytes(&self) -> &[u8] {
        if self.0.len_bytes() == 0 {
            return &[];
        }
        // SAFETY: the buffer is one contiguous piece (looked at when it was lent) of so many initialized bytes, and the
        // object exports it, unmoved, for as long as we have it. That nobody writes to it is what its owner promises.
        unsafe { slice::from_raw_parts(self.0.buf_ptr().cast(), self.0.len_bytes()) }
    }
}

impl<'py> FromPyObject<'_, 'py> for Lent {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        contiguous(object).map(Lent)
    }
}

/// Memory to be written to, of a `bytearray` or a contiguous `memoryview` of one.
///
/// As with `socket.recv_into`, whoever lends it leaves it alone meanwhile, and lends it once.
pub struct Room(PyBuffer<u8>);

impl Room {
    pub fn bytes(&mut self) -> &mut [u8] {
        if self.0.len_bytes() == 0 {
            return &mut [];
        }
        // SAFETY: as of `Lent`; it may be written to (looked at when it was lent), and that nobody else reads or writes
        // it is what its owner promises.
        unsafe { slice::from_raw_parts_mut(self.0.buf_ptr().cast(), self.0.len_bytes()) }
    }
}

impl<'py> FromPyObject<'_, 'py> for Room {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let buffer = contiguous(object)?;
        if buffer.readonly() { Err(PyValueError::new_err("bytes that nobody may change")) } else { Ok(Room(buffer)) }
    }
}

fn contiguous(object: Borrowed<'_, '_, PyAny>) -> PyResult<PyBuffer<u8>> {
    let buffer = PyBuffer::get(&object)?;
    if buffer.is_c_contiguous() { Ok(buffer) } else { Err(PyValueError::new_err("bytes in pieces")) }
}
