//! A sender's file through real sockets: the link gets the file, and each block is digested once.

use std::fs::{self, File};
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::{env, process};

use blast_blocks::{CHUNK_BYTES, DIGEST_BYTES, Fault, SentFile, Span, announcing, digest, digests_of_file};
use proptest::prelude::*;

const BLOCK: u64 = 40;

fn file_with(name: &str, content: &[u8]) -> File {
    let path = env::temp_dir().join(format!("blast-sent-{}-{name}", process::id()));
    let file = File::options().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
    fs::remove_file(path).unwrap();
    file.write_all_at(content, 0).unwrap();
    file
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

proptest! {
    /// Several links in turn, as when successors are lost, each from an earlier or a later byte on.
    #[test]
    fn sent_data_is_the_file_and_its_digests_are_those_of_reading(
        size in 1usize..3000, cap in 1u64..900, spans in prop::collection::vec((0usize..3000, 1usize..3000), 1..5),
    ) {
        let sent = content(size);
        let file = file_with("spans", &sent);
        let all = digests_of_file(file.as_fd(), 0, (size as u64).div_ceil(BLOCK), BLOCK, size as u64).unwrap();
        let mut source = SentFile::new(BLOCK, size as u64);
        let mut known = 0;
        for (begin, length) in spans {
            let begin = begin.min(size - 1);
            let stop = size.min(begin + length);
            let (ours, mut theirs) = pair();
            let (mut offset, mut promised) = (begin as u64, 0);
            while offset < stop as u64 {
                let span = Span { offset, promised, stop: stop as u64 };
                let (given, found) = source.give_to(ours.as_fd(), file.as_fd(), span, cap).unwrap();
                prop_assert!(given.lost.is_none() && given.head.is_empty());
                (offset, promised) = (offset + given.bytes, given.promised);
                if !found.digests.is_empty() {
                    prop_assert!(found.first >= known);
                    let place = found.first as usize * DIGEST_BYTES;
                    prop_assert_eq!(&found.digests, &all[place..place + found.digests.len()]);
                    known = found.first + (found.digests.len() / DIGEST_BYTES) as u64;
                }
                prop_assert!(known * BLOCK >= offset.min(size as u64), "no data leaves without a digest");
            }
            drop(ours);
            let mut stream = Vec::new();
            theirs.read_to_end(&mut stream).unwrap();
            let head = announcing((stop - begin) as u64);
            prop_assert_eq!(stream, [&head[..], &sent[begin..stop]].concat());
        }
    }
}

#[test]
fn link_that_accepts_part_of_a_block_gets_the_rest_of_the_announced_data() {
    let sent = content(3 << 20);
    let (size, block_size) = (sent.len() as u64, 64_064);
    let file = file_with("full", &sent);
    let mut source = SentFile::new(block_size, size);
    let (ours, mut theirs) = pair();
    let (mut offset, mut promised, mut digests, mut parts) = (0, 0, Vec::new(), 0);
    let (mut stream, mut room) = (Vec::<u8>::new(), vec![0; 70_001]);
    while offset < size {
        let span = Span { offset, promised, stop: size };
        let (given, found) = source.give_to(ours.as_fd(), file.as_fd(), span, u64::MAX).unwrap();
        assert!(given.lost.is_none() && given.head.is_empty());
        (offset, promised) = (offset + given.bytes, given.promised);
        parts += u64::from(offset % block_size != 0 && offset < size);
        digests.extend(found.digests);
        while let Ok(count) = theirs.read(&mut room) {
            stream.extend(&room[..count]);
        }
    }
    let frames: Vec<u8> = sent
        .chunks(CHUNK_BYTES as usize)
        .flat_map(|chunk| [&announcing(chunk.len() as u64)[..], chunk].concat())
        .collect();
    assert!(parts > 0 && stream == frames);
    assert_eq!(digests, sent.chunks(block_size as usize).flat_map(digest).collect::<Vec<u8>>());
}

#[test]
fn truncated_file_is_a_fault_and_its_earlier_blocks_stay_digested() {
    let sent = content(1000);
    let file = file_with("shorter", &sent);
    let mut source = SentFile::new(BLOCK, 1000);
    let (ours, _theirs) = pair();
    let (given, found) =
        source.give_to(ours.as_fd(), file.as_fd(), Span { offset: 0, promised: 0, stop: 160 }, 1000).unwrap();
    assert_eq!((given.bytes, found.first, found.digests.len()), (160, 0, 4 * DIGEST_BYTES));
    file.set_len(190).unwrap();
    for _ in 0..2 {
        let span = Span { offset: 160, promised: 0, stop: 1000 };
        assert!(matches!(source.give_to(ours.as_fd(), file.as_fd(), span, 1000), Err(Fault::Shorter(190))));
    }
    let early = Span { offset: 10, promised: 0, stop: 40 };
    let (given, found) = source.give_to(ours.as_fd(), file.as_fd(), early, 1000).unwrap();
    assert_eq!((given.bytes, found.digests.len()), (30, 0));
}

#[test]
fn unreadable_file_is_an_error_of_the_file_not_of_the_link() {
    let (ours, theirs) = pair();
    let mut source = SentFile::new(BLOCK, 100);
    let span = Span { offset: 0, promised: 0, stop: 100 };
    assert!(matches!(source.give_to(ours.as_fd(), theirs.as_fd(), span, 100), Err(Fault::System(_))));
    drop(theirs);
    let file = file_with("lost", &content(100));
    let (given, _) = source.give_to(ours.as_fd(), file.as_fd(), span, 100).unwrap();
    assert!(given.bytes == 0 && given.lost.is_some());
}
