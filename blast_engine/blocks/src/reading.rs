//! A file that is sent, and must not end before it did when it was opened.

use std::io;
use std::os::fd::BorrowedFd;

use blast_boundary::read_at;

use crate::fault::Fault;

/// Fill `room` from `offset` on. `Fault::Shorter`, with where the file ends, if that is before.
pub fn read_whole(file: BorrowedFd<'_>, room: &mut [u8], offset: u64) -> Result<(), Fault> {
    let mut filled = 0;
    while filled < room.len() {
        match read_at(file, &mut room[filled..], offset + filled as u64) {
            Ok(0) => return Err(Fault::Shorter(offset + filled as u64)),
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
