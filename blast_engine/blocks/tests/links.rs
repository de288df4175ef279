//! Data through real sockets: the store holds the sent data for any fragmentation, and forwards it from there.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::{env, process};

use blast_blocks::{CHUNK_BYTES, Fault, FileStore, Given, Place, Shape, Span, announcing, give_to};
use proptest::prelude::*;

const BLOCK: u64 = 40;
/// More than is stored at a time.
const ROW: usize = 240;
const FRESH: Place = Place { position: 0, block: 0, filled: 0, stored: 0 };

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = env::temp_dir().join(format!("blast-links-{}-{name}", process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        Folder(path)
    }

    fn file(&self, name: &str) -> File {
        File::options().read(true).write(true).create(true).truncate(true).open(self.0.join(name)).unwrap()
    }

    fn with_content(&self, content: &[u8]) -> File {
        let file = self.file("source");
        file.write_all_at(content, 0).unwrap();
        file
    }

    fn store(&self, size: Option<u64>) -> FileStore {
        let shape = Shape { block_size: BLOCK, size, ahead: 1000 };
        FileStore::new(self.file("data"), self.file("records"), shape, None)
    }

    fn data(&self) -> Vec<u8> {
        fs::read(self.0.join("data")).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

fn pair() -> (UnixStream, UnixStream) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    theirs.set_nonblocking(true).unwrap();
    (ours, theirs)
}

fn content(size: usize) -> Vec<u8> {
    (0..size as u64).map(|place| (place.wrapping_mul(2_654_435_761) >> 7) as u8).collect()
}

/// The content as it travels, in DATA of these lengths, over and over.
fn framed(content: &[u8], lengths: &[usize]) -> Vec<u8> {
    let (mut stream, mut rest) = (Vec::new(), content);
    for length in lengths.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (piece, behind) = rest.split_at(rest.len().min(*length));
        stream.extend(announcing(piece.len() as u64));
        stream.extend(piece);
        rest = behind;
    }
    stream
}

proptest! {
    #[test]
    fn file_gets_the_sent_data_under_any_fragmentation(
        size in 1usize..2000, lengths in prop::collection::vec(1usize..400, 1..4),
        pieces in prop::collection::vec(1usize..300, 1..5), cap in 1u64..500, known: bool,
    ) {
        let folder = Folder::new("torn");
        let (sent, store) = (content(size), folder.store(known.then_some(size as u64)));
        let (ours, mut theirs) = pair();
        let stream = framed(&sent, &lengths);
        let (mut row, mut place, mut payload, mut written) = ([0; ROW], FRESH, 0, 0);
        for piece in pieces.iter().cycle() {
            let end = stream.len().min(written + piece);
            theirs.write_all(&stream[written..end]).unwrap();
            written = end;
            loop {
                let taken = store.take_from(ours.as_fd(), &mut row, place, payload, cap).unwrap();
                prop_assert!(taken.lost.is_none() && taken.bytes <= cap);
                prop_assert_eq!(taken.place.position, place.position + taken.bytes);
                (place, payload) = (taken.place, taken.payload);
                let ends = known && place.position == size as u64;
                let whole = if ends { size as u64 } else { place.position - place.position % BLOCK };
                prop_assert_eq!(&folder.data(), &sent[..whole as usize]);
                prop_assert_eq!(store.books().unwrap().position(), whole.div_ceil(BLOCK));
                if taken.bytes == 0 {
                    break;
                }
            }
            if written == stream.len() {
                break;
            }
        }
        prop_assert_eq!((place.position, payload), (size as u64, 0));
    }

    #[test]
    fn give_to_sends_the_file_in_data_frames(
        size in 1usize..3000, begin in 0usize..2000, cap in 1u64..900,
        reads in prop::collection::vec(1usize..700, 1..4),
    ) {
        let folder = Folder::new("given");
        let sent = content(size);
        let file = folder.with_content(&sent);
        let begin = begin.min(size - 1);
        let (ours, mut theirs) = pair();
        let (mut offset, mut promised, mut stream) = (begin as u64, 0, Vec::new());
        for read in reads.iter().cycle() {
            let given = give_to(ours.as_fd(), &mut file.as_fd(), Span { offset, promised, stop: size as u64 }, cap).unwrap();
            prop_assert!(given.lost.is_none() && given.head.is_empty());
            offset += given.bytes;
            promised = given.promised;
            let mut room = vec![0; *read];
            if let Ok(count) = theirs.read(&mut room) {
                stream.extend(&room[..count]);
            }
            if offset == size as u64 {
                break;
            }
        }
        drop(ours);
        theirs.set_nonblocking(false).unwrap();
        theirs.read_to_end(&mut stream).unwrap();
        prop_assert_eq!(stream, framed(&sent[begin..], &[CHUNK_BYTES as usize]));
    }
}

