//! A chain's link as Python sees it: calls that take or give data for as long as nothing else is to be done.

use std::io;
use std::os::fd::RawFd;

use blast_blocks::{Place, Span, give_to};
use blast_boundary::{Room, with_lent};
use pyo3::prelude::*;

use crate::errors::waiting;
use crate::store::FileStore;

/// (position, block, filled, stored), as of `blast_blocks::Place`.
type InRow = (u64, u64, usize, usize);

/// What is wrong with a link, or a socket: the system's number for it; 0: the other side has closed it.
pub type Lost = Option<i32>;

/// As of `blast_blocks::FileStore::take_from`, with (payload, most) in `frames`: where the row stands, bytes that came,
/// bytes that still come before the next frame, whether the store was slow, and what is wrong with the link.
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
    let (store, row, (payload, most)) = (&store.get().0, row.bytes(), frames);
    let taken = waiting(py, || with_lent(link, |link| store.take_from(link, row, place, payload, most))?)?;
    let Place { position, block, filled, stored } = taken.place;
    Ok(((position, block, filled, stored), taken.bytes, taken.payload, taken.slow, number_of(taken.lost)))
}

/// As of `blast_engine`, with (offset, announced, before where): bytes that went, bytes that are announced, what is left
/// of the frame that announces them, and what is wrong with the link.
#[pyfunction]
pub fn give_to_link(
    py: Python<'_>,
    link: RawFd,
    file: RawFd,
    run: (u64, u64, u64),
    most: u64,
) -> PyResult<(u64, u64, Vec<u8>, Lost)> {
    let (offset, promised, stop) = run;
    let span = Span { offset, promised, stop };
    let given = waiting(py, || with_lent(link, |link| with_lent(file, |file| give_to(link, file, span, most)))??)?;
    Ok((given.bytes, given.promised, given.head, number_of(given.lost)))
}

pub fn number_of(lost: Option<io::Error>) -> Lost {
    lost.map(|error| error.raw_os_error().unwrap_or_default())
}
