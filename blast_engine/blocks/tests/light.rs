//! Optical phases through real sockets: the store holds the sent file after any loss, joining or duplication.

use std::fs::{self, File};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use std::{env, process, thread};

use blast_blocks::{
    Assembly, Expected, Fault, FileStore, HEADER_BYTES, Light, Piece, READS_FOR, ReadResult, Shape, Stay, cut, digest,
};
use blast_boundary::{Message, monotonic};
use proptest::prelude::*;

const SEGMENT: usize = 10;
const COUNT: usize = 4;
const BLOCK: usize = SEGMENT * COUNT;
const SESSION: u32 = 77;

struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = env::temp_dir().join(format!("blast-light-{}-{number}", process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        Folder(path)
    }

    fn store(&self, size: Option<u64>) -> FileStore {
        let file = |name| File::options().read(true).write(true).create_new(true).open(self.0.join(name)).unwrap();
        let shape = Shape { block_size: BLOCK as u64, size, ahead: 1000 };
        FileStore::new(file("data"), file("records"), shape, None)
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

fn content(size: usize) -> Vec<u8> {
    (0..size as u64).map(|place| (place.wrapping_mul(2_654_435_761) >> 7) as u8).collect()
}

fn datagram(segment: u64, payload: &[u8]) -> Vec<u8> {
    [&u64::from(SESSION).to_le_bytes()[..], &segment.to_le_bytes(), payload].concat()
}

/// The segments of the content, as they travel.
fn datagrams(content: &[u8]) -> Vec<Vec<u8>> {
    let blocks = content.chunks(BLOCK).enumerate();
    blocks
        .flat_map(|(block, data)| {
            let segments = data.chunks(SEGMENT).enumerate();
            segments.map(move |(index, payload)| datagram((block * COUNT + index) as u64, payload)).collect::<Vec<_>>()
        })
        .collect()
}

/// Two sockets, of which the first sends to the second, and the reader of the second.
struct OpticalPath {
    sender: UdpSocket,
    receiver: UdpSocket,
    light: Light,
}

impl OpticalPath {
    fn new(joined: bool) -> Self {
        let [sender, receiver] = [(); 2].map(|()| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
        sender.connect(receiver.local_addr().unwrap()).unwrap();
        receiver.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let source = sender.local_addr().unwrap();
        let expected = Expected { source, session: SESSION, segment_size: SEGMENT };
        OpticalPath { sender, receiver, light: Light::new(expected, COUNT, joined, None).unwrap() }
    }

    /// Read until `bytes` have arrived: sent data is available with a delay.
    fn read(&mut self, assembly: &mut Assembly, store: &FileStore, stop: u64, bytes: u64) -> Vec<ReadResult> {
        let mut all = Vec::new();
        while all.iter().map(|result: &ReadResult| result.bytes).sum::<u64>() < bytes {
            all.push(self.next(assembly, store, stop).unwrap());
        }
        all
    }

    fn next(&mut self, assembly: &mut Assembly, store: &FileStore, stop: u64) -> Result<ReadResult, Fault> {
        self.receiver.peek(&mut [0]).unwrap();
        let result = self.light.read(self.receiver.as_fd(), assembly, store, stop, at_once(&self.receiver))?;
        assert!(result.lost.is_none());
        Ok(result)
    }
}

/// A single read, regardless of `woken`.
fn at_once(woken: &UdpSocket) -> Stay<'_> {
    Stay { reads_for: READS_FOR, until: 0.0, segments: 0, gathers: 0.0, max_wait: 0.0, woken: [woken.as_fd(); 2] }
}

fn new_of(result: &[ReadResult]) -> u64 {
    result.iter().map(|result| result.new).sum()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn repairs_complete_the_file_after_any_loss(
        size in 1_usize..1500,
        known in any::<bool>(),
        joined in any::<bool>(),
        kept in prop::collection::vec(0_usize..3, 1..50),
        together in 1_usize..COUNT + 1,
    ) {
        let (folder, content) = (Folder::new(), content(size));
        let store = folder.store(known.then_some(size as u64));
        let mut assembly = Assembly::new(&store, COUNT as u64, SEGMENT, 100).unwrap();
        let mut path = OpticalPath::new(joined);
        // Each datagram is lost, or arrives once or twice.
        let sent = datagrams(&content);
        let each = || sent.iter().zip(kept.iter().cycle());
        let result: Vec<Vec<u8>> = each().flat_map(|(one, times)| vec![one.clone(); *times]).collect();
        let new = each().filter(|(_, times)| **times > 0).count() as u64;
        let mut seen = 0;
        for row in result.chunk_by(|one, _| one.len() == HEADER_BYTES + SEGMENT).flat_map(|row| row.chunks(together)) {
            let messages = if joined { vec![row.concat()] } else { row.to_vec() };
            for message in messages {
                path.sender.send(&message).unwrap();
            }
            let bytes = row.iter().map(|one| (one.len() - HEADER_BYTES) as u64).sum();
            seen += new_of(&path.read(&mut assembly, &store, u64::MAX, bytes));
        }
        prop_assert_eq!((seen, assembly.refused()), (new, 0));
        prop_assert_eq!(assembly.duplicates(), result.len() as u64 - new);
        if !known {
            store.end_at(size as u64).unwrap();
        }
        assembly.settle(&store).unwrap();
        let missing = assembly.missing(&store, 0, u64::MAX).unwrap();
        prop_assert_eq!(missing.iter().map(|(first, stop)| stop - first).sum::<u64>(), sent.len() as u64 - new);
        for (first, stop) in missing {
            for segment in first..stop {
                let payload = &sent[segment as usize][HEADER_BYTES..];
                prop_assert_eq!(assembly.repair(&store, &[(segment, payload)]).unwrap(), payload.len() as u64);
            }
        }
        prop_assert_eq!(folder.data(), content.clone());
        let digests: Vec<u8> = content.chunks(BLOCK).flat_map(digest).collect();
        let mut books = store.books().unwrap();
        prop_assert!(books.expect(0, &cut(&digests)) && books.complete());
    }

    #[test]
    fn any_bytes_are_segments_or_are_refused(
        data in prop::collection::vec(any::<u8>(), 0..300),
        ours in prop::collection::vec(any::<u64>(), 0..6),
        length in 0_usize..400,
        flags in any::<(bool, bool, bool)>(),
    ) {
        let (truncated, from_us, begins_well) = flags;
        let source = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9);
        let expected = Expected { source, session: SESSION, segment_size: SEGMENT };
        let headers: Vec<u8> = ours.iter().flat_map(|segment| datagram(*segment, &[])).collect();
        let headers = if begins_well { [headers, data].concat() } else { data };
        let message = Message { length, truncated, source: from_us.then_some(source) };
        let datagrams = length.div_ceil(HEADER_BYTES + SEGMENT);
        match expected.segments(&message, &headers) {
            Ok(segments) => {
                prop_assert!(from_us && !truncated && segments.len() == datagrams && datagrams > 0);
                for (segment, header) in segments.iter().zip(headers.chunks_exact(HEADER_BYTES)) {
                    prop_assert_eq!(datagram(*segment, &[]), header);
                }
            }
            Err(refused) => prop_assert!(refused == 1 || refused == datagrams as u64),
        }
    }

    #[test]
    fn any_pieces_are_taken_or_refused(
        pieces in prop::collection::vec((any::<u64>(), 0_u64..200, 0_usize..2000, any::<bool>()), 0..20),
        size in prop::option::of(0_u64..2000),
    ) {
        let (folder, payload) = (Folder::new(), content(2000));
        let store = folder.store(size);
        let mut assembly = Assembly::new(&store, COUNT as u64, SEGMENT, 3).unwrap();
        for (first, count, length, near) in pieces {
            let first = if near { first % 300 } else { first };
            let before = assembly.duplicates() + assembly.refused();
            let new = assembly.add_all(&store, [Piece { first, count, payload: &payload[..length] }]).unwrap();
            // Segments that are dropped for space are counted as well.
            prop_assert!(new + assembly.duplicates() + assembly.refused() - before >= count);
            let missing = assembly.missing(&store, first, u64::MAX).unwrap();
            prop_assert!(missing.iter().all(|(begin, end)| begin < end));
            assembly.take_wrong(&store).unwrap();
        }
        assembly.settle(&store).unwrap();
    }
}

#[test]
fn one_read_takes_up_to_64_blocks() {
    let (folder, content) = (Folder::new(), content(100 * BLOCK));
    let store = folder.store(Some(content.len() as u64));
    let mut assembly = Assembly::new(&store, COUNT as u64, SEGMENT, 10).unwrap();
    let mut path = OpticalPath::new(true);
    for block in datagrams(&content).chunks(COUNT) {
        path.sender.send(&block.concat()).unwrap();
    }
    let result = path.read(&mut assembly, &store, u64::MAX, content.len() as u64);
    assert!(
        result.len() >= 2 && result.iter().all(|result| result.bytes <= 64 * BLOCK as u64 && result.runs.len() == 1)
    );
    assert_eq!(new_of(&result), 100 * COUNT as u64);
    assert_eq!(folder.data(), content);
}

#[test]
fn read_ends_early_when_the_store_is_slow() {
    let (folder, content) = (Folder::new(), content(64 * BLOCK));
    let store = folder.store(Some(content.len() as u64));
    store.before_writes(Box::new(|_, _| {
        thread::sleep(Duration::from_millis(15));
        Ok(())
    }));
    let mut assembly = Assembly::new(&store, COUNT as u64, SEGMENT, 10).unwrap();
    let mut path = OpticalPath::new(true);
    for block in datagrams(&content).chunks(COUNT) {
        path.sender.send(&block.concat()).unwrap();
    }
    let result = path.read(&mut assembly, &store, u64::MAX, content.len() as u64);
    assert!(result.len() >= 2);
    assert_eq!((new_of(&result), folder.data()), (64 * COUNT as u64, content));
}

/// Result of one call that may last as long as `stay`, while another socket sends.
fn stayed(
    stay: impl for<'a> Fn(&'a UdpSocket) -> Stay<'a>,
    send: impl Fn(&UdpSocket, &UdpSocket) + Sync,
) -> ReadResult {
    let folder = Folder::new();
    let store = folder.store(Some(1000));
    let mut assembly = Assembly::new(&store, COUNT as u64, SEGMENT, 10).unwrap();
    let mut path = OpticalPath::new(true);
    let [waker, woken] = [(); 2].map(|()| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
    waker.connect(woken.local_addr().unwrap()).unwrap();
    let sender = path.sender.try_clone().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| send(&sender, &waker));
        path.receiver.peek(&mut [0]).unwrap();
        path.light.read(path.receiver.as_fd(), &mut assembly, &store, u64::MAX, stay(&woken)).unwrap()
    })
}