#[test]
fn full_link_blocks_and_continues_where_it_stopped() {
    let folder = Folder::new("full");
    let sent = content(3 << 20);
    let file = folder.with_content(&sent);
    let (ours, mut theirs) = pair();
    let (mut given, mut offset, mut stream) = (Given::default(), 0, Vec::<u8>::new());
    let mut room = vec![0; 70_001];
    let mut waited = 0;
    while stream.len() < sent.len() + 3 * announcing(1).len() {
        let span = Span { offset, promised: given.promised, stop: sent.len() as u64 };
        given = give_to(ours.as_fd(), &mut file.as_fd(), span, u64::MAX).unwrap();
        assert!(given.lost.is_none() && given.head.is_empty());
        offset += given.bytes;
        waited += u64::from(offset < sent.len() as u64);
        while let Ok(count) = theirs.read(&mut room) {
            stream.extend(&room[..count]);
        }
    }
    assert!(waited > 0 && stream == framed(&sent, &[CHUNK_BYTES as usize]));
}

#[test]
fn other_and_invalid_frames_stay_in_the_link() {
    let folder = Folder::new("others");
    let (store, mut row) = (folder.store(None), [0; ROW]);
    let data = framed(&content(50), &[50]);
    for tail in [&[17, 0, 0, 0, 41, 0, 8, 0][..], &[0, 0, 0, 0, 36, 0, 8, 0], &[1, 0, 0, 0, 36, 0, 7, 0], &[1, 0, 0]] {
        let (mut ours, mut theirs) = pair();
        theirs.write_all(&[&data, tail].concat()).unwrap();
        let taken = store.take_from(ours.as_fd(), &mut row, FRESH, 0, 1000).unwrap();
        assert_eq!((taken.bytes, taken.payload), (50, 0));
        assert!(taken.lost.is_none());
        let mut left = [0; 20];
        assert_eq!(ours.read(&mut left).unwrap(), tail.len());
        assert_eq!(&left[..tail.len()], tail);
    }
}

#[test]
fn take_from_leaves_data_beyond_the_end() {
    let folder = Folder::new("behind");
    let (store, mut row) = (folder.store(Some(50)), [0; ROW]);
    let (ours, mut theirs) = pair();
    theirs.write_all(&framed(&content(60), &[60])).unwrap();
    let taken = store.take_from(ours.as_fd(), &mut row, FRESH, 0, 1000).unwrap();
    assert_eq!((taken.bytes, taken.payload), (50, 10));
    let again = store.take_from(ours.as_fd(), &mut row, taken.place, taken.payload, 1000).unwrap();
    assert_eq!((again.bytes, again.payload, again.place), (0, 10, taken.place));
    assert_eq!(folder.data(), content(50));
}

#[test]
fn link_closed_within_a_frame_reports_the_loss_after_its_data() {
    let folder = Folder::new("ends");
    let (store, mut row) = (folder.store(None), [0; ROW]);
    let (ours, mut theirs) = pair();
    theirs.write_all(&framed(&content(100), &[100])[..90]).unwrap();
    drop(theirs);
    let taken = store.take_from(ours.as_fd(), &mut row, FRESH, 0, 1000).unwrap();
    assert_eq!((taken.bytes, taken.payload), (82, 18));
    assert!(taken.lost.is_some_and(|error| error.raw_os_error().is_none()));
    assert_eq!(folder.data(), content(80));
}

#[test]
fn truncated_file_and_invalid_row_are_faults() {
    let folder = Folder::new("faults");
    let file = folder.with_content(&content(30));
    let (ours, _theirs) = pair();
    assert!(matches!(
        give_to(ours.as_fd(), &mut file.as_fd(), Span { offset: 10, promised: 0, stop: 50 }, 100),
        Err(Fault::Shorter(30))
    ));
    let store = folder.store(None);
    for (length, filled, stored) in [(ROW - 1, 0, 0), (ROW, ROW, 0), (ROW, 40, 80), (ROW, 50, 10)] {
        let place = Place { filled, stored, ..FRESH };
        let refused = store.take_from(ours.as_fd(), &mut [0; ROW][..length], place, 1, 1);
        assert!(matches!(refused, Err(Fault::Program(_))), "{length} {place:?}");
    }
}

#[test]
fn link_without_a_reader_is_lost() {
    let folder = Folder::new("no_reader");
    let file = folder.with_content(&content(30));
    let (ours, theirs) = pair();
    drop(theirs);
    let given = give_to(ours.as_fd(), &mut file.as_fd(), Span { offset: 0, promised: 0, stop: 30 }, 100).unwrap();
    assert_eq!(given.bytes, 0);
    assert!(given.lost.is_some_and(|error| error.raw_os_error().is_some()));
}
