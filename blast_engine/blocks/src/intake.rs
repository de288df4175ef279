//! Receive, digest and write data of a chain's link into a store, until another message arrives.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use blast_boundary::{Usage, receive};

use crate::fault::Fault;
use crate::file_store::FileStore;
use crate::frames::next_data;

/// Thresholds of `blast_transport/store/blocks/eager_writer.py`, which has the reasons.
const SLOW: Duration = Duration::from_millis(20);
const IDLE_SHARE: u32 = 10;
const PREEMPTED_SHARE: u32 = 10;
/// Blocks that are stored together: received data is still in the processor's cache when it is digested and written.
const HOT_BLOCKS: usize = 4;

/// State of a row. All bytes before `position` have arrived; `filled` bytes are in the row, of which the first `stored`
/// are stored, and `block` is the first one that is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub position: u64,
    pub block: u64,
    pub filled: usize,
    pub stored: usize,
}

/// Result of one call.
#[derive(Debug)]
pub struct Taken {
    pub place: Place,
    pub bytes: u64,
    /// Bytes of the last DATA frame that are still to come.
    pub payload: u64,
    /// The store delayed the call: another thread should write.
    pub slow: bool,
    /// Error of the link after this data.
    pub lost: Option<io::Error>,
}

impl FileStore {
    /// Read up to `max_bytes` bytes of data, of which `payload` precede the next frame, into `row`, and from there into
    /// the file: until the link has no more data, another message arrives, or the store is slow.
    ///
    /// The row holds a whole number of blocks. Its unstored rest at the end is the beginning of a block.
    pub fn take_from(
        &self,
        link: BorrowedFd<'_>,
        row: &mut [u8],
        place: Place,
        payload: u64,
        max_bytes: u64,
    ) -> Result<Taken, Fault> {
        let size = self.books()?.shape().size;
        let block_size = self.block_size();
        let fits = row.len() as u64 % block_size == 0 && place.stored <= place.filled && place.filled < row.len();
        // Only the last block of the whole may be a short one, and then nothing follows.
        if !fits || (place.stored < place.filled && place.stored as u64 % block_size != 0) {
            return Err(Fault::Program(format!("a row of {} bytes with {place:?}", row.len())));
        }
        let left = size.map_or(u64::MAX, |size| size.saturating_sub(place.position));
        let taken = Taken { place, bytes: 0, payload, slow: false, lost: None };
        let mut intake = Intake { store: self, row, left, taken };
        if let Err(error) = intake.follow(link, max_bytes)? {
            intake.taken.lost = lost(error);
        }
        intake.settle()?;
        Ok(intake.taken)
    }
}

struct Intake<'a> {
    store: &'a FileStore,
    row: &'a mut [u8],
    /// Bytes before the end of the whole.
    left: u64,
    taken: Taken,
}

impl Intake<'_> {
    /// Inside: the link's errors; outside: those of the store.
    fn follow(&mut self, link: BorrowedFd<'_>, max_bytes: u64) -> Result<io::Result<()>, Fault> {
        while self.taken.bytes < max_bytes && !self.taken.slow {
            if self.taken.payload == 0 {
                match next_data(link) {
                    Ok(Some(length)) => self.taken.payload = length,
                    Ok(None) => break,
                    Err(error) => return Ok(Err(error)),
                }
            }
            let limit = self.taken.payload.min(max_bytes - self.taken.bytes).min(self.left);
            let filled = self.taken.place.filled;
            if limit == 0 {
                break; // Data after the end, which the caller rejects.
            }
            let room = (self.end() - filled).min(usize::try_from(limit).unwrap_or(usize::MAX));
            match receive(link, &mut self.row[filled..filled + room]) {
                Ok(0) => return Ok(Err(io::ErrorKind::UnexpectedEof.into())),
                Ok(count) => self.received(count)?,
                Err(error) => return Ok(Err(error)),
            }
        }
        Ok(Ok(()))
    }

    fn received(&mut self, count: usize) -> Result<(), Fault> {
        self.taken.bytes += count as u64;
        self.taken.payload -= count as u64;
        self.left -= count as u64;
        self.taken.place.position += count as u64;
        self.taken.place.filled += count;
        if self.taken.place.filled == self.end() { self.settle() } else { Ok(()) }
    }

    /// The end to which the row is filled: an earlier call may have filled more than the cache holds.
    fn end(&self) -> usize {
        let hot = HOT_BLOCKS * self.store.block_size() as usize;
        if self.taken.place.filled < hot { hot.min(self.row.len()) } else { self.row.len() }
    }

    /// Store the complete blocks.
    fn settle(&mut self) -> Result<(), Fault> {
        let block_size = self.store.block_size() as usize;
        let place = &mut self.taken.place;
        let stop = if self.left == 0 { place.filled } else { place.filled - place.filled % block_size };
        if stop > place.stored {
            let before = Usage::now()?;
            self.store.put_row(place.block, &self.row[place.stored..stop])?;
            self.taken.slow |= is_slow(&before, &Usage::now()?);
            place.block += ((stop - place.stored) / block_size) as u64;
            place.stored = stop;
        }
        if stop == place.filled {
            (place.filled, place.stored) = (0, 0);
        }
        Ok(())
    }
}

/// Return the error, unless the link merely has, or accepts, no data now.
pub fn lost(error: io::Error) -> Option<io::Error> {
    (!matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)).then_some(error)
}

/// Return whether the store delayed the thread in between: a preempted thread has no slow store.
fn is_slow(before: &Usage, after: &Usage) -> bool {
    let computed = after.processor.saturating_sub(before.processor);
    let limit = SLOW * if after.preemptions > before.preemptions { PREEMPTED_SHARE } else { 1 };
    after.clock - before.clock > limit.max(computed * IDLE_SHARE) && after.waits > before.waits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn preempted_thread_has_no_slow_store() {
        let before = Usage { processor: Duration::from_secs(2), waits: 7, preemptions: 5, ..Usage::now().unwrap() };
        for (millis, computed, waits, preemptions, slow) in [
            (30, 2, 1, 0, true),
            (10, 0, 1, 0, false),
            (30, 4, 1, 0, false),
            (300, 2, 0, 0, false),
            (190, 2, 1, 1, false),
            (210, 2, 1, 1, true),
        ] {
            let after = Usage {
                clock: before.clock + Duration::from_millis(millis),
                processor: before.processor + Duration::from_millis(computed),
                waits: before.waits + waits,
                preemptions: before.preemptions + preemptions,
            };
            assert_eq!(is_slow(&before, &after), slow, "{millis} ms, {computed} of them computed, {waits} waits");
        }
    }
}