fn send_slowly(sender: &UdpSocket, blocks: &[usize]) {
    let content = content(1000);
    for number in blocks {
        let all = datagrams(&content);
        sender.send(&all[number * COUNT..(number + 1) * COUNT].concat()).unwrap();
        thread::sleep(Duration::from_millis(4));
    }
}

/// Return a stay of 300 s, unless another condition ends it.
fn long_stay(woken: &UdpSocket) -> Stay<'_> {
    let reads_for = Duration::from_secs(300);
    let until = monotonic() + 300.0;
    Stay { reads_for, until, segments: u64::MAX, gathers: 0.001, max_wait: 0.002, woken: [woken.as_fd(); 2] }
}

#[test]
fn read_stays_until_the_requested_segments_have_passed() {
    let result =
        stayed(|woken| Stay { segments: 20, ..long_stay(woken) }, |sender, _| send_slowly(sender, &[0, 1, 2, 3, 4]));
    assert_eq!((result.runs, result.new, result.emptied), (vec![(0, 20)], 20, true));
}

#[test]
fn read_ends_after_a_gap_in_the_segments() {
    let result = stayed(long_stay, |sender, _| send_slowly(sender, &[0, 1, 3]));
    assert_eq!((result.runs, result.new), (vec![(0, 8), (12, 16)], 12));
}

