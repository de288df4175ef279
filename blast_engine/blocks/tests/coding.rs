//! Erasure coding: any sufficient selection of segments and parity gives the data, and wrong parity costs no more than
//! the blocks that it makes wrong.

use std::fs::{self, File};
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use std::{env, process};

use blast_blocks::{
    Assembly, Bursts, Cut, Ends, Expected, FileStore, Groups, Light, MAX_PARITY, READS_FOR, Recovery, Shape, Stay,
    decode, digest, encode, number_of,
};
use proptest::prelude::*;

const SESSION: u32 = 77;
const SEGMENT: usize = 10;
const COUNT: usize = 4;
const BLOCK: usize = SEGMENT * COUNT;

fn content(size: usize) -> Vec<u8> {
    (0..size as u64).map(|place| (place.wrapping_mul(2_654_435_761) >> 7) as u8).collect()
}

fn parity(data: &[u8], size: usize) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    encode(data, size, (0, MAX_PARITY), |index, segment| {
        assert_eq!(index, all.len());
        all.push(segment.to_vec());
    })
    .unwrap();
    all
}

/// Files that are removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = env::temp_dir().join(format!("blast-coding-{}-{number}", process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        Folder(path)
    }

    fn file(&self, name: &str) -> File {
        File::options().read(true).write(true).create_new(true).open(self.0.join(name)).unwrap()
    }

    fn source(&self, content: &[u8]) -> File {
        let path = self.0.join("source");
        fs::write(&path, content).unwrap();
        File::open(path).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

/// A sender and a receiver of a file in groups of blocks.
struct Session {
    folder: Folder,
    groups: Groups,
    content: Vec<u8>,
    sender: UdpSocket,
    receiver: UdpSocket,
    store: FileStore,
    assembly: Assembly,
    light: Light,
}

impl Session {
    fn new(size: usize, blocks: usize, max_open: usize) -> Self {
        let folder = Folder::new();
        let cut = Cut { size: size as u64, segment_size: SEGMENT, block_segments: COUNT };
        let groups = Groups::new(cut, blocks).unwrap();
        let [sender, receiver] = [(); 2].map(|()| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
        sender.connect(receiver.local_addr().unwrap()).unwrap();
        receiver.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let shape = Shape { block_size: BLOCK as u64, size: Some(size as u64), ahead: 1000 };
        let store = FileStore::new(folder.file("data"), folder.file("records"), shape, None);
        let assembly = Assembly::new(&store, COUNT as u64, SEGMENT, max_open).unwrap();
        let expected = Expected { source: sender.local_addr().unwrap(), session: SESSION, segment_size: SEGMENT };
        let light = Light::new(expected, COUNT, false, Some(Recovery::new(groups))).unwrap();
        let content = content(size);
        let digests: Vec<_> = content.chunks(BLOCK).map(digest).collect();
        assert!(store.books().unwrap().expect(0, &digests));
        Session { folder, groups, content, sender, receiver, store, assembly, light }
    }

    fn segments(&self) -> u64 {
        self.content.len().div_ceil(SEGMENT) as u64
    }

    fn datagram(&mut self, number: u64, payload: &[u8]) {
        let datagram = [&u64::from(SESSION).to_le_bytes()[..], &number.to_le_bytes(), payload].concat();
        self.sender.send(&datagram).unwrap();
        self.read(payload.len() as u64, self.segments());
    }

    /// Read until `bytes` of payload have arrived; return the number of new segments.
    fn read(&mut self, bytes: u64, sent: u64) -> u64 {
        let (mut come, mut new) = (0, 0);
        while come < bytes {
            self.receiver.peek(&mut [0]).unwrap();
            let woken = [self.receiver.as_fd(); 2];
            let stay = Stay { reads_for: READS_FOR, until: 0.0, segments: 0, gathers: 0.0, max_wait: 0.0, woken };
            let (assembly, store) = (&mut self.assembly, &self.store);
            let result = self.light.read(self.receiver.as_fd(), assembly, store, sent, stay).unwrap();
            assert!(result.runs.iter().all(|run| run.0 < run.1 && run.1 <= sent));
            (come, new) = (come + result.bytes, new + result.new);
        }
        new
    }

    /// Send this segment of the file.
    fn segment(&mut self, segment: u64) {
        let begin = segment as usize * SEGMENT;
        let payload = self.content[begin..self.content.len().min(begin + SEGMENT)].to_vec();
        self.datagram(segment, &payload);
    }

    /// Send these parity segments of a group as a sender does; return the number of new segments.
    fn parity(&mut self, group: u64, first: usize, stop: usize) -> u64 {
        let source = self.folder.source(&self.content);
        let ends = Ends { light: self.sender.as_fd(), file: source.as_fd(), woken: self.sender.as_fd() };
        let mut bursts = Bursts::new(SESSION, self.groups.cut, false);
        let sent = bursts.parity(ends, self.groups, group, (first, stop)).unwrap();
        assert!(sent.refused.is_none());
        assert_eq!(
            (sent.datagrams, sent.wire_bytes),
            ((stop - first) as u64, ((stop - first) * (58 + SEGMENT)) as u64)
        );
        self.read(((stop - first) * SEGMENT) as u64, self.segments())
    }

    fn missing(&self) -> u64 {
        let missing = self.assembly.missing(&self.store, 0, self.segments()).unwrap();
        missing.iter().map(|run| run.1 - run.0).sum()
    }

    fn data(&self) -> Vec<u8> {
        fs::read(self.folder.0.join("data")).unwrap()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_sufficient_selection_decodes_to_the_data(
        count in 1..400_usize,
        half_size in 1..40_usize,
        lost in prop::collection::vec(any::<prop::sample::Index>(), 0..=MAX_PARITY),
        chosen in Just((0..MAX_PARITY).collect::<Vec<_>>()).prop_shuffle(),
    ) {
        let (size, data) = (2 * half_size, content(count * 2 * half_size));
        let mut there = vec![true; count];
        for index in lost {
            there[index.index(count)] = false;
        }
        let parity = parity(&data, size);
        // The library's own function, with all in one call.
        let reference = reed_solomon_simd::encode(count, MAX_PARITY, data.chunks(size)).unwrap();
        prop_assert_eq!(&parity, &reference);
        let mut damaged = data.clone();
        for (segment, _) in damaged.chunks_mut(size).zip(&there).filter(|(_, there)| !**there) {
            segment.fill(0xEE);
        }
        let missing = there.iter().filter(|there| !**there).count();
        let selected = chosen[..missing].iter().map(|index| (*index, parity[*index].as_slice()));
        decode(&mut damaged, size, &there, selected).unwrap();
        prop_assert_eq!(damaged, data);
    }

    #[test]
    fn receiver_with_enough_parity_holds_the_file(
        size in 1..1500_usize,
        blocks in 1..9_usize,
        lost in prop::collection::vec(any::<bool>(), 150),
        skipped in 0..3_usize,
        early in any::<bool>(),
    ) {
        let mut session = Session::new(size, blocks, 100);
        let all = session.segments();
        for segment in (0..all).filter(|segment| !lost[*segment as usize]) {
            session.segment(segment);
        }
        for group in 0..all.div_ceil(session.groups.segments()) {
            let (first, stop) = session.groups.span(group);
            let missing = (first..stop).filter(|segment| lost[*segment as usize]).count();
            let end = MAX_PARITY.min(skipped + missing);
            if missing > 0 && skipped + missing <= MAX_PARITY {
                // One is too few, whatever it is.
                prop_assert!(missing == 1 || session.parity(group, skipped + 1, end) == 0);
                if early || missing == 1 {
                    prop_assert_eq!(session.parity(group, skipped, skipped + 1), missing as u64);
                } else {
                    // A repair of the same amount.
                    session.segment((first..stop).find(|segment| lost[*segment as usize]).unwrap());
                }
            }
        }
        prop_assert_eq!(session.missing(), 0);
        prop_assert_eq!(session.data(), session.content.clone());
        prop_assert_eq!((session.assembly.refused(), session.store.books().unwrap().corrupt()), (0, 0));
    }
}

#[test]
fn wrong_parity_costs_a_block_and_is_not_used_again() {
    let mut session = Session::new(2 * BLOCK, 2, 100);
    for segment in (0..8).filter(|segment| *segment != 2) {
        session.segment(segment);
    }
    session.datagram(number_of(0, 0), &[9; SEGMENT]);
    assert_eq!(session.assembly.take_wrong(&session.store).unwrap(), vec![(0, 1)]);
    assert_eq!(session.missing(), COUNT as u64);
    assert_eq!(session.parity(0, 0, 8), 0);
    for segment in 0..4 {
        session.segment(segment);
    }
    assert_eq!((session.missing(), session.data()), (0, session.content.clone()));
}

#[test]
fn parity_that_no_sender_sends_is_refused() {
    let mut session = Session::new(3 * BLOCK, 2, 100);
    let numbers = [number_of(2, 0), number_of(1 << 26, 0), number_of(0, MAX_PARITY), u64::MAX];
    for (count, number) in (1..).zip(numbers) {
        session.datagram(number, &[0; SEGMENT]);
        assert_eq!(session.assembly.refused(), count, "{number:x}");
    }
    session.datagram(number_of(0, 0), &[0; SEGMENT - 1]);
    assert_eq!(session.assembly.refused(), 5);
    // Of a group that cannot have been sent yet.
    let datagram = [&u64::from(SESSION).to_le_bytes()[..], &number_of(1, 0).to_le_bytes(), &[0; SEGMENT]].concat();
    session.sender.send(&datagram).unwrap();
    assert_eq!(session.read(SEGMENT as u64, 11), 0);
    assert_eq!(session.assembly.refused(), 6);
}

#[test]
fn parity_gives_way_to_incomplete_blocks() {
    // Memory for two blocks, which the parity of one group fills.
    let mut session = Session::new(20 * BLOCK, 4, 2);
    session.parity(0, 0, 8);
    session.segment(16);
    assert_eq!(session.assembly.room(), 1);
    for segment in 8..16 {
        session.segment(segment);
    }
    assert_eq!(session.missing(), 71);
    // The eight that were kept would suffice.
    assert_eq!(session.parity(0, 8, 9), 0);
    assert_eq!(session.parity(0, 9, 12), 0);
}

#[test]
fn groups_have_even_segments_and_few_blocks() {
    let cut = Cut { size: 100, segment_size: 10, block_segments: 4 };
    for (cut, blocks) in [
        (Cut { segment_size: 11, ..cut }, 1),
        (Cut { segment_size: 0, ..cut }, 1),
        (Cut { block_segments: 65, ..cut }, 1),
        (cut, 0),
        (cut, 17),
    ] {
        Groups::new(cut, blocks).unwrap_err();
    }
}
