//! Assembly of blocks from segments, over a `FileStore`; `blast_transport/store/blocks/assembly.py` is the reference.
//!
//! A block that arrives in one piece, as a super-packet, passes through without a copy, together with the blocks that
//! follow it. Python handles sealed blocks.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::block_map::{Run, append};
use crate::books::Shape;
use crate::fault::Fault;
use crate::file_store::FileStore;
use crate::masks::{MAX_SEGMENTS, bits, runs_of};

/// Buffers of blocks that were finished, for the next ones.
const MAX_SPARE: usize = 64;

/// Segments that follow one another, with their payload in one piece.
#[derive(Clone, Copy, Debug)]
pub struct Piece<'a> {
    pub first: u64,
    pub count: u64,
    pub payload: &'a [u8],
}

/// Whole blocks that follow one another and are not stored yet.
#[derive(Debug, Default)]
pub struct Row<'a> {
    first: u64,
    blocks: Vec<&'a [u8]>,
}

impl Row<'_> {
    fn stop(&self) -> u64 {
        self.first + self.blocks.len() as u64
    }
}

/// A block with some of its segments: a bit of `mask` for each; `length` is where the last one of them ends.
#[derive(Debug)]
struct Open {
    buffer: Vec<u8>,
    mask: u64,
    length: usize,
}

/// State of one block in the books.
struct Look {
    shape: Shape,
    reach: u64,
    held: bool,
}

/// Every call must pass the same store.
#[derive(Debug)]
pub struct Assembly {
    /// Segments in a block, and bytes in a segment.
    count: u64,
    size: usize,
    /// Blocks before this one are full ones, and are taken at any time.
    last: u64,
    max_open: usize,
    open: BTreeMap<u64, Open>,
    spare: Vec<Vec<u8>>,
    duplicates: u64,
    refused: u64,
}

impl Assembly {
    /// Assembly of blocks of `count` segments of `size` bytes, of which at most `max_open` may be incomplete.
    pub fn new(store: &FileStore, count: u64, size: usize, max_open: usize) -> Result<Self, Fault> {
        let whole = count.checked_mul(size as u64);
        if !(1..=MAX_SEGMENTS).contains(&count) || size == 0 || whole != Some(store.block_size()) {
            let block = store.block_size();
            return Err(Fault::Program(format!("{count} segments of {size} bytes in a block of {block}")));
        }
        let shape = *store.books()?.shape();
        let last = shape.size.map_or(0, |_| shape.blocks().saturating_sub(1));
        let (open, spare) = (BTreeMap::new(), Vec::new());
        Ok(Assembly { count, size, last, max_open, open, spare, duplicates: 0, refused: 0 })
    }

    /// Segments in a block.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Bytes in a segment.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Segments that were held.
    pub fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// Segments that were foreign, or were dropped in favor of earlier blocks.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Count `count` segments that do not belong to the session.
    pub fn refuse(&mut self, count: u64) {
        self.refused += count;
    }

    /// Return whether the block has no segments yet, and would be accepted as single full segments.
    pub fn has_room_for(&self, store: &FileStore, block: u64) -> Result<bool, Fault> {
        let full = block < self.last || length_of(store.books()?.shape(), block) == store.block_size();
        Ok(full && self.open.len() < self.max_open && !self.is_open(block))
    }

    /// Return how many more blocks may be incomplete.
    pub fn room(&self) -> usize {
        self.max_open.saturating_sub(self.open.len())
    }

    /// Copy the segments of this block that are here; the rest of `room` is undefined.
    pub fn copy(&self, store: &FileStore, block: u64, room: &mut [u8]) -> Result<(), Fault> {
        if let Some(part) = self.open.get(&block) {
            room.copy_from_slice(&part.buffer[..room.len()]);
        } else if store.books()?.held().contains(block) {
            store.read(block, room)?;
        }
        Ok(())
    }