#[test]
fn read_ends_when_a_wake_socket_is_readable() {
    let result = stayed(long_stay, |sender, waker| {
        send_slowly(sender, &[0]);
        waker.send(&[0]).unwrap();
    });
    assert_eq!((result.runs, result.new), (vec![(0, 4)], 4));
}

#[test]
fn read_ends_at_its_deadline() {
    let until = monotonic() + 0.05;
    let result = stayed(|woken| Stay { until, ..long_stay(woken) }, |sender, _| send_slowly(sender, &[0]));
    assert_eq!((result.runs, result.new), (vec![(0, 4)], 4));
    assert!(monotonic() >= until);
}

#[test]
fn read_with_an_expired_deadline_does_not_wait() {
    let result = stayed(|woken| Stay { until: monotonic(), ..long_stay(woken) }, |sender, _| send_slowly(sender, &[0]));
    assert_eq!((result.runs, result.new), (vec![(0, 4)], 4));
}

#[test]
fn read_rejects_segments_beyond_the_stop() {
    let folder = Folder::new();
    let store = folder.store(Some(1000));
    let mut assembly = Assembly::new(&store, COUNT as u64, SEGMENT, 10).unwrap();
    let mut path = OpticalPath::new(true);
    for row in datagrams(&content(3 * BLOCK)).chunks(3) {
        path.sender.send(&row.concat()).unwrap();
    }
    let result = path.read(&mut assembly, &store, 8, 120);
    assert_eq!(
        (result.iter().flat_map(|result| result.runs.iter().map(|run| run.1)).max(), new_of(&result)),
        (Some(6), 6)
    );
    assert_eq!(assembly.refused(), 6);
}

