//! Data of one session at one receiver, in a file: `blast_transport/store/blocks/store.py` for targets that are files.
//!
//! Every method may be called from any thread. Digests are computed before any lock; one lock separates writers, while
//! the file makes them wait, and another, which is never held during a wait, guards the books. While blocks are written
//! only digests may arrive, and the written blocks are then checked again: claims and the end of a stream wait.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::block_map::Run;
use crate::books::{Books, Shape};
use crate::digests::{Digest, cut, digest};
use crate::fault::Fault;
use crate::records::Records;

/// The system's word for a descriptor that is closed.
const EBADF: i32 = 9;

/// Hook before bytes are written at an offset: for tests of slow, stuck and broken disks.
pub type Before = Box<dyn Fn(u64, usize) -> Result<(), Fault> + Send + Sync>;

/// `max_bytes` is what the host takes of a file.
pub struct FileStore {
    books: Mutex<Books>,
    files: Mutex<Option<Files>>,
    block_size: u64,
    max_bytes: Option<u64>,
    before: OnceLock<Before>,
}

struct Files {
    data: File,
    records: Records,
}

impl FileStore {
    /// The store owns both files until it is closed.
    pub fn new(data: File, records: File, shape: Shape, max_bytes: Option<u64>) -> Self {
        FileStore {
            books: Mutex::new(Books::new(shape)),
            files: Mutex::new(Some(Files { data, records: Records::new(records) })),
            block_size: shape.block_size,
            max_bytes,
            before: OnceLock::new(),
        }
    }

    /// This happens before every write, from now on; it takes no other after that.
    pub fn before_writes(&self, before: Before) {
        let _ = self.before.set(before);
    }

    pub fn block_size(&self) -> u64 {
        self.block_size
    }

    /// Lock the books; the caller must not wait for anything while it holds them.
    pub fn books(&self) -> Result<MutexGuard<'_, Books>, Fault> {
        self.books.lock().map_err(|_| broken())
    }

    /// Store blocks from `first` on; return the number stored. The others were held, are too early or are wrong.
    pub fn put_all(&self, first: u64, row: &[&[u8]]) -> Result<u64, Fault> {
        if row.iter().any(|block| block.len() as u64 > self.block_size) {
            return Err(Fault::Program(format!("a block of more than {} bytes", self.block_size)));
        }
        let digests: Vec<Digest> = row.iter().map(|block| digest(block)).collect();
        let mut files = self.files()?;
        let good = {
            let mut books = self.books()?;
            let stop = books.reach().min(first.saturating_add(row.len() as u64));
            books.good(first, &digests, stop)
        };
        let mut taken = 0;
        for (begin, end) in good {
            let files = open(&mut files)?;
            self.check_end((end - 1) * self.block_size + row[(end - 1 - first) as usize].len() as u64)?;
            for block in begin..end {
                self.write(files, block, row[(block - first) as usize])?;
            }
            taken += self.hold(files, begin, &digests[(begin - first) as usize..(end - first) as usize])?;
        }
        Ok(taken)
    }

    /// Store blocks from `first` on, one after the other in `data`, from a chain.
    ///
    /// Wrong blocks are written as well, where none is held: successors in the chain are served from the file, and
    /// verify the data themselves.
    pub fn put_row(&self, first: u64, data: &[u8]) -> Result<(), Fault> {
        let digests: Vec<Digest> = data.chunks(self.block_size as usize).map(digest).collect();
        let mut files = self.files()?;
        let free = {
            let books = self.books()?;
            books.free(first, books.shape().blocks().min(first.saturating_add(digests.len() as u64)))
        };
        for (begin, end) in &free {
            let offset = |block: u64| (data.len() as u64).min((block - first) * self.block_size) as usize;
            self.write(open(&mut files)?, *begin, &data[offset(*begin)..offset(*end)])?;
        }
        for (begin, end) in free {
            let row = &digests[(begin - first) as usize..(end - first) as usize];
            self.hold(open(&mut files)?, begin, row)?;
        }
        Ok(())
    }

    /// Fill `room` from the beginning of this block on, which is held.
    pub fn read(&self, block: u64, room: &mut [u8]) -> Result<(), Fault> {
        Ok(open(&mut *self.files()?)?.data.read_exact_at(room, block * self.block_size)?)
    }

    /// The blocks from `first` to before `stop` that the caller may now write by himself.
    pub fn claim(&self, first: u64, stop: u64) -> Result<Vec<Run>, Fault> {
        // Not between the two checks of a writer.
        let _files = self.files()?;
        let mut books = self.books()?;
        let size = books.shape().size.unwrap_or(u64::MAX);
        if let Some((_, end)) = books.free(first, stop.min(books.reach())).last() {
            self.check_end(size.min(end * self.block_size))?;
        }
        Ok(books.claim(first, stop))
    }

    /// Record that claimed blocks are written, with these digests of the written data.
    pub fn written(&self, first: u64, digests: &[u8]) -> Result<(), Fault> {
        let digests = cut(digests);
        let mut files = self.files()?;
        let count = {
            let mut books = self.books()?;
            books.release(first, first.saturating_add(digests.len() as u64));
            books.shape().blocks().saturating_sub(first).min(digests.len() as u64) as usize
        };
        self.hold(open(&mut files)?, first, &digests[..count])?;
        Ok(())
    }

    /// Set the size of a stream.
    pub fn end_at(&self, size: u64) -> Result<(), Fault> {
        let _files = self.files()?;
        self.books()?.end_at(size);
        Ok(())
    }

    /// Write what a session that goes on has to know, and close the files. As often as you like, and after any panic.
    pub fn close(&self) -> Result<(), Fault> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        match files.take() {
            Some(mut files) => Ok(files.records.flush()?),
            None => Ok(()),
        }
    }

    fn files(&self) -> Result<MutexGuard<'_, Option<Files>>, Fault> {
        self.files.lock().map_err(|_| broken())
    }

    fn write(&self, files: &Files, block: u64, data: &[u8]) -> Result<(), Fault> {
        let offset = block * self.block_size;
        self.check_end(offset + data.len() as u64)?;
        if let Some(before) = self.before.get() {
            before(offset, data.len())?;
        }
        Ok(files.data.write_all_at(data, offset)?)
    }

    /// Hold and record those of these written blocks that match the sender's digests; return their number.
    ///
    /// They are checked again after writing, because the sender's digests may have arrived meanwhile.
    fn hold(&self, files: &mut Files, first: u64, digests: &[Digest]) -> Result<u64, Fault> {
        let row = |begin: u64, end: u64| &digests[(begin - first) as usize..(end - first) as usize];
        let good = {
            let mut books = self.books()?;
            let good = books.good(first, digests, first + digests.len() as u64);
            for (begin, end) in &good {
                books.hold(*begin, row(*begin, *end));
            }
            good
        };
        let mut held = 0;
        for (begin, end) in good {
            files.records.note(begin, row(begin, end))?;
            held += end - begin;
        }
        Ok(held)
    }

    fn check_end(&self, end: u64) -> Result<(), Fault> {
        // A stream announces no size, and a sender may lie about one.
        if self.max_bytes.is_some_and(|max| end > max) { Err(Fault::TooManyBytes(end)) } else { Ok(()) }
    }
}

fn open(files: &mut Option<Files>) -> Result<&mut Files, Fault> {
    files.as_mut().ok_or_else(|| io::Error::from_raw_os_error(EBADF).into())
}

fn broken() -> Fault {
    Fault::Program("an earlier panic has left this store half changed".to_owned())
}