    /// Add segments in the order of their arrival; return the number of new ones.
    pub fn add_all<'a>(
        &mut self,
        store: &FileStore,
        pieces: impl IntoIterator<Item = Piece<'a>>,
    ) -> Result<u64, Fault> {
        let (mut row, mut new) = (Row::default(), 0);
        for piece in pieces {
            new += self.add(store, &mut row, piece)?;
        }
        close(store, &mut row)?;
        Ok(new)
    }

    /// Add rows of requested segments; return the bytes of the rows with new segments.
    pub fn repair(&mut self, store: &FileStore, rows: &[(u64, &[u8])]) -> Result<u64, Fault> {
        let mut bytes = 0;
        for &(first, payload) in rows {
            let piece = Piece { first, count: payload.len().div_ceil(self.size) as u64, payload };
            if self.add_all(store, [piece])? > 0 {
                bytes += payload.len() as u64;
            }
        }
        Ok(bytes)
    }

    /// All was sent, and the store knows how much: the last block of a stream may be whole.
    pub fn settle(&mut self, store: &FileStore) -> Result<(), Fault> {
        let shape = *store.books()?.shape();
        let blocks = shape.blocks();
        // A part that does not fit cannot be the sender's.
        self.open.split_off(&blocks);
        let Some(last) = blocks.checked_sub(1) else { return Ok(()) };
        let whole = length_of(&shape, last);
        self.open.retain(|block, part| *block != last || part.length as u64 <= whole);
        self.close_if_whole(store, &shape, last)
    }

    /// The segments from `first` to before `stop` that are not here, in order.
    pub fn missing(&self, store: &FileStore, first: u64, stop: u64) -> Result<Vec<Run>, Fault> {
        let books = store.books()?;
        let stop = stop.min(self.end(books.shape(), books.reach()));
        let mut found = Vec::new();
        for (begin, end) in books.held().runs(false, first / self.count, stop.div_ceil(self.count)) {
            let mut position = first.max(begin * self.count);
            for (block, part) in self.open.range(begin..end) {
                let offset = block * self.count;
                append(&mut found, position, offset.min(stop));
                for (from, to) in runs_of(!part.mask & bits(self.count)) {
                    append(&mut found, first.max(offset + from), stop.min(offset + to));
                }
                position = position.max(offset + self.count);
            }
            append(&mut found, position, stop.min(end * self.count));
        }
        Ok(found)
    }

    /// Return the blocks received with a wrong digest since the last call, and drop their segments.
    pub fn take_wrong(&mut self, store: &FileStore) -> Result<Vec<Run>, Fault> {
        let wrong = store.books()?.take_wrong();
        for (begin, end) in &wrong {
            for block in *begin..*end {
                self.open.remove(&block);
            }
        }
        Ok(wrong)
    }

    /// Add a piece; complete blocks wait in `row` for the next ones. Return the number of new segments.
    pub fn add<'a>(&mut self, store: &FileStore, row: &mut Row<'a>, piece: Piece<'a>) -> Result<u64, Fault> {
        let (block, index) = (piece.first / self.count, piece.first % self.count);
        let whole = index == 0 && piece.count == self.count && !self.is_open(block);
        if !(whole && block == row.stop()) {
            close(store, row)?;
        }
        if !whole {
            return self.add_in_parts(store, piece);
        }
        let look = look(store, block)?;
        if !self.fits(&look, block, index, piece.payload.len()) {
            return self.add_in_parts(store, piece);
        }
        if look.held {
            self.duplicates += piece.count;
            return Ok(0);
        }
        if row.blocks.is_empty() {
            row.first = block;
        }
        row.blocks.push(piece.payload);
        Ok(piece.count)
    }

    fn is_open(&self, block: u64) -> bool {
        self.open.contains_key(&block)
    }

    fn add_in_parts(&mut self, store: &FileStore, piece: Piece<'_>) -> Result<u64, Fault> {
        let Piece { mut first, mut count, mut payload } = piece;
        if count <= self.left_of_block(first) {
            return self.add_part(store, piece);
        }
        let mut new = 0;
        while count > 0 {
            let part = count.min(self.left_of_block(first));
            let (here, rest) = payload.split_at(payload.len().min(part as usize * self.size));
            new += self.add_part(store, Piece { first, count: part, payload: here })?;
            (first, count, payload) = (first.saturating_add(part), count - part, rest);
        }
        Ok(new)
    }

    /// Segments from this one on to the end of its block.
    fn left_of_block(&self, segment: u64) -> u64 {
        self.count - segment % self.count
    }

    /// Take segments of one block.
    fn add_part(&mut self, store: &FileStore, piece: Piece<'_>) -> Result<u64, Fault> {
        let Piece { first, count, payload } = piece;
        let (block, index) = (first / self.count, first % self.count);
        let look = look(store, block)?;
        let fits = self.fits(&look, block, index, payload.len());
        if !fits || payload.len() + self.size <= count as usize * self.size {
            self.refused += count;
            return Ok(0);
        }
        if look.held {
            self.duplicates += count;
            return Ok(0);
        }
        if !self.is_open(block) && self.open.len() >= self.max_open && !self.make_room(block) {
            self.refused += count;
            return Ok(0);
        }
        let whole = self.count as usize * self.size;
        // Memory that was used is there already, and in the cache.
        let part = self.open.entry(block).or_insert_with(|| Open {
            buffer: self.spare.pop().unwrap_or_else(|| vec![0; whole]),
            mask: 0,
            length: 0,
        });
        let mask = bits(count) << index;
        let new = u64::from((mask & !part.mask).count_ones());
        self.duplicates += count - new;
        if new == 0 {
            return Ok(0);
        }
        let begin = index as usize * self.size;
        let end = begin + payload.len();
        part.buffer[begin..end].copy_from_slice(payload);
        // Earlier contents of this memory must not reach the file.
        part.buffer[end..end.max(begin + count as usize * self.size)].fill(0);
        part.mask |= mask;
        part.length = part.length.max(end);
        if part.mask == bits(self.count) || block >= self.last {
            self.close_if_whole(store, &look.shape, block)?;
        }
        Ok(new)
    }

    /// Drop the farthest incomplete block, if it is farther than this one.
    fn make_room(&mut self, block: u64) -> bool {
        let Some(farthest) = self.open.last_entry().filter(|entry| *entry.key() > block) else { return false };
        let part = farthest.remove();
        self.refused += u64::from(part.mask.count_ones());
        self.spare.push(part.buffer);
        true
    }

    /// Return whether segments of `length` bytes can exist there: all are full but the last of the block.
    fn fits(&self, look: &Look, block: u64, index: u64, length: usize) -> bool {
        let end = (index as usize * self.size + length) as u64;
        let full = length % self.size == 0;
        if block < self.last {
            return end <= self.count * self.size as u64 && full;
        }
        if block >= look.reach {
            return false;
        }
        let whole = length_of(&look.shape, block);
        match look.shape.size {
            Some(_) => end == whole || (full && end < whole),
            None => end <= whole,
        }
    }

    fn close_if_whole(&mut self, store: &FileStore, shape: &Shape, block: u64) -> Result<(), Fault> {
        let segments = match shape.size {
            Some(_) => length_of(shape, block).div_ceil(self.size as u64),
            None => self.count,
        };
        let entry = match self.open.entry(block) {
            Entry::Occupied(entry) if entry.get().mask == bits(segments) => entry,
            _ => return Ok(()),
        };
        let part = entry.remove();
        store.put_all(block, &[&part.buffer[..part.length]])?;
        if self.spare.len() < MAX_SPARE {
            self.spare.push(part.buffer);
        }
        Ok(())
    }

    /// Segments from this one on are not taken yet.
    fn end(&self, shape: &Shape, reach: u64) -> u64 {
        match reach.checked_sub(1) {
            Some(last) if shape.size.is_some() && reach == shape.blocks() => {
                last * self.count + length_of(shape, last).div_ceil(self.size as u64)
            }
            _ => reach * self.count,
        }
    }
}

/// Store what waits in the row.
pub fn close(store: &FileStore, row: &mut Row<'_>) -> Result<(), Fault> {
    if !row.blocks.is_empty() {
        store.put_all(row.first, &row.blocks)?;
        row.blocks.clear();
    }
    Ok(())
}

fn look(store: &FileStore, block: u64) -> Result<Look, Fault> {
    let books = store.books()?;
    Ok(Look { shape: *books.shape(), reach: books.reach(), held: books.held().contains(block) })
}

/// Bytes of this block, which is one of the file's.
fn length_of(shape: &Shape, block: u64) -> u64 {
    let behind = shape.size.map_or(u64::MAX, |size| size.saturating_sub(block.saturating_mul(shape.block_size)));
    behind.min(shape.block_size)
}
