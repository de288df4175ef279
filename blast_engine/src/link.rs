//! A chain's link, for Python: calls that read or write data until another message is due.

use std::io;
use std::os::fd::RawFd;

use blast_blocks::{Place, Span, give_to};
use blast_boundary::{Room, with_lent};
use pyo3::prelude::*;

use crate::errors::waiting;
use crate::store::FileStore;

/// (position, block, filled, stored), as in `blast_blocks::Place`.
type InRow = (u64, u64, usize, usize);

/// Bytes sent, bytes announced, the rest of the frame head that announces them, and the error of the link.
pub type Given = (u64, u64, Vec<u8>, Lost);

/// Error number of a link or socket; 0: the other side has closed it.
pub type Lost = Option<i32>;

/// `blast_blocks::FileStore::take_from` with (`payload`, `max_bytes`) in `frames`; return the state of the row, the
/// bytes read, the bytes before the next frame, whether the store was slow, and the error of the link.
#[pyfunction]
pub fn take_from_link(
    py: Python<'_>,
    store: &Bound<'_, FileStore>,
    link: RawFd,
    mut row: Room,
    place: InRow,
    frames: (u64, u64),
) -> PyResult<(InRow, u64, u64, bool, Lost)> {
    let (position, block, filled, stored) = place;
    let place = Place { position, block, filled, stored };
    let (store, row, (payload, max_bytes)) = (&store.get().0, row.bytes(), frames);
    let taken = waiting(py, || with_lent(link, |link| store.take_from(link, row, place, payload, max_bytes))?)?;
    let Place { position, block, filled, stored } = taken.place;
    Ok(((position, block, filled, stored), taken.bytes, taken.payload, taken.slow, number_of(taken.lost)))
}

/// `blast_blocks::give_to` with (offset, announced, stop).
#[pyfunction]
pub fn give_to_link(py: Python<'_>, link: RawFd, file: RawFd, run: (u64, u64, u64), max_bytes: u64) -> PyResult<Given> {
    let span = span_of(run);
    let given = waiting(py, || {
        with_lent(link, |link| with_lent(file, |mut file| give_to(link, &mut file, span, max_bytes)))??
    })?;
    Ok(parts_of(given))
}

pub fn span_of((offset, promised, stop): (u64, u64, u64)) -> Span {
    Span { offset, promised, stop }
}

pub fn parts_of(given: blast_blocks::Given) -> Given {
    (given.bytes, given.promised, given.head, number_of(given.lost))
}

pub fn number_of(lost: Option<io::Error>) -> Lost {
    lost.map(|error| error.raw_os_error().unwrap_or_default())
}