#[test]
fn invalid_sizes_are_program_faults() {
    let folder = Folder::new();
    let store = folder.store(Some(1000));
    for (count, size) in [(0, SEGMENT), (65, 1), (COUNT as u64, 9), (40, 0)] {
        assert!(matches!(Assembly::new(&store, count, size, 10), Err(Fault::Program(_))), "{count} of {size}");
    }
    let source = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9);
    for (count, segment_size) in [(0, 10), (65, 10), (4, 0), (4, 70_000)] {
        let expected = Expected { source, session: 1, segment_size };
        assert!(matches!(Light::new(expected, count, true, None), Err(Fault::Program(_))), "{count} of {segment_size}");
    }
    let mut assembly = Assembly::new(&store, COUNT as u64, SEGMENT, 10).unwrap();
    let expected = Expected { source, session: 1, segment_size: 20 };
    let mut other = Light::new(expected, 2, true, None).unwrap();
    let receiver = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    assert!(matches!(
        other.read(receiver.as_fd(), &mut assembly, &store, 8, at_once(&receiver)),
        Err(Fault::Program(_))
    ));
}

#[test]
fn disk_error_fails_the_call() {
    let folder = Folder::new();
    let store = folder.store(Some(1000));
    store.before_writes(Box::new(|offset, size| {
        if offset >= 80 {
            Err(std::io::Error::from_raw_os_error(28).into())
        } else {
            assert_eq!(size, BLOCK);
            Ok(())
        }
    }));
    let mut assembly = Assembly::new(&store, COUNT as u64, SEGMENT, 10).unwrap();
    let mut path = OpticalPath::new(true);
    for row in datagrams(&content(3 * BLOCK)).chunks(COUNT) {
        path.sender.send(&row.concat()).unwrap();
    }
    let fault = loop {
        if let Err(fault) = path.next(&mut assembly, &store, u64::MAX) {
            break fault;
        }
    };
    assert!(matches!(fault, Fault::System(error) if error.raw_os_error() == Some(28)));
    assert_eq!(folder.data().len(), 80);
}
