//! Memory of a Python object, for as long as a call takes that does without the interpreter's lock.

use std::slice;

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The bytes of `bytes`, `bytearray`, or a contiguous `memoryview` of bytes.
///
/// Python keeps them in place until this is dropped. The owner must not write to them meanwhile, as with `hashlib` and
/// `socket.send`, which read memory in the same way; concurrent writes may or may not be visible, and their digest is
/// then undefined.
pub struct Lent(PyBuffer<u8>);

impl Lent {
    pub fn bytes(&self) -> &[u8] {
        if self.0.len_bytes() == 0 {
            return &[];
        }
        // SAFETY: the buffer is one contiguous piece (checked in `extract`) of initialized bytes, and the object
        // exports it, unmoved, while it is borrowed. Its owner does not write to it.
        unsafe { slice::from_raw_parts(self.0.buf_ptr().cast(), self.0.len_bytes()) }
    }
}

impl<'py> FromPyObject<'_, 'py> for Lent {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        contiguous(object).map(Lent)
    }
}

/// Writable memory of a `bytearray` or a contiguous `memoryview` of one.
///
/// As with `socket.recv_into`, the owner must not access it meanwhile, and must pass it only once.
pub struct Room(PyBuffer<u8>);

impl Room {
    pub fn bytes(&mut self) -> &mut [u8] {
        if self.0.len_bytes() == 0 {
            return &mut [];
        }
        // SAFETY: as in `Lent`; it is writable (checked in `extract`), and its owner does not access it.
        unsafe { slice::from_raw_parts_mut(self.0.buf_ptr().cast(), self.0.len_bytes()) }
    }
}

impl<'py> FromPyObject<'_, 'py> for Room {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let buffer = contiguous(object)?;
        if buffer.readonly() {
            Err(PyValueError::new_err("the buffer is read-only; a writable buffer is needed"))
        } else {
            Ok(Room(buffer))
        }
    }
}

fn contiguous(object: Borrowed<'_, '_, PyAny>) -> PyResult<PyBuffer<u8>> {
    let buffer = PyBuffer::get(&object)?;
    if buffer.is_c_contiguous() { Ok(buffer) } else { Err(PyValueError::new_err("bytes in pieces")) }
}
